//! Owns listening where there are no listen streams: which of the server's notifications are for
//! whom, and what can be had at all. Does not own subscribing: `subscriptions` does.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_types::{
    Acknowledged, Listen, Method, Raw, Revision, ServerCapabilities, SubscriptionFilter, write_at,
};

use super::{
    Event, EventSource, OpenedStream, SourceEvent,
    again::ended,
    coalesce::Coalesced,
    event_from,
    hearers::Hears,
    subscriptions::{Claim, With},
};
use crate::{
    client::{Call, Client, ConnectionState, connection::handle::ClientConnection},
    error::{Closed, Error, Executed, Result, timed_out},
    middleware::client::ClientMiddleware,
    rpc::{BoxFuture, Note},
};

/// Someone who listens on a legacy connection. Dropping it takes its subscriptions back.
pub(super) struct Ear {
    mailbox: Arc<NotificationQueue>,
    /// Dropping one takes its subscription back.
    claims: Vec<Arc<Claim>>,
    /// What the server refuses of what it is asked again, after it has forgotten it.
    asked_again: Option<BoxFuture<'static, Vec<(String, Error)>>>,
    /// How long a server may take to answer.
    patience: Option<Duration>,
    /// Resolves when this connection has a successor, or will have none.
    over: BoxFuture<'static, Result<Arc<ClientConnection>>>,
}

/// What a server can tell of what was asked for; nothing was sent for it yet.
pub(super) struct Agreed {
    client: Client,
    link: Arc<ClientConnection>,
    mailbox: Arc<NotificationQueue>,
    granted: SubscriptionFilter,
    with: With,
    patience: Option<Duration>,
}

/// Finds out what a server can tell of what a call asks for; also as a modern one would say it.
pub(super) async fn agree(
    mut call: Call<Raw>,
    link: Arc<ClientConnection>,
) -> Result<(Agreed, Raw)> {
    let client = Client(call.request.client.clone());
    // Nothing may have to be sent, and what others subscribed to may still look sound.
    if let Some(closed) = ended(&link).await {
        return Err(closed.error(Executed::No));
    }
    if let ConnectionState::Closed { reason } = client.state() {
        return Err(reason.again());
    }
    let Listen { notifications: asked, .. } =
        serde_json::from_str(&call.request.params.text(Revision::LATEST)?).map_err(|error| {
            Error::refused(format!("what is listened for can't be read: {error}"))
        })?;
    let settings = client.0.settings();
    let granted = match settings.ignores_capabilities {
        true => each_once(asked),
        false => available(asked, link.server.capabilities.as_ref())?,
    };
    let mailbox =
        Arc::new(NotificationQueue::new(granted.clone(), settings.limits.queued_notifications));
    // Before anything is asked: an answer may be followed at once by news.
    let hearer: Arc<dyn Hears> = mailbox.clone();
    settings.hearers.join(Arc::downgrade(&hearer));
    let patience =
        [call.request.timeouts.idle, call.request.timeouts.total].into_iter().flatten().min();
    let with = With {
        meta: call.request.meta,
        #[cfg(feature = "http")]
        headers: call.request.about.headers,
    };
    let mut said = Vec::new();
    write_at(&Acknowledged::new(granted.clone()), Revision::LATEST, &mut said);
    // The encoder writes JSON.
    let said = String::from_utf8(said).ok().and_then(|text| Raw::from_json(text).ok());
    let agreed = Agreed { client, link, mailbox, granted, with, patience };
    Ok((agreed, said.unwrap_or_else(Raw::empty_object)))
}

impl Agreed {
    /// Asks the server for what it has to be asked for; returns when it has answered.
    pub(super) async fn open(self) -> Result<OpenedStream> {
        let Agreed { client, link, mailbox, mut granted, with, patience } = self;
        let middleware = &client.0.settings().middleware;
        let subscribing = subscribed(&link, middleware, &with, &mut granted);
        let claims = match patience {
            Some(patience) => tokio::time::timeout(patience, subscribing)
                .await
                .map_err(|_| unanswered(patience))??,
            None => subscribing.await?,
        };
        let (supervisor, generation) = (client.0.supervisor.clone(), link.generation);
        let over = Box::pin(async move { supervisor.newer(generation).await });
        let claims = claims.into_iter().map(Arc::new).collect();
        let ear = Ear { mailbox, claims, asked_again: None, patience, over };
        Ok(OpenedStream { source: EventSource::Legacy(ear), granted, link })
    }
}

/// Subscribes to the resources of `granted`, and takes out of it what the server refuses. All of
/// it refused, and nothing else granted, is an error.
async fn subscribed(
    link: &Arc<ClientConnection>,
    middleware: &ClientMiddleware,
    with: &With,
    granted: &mut SubscriptionFilter,
) -> Result<Vec<Claim>> {
    let uris = granted.resource_subscriptions.take().unwrap_or_default();
    let claim = |uri: &String| link.subscriptions.claim(uri, link, middleware, with.clone());
    // All at once; they are answered in any order.
    let claims: Vec<Claim> = uris.iter().map(claim).collect();
    let (mut kept, mut refused) = (Vec::new(), None);
    for claim in claims {
        match claim.answered().await {
            Ok(()) => kept.push(claim),
            Err(error) if error.as_rpc().is_some() => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    if !kept.is_empty() {
        granted.resource_subscriptions = Some(kept.iter().map(|one| one.uri().into()).collect());
    }
    match refused {
        Some(error) if is_nothing(granted) => Err(error),
        _ => Ok(kept),
    }
}

impl Ear {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<SourceEvent> {
        if let Poll::Ready(event) = self.mailbox.poll(context) {
            return Poll::Ready(SourceEvent::Event(event));
        }
        if self.mailbox.take_renewed() {
            self.asked_again = Some(Box::pin(refused(self.claims.clone(), self.patience)));
        }
        if let Some(asked) = &mut self.asked_again
            && let Poll::Ready(refused) = asked.as_mut().poll(context)
        {
            self.asked_again = None;
            self.claims.retain(|claim| refused.iter().all(|(uri, _)| uri != claim.uri()));
            return Poll::Ready(SourceEvent::Renewed(refused));
        }
        Poll::Ready(SourceEvent::Lost(match ready!(self.over.as_mut().poll(context)) {
            Ok(_) => Closed::new("the connection was lost").error(Executed::No),
            Err(reason) => reason,
        }))
    }
}

/// Waits until the server has said of each whether it will tell of it: those that it refuses.
async fn refused(claims: Vec<Arc<Claim>>, patience: Option<Duration>) -> Vec<(String, Error)> {
    let until =
        patience.and_then(|patience| Some((Instant::now().checked_add(patience)?, patience)));
    let mut refused = Vec::new();
    for claim in claims {
        let answered = match until {
            Some((until, patience)) => tokio::time::timeout_at(until, claim.answered())
                .await
                .unwrap_or_else(|_| Err(unanswered(patience))),
            None => claim.answered().await,
        };
        if let Err(error) = answered {
            refused.push((claim.uri().to_owned(), error));
        }
    }
    refused
}

fn unanswered(patience: Duration) -> Error {
    Error::timeout(Method::Subscribe.as_str(), &timed_out(patience))
}

/// What waits for one who listens. The reader puts things in, and never waits.
struct NotificationQueue {
    wanted: SubscriptionFilter,
    inner: Mutex<Inner>,
}

struct Inner {
    letters: Coalesced,
    /// Whether the server has forgotten what it was asked, and is asked again.
    renewed: bool,
    reader: Option<Waker>,
}

impl NotificationQueue {
    fn new(wanted: SubscriptionFilter, most: usize) -> NotificationQueue {
        let inner =
            Mutex::new(Inner { letters: Coalesced::new(most), renewed: false, reader: None });
        NotificationQueue { wanted, inner }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, event: Event) {
        let mut inner = self.lock();
        inner.letters.push(event);
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn take_renewed(&self) -> bool {
        std::mem::take(&mut self.lock().renewed)
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Event> {
        let mut inner = self.lock();
        match inner.letters.pop() {
            Some(event) => Poll::Ready(event),
            None => {
                inner.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Hears for NotificationQueue {
    fn hear(&self, note: &Note) {
        // The cheap look first: most of what comes is progress.
        let about = Method::from_name(&note.method);
        let told = matches!(
            about,
            Some(
                Method::ToolListChanged
                    | Method::PromptListChanged
                    | Method::ResourceListChanged
                    | Method::ResourceUpdated
            )
        );
        if !told {
            return;
        }
        let event = event_from(note);
        if wants(&self.wanted, &event) {
            self.put(event);
        }
    }

    #[cfg(feature = "http")]
    fn renewed(&self) {
        let mut inner = self.lock();
        inner.renewed = true;
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

fn wants(wanted: &SubscriptionFilter, event: &Event) -> bool {
    match event {
        Event::ToolsChanged => wanted.tools_list_changed == Some(true),
        Event::PromptsChanged => wanted.prompts_list_changed == Some(true),
        Event::ResourcesChanged => wanted.resources_list_changed == Some(true),
        Event::ResourceUpdated(uri) => {
            wanted.resource_subscriptions.iter().flatten().any(|watched| lies_in(uri, watched))
        }
        _ => false,
    }
}

/// 2025-11-25 schema `ResourceUpdatedNotification`: the URI might be a sub-resource of the one
/// that was subscribed to.
pub(crate) fn lies_in(uri: &str, watched: &str) -> bool {
    match uri.strip_prefix(watched) {
        Some(rest) => {
            rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '?', '#'])
        }
        None => false,
    }
}

pub(super) fn is_nothing(filter: &SubscriptionFilter) -> bool {
    let lists =
        [filter.tools_list_changed, filter.prompts_list_changed, filter.resources_list_changed];
    !lists.contains(&Some(true)) && filter.resource_subscriptions.as_ref().is_none_or(Vec::is_empty)
}

/// The same, with nothing in it twice.
fn each_once(mut asked: SubscriptionFilter) -> SubscriptionFilter {
    if let Some(uris) = &mut asked.resource_subscriptions {
        uris.sort_unstable();
        uris.dedup();
    }
    asked
}

/// What of `asked` a server with these capabilities can tell; an error if that is nothing.
fn available(
    asked: SubscriptionFilter,
    capabilities: Option<&ServerCapabilities>,
) -> Result<SubscriptionFilter> {
    let asked = each_once(asked);
    let tools = capabilities.and_then(|all| all.tools.as_ref()?.list_changed);
    let prompts = capabilities.and_then(|all| all.prompts.as_ref()?.list_changed);
    let resources = capabilities.and_then(|all| all.resources.as_ref()?.list_changed);
    let subscribe = capabilities.and_then(|all| all.resources.as_ref()?.subscribe);
    let mut lacking = Vec::new();
    let mut list = |asked: Option<bool>, declared: Option<bool>, name| match (asked, declared) {
        (Some(true), Some(true)) => Some(true),
        (Some(true), _) => {
            lacking.push(name);
            None
        }
        _ => None,
    };
    let mut granted = SubscriptionFilter::new();
    granted.tools_list_changed = list(asked.tools_list_changed, tools, "`tools.listChanged`");
    granted.prompts_list_changed =
        list(asked.prompts_list_changed, prompts, "`prompts.listChanged`");
    granted.resources_list_changed =
        list(asked.resources_list_changed, resources, "`resources.listChanged`");
    let uris = asked.resource_subscriptions.unwrap_or_default();
    match (uris.is_empty(), subscribe) {
        (true, _) => {}
        (false, Some(true)) => granted.resource_subscriptions = Some(uris),
        (false, _) => lacking.push("`resources.subscribe`"),
    }
    if is_nothing(&granted) && !lacking.is_empty() {
        let lacking = lacking.join(", ");
        return Err(Error::refused(format!(
            "the server tells nothing of what was asked for: it did not declare {lacking}; list or \
             read again from time to time, or register `on_notification` on the client's builder"
        )));
    }
    Ok(granted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn capabilities(value: serde_json::Value) -> ServerCapabilities {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_part_of_a_resource_is_the_resource() {
        for (uri, watched) in [
            ("note://7", "note://7"),
            ("note://7/title", "note://7"),
            ("note://7#title", "note://7"),
            ("note://7?part=1", "note://7"),
            ("file:///a/b", "file:///a/"),
        ] {
            assert!(lies_in(uri, watched), "{uri} {watched}");
        }
        for (uri, watched) in
            [("note://77", "note://7"), ("note://", "note://7"), ("x", "note://7")]
        {
            assert!(!lies_in(uri, watched), "{uri} {watched}");
        }
    }

    // req: client:list-changed:capability-gated
    #[test]
    fn only_what_was_declared_is_expected() {
        let mut asked = SubscriptionFilter::new();
        asked.tools_list_changed = Some(true);
        asked.prompts_list_changed = Some(true);
        asked.resource_subscriptions = Some(vec!["b:2".into(), "a:1".into(), "b:2".into()]);
        let all = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
        let granted = available(asked.clone(), Some(&capabilities(all))).unwrap();
        let expected = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1", "b:2"]});
        assert_eq!(serde_json::to_value(&granted).unwrap(), expected);
        let none = json!({"tools": {}, "prompts": {"listChanged": false}, "resources": {}});
        let error = available(asked, Some(&capabilities(none))).unwrap_err();
        let named = "`tools.listChanged`, `prompts.listChanged`, `resources.subscribe`";
        assert!(error.to_string().contains(named), "{error}");
        assert!(available(SubscriptionFilter::new(), None).is_ok(), "nothing was asked for");
    }
}
