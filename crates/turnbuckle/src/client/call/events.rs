//! A call as a stream of its events. The call runs while the stream is polled.

use std::{
    future::{IntoFuture, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use tokio::sync::mpsc;
use turnbuckle_types::{LogMessage, Progress};

use super::Call;
use crate::error::Result;

/// What happens to a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallEvent<T> {
    /// The server says how far it is.
    Progress(Progress),
    /// The server logged something for this call, in either era. A log message names no request, so
    /// that only wires have it on which a call has a stream of its own: Streamable HTTP, and in
    /// process. On those that all calls share (stdio and other byte streams, HTTP+SSE of 2024-11-05)
    /// nothing says which call it is about: [`on_notification`](crate::ClientBuilder::on_notification)
    /// hears it there, as it does everywhere. What is logged is said by
    /// [`Client::set_log_level`](crate::Client::set_log_level) or
    /// [`Call::log_level`](crate::Call::log_level).
    Log(LogMessage),
    /// Some of what was said gave way, the oldest first, before what follows: see [`Call::events`].
    Missed,
    /// The end: nothing follows.
    Done(Result<T>),
}

/// A call as a stream: what is said while it runs, in order, then how it ended.
///
/// Nothing is sent before it is polled, and it goes on only while it is polled. Dropping it cancels
/// the call.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// use turnbuckle::client::CallEvent;
/// let mut events = client.call_tool("render", serde_json::json!({"scene": 3})).events();
/// while let Some(event) = events.next().await {
///     match event {
///         CallEvent::Progress(progress) => eprintln!("{} done", progress.progress),
///         CallEvent::Log(message) => eprintln!("{}: {}", message.level, message.data.as_str()),
///         CallEvent::Done(result) => println!("{}", result?.to_text()),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct CallEvents<T> {
    /// `None` once it has ended.
    call: Option<Pin<Box<dyn Future<Output = Result<T>> + Send>>>,
    /// How it ended, while the last that was said before is read.
    done: Option<Box<Result<T>>>,
    notes: mpsc::Receiver<CallNote>,
}

impl<T: Send + 'static> Call<T> {
    /// The call as a stream: progress, what the server logs for it, then the result. The server is
    /// asked for progress. Dropping the stream cancels the call.
    ///
    /// All of it is told, in order, to whoever takes it as it comes. In process and on the call's own
    /// stream over Streamable HTTP nothing gives way: a server that is not read is held up. On wires
    /// that all calls share (stdio and other byte streams, HTTP+SSE, the stream that a legacy session has
    /// for all) one call may not hold up the others, so that more than
    /// [`queued_notifications`](crate::Limits::queued_notifications) that wait, because the stream is
    /// not polled, cost the oldest of them. [`CallEvent::Missed`] says so, once, where they would have
    /// been. The end is never lost.
    ///
    /// ```
    /// # use turnbuckle::{Client, Ctx, Server, client::CallEvent, tool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> turnbuckle::Result<()> {
    /// let count = tool("count", async |ctx: Ctx| ctx.progress(1).await);
    /// let client = Client::in_process(&Server::new("demo", "1.0").tool(count)).await?;
    /// let mut events = client.call_tool("count", ()).events();
    /// assert!(matches!(events.next().await, Some(CallEvent::Progress(_))));
    /// assert!(matches!(events.next().await, Some(CallEvent::Done(Ok(_)))));
    /// assert!(events.next().await.is_none());
    /// # Ok(()) }
    /// ```
    pub fn events(mut self) -> CallEvents<T> {
        // One, so that the others wait where the wire has its limits.
        let (sender, notes) = mpsc::channel(1);
        self.request.notes = Some(sender);
        CallEvents { call: Some(self.into_future()), done: None, notes }
    }
}

impl<T> CallEvents<T> {
    /// The next event. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<CallEvent<T>> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<CallEvent<T>>> {
        if let Some(call) = &mut self.call
            && let Poll::Ready(done) = call.as_mut().poll(context)
        {
            (self.call, self.done) = (None, Some(Box::new(done)));
        }
        let note = match &self.call {
            Some(_) => match self.notes.poll_recv(context) {
                Poll::Ready(note) => note,
                Poll::Pending => None,
            },
            // Unlike `poll_recv` this is never pending while there is one.
            None => self.notes.try_recv().ok(),
        };
        if let Some(note) = note {
            return Poll::Ready(Some(match note {
                CallNote::Progress(progress) => CallEvent::Progress(progress),
                CallNote::Log(message) => CallEvent::Log(message),
                CallNote::Missed => CallEvent::Missed,
            }));
        }
        match (self.done.take(), &self.call) {
            (Some(done), _) => Poll::Ready(Some(CallEvent::Done(*done))),
            (None, Some(_)) => Poll::Pending,
            (None, None) => Poll::Ready(None),
        }
    }
}

impl<T> Stream for CallEvents<T> {
    type Item = CallEvent<T>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<CallEvent<T>>> {
        self.poll(context)
    }
}

impl<T> std::fmt::Debug for CallEvents<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallEvents").field("over", &self.call.is_none()).finish_non_exhaustive()
    }
}

/// A notification that belongs to a call.
pub(crate) enum CallNote {
    Progress(Progress),
    Log(LogMessage),
    Missed,
}
