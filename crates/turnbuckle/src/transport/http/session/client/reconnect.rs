//! Owns taking a stream up again where it broke off. Does not own when: `resume` says.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, StatusCode};
use tokio::time::Instant;

use super::{
    ClientSession, HttpClientShared, lock,
    resume::{ConnectionEnd, Cost, RetryDelay, chance, plan},
    send,
    source::ResumableStream,
};
use crate::{
    error::{Error, ErrorKind, Executed, Result},
    transport::http::client::{events::Ending, request, stack::Body, whole::Kind},
};

/// The owner of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamOwner<'a> {
    /// A call waits for it: it is told at once if the server can't be reached. These are the
    /// headers of that call.
    CallState(&'a [(HeaderName, HeaderValue)]),
    /// The server's own. Nobody would notice that it is not heard any more, so this never ends
    /// for want of luck: it only gets slow.
    Server,
}

impl StreamOwner<'_> {
    fn extra(&self) -> &[(HeaderName, HeaderValue)] {
        match self {
            StreamOwner::CallState(extra) => extra,
            StreamOwner::Server => &[],
        }
    }
}

/// What came of asking for a stream.
pub(super) enum StreamReply {
    Open(Body),
    Refused(StatusCode),
    Failed(Error),
}

impl StreamReply {
    /// Whether the same may succeed later.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            StreamReply::Open(_) => false,
            StreamReply::Refused(status) => is_passing(*status),
            StreamReply::Failed(error) => may_pass(error),
        }
    }
}

/// Asks for a stream, from after this event on.
pub(super) async fn ask(
    wire: &HttpClientShared,
    session: &ClientSession,
    after: Option<&HeaderValue>,
    whose: StreamOwner<'_>,
) -> StreamReply {
    let get = send::get(wire, session, after).with(whose.extra());
    let response = match request::send(wire, &wire.stack, get, None).await {
        Ok(response) => response,
        Err(error) => return StreamReply::Failed(error),
    };
    let status = response.status();
    if status.is_success() && Kind::of(response.headers()) == Kind::Events {
        return StreamReply::Open(response.into_body());
    }
    request::finish(response.into_body()).await;
    StreamReply::Refused(status)
}

/// Waits until one may be spent, and spends it.
pub(super) async fn token(wire: &HttpClientShared) {
    loop {
        let wait = {
            let (mut budget, now) = (lock(&wire.legacy.budget), Instant::now());
            if budget.spend(&wire.legacy.resuming, now) {
                return;
            }
            budget.more_in(&wire.legacy.resuming, now)
        };
        tokio::time::sleep(wait).await;
    }
}

/// Waits as long as it takes, then goes on with the stream on another connection. The error says
/// why it can't be. Dropping the future leaves the stream where it was.
pub(super) async fn reconnect(
    wire: &Arc<HttpClientShared>,
    session: &ClientSession,
    source: &mut ResumableStream,
    ending: Ending,
    whose: StreamOwner<'_>,
) -> Result<()> {
    let ended = match &ending {
        Ending::Clean => ConnectionEnd::Clean,
        Ending::Broken(_) => ConnectionEnd::Broken,
    };
    let mut last = source.lost(wire, ending);
    let policy = &wire.legacy.resuming;
    loop {
        let fruitless = match whose {
            StreamOwner::CallState(_) => source.fruitless(),
            StreamOwner::Server => policy.at_most(source.fruitless()),
        };
        let plan = plan(policy, (ended, source.marks().retry), fruitless, chance());
        let Some(plan) = plan else { return Err(given_up(last, "nothing came of it, again")) };
        match (plan.cost, whose) {
            (Cost::Free, _) => {}
            (Cost::One, StreamOwner::Server) => token(wire).await,
            (Cost::One, StreamOwner::CallState(_)) => {
                if !lock(&wire.legacy.budget).spend(policy, Instant::now()) {
                    let why = "there were too many reconnects in a short time";
                    return Err(given_up(last, why));
                }
            }
        }
        if !plan.wait.is_zero() {
            tokio::time::sleep(plan.wait).await;
        }
        let came = ask(wire, session, source.marks().last.as_ref(), whose).await;
        let passing = came.is_passing();
        match came {
            StreamReply::Open(body) => {
                source.renew(body);
                return Ok(());
            }
            StreamReply::Refused(status) => {
                let why = format!("it was refused with HTTP {}", status.as_u16());
                last = given_up(last, &why).with_status(status.as_u16());
                if !passing {
                    return Err(last);
                }
            }
            StreamReply::Failed(error) => {
                let unreachable =
                    !error.maybe_executed() && source.marks().retry == RetryDelay::Never;
                last = given_up(last, &error.to_string());
                let at_once = unreachable && matches!(whose, StreamOwner::CallState(_));
                if at_once || !passing {
                    return Err(last);
                }
            }
        }
        source.failed();
    }
}

/// Whether the same may succeed later: a server that is busy or starting, or that has not noticed
/// yet that the last connection is gone.
fn is_passing(status: StatusCode) -> bool {
    (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
        || matches!(status, StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS)
}

/// The same of a failure.
pub(super) fn may_pass(error: &Error) -> bool {
    match error.status().and_then(|status| StatusCode::from_u16(status).ok()) {
        Some(status) => is_passing(status),
        None => {
            matches!(error.kind(), ErrorKind::Closed | ErrorKind::Timeout)
                || error.may_be_authorized_later()
        }
    }
}

/// The server may have done the work: only its answer is lost.
fn given_up(last: Error, why: &str) -> Error {
    let text = last.to_string();
    let first = text.split("; taking it up again failed").next().unwrap_or(&text);
    let message = format!("{first}; taking it up again failed: {why}");
    Error::new(ErrorKind::Closed, message).with_executed(Executed::Maybe).with_source(last)
}

#[cfg(all(test, feature = "auth"))]
mod tests {
    use turnbuckle_auth::{AuthError, AuthErrorKind};

    use super::*;

    #[test]
    fn a_provider_that_is_away_comes_back_and_a_login_has_to_be_asked_for() {
        let failed = |kind| may_pass(&Error::authorization(AuthError::new(kind, "no")));
        assert!(failed(AuthErrorKind::Unreachable));
        assert!(!failed(AuthErrorKind::Required) && !failed(AuthErrorKind::Refused));
    }
}
