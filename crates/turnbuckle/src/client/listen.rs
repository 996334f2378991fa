//! Owns a listen stream: what was granted, what happens, how it ends.
//! Does not own the connection it runs on, nor which notifications are this stream's: the
//! dispatcher finds that by the subscription's id.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use turnbuckle_types::{
    Acknowledged, Listen, ListenResult, Method, Raw, ResourceUpdated, SubscriptionFilter,
};

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
/// let watch = Watch::new().tools().resource("note://7").resource("note://8");
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

    /// Changes of the list of prompts.
    #[must_use]
    pub fn prompts(mut self) -> Watch {
        self.0.prompts_list_changed = Some(true);
        self
    }

    /// Changes of the list of resources.
    #[must_use]
    pub fn resources(mut self) -> Watch {
        self.0.resources_list_changed = Some(true);
        self
    }

    /// Changes of this resource. May be said of several.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<String>) -> Watch {
        self.0.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }
}

impl Client {
    /// Opens a stream of notifications from a modern server, and returns when the server
    /// has acknowledged it. From then on no timeout applies. Dropping the stream, or this
    /// future, unsubscribes.
    ///
    /// ```no_run
    /// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
    /// use turnbuckle::{Happened, Watch};
    /// let mut listening = client.listen(Watch::new().tools().resource("note://7")).await?;
    /// while let Some(happened) = listening.next().await {
    ///     match happened? {
    ///         Happened::ToolsChanged => println!("list the tools again"),
    ///         Happened::ResourceUpdated(uri) => println!("read {uri} again"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn listen(&self, watch: Watch) -> Result<Listening> {
        let call = self.verb(Method::Listen, &Listen::new(watch.0), |_, raw| Ok(raw));
        let mut running = call.open()?;
        loop {
            match running.next().await? {
                Event::Note(note) if is(&note, Method::Acknowledged) => {
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
                Event::Note(note) => {
                    tracing::debug!(method = %note.method, "said before the acknowledgement");
                }
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

/// What a listen stream tells. Each is a cue to ask again; none carries what is new.
///
/// ```
/// use turnbuckle::Happened;
/// fn is_about(happened: &Happened, watched: &str) -> bool {
///     match happened {
///         Happened::ResourceUpdated(uri) => uri == watched,
///         Happened::Missed => true,
///         _ => false,
///     }
/// }
/// assert!(is_about(&Happened::ResourceUpdated("note://7".into()), "note://7"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Happened {
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources has changed.
    ResourcesChanged,
    /// The resource with this URI, which may be a part of the one that was named, has changed.
    ResourceUpdated(String),
    /// This stream was not read while more came than may wait
    /// ([`queued_notifications`](crate::Limits::queued_notifications)): the oldest are lost, so
    /// anything that is watched may have changed.
    Missed,
    /// Something else.
    Other {
        /// The notification's method.
        method: String,
        /// Its params; an empty object if it has none.
        params: Raw,
    },
}

/// An open stream of notifications: of its own subscription only, however many there are on the
/// connection. Dropping it unsubscribes.
///
/// It is a [`Stream`], too.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// let mut listening = client.listen(turnbuckle::Watch::new().tools()).await?;
/// if listening.granted().tools_list_changed != Some(true) {
///     println!("this server does not tell when its tools change");
/// }
/// while let Some(happened) = listening.next().await {
///     println!("{:?}", happened?);
/// }
/// # Ok(()) }
/// ```
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

    /// What happens next; `None` once the server has ended the stream in good order; an error
    /// if the stream was lost. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Happened>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    fn end(&mut self, result: Result<Raw>) -> Option<Result<Happened>> {
        self.ended = true;
        match result {
            Ok(raw) => raw
                .decode::<ListenResult>()
                .err()
                .map(|error| Err(undecodable(Method::Listen.as_str(), &error))),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stream for Listening {
    type Item = Result<Happened>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while !this.ended {
            if this.running.exchange.take_lost() {
                return Poll::Ready(Some(Ok(Happened::Missed)));
            }
            match ready!(this.running.exchange.poll_event(context)) {
                // A server may say the end with this frame, with the result, or with both in
                // any order.
                Event::Note(note) if is(&note, Method::Cancelled) => {
                    this.ended = true;
                    this.running.exchange.silence();
                }
                Event::Note(note) if is(&note, Method::Acknowledged) => {
                    tracing::debug!("acknowledged again");
                }
                Event::Note(note) => return Poll::Ready(Some(Ok(happened(&note)))),
                Event::Done(result) => return Poll::Ready(this.end(result)),
            }
        }
        Poll::Ready(None)
    }
}

fn is(note: &Note, method: Method) -> bool {
    &*note.method == method.as_str()
}

fn happened(note: &Note) -> Happened {
    match Method::from_name(&note.method) {
        Some(Method::ToolListChanged) => return Happened::ToolsChanged,
        Some(Method::PromptListChanged) => return Happened::PromptsChanged,
        Some(Method::ResourceListChanged) => return Happened::ResourcesChanged,
        Some(Method::ResourceUpdated) => {
            if let Ok(updated) = serde_json::from_str::<ResourceUpdated>(note.params.text()) {
                return Happened::ResourceUpdated(updated.uri);
            }
        }
        _ => {}
    }
    let params = note.params.raw.clone().unwrap_or_else(Raw::empty_object);
    Happened::Other { method: note.method.to_string(), params }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("granted", &self.granted).finish_non_exhaustive()
    }
}
