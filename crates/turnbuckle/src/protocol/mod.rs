//! What every request says about itself.
//!
//! Owns: the `_meta` envelope of the modern era, written by `stamp` and checked by
//! `classify`; over HTTP also what is repeated in headers (`mirror`, `annotations`), in which
//! order it is checked (`route_http_request`), and the status of an error; how params are decoded (`params`),
//! which value of a text an error of that is about (`place`) and what a question to a client needs of it (`question`). Does not own: any I/O, or which era
//! a connection speaks.

pub(crate) mod capabilities;
#[cfg(feature = "server")]
pub(crate) mod classify;
pub(crate) mod elicitation;
#[cfg(feature = "http")]
pub(crate) mod headers;
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) mod http_checks;
#[cfg(any(feature = "server", all(feature = "client", feature = "validate")))]
#[cfg_attr(
    not(feature = "server"),
    expect(dead_code, unreachable_pub, reason = "what users see of it belongs to servers")
)]
pub(crate) mod json_schema;
#[cfg(feature = "http")]
pub(crate) mod param_headers;
pub(crate) mod params;
pub(crate) mod place;
pub(crate) mod sampling;
#[cfg(feature = "server")]
pub(crate) mod sealed;
#[cfg(feature = "client")]
pub(crate) mod stamp;
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) mod status;
pub(crate) mod trace_context;
