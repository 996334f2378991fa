//! Owns taking a stream up again where it broke off. Does not own when: `resume` says.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::Instant;

use super::{
    Session, Wire, lock,
    resume::{Cost, Ended, Retry, chance, plan},
    send::{self, Shot},
    source::{Ending, Source},
};
use crate::{
    error::{Error, ErrorKind, Executed, Result},
    transport::http::client::whole::Kind,
};

/// Whose stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// A call waits for it: it is told at once if the server can't be reached.
    Call,
    /// The server's own.
    Server,
}

/// Waits as long as it takes, then goes on with the stream on another connection. The error says
/// why it can't be. Dropping the future leaves the stream where it was.
pub(super) async fn reconnect(
    wire: &Arc<Wire>,
    session: &Session,
    source: &mut Source,
    ending: Ending,
    whose: Whose,
) -> Result<()> {
    let ended = match &ending {
        Ending::Clean => Ended::Clean,
        Ending::Broken(_) => Ended::Broken,
    };
    let mut last = source.lost(wire, ending);
    loop {
        let plan = plan(ended, source.marks().retry, source.fruitless(), chance());
        let Some(plan) = plan else { return Err(given_up(last, "nothing came of it, again")) };
        let spends = plan.cost == Cost::One;
        if spends && !lock(&wire.legacy.budget).spend(Instant::now()) {
            return Err(given_up(last, "there were too many reconnects in a short time"));
        }
        if !plan.wait.is_zero() {
            tokio::time::sleep(plan.wait).await;
        }
        let shot = Shot::get(session, source.marks().last.as_ref());
        match send::send(wire, &wire.stack, shot, None).await {
            Ok(response) => {
                let status = response.status();
                if status.is_success() && Kind::of(response.headers()) == Kind::Events {
                    source.renew(response.into_body());
                    return Ok(());
                }
                let why = format!("it was refused with HTTP {}", status.as_u16());
                let refused = given_up(last, &why).with_status(status.as_u16());
                send::finish(response.into_body()).await;
                if !is_passing(status) {
                    return Err(refused);
                }
                last = refused;
            }
            Err(error) => {
                let unreachable = !error.maybe_executed() && source.marks().retry == Retry::Never;
                last = given_up(last, &error.to_string());
                if unreachable && whose == Whose::Call {
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
    status.is_server_error()
        || matches!(status, StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS)
}

/// The server may have done the work: only its answer is lost.
fn given_up(last: Error, why: &str) -> Error {
    let text = last.to_string();
    let first = text.split("; taking it up again failed").next().unwrap_or(&text);
    let message = format!("{first}; taking it up again failed: {why}");
    Error::new(ErrorKind::Closed, message).with_executed(Executed::Maybe).with_source(last)
}
