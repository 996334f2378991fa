//! Owns a listen stream: what was granted, what happens, how it ends.
//! Does not own the connection it runs on.

use turnbuckle_types::{Acknowledged, Listen, ListenResult, Method, Raw, SubscriptionFilter};

use super::{
    Client,
    call::{Running, undecodable},
};
use crate::{
    dispatch::{Event, Note},
    error::{Error, Result},
};

/// What to listen for.
///
/// ```
/// use turnbuckle::Watch;
/// let watch = Watch::new().tools();
/// # let _ = watch;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Watch(SubscriptionFilter);

impl Watch {
    /// Nothing yet.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// Changes of the list of tools.
    #[must_use]
    pub fn tools(mut self) -> Watch {
        self.0.tools_list_changed = Some(true);
        self
    }
}

impl Client {
    /// Opens a stream of notifications from a modern server, and returns when the server
    /// has acknowledged it. From then on no timeout applies. Dropping the stream, or this
    /// future, unsubscribes.
    pub async fn listen(&self, watch: Watch) -> Result<Listening> {
        let call = self.verb(Method::Listen, &Listen::new(watch.0), |_, raw| Ok(raw));
        let mut running = call.open()?;
        loop {
            match running.next().await? {
                Event::Note(note)
                    if &*note.method == "notifications/subscriptions/acknowledged" =>
                {
                    let acknowledged: Acknowledged = serde_json::from_str(note.params.text())
                        .map_err(|error| undecodable(Method::Listen.as_str(), &error))?;
                    running.deadlines.lift();
                    return Ok(Listening {
                        running,
                        granted: acknowledged.notifications,
                        ended: false,
                    });
                }
                // 2026-07-28 patterns/subscriptions: nothing may come before it.
                Event::Note(_) => {}
                Event::Done(result) => {
                    result?;
                    return Err(Error::protocol(
                        "the server ended the stream before it acknowledged it",
                    ));
                }
            }
        }
    }
}

/// An open stream of notifications. Dropping it unsubscribes.
pub struct Listening {
    running: Running<Raw>,
    granted: SubscriptionFilter,
    ended: bool,
}

impl Listening {
    /// What the server agreed to tell.
    pub fn granted(&self) -> &SubscriptionFilter {
        &self.granted
    }

    /// The method of the next notification; `None` once the server has ended the stream in
    /// good order; an error if the stream was lost. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<String>> {
        if self.ended {
            return None;
        }
        match self.running.next().await {
            Ok(Event::Note(note)) if is_end(&note) => {
                self.ended = true;
                self.running.exchange.silence();
                None
            }
            Ok(Event::Note(note)) => Some(Ok(note.method.to_string())),
            Ok(Event::Done(result)) => {
                self.ended = true;
                match result {
                    Ok(raw) => raw
                        .decode::<ListenResult>()
                        .err()
                        .map(|error| Err(undecodable(Method::Listen.as_str(), &error))),
                    Err(error) => Some(Err(error)),
                }
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error))
            }
        }
    }
}

/// A server may say the end with this frame, with the result, or with both in any order.
fn is_end(note: &Note) -> bool {
    &*note.method == "notifications/cancelled"
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("granted", &self.granted).finish_non_exhaustive()
    }
}
