//! Responses to a received request, and the messages that precede the response.

use std::{
    any::Any,
    sync::Arc,
    task::{Context, Poll},
};

use turnbuckle_types::{Raw, RequestId, RpcError};

#[cfg(all(feature = "http", feature = "server"))]
use crate::rpc::pending::Serial;
use crate::rpc::{
    BoxFuture, Exchange, Outcome, Outgoing, connection::ConnectionReplies, in_process,
};

/// The decision about a request.
pub(crate) enum Reply {
    /// Answered: no handler had to run.
    Now(Outcome),
    /// Answered by a handler, which the dispatcher runs.
    Later(BoxFuture<'static, Outcome>),
    /// Dropped without a response, and counted.
    Never,
}

#[cfg(feature = "server")]
impl Reply {
    /// Returns a future of the outcome.
    pub(crate) fn into_outcome(self) -> BoxFuture<'static, Outcome> {
        match self {
            Reply::Now(outcome) => Box::pin(std::future::ready(outcome)),
            Reply::Later(running) => running,
            Reply::Never => Box::pin(std::future::pending()),
        }
    }
}

/// Sends messages that belong to one running request: notifications, and requests to the peer.
#[derive(Clone)]
pub(crate) struct Replies(Way);

#[derive(Clone)]
enum Way {
    /// On a stream connection.
    Stream(ConnectionReplies),
    /// In this process.
    Direct(Arc<in_process::Notes>),
    /// On an HTTP response, for one of its requests.
    #[cfg(all(feature = "http", feature = "server"))]
    Http(Arc<dyn Replying>, Option<Serial>),
    /// Nowhere: a client over HTTP sends nothing but its response.
    #[cfg(all(
        feature = "http",
        any(feature = "client", all(feature = "auth", feature = "server"))
    ))]
    Nowhere,
}

impl Replies {
    /// Sends on a stream connection.
    pub(super) fn stream(replies: ConnectionReplies) -> Replies {
        Replies(Way::Stream(replies))
    }

    /// Sends to a client in this process.
    pub(crate) fn direct(notes: Arc<in_process::Notes>) -> Replies {
        Replies(Way::Direct(notes))
    }

    /// Sends on an HTTP response, for `request` if it answers several.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn http(stream: Arc<dyn Replying>, request: Option<Serial>) -> Replies {
        Replies(Way::Http(stream, request))
    }

    /// Discards notifications and fails requests.
    #[cfg(all(
        feature = "http",
        any(feature = "client", all(feature = "auth", feature = "server"))
    ))]
    pub(crate) fn nowhere() -> Replies {
        Replies(Way::Nowhere)
    }

    /// Queues a notification whose params `render` appends. Pending while the request has
    /// too many waiting; a no-op once it has ended.
    pub(crate) fn poll_note(
        &self,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        match &self.0 {
            Way::Stream(replies) => replies.poll_note(context, method, render),
            Way::Direct(notes) => notes.poll_push(context, method, render),
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, request) => stream.poll_note(*request, context, method, render),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => Poll::Ready(()),
        }
    }

    /// Ready when no notification of this request waits to be sent, or it has ended.
    pub(crate) fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        match &self.0 {
            Way::Stream(replies) => replies.poll_clear(context),
            Way::Direct(notes) => notes.poll_clear(context),
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, _) => stream.poll_clear(context),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => Poll::Ready(()),
        }
    }

    /// Sets the result that an orderly shutdown of this side gives, instead of an error.
    pub(crate) fn at_shutdown(&self, farewell: Raw) {
        match &self.0 {
            Way::Stream(replies) => replies.at_shutdown(farewell),
            Way::Direct(_) => {}
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, _) => stream.at_shutdown(farewell),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => {}
        }
    }

    /// Ends the HTTP response where the client can resume the stream.
    pub(crate) fn release(&self) {
        match &self.0 {
            Way::Stream(_) | Way::Direct(_) => {}
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, _) => stream.release(),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => {}
        }
    }

    /// Sends a request to the peer that belongs to this one.
    pub(crate) fn ask(&self, request: Outgoing) -> Exchange {
        match &self.0 {
            Way::Stream(replies) => replies.ask(request),
            Way::Direct(notes) => notes.ask(request),
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, own) => stream.clone().ask(*own, request),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => {
                Exchange::failed(crate::error::Error::refused("nothing can be asked here"))
            }
        }
    }
}

/// The outgoing messages of an HTTP response. The HTTP transport implements it.
///
/// `request` names one of several requests that share the response; `None` where there is only one.
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) trait Replying: Send + Sync + 'static {
    /// Queues a notification whose params `render` appends. Pending while too many wait; a
    /// no-op once the request has ended.
    fn poll_note(
        &self,
        request: Option<Serial>,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()>;
    /// Ready when no notification of this request waits to be sent, or it has ended.
    fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()>;
    /// Sets the result that an orderly shutdown gives, instead of an error.
    fn at_shutdown(&self, farewell: Raw);
    /// Sends a request to the peer that belongs to this one.
    fn ask(self: Arc<Self>, request: Option<Serial>, question: Outgoing) -> Exchange;
    /// Ends the HTTP response but not the request: the client resumes the stream. Does nothing where
    /// the client can't.
    fn release(&self);
}

/// The error for a panic. Its payload goes to the log and nowhere else.
pub(crate) fn panicked(id: &RequestId, payload: &(dyn Any + Send)) -> RpcError {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is not text");
    tracing::error!(%id, panic = text, "a handler panicked");
    RpcError::internal("internal error")
}
