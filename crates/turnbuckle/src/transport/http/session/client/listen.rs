//! Owns the stream on which the server speaks unasked. Does not own what is said on it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{
    ClientSession, HttpClientShared, lock,
    receive::{self, StreamOrigin},
    reconnect::{self, StreamOwner, StreamReply},
    restart,
    resume::{ConnectionEnd, RetryDelay, chance, plan},
    source::{ResumableStream, StreamItem},
};
use crate::{
    rpc::BoxFuture,
    transport::http::client::{
        events::{out_of_memory, too_long},
        timing::OPEN_STREAM,
    },
};

/// Opens the stream in place of any earlier one. The future resolves when it is open, or known
/// not to be there, or takes too long; dropping it does not close the stream.
pub(super) fn open(wire: &Arc<HttpClientShared>) -> BoxFuture<'static, ()> {
    let (opened, head) = oneshot::channel();
    let session = wire.legacy.session();
    let task = tokio::spawn(listen(wire.clone(), session, opened)).abort_handle();
    let before = lock(&wire.legacy.listening).replace(task);
    if let Some(before) = before {
        before.abort();
    }
    // A close that came in between did not find it.
    if wire.closed.get().is_some() {
        wire.legacy.end();
    }
    Box::pin(async move {
        let _ = tokio::time::timeout(OPEN_STREAM, head).await;
    })
}

async fn listen(wire: Arc<HttpClientShared>, session: ClientSession, opened: oneshot::Sender<()>) {
    let (mut source, mut was_open) =
        match reconnect::ask(&wire, &session, None, StreamOwner::Server).await {
            StreamReply::Open(body) => {
                let _ = opened.send(());
                (ResumableStream::new(Some(body), &wire, None), true)
            }
            // A server that is just starting, say: nobody waits for it, but it is tried again.
            passing if passing.is_passing() => {
                drop(opened);
                let mut source = ResumableStream::new(None, &wire, None);
                source.failed();
                (source, false)
            }
            // 2025-11-25 transports: 405 says so; other servers say it otherwise.
            _ => return tracing::debug!("the server has no stream to listen on"),
        };
    loop {
        match source.next().await {
            StreamItem::Message(data) => {
                receive::receive(&wire, StreamOrigin { session: &session, own: None }, data);
            }
            // It was skipped, and others follow.
            StreamItem::TooLong | StreamItem::TooMuch => {
                tracing::warn!("{}", too_long(&wire));
            }
            StreamItem::OutOfMemory(refused) => {
                tracing::warn!("{}", out_of_memory(&wire, &refused));
            }
            StreamItem::Ended(ending) => {
                let whose = StreamOwner::Server;
                let again = reconnect::reconnect(&wire, &session, &mut source, ending, whose).await;
                let Err(error) = again else {
                    was_open = true;
                    continue;
                };
                if error.status() == Some(404) && session.id.is_some() && was_open {
                    return open_anew(&wire, &session).await;
                }
                return tracing::warn!(%error, "what the server says unasked is no longer heard");
            }
        }
    }
}

/// Asks for another session in place of this one. Success ends this task, as the stream of the
/// new session takes its place.
async fn open_anew(wire: &Arc<HttpClientShared>, session: &ClientSession) {
    let policy = &wire.legacy.resuming;
    if policy.attempts == 0 {
        return;
    }
    let mut failures: u32 = 0;
    loop {
        // A server that forgets every session at once must not be asked for more all the time.
        reconnect::token(wire).await;
        let Err(error) = restart::restart(wire, session.generation).await else { return };
        tracing::warn!(%error, "the session is gone");
        if !reconnect::may_pass(&error) {
            return;
        }
        failures = policy.at_most(failures + 1);
        if let Some(plan) =
            plan(policy, (ConnectionEnd::Clean, RetryDelay::Never), failures, chance())
        {
            tokio::time::sleep(plan.wait).await;
        }
    }
}
