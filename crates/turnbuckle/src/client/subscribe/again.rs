//! Owns opening a stream again after it was lost: on the connection that follows, or on the same
//! one where each request has its own. Does not own making connections.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use turnbuckle_types::Raw;

use super::{OpenedStream, open};
use crate::{
    client::{
        Call, ConnectionState,
        connection::{Supervisor, handle::ClientConnection},
    },
    error::{Closed, Error, ErrorKind, Executed, Result},
};

/// A stream that was lost.
pub(super) struct Lost {
    pub(super) call: Call<Raw>,
    /// What it ran on.
    pub(super) link: Arc<ClientConnection>,
    pub(super) error: Error,
    /// How long it had been open.
    pub(super) lasted: Duration,
}

impl Lost {
    /// Opens it again. Dropping the future gives it up.
    pub(super) async fn again(mut self) -> Result<OpenedStream> {
        let supervisor = self.call.request.client.supervisor.clone();
        let policy = &supervisor.settings.reconnect;
        loop {
            let link = next_link(&supervisor, &self.link).await?;
            // A new connection was paid for by whoever made it.
            let paid = if link.generation == self.link.generation {
                let Some(paid) = supervisor.attempt(std::mem::take(&mut self.lasted)) else {
                    return Err(self.error);
                };
                let chance = RandomState::new().hash_one(paid.number);
                tokio::time::sleep(policy.pause(paid.number, chance)).await;
                Some(paid)
            } else {
                None
            };
            let opened = open(self.call.duplicate()).await;
            drop(paid);
            match opened {
                Ok(opened) => return Ok(opened),
                Err(error) if is_passing(&error) => {
                    tracing::debug!(%error, "a listen stream was not opened again");
                    (self.link, self.error) = (link, error);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether a stream that ended so could be had again.
pub(super) fn is_passing(error: &Error) -> bool {
    let may_pass = error.is_retryable() && error.kind() != ErrorKind::Limit;
    may_pass || error.may_be_authorized_later()
}

/// The connection on which to try next: the one that was lost if it can still be used.
pub(super) async fn next_link(
    supervisor: &Supervisor,
    lost: &ClientConnection,
) -> Result<Arc<ClientConnection>> {
    let over = is_over(lost).await;
    let mut states = supervisor.states();
    while let Some(state) = states.next().await {
        match state {
            ConnectionState::Ready { generation } if generation > lost.generation || !over => {
                return Ok(supervisor.link());
            }
            // Nobody looks for a server that was given up, unless someone calls it.
            ConnectionState::Closed { reason } | ConnectionState::Unreachable { reason } => {
                return Err(reason.again());
            }
            _ => {}
        }
    }
    Err(Closed::new("the connection ended").error(Executed::No))
}

/// Why a connection has ended: known before whoever looks after it has seen it.
pub(super) async fn ended(link: &ClientConnection) -> Option<Closed> {
    let mut ended = link.transport.ended();
    std::future::poll_fn(|context| {
        Poll::Ready(match ended.as_mut().poll(context) {
            Poll::Ready(closed) => Some(closed),
            Poll::Pending => None,
        })
    })
    .await
}

pub(super) async fn is_over(link: &ClientConnection) -> bool {
    ended(link).await.is_some()
}
