//! A call as a stream of its events. The call runs while the stream is polled.

use std::{
    future::{IntoFuture, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;
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
/// use turnbuckle::CallEvent;
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
    outlet: Arc<Outlet>,
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
    /// # use turnbuckle::{CallEvent, Client, Ctx, Server, tool};
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
        let outlet = Arc::<Outlet>::default();
        self.request.outlet = Some(outlet.clone());
        CallEvents { call: Some(self.into_future()), done: None, outlet }
    }
}

/// A layer may have the call elsewhere: there nobody waits for who takes nothing any more.
impl<T> Drop for CallEvents<T> {
    fn drop(&mut self) {
        self.outlet.close();
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
        if let Poll::Ready(said) = self.outlet.poll_take(context) {
            return Poll::Ready(Some(match said {
                Said::Progress(progress) => CallEvent::Progress(progress),
                Said::Log(message) => CallEvent::Log(message),
                Said::Missed => CallEvent::Missed,
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

/// The way from a call to the stream that it runs in: room for one, so that what nobody takes
/// waits where the wire has its bounds. The two need not be polled by the same task.
#[derive(Default)]
pub(crate) struct Outlet(Mutex<Passing>);

#[derive(Default)]
struct Passing {
    said: Option<Said>,
    taker: Option<Waker>,
    /// A layer may have several attempts at the call under way.
    tellers: Vec<Waker>,
    /// Nobody takes anything any more.
    closed: bool,
}

/// What the server says before it answers.
pub(super) enum Said {
    Progress(Progress),
    Log(LogMessage),
    Missed,
}

impl Outlet {
    fn lock(&self) -> MutexGuard<'_, Passing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_take(&self, context: &mut Context<'_>) -> Poll<Said> {
        let mut passing = self.lock();
        let Some(said) = passing.said.take() else {
            passing.taker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let tellers = std::mem::take(&mut passing.tellers);
        drop(passing);
        tellers.into_iter().for_each(Waker::wake);
        Poll::Ready(said)
    }

    fn close(&self) {
        let mut passing = self.lock();
        passing.closed = true;
        let tellers = std::mem::take(&mut passing.tellers);
        drop(passing);
        tellers.into_iter().for_each(Waker::wake);
    }

    /// Returns when it has been taken, or nobody will.
    pub(super) async fn say(&self, said: Said) {
        let mut said = Some(said);
        poll_fn(|context| {
            let mut passing = self.lock();
            if passing.closed {
                return Poll::Ready(());
            }
            let mut taker = None;
            // What another attempt has said, or one that was dropped since, is taken first.
            if passing.said.is_none() {
                if said.is_none() {
                    return Poll::Ready(());
                }
                passing.said = said.take();
                taker = passing.taker.take();
            }
            // Who is polled again stands here once.
            passing.tellers.retain(|teller| !teller.will_wake(context.waker()));
            passing.tellers.push(context.waker().clone());
            drop(passing);
            if let Some(taker) = taker {
                taker.wake();
            }
            Poll::Pending
        })
        .await;
    }
}
