//! Follows the state of a connected client.

use turnbuckle::{__seam::copy_error, Client, Result, client::ConnectionState};

use super::Status;
use crate::BoxFuture;

/// Calls `report` with each new state of a connection. An error is the last one: the connection is lost
/// for good. The future does not keep the client alive.
pub(super) fn follow(
    client: &Client,
    report: impl Fn(Result<Status>) + Send + 'static,
) -> BoxFuture<'static, ()> {
    let mut states = client.states();
    Box::pin(async move {
        while let Some(state) = states.next().await {
            report(match state {
                ConnectionState::Connecting => Ok(Status::Starting),
                ConnectionState::Ready { .. } => Ok(Status::Ready),
                ConnectionState::Reconnecting { .. } => Ok(Status::Reconnecting),
                ConnectionState::Unreachable { reason } => {
                    Ok(Status::Unreachable(reason.to_string()))
                }
                ConnectionState::Closed { reason } => Err(copy_error(&reason)),
                // A state that a later version of the client adds.
                _ => continue,
            });
        }
    })
}
