//! Owns what can be seen of a connection from outside. Does not own its changes.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{error::Error, rpc::BoxFuture};
use futures_core::Stream;
use tokio::sync::watch;

/// How a client's connection is.
///
/// ```
/// use turnbuckle::client::ConnectionState;
/// fn light(state: &ConnectionState) -> &'static str {
///     match state {
///         ConnectionState::Ready { .. } => "green",
///         ConnectionState::Closed { .. } => "red",
///         _ => "yellow",
///     }
/// }
/// # let _ = light;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionState {
    /// There has been no connection yet: the first is being made, or is about to be. Only
    /// [`ClientBuilder::states`](crate::ClientBuilder::states) shows it, as there is no client
    /// before it. Whoever made a builder and then nothing of it sees no other.
    Connecting,
    /// Calls reach the server.
    Ready {
        /// Which connection of this client it is, counted from one.
        generation: u64,
    },
    /// The connection was lost and is being made again; calls that were not sent wait for it.
    Reconnecting {
        /// Which attempt is next, counted from one.
        attempt: u32,
        /// Why there is no connection.
        reason: Arc<Error>,
    },
    /// A server at an address could not be reached, as often as it was tried. The next call tries
    /// again.
    Unreachable {
        /// Why.
        reason: Arc<Error>,
    },
    /// There is no connection and there will be none.
    Closed {
        /// Why.
        reason: Arc<Error>,
    },
}

/// The states of a connection, one after the other: first the one that it is in. One that is
/// followed by another before anyone looks is left out. It ends after [`ConnectionState::Closed`],
/// or when the making of the first connection is given up.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) {
/// let mut states = client.states();
/// while let Some(state) = states.next().await {
///     println!("{state:?}");
/// }
/// # }
/// ```
pub struct ConnectionStates {
    next: BoxFuture<'static, (Option<ConnectionState>, watch::Receiver<ConnectionState>)>,
    ended: bool,
}

impl ConnectionStates {
    pub(crate) fn new(mut states: watch::Receiver<ConnectionState>) -> ConnectionStates {
        states.mark_changed();
        ConnectionStates { next: Box::pin(following(states)), ended: false }
    }

    /// The next state; `None` after the last. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ConnectionState> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

async fn following(
    mut states: watch::Receiver<ConnectionState>,
) -> (Option<ConnectionState>, watch::Receiver<ConnectionState>) {
    let changed = states.changed().await.is_ok();
    let state = changed.then(|| states.borrow_and_update().clone());
    (state, states)
}

impl Stream for ConnectionStates {
    type Item = ConnectionState;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<ConnectionState>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let (state, states) = std::task::ready!(self.next.as_mut().poll(context));
        self.ended = matches!(state, None | Some(ConnectionState::Closed { .. }));
        self.next = Box::pin(following(states));
        Poll::Ready(state)
    }
}

impl fmt::Debug for ConnectionStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionStates").finish_non_exhaustive()
    }
}
