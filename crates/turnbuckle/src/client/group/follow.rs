//! Owns how a client that was connected is from then on. Does not own what the group makes of it.

use super::Status;
use crate::{Client, client::ConnectionState, dispatch::BoxFuture, error::Result};

/// Tells whenever a connection has become another: how it is, or why it is lost for good, which is the
/// last that is told. It does not keep the client alive.
pub(super) fn follow(
    client: &Client,
    tell: impl Fn(Result<Status>) + Send + 'static,
) -> BoxFuture<'static, ()> {
    let mut states = client.states();
    Box::pin(async move {
        while let Some(state) = states.next().await {
            tell(match state {
                ConnectionState::Connecting => Ok(Status::Starting),
                ConnectionState::Ready { .. } => Ok(Status::Ready),
                ConnectionState::Reconnecting { .. } => Ok(Status::Reconnecting),
                ConnectionState::Unreachable { reason } => {
                    Ok(Status::Unreachable(reason.to_string()))
                }
                ConnectionState::Closed { reason } => Err(reason.again()),
            });
        }
    })
}
