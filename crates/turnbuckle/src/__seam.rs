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
//! | `fuzzing` | the targets in `fuzz/` | parsers and seals; compiled with `--cfg fuzzing` only |
//! | `models` | the concurrency models in `models/` | a connection and a cache without I/O; compiled with `--cfg shuttle` only |

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

/// The internals that fuzz targets call directly.
#[cfg(all(fuzzing, feature = "client", feature = "server", feature = "http"))]
pub mod fuzzing {
    use std::{
        future::poll_fn,
        pin::pin,
        task::{Context, Poll, Waker},
        time::Duration,
    };

    use bytes::Bytes;
    use tokio::io::AsyncRead;

    use crate::{
        rpc::{Line, Lines as _},
        server::KeyRing,
        transport::{framing::LineReader, http::sse::SseReader},
    };

    /// Returns the lines of a stream that never waits, `None` for a line over the limit.
    pub fn lines(
        stream: impl AsyncRead + Unpin + Send + 'static,
        limit: usize,
    ) -> Vec<Option<Bytes>> {
        let mut reader = LineReader::new(stream, limit);
        let mut lines = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let next = pin!(poll_fn(|context| reader.poll_next(context)));
            let Poll::Ready(Ok(Some(line))) = next.poll(&mut context) else { return lines };
            lines.push(match line {
                Line::Whole(line) => Some(line),
                Line::TooLong(_) => None,
            });
        }
    }

    /// A server-sent event: kind, id, retry and data.
    pub type EventFields = (Option<Bytes>, Option<Bytes>, Option<Duration>, Bytes);

    /// Returns the events of a stream that arrives in these chunks, `None` for an event over the limit.
    pub fn events<'a>(
        chunks: impl IntoIterator<Item = &'a [u8]>,
        limit: usize,
    ) -> Vec<Option<EventFields>> {
        let mut reader = SseReader::new(limit);
        let mut events = Vec::new();
        for chunk in chunks {
            reader.push(Bytes::copy_from_slice(chunk));
            while let Some(event) = reader.next() {
                events
                    .push(event.ok().map(|event| (event.kind, event.id, event.retry, event.data)));
            }
        }
        events
    }

    /// Seals a text as a server does, so that a target can reach the code behind the seal.
    pub fn seal(keys: &KeyRing, purpose: &[u8], text: &[u8]) -> String {
        keys.seal(purpose, text).1
    }
}

/// The internals that concurrency models drive from their own threads.
#[cfg(all(shuttle, feature = "client"))]
pub mod models {
    pub use crate::{
        client::cache::models::{ModelCache, ModelCall},
        rpc::connection::models::{ModelHandler, ModelLink, on_switch},
    };
}
