//! Serves DELETE: ends a session.

use http::{Response, StatusCode};
use turnbuckle_types::RpcError;

use super::{
    super::super::{
        server::{HttpBody, answer, future::RequestHead},
        timing::STOPPING,
    },
    Refused,
    live::AlreadyEnded,
    unknown_session, visit,
};

/// Ends a session, which is unknown from then on. Once polled, dropping the future has no effect.
pub(super) async fn serve(asked: RequestHead) -> Result<Response<HttpBody>, Refused> {
    // In a task, so that a client may hang up at once.
    let ending = tokio::spawn(async move {
        let visit = visit(&asked).await?;
        let settings = &asked.endpoint.legacy.settings;
        let (sessions, events) = (settings.sessions.clone(), settings.events.clone());
        let session = visit.session;
        if visit.opened.save_end(session.id, &*sessions).await? == AlreadyEnded::Yes {
            return Err(unknown_session());
        }
        let tasks = session.stop();
        visit.opened.service.ended();
        let all = async {
            for task in tasks {
                // Its panic was logged when it happened.
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(STOPPING, all).await;
        if let Err(error) = events.forget_session(session.id).await {
            tracing::warn!(%error, "the events of a session that ended could not be forgotten");
        }
        Ok(answer::empty(StatusCode::NO_CONTENT))
    });
    ending.await.unwrap_or_else(|_| {
        Err(Refused::unavailable(RpcError::internal("the server is shutting down")))
    })
}
