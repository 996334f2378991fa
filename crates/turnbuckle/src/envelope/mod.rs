//! What every request says about itself.
//!
//! Owns: the `_meta` envelope of the modern era, written by `stamp` and checked by
//! `classify`; over HTTP also what is repeated in headers (`mirror`, `annotations`), in which
//! order it is checked (`ladder`), and the status of an error; how params are decoded (`params`),
//! which value of a text an error of that is about (`place`) and what a question to a client needs of it (`question`). Does not own: any I/O, or which era
//! a connection speaks.

#[cfg(feature = "http")]
pub(crate) mod annotations;
#[cfg(feature = "server")]
pub(crate) mod classify;
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) mod ladder;
#[cfg(feature = "http")]
pub(crate) mod mirror;
pub(crate) mod params;
pub(crate) mod place;
pub(crate) mod question;
#[cfg(feature = "client")]
pub(crate) mod stamp;
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) mod status;
