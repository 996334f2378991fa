//! Listening: being told when something of a server's has changed, in both eras.
//!
//! Owns: what was granted, what happens, how a stream ends or goes on after a loss. Does not own
//! the connection it runs on.

mod again;
mod coalesce;
mod hearers;
mod legacy;
mod modern;
mod opening;
mod relist;
mod subscriptions;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use tokio::time::Instant;
use turnbuckle_types::{Method, Raw, ResourceUpdated, SubscriptionFilter};

use super::Call;
use crate::{
    client::connection::handle::ClientConnection,
    error::{Error, Result},
    middleware::client::Passed,
    rpc::{BoxFuture, Note},
};
use again::Lost;
use coalesce::Coalesced;
pub(super) use hearers::Hearers;
pub(crate) use legacy::lies_in;
pub use opening::ListenCall;
pub use relist::LiveList;
pub(super) use subscriptions::ClientSubscriptions;
pub(super) use subscriptions::{Claim, With};

/// What to listen for.
///
/// ```
/// use turnbuckle::subscribe::Filter;
/// let watch = Filter::new().tools().resource("note://7").resource("note://8");
/// # let _ = watch;
/// ```
#[derive(Clone, Debug, Default)]
#[doc(alias = "subscriptions/listen")]
pub struct Filter(SubscriptionFilter);

impl Filter {
    /// Nothing yet.
    pub fn new() -> Filter {
        Filter::default()
    }

    /// Changes of the list of tools.
    #[must_use]
    pub fn tools(mut self) -> Filter {
        self.0.tools_list_changed = Some(true);
        self
    }

    /// Changes of the list of prompts.
    #[must_use]
    pub fn prompts(mut self) -> Filter {
        self.0.prompts_list_changed = Some(true);
        self
    }

    /// Changes of the list of resources.
    #[must_use]
    pub fn resources(mut self) -> Filter {
        self.0.resources_list_changed = Some(true);
        self
    }

    /// Changes of this resource. May be said of several.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<String>) -> Filter {
        self.0.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }
}

/// Opens a stream in the way of the era of the connection of now.
async fn open(call: Call<Raw>) -> Result<OpenedStream> {
    match call.pass_middleware(begun).await? {
        Passed::Unchanged(OpeningProgress::Open(opened)) => Ok(opened),
        // Now, not within: what is sent for it passes on its own.
        Passed::Unchanged(OpeningProgress::Agreed(agreed)) => agreed.open().await,
        Passed::Replaced(_) => Err(Error::refused(
            "client middleware answered `subscriptions/listen`, whose answer is a stream; \
             it has to pass the request on",
        )),
    }
}

/// How far a stream has come once its opening has passed whatever stands around calls.
enum OpeningProgress {
    Open(OpenedStream),
    Agreed(legacy::Agreed),
}

async fn begun(call: Call<Raw>) -> Result<(OpeningProgress, Raw)> {
    let link = call.request.client.link();
    if Method::Listen.sent_by_client(link.revision()) {
        let (opened, said) = modern::open(call, link).await?;
        return Ok((OpeningProgress::Open(opened), said));
    }
    let (agreed, said) = legacy::agree(call, link).await?;
    Ok((OpeningProgress::Agreed(agreed), said))
}

/// A stream that was opened.
struct OpenedStream {
    source: EventSource,
    granted: SubscriptionFilter,
    /// On which it runs.
    link: Arc<ClientConnection>,
}

/// Where the events of a stream come from. Dropping it unsubscribes.
enum EventSource {
    Modern(modern::ModernStream),
    Legacy(legacy::Ear),
}

/// What a source says.
enum SourceEvent {
    Event(Event),
    /// Nothing that concerns anyone.
    Nothing,
    /// The server had forgotten what it was asked, and was asked again: what it refuses now.
    Renewed(Vec<(String, Error)>),
    /// The server ended it in good order.
    Ended,
    Lost(Error),
}

impl EventSource {
    /// Not polled again after the end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<SourceEvent> {
        match self {
            EventSource::Modern(stream) => stream.poll(context),
            EventSource::Legacy(ear) => ear.poll(context),
        }
    }
}

/// What a listen stream tells. Each is a cue to ask again; none carries what is new.
///
/// ```
/// use turnbuckle::subscribe::Event;
/// fn is_about(event: &Event, watched: &str) -> bool {
///     match event {
///         Event::ResourceUpdated(uri) => uri == watched,
///         Event::Missed => true,
///         _ => false,
///     }
/// }
/// assert!(is_about(&Event::ResourceUpdated("note://7".into()), "note://7"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources has changed.
    ResourcesChanged,
    /// The resource with this URI, which may be a part of the one that was named, has changed.
    ResourceUpdated(String),
    /// Something may have been said that was not heard, so anything that is watched may have
    /// changed. Either this stream was not read while more came than may wait
    /// ([`queued_notifications`](crate::Limits::queued_notifications)), or it was lost and has
    /// been opened again.
    Missed,
    /// Something else.
    Other {
        /// The notification's method.
        method: String,
        /// Its params; an empty object if it has none.
        params: Raw,
    },
}

/// An open stream of what happens: of its own subscription only, however many there are on the
/// connection. Dropping it unsubscribes.
///
/// What happens several times before it is read is told once, where it was first told. It is a
/// [`Stream`], too.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// let mut listening = client.listen(turnbuckle::subscribe::Filter::new().tools()).await?;
/// if listening.granted().tools_list_changed != Some(true) {
///     println!("this server does not tell when its tools change");
/// }
/// while let Some(event) = listening.next().await {
///     println!("{:?}", event?);
/// }
/// # Ok(()) }
/// ```
pub struct Listening {
    /// By which it is opened again.
    call: Call<Raw>,
    granted: SubscriptionFilter,
    waiting: Coalesced,
    course: StreamState,
}

/// How it is with a stream.
enum StreamState {
    Open {
        source: Box<EventSource>,
        link: Arc<ClientConnection>,
        since: Instant,
    },
    Again(BoxFuture<'static, Result<OpenedStream>>),
    /// With what is still to be told of its end.
    Ended(Option<Error>),
}

impl Listening {
    fn new(call: Call<Raw>, opened: OpenedStream) -> Listening {
        let most = call.request.client.settings().limits.queued_notifications;
        let OpenedStream { source, granted, link } = opened;
        Listening {
            call,
            granted,
            waiting: Coalesced::new(most),
            course: StreamState::Open { source: Box::new(source), link, since: Instant::now() },
        }
    }

    /// What the server agreed to tell. It can be less after [`Event::Missed`]: a server that had
    /// forgotten what it was asked may refuse what it granted before.
    pub fn granted(&self) -> &SubscriptionFilter {
        &self.granted
    }

    /// What happens next; `None` once the server has ended the stream in good order; an error
    /// if the stream was lost for good. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Takes what the source has, as far as there is room.
    fn drain(&mut self, context: &mut Context<'_>) {
        // A server that says the same without end must not keep this task from anything else.
        for _ in 0..AT_ONCE {
            let StreamState::Open { source, .. } = &mut self.course else { return };
            if self.waiting.is_full() {
                return;
            }
            match source.poll(context) {
                Poll::Pending => return,
                Poll::Ready(SourceEvent::Event(event)) => self.waiting.push(event),
                Poll::Ready(SourceEvent::Nothing) => {}
                Poll::Ready(SourceEvent::Renewed(refused)) => self.renewed(refused),
                Poll::Ready(SourceEvent::Ended) => self.course = StreamState::Ended(None),
                Poll::Ready(SourceEvent::Lost(error)) => self.lost(error),
            }
        }
        context.waker().wake_by_ref();
    }

    /// Only now: what changes after it is told.
    fn renewed(&mut self, refused: Vec<(String, Error)>) {
        if let Some(uris) = &mut self.granted.resource_subscriptions {
            uris.retain(|uri| refused.iter().all(|(gone, _)| gone != uri));
        }
        let last = refused.into_iter().next_back();
        match last.filter(|_| legacy::is_nothing(&self.granted)) {
            Some((_, error)) => self.course = StreamState::Ended(Some(error)),
            None => self.waiting.push(Event::Missed),
        }
    }

    fn lost(&mut self, error: Error) {
        let supervisor = &self.call.request.client.supervisor;
        let ended = StreamState::Ended(None);
        let StreamState::Open { link, since, .. } = std::mem::replace(&mut self.course, ended)
        else {
            return;
        };
        if !supervisor.recovers() || !again::is_passing(&error) {
            self.course = StreamState::Ended(Some(error));
            return;
        }
        let lost = Lost { call: self.call.duplicate(), link, error, lasted: since.elapsed() };
        self.course = StreamState::Again(Box::pin(lost.again()));
    }
}

/// How much of what a source says is looked at in one go.
const AT_ONCE: usize = 1024;

impl Stream for Listening {
    type Item = Result<Event>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            this.drain(context);
            if let Some(event) = this.waiting.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            match &mut this.course {
                StreamState::Open { .. } => return Poll::Pending,
                StreamState::Ended(error) => return Poll::Ready(error.take().map(Err)),
                StreamState::Again(opening) => match ready!(opening.as_mut().poll(context)) {
                    Ok(OpenedStream { source, granted, link }) => {
                        this.granted = granted;
                        this.course = StreamState::Open {
                            source: Box::new(source),
                            link,
                            since: Instant::now(),
                        };
                        // Whoever asks again because of it must not be given what was kept.
                        this.call.request.client.settings().cache.invalidate_all();
                        this.waiting.push(Event::Missed);
                    }
                    Err(error) => this.course = StreamState::Ended(Some(error)),
                },
            }
        }
    }
}

fn is(note: &Note, method: Method) -> bool {
    &*note.method == method.as_str()
}

fn event_from(note: &Note) -> Event {
    match Method::from_name(&note.method) {
        Some(Method::ToolListChanged) => return Event::ToolsChanged,
        Some(Method::PromptListChanged) => return Event::PromptsChanged,
        Some(Method::ResourceListChanged) => return Event::ResourcesChanged,
        Some(Method::ResourceUpdated) => {
            if let Ok(updated) = serde_json::from_str::<ResourceUpdated>(note.params.text()) {
                return Event::ResourceUpdated(updated.uri);
            }
        }
        _ => {}
    }
    let params = note.params.raw.clone().unwrap_or_else(Raw::empty_object);
    Event::Other { method: note.method.to_string(), params }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("granted", &self.granted).finish_non_exhaustive()
    }
}
