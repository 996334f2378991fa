//! Owns the stream on which the server speaks unasked. Does not own what is said on it.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::{
    Session, Wire, lock, receive,
    reconnect::{self, Whose},
    restart,
    send::{self, Shot},
    source::{Next, Source, too_long},
};
use crate::{dispatch::BoxFuture, transport::http::client::whole::Kind};

/// How long whoever connects waits for the stream to be open.
const OPENING: Duration = Duration::from_secs(3);

/// Opens the stream in place of any earlier one. The future resolves when it is open, or known
/// not to be there, or takes too long; dropping it does not close the stream.
pub(super) fn open(wire: &Arc<Wire>) -> BoxFuture<'static, ()> {
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
        let _ = tokio::time::timeout(OPENING, head).await;
    })
}

async fn listen(wire: Arc<Wire>, session: Session, opened: oneshot::Sender<()>) {
    let shot = Shot::get(&session, None);
    let response = match send::send(&wire, &wire.stack, shot, None).await {
        Ok(response) => response,
        Err(error) => return tracing::debug!(%error, "there is no stream to listen on"),
    };
    let status = response.status();
    if !status.is_success() || Kind::of(response.headers()) != Kind::Events {
        // 2025-11-25 transports: 405 says so; other servers say it otherwise.
        tracing::debug!(status = status.as_u16(), "the server has no stream to listen on");
        return send::finish(response.into_body()).await;
    }
    let _ = opened.send(());
    let mut source = Source::new(response.into_body(), wire.limits.line_bytes, None);
    loop {
        match source.next().await {
            Next::Message(data) => {
                receive::receive(&wire, None, data);
            }
            // It was skipped, and others follow.
            Next::TooLong | Next::TooMuch => {
                tracing::warn!("{}", too_long(&wire));
            }
            Next::Ended(ending) => {
                let whose = Whose::Server;
                let again = reconnect::reconnect(&wire, &session, &mut source, ending, whose).await;
                let Err(error) = again else { continue };
                if error.status() == Some(404) && session.id.is_some() {
                    tokio::spawn(async move {
                        if let Err(error) = restart::restart(&wire, session.generation).await {
                            tracing::warn!(%error, "the session is gone");
                        }
                    });
                    return;
                }
                return tracing::warn!(%error, "what the server says unasked is no longer heard");
            }
        }
    }
}
