//! The internals that `turnbuckle-gateway` and `turnbuckle-host` are built on.
//!
//! Nothing here is covered by semantic versioning: these two crates are released together with this
//! one, and any release may change or remove an item. Other crates must not use it.
//!
//! | items | used by | for |
//! |---|---|---|
//! | [`error()`], [`with_source`], [`copy_error`] | both | creating and copying an [`Error`] |
//! | [`Forward`], [`ForwardConnection`], [`ForwardedRequest`], [`ClientScope`], [`SessionMemory`], [`forwarding_server`] | gateway | answering every request of a server elsewhere |
//! | [`Caller`], [`ClientPeer`] | gateway | notifying and asking the client of such a server |
//! | [`ServerEvents`], [`observe`], [`describe`] | gateway | receiving everything that a server sends |
//! | [`ForwardRequest`], [`forward`], [`notify`], [`claim_resource`], [`ResourceClaim`], [`learn_tools`], [`lacks_headers`] | gateway | sending requests whose params are already encoded |
//! | [`Exchange`], [`ExchangeEvent`], [`Note`] | gateway | one request in flight, and its messages |
//! | [`decode`], [`decode_as`], [`lacking`], [`written_at`], [`covers`] | gateway | rules of the protocol that both sides share |

use std::borrow::Cow;

use crate::{Error, ErrorKind};

#[cfg(feature = "client")]
pub use crate::client::seam::{
    ForwardRequest, ResourceClaim, ServerEvents, claim_resource, covers, describe, forward,
    lacks_headers, learn_tools, notify, observe,
};
#[cfg(feature = "server")]
pub use crate::protocol::capabilities::written_at;
#[cfg(feature = "server")]
pub use crate::server::connection::forward::{
    Caller, ClientPeer, ClientScope, Forward, ForwardConnection, ForwardedRequest, SessionMemory,
    forwarding_server,
};
#[cfg(any(feature = "client", feature = "server"))]
pub use crate::{
    protocol::{
        capabilities::lacking,
        params::{decode, decode_as},
    },
    rpc::{Exchange, ExchangeEvent, Note},
};

/// Creates an error.
pub fn error(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(kind, message)
}

/// Sets the source of an error.
pub fn with_source(
    error: Error,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    error.with_source(source)
}

/// Returns a copy of an error without its source.
#[cfg(feature = "client")]
pub fn copy_error(error: &Error) -> Error {
    error.again()
}
