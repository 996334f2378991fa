//! Owns the end of a session by its client's wish. Does not own how handlers stop.

use http::{Response, StatusCode};

use super::{
    super::super::server::{HttpBody, answer, future::Asked},
    Refused, STOPPING,
    live::AlreadyEnded,
    unknown_session, visit,
};

/// Ends a session: from then on it is unknown. Dropping the future, once it was polled, takes
/// nothing back.
pub(super) async fn serve(asked: Asked) -> Result<Response<HttpBody>, Refused> {
    // A client that says farewell and hangs up has said it.
    let ending = tokio::spawn(async move {
        let visit = visit(&asked).await?;
        let settings = &asked.endpoint.legacy.settings;
        let (sessions, events) = (settings.sessions.clone(), settings.events.clone());
        let entry = visit.entry;
        if visit.opened.save_end(entry.id, &*sessions).await? == AlreadyEnded::Yes {
            return Err(unknown_session());
        }
        let tasks = entry.stop();
        visit.opened.session.ended();
        let all = async {
            for task in tasks {
                // Its panic was logged when it happened.
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(STOPPING, all).await;
        if let Err(error) = events.forget_session(entry.id).await {
            tracing::warn!(%error, "the events of a session that ended could not be forgotten");
        }
        Ok(answer::empty(StatusCode::NO_CONTENT))
    });
    ending.await.unwrap_or_else(|_| Err(Refused::unavailable("the server is shutting down")))
}
