//! Owns a `subscriptions/listen` stream: acknowledged first, then what was asked for.
//! Does not own the changes themselves, nor who else hears of them.

use std::{
    collections::HashSet,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::ready,
};

use super::{
    bus::Change,
    listeners::{BACKLOG, ListenerHandle},
};
use crate::{
    middleware::server::Request,
    rpc::{BoxFuture, Outcome, Permit, Replies, Reply},
    server::{
        handler::run::caught,
        methods::{
            HandlerRequest, {self},
        },
        registry::{FoundResource, RegistrySnapshot},
        shared::App,
    },
};
use turnbuckle_types::{
    Acknowledged, EmptyResult, ListenResult, Meta, Method, Raw, RequestId, ResourceUpdated,
    Revision, RpcError, ServerCapabilities, Signal, SubscriptionFilter, write_at,
};

/// How many resources one stream may name.
const WATCHED: usize = 4096;

/// Opens a stream: from here on nothing is missed. The future serves it until its client, or
/// the connection, ends it.
///
/// Where rules or layers have a say in which resources this client may hear of, the stream opens
/// in the future: they are an author's code.
pub(crate) fn open(
    visit: HandlerRequest,
    asked: SubscriptionFilter,
) -> Result<BoxFuture<'static, Outcome>, RpcError> {
    let snapshot = visit.app.snapshot();
    let mut guarded = false;
    let is_there = |uri: &str| {
        let found = snapshot.find(uri);
        guarded |= found.as_ref().is_some_and(|found| is_guarded(&visit.app, found));
        found.is_some()
    };
    let granted = granted(asked, visit.app.capabilities(), is_there)?;
    let resources = visit.app.method_sets().resources.filter(|_| guarded);
    let Some(admit) = resources.and_then(|way| way.admit) else { return start(visit, granted) };
    Ok(Box::pin(async move {
        let granted = admit(&visit, &snapshot, granted).await;
        drop(snapshot);
        let stream = start(visit, granted)?;
        stream.await
    }))
}

fn start(
    visit: HandlerRequest,
    granted: SubscriptionFilter,
) -> Result<BoxFuture<'static, Outcome>, RpcError> {
    let HandlerRequest { app, ctx, permit, .. } = visit;
    let (id, revision, replies) = (ctx.request_id().clone(), ctx.revision(), ctx.0.replies.clone());
    let Some(listener) = app.changes.here().stream(topics(&granted), app.listeners) else {
        return Err(RpcError::internal(format!(
            "too many streams listen to this server: the limit is {} (listeners)",
            app.listeners
        )));
    };
    replies.at_shutdown(farewell(&app, &id, revision));
    let signal = signal(&id, revision);
    let stream = ListenStream { id, revision, signal, listener, replies, _permit: permit };
    Ok(Box::pin(stream.run(granted)))
}

/// Whether anything stands between a stream and a resource.
fn is_guarded(app: &App, found: &FoundResource) -> bool {
    !app.middleware.requests.is_empty() || methods::is_guarded(app, found)
}

/// Asks rules and layers about the resources of a stream. Only a program that has resources links it.
pub(crate) type Admit = for<'a> fn(
    &'a HandlerRequest,
    &'a RegistrySnapshot,
    SubscriptionFilter,
) -> BoxFuture<'a, SubscriptionFilter>;

pub(crate) const ADMIT: Admit =
    |visit, snapshot, granted| Box::pin(admitted(visit, snapshot, granted));

/// What is left once rules and layers were asked about each resource, in the order in which the
/// client named them. What one of them refuses costs that resource only.
async fn admitted(
    visit: &HandlerRequest,
    snapshot: &RegistrySnapshot,
    mut granted: SubscriptionFilter,
) -> SubscriptionFilter {
    let mut uris = Vec::new();
    for uri in granted.resource_subscriptions.take().into_iter().flatten() {
        let Some(found) = snapshot.find(&uri) else { continue };
        if !is_guarded(&visit.app, &found) || admits(visit, found, &uri).await {
            uris.push(uri);
        }
    }
    granted.resource_subscriptions = Some(uris).filter(|uris| !uris.is_empty());
    granted
}

/// Takes a request for one resource past what would stand in the way of a legacy subscription to
/// it: the layers of the server, the rules, the layers of its groups and its own.
async fn admits(visit: &HandlerRequest, found: FoundResource, uri: &str) -> bool {
    let HandlerRequest { app, ctx, params, permit } = visit;
    let permit = Permit::another(&permit.counter());
    let part =
        HandlerRequest { app: app.clone(), ctx: ctx.within(), params: params.clone(), permit };
    let request = Request::of(&part, Method::Listen.as_str().into(), Some(uri.to_owned()));
    // A layer that answers by itself has let nothing pass.
    let passed = Arc::new(AtomicBool::new(false));
    let (tell, revision, about) = (passed.clone(), ctx.revision(), (found, uri.to_owned()));
    let arrive = move |_, _| {
        tell.store(true, Relaxed);
        Reply::Now(Ok(Raw::at(&EmptyResult::new(), revision)))
    };
    let outcome = app
        .middleware
        .requests
        .reply(request, move || methods::reach_found(part, Method::Listen, about, arrive));
    match caught(async { Ok(outcome.await?) }).await {
        Ok(_) => passed.load(Relaxed),
        Err(refused) => {
            tracing::debug!(uri, ?refused, "nobody listens to what a rule or a layer refuses");
            false
        }
    }
}

/// What is asked for and advertised, and of the resources those that there are.
fn granted(
    asked: SubscriptionFilter,
    advertised: &ServerCapabilities,
    mut is_there: impl FnMut(&str) -> bool,
) -> Result<SubscriptionFilter, RpcError> {
    let resources = advertised.resources.as_ref();
    let both = |asked: Option<bool>, advertised: Option<bool>| {
        (asked == Some(true) && advertised == Some(true)).then_some(true)
    };
    let mut granted = SubscriptionFilter::new();
    granted.tools_list_changed = both(
        asked.tools_list_changed,
        advertised.tools.as_ref().and_then(|tools| tools.list_changed),
    );
    granted.prompts_list_changed = both(
        asked.prompts_list_changed,
        advertised.prompts.as_ref().and_then(|prompts| prompts.list_changed),
    );
    granted.resources_list_changed =
        both(asked.resources_list_changed, resources.and_then(|resources| resources.list_changed));
    if resources.is_some_and(|resources| resources.subscribe == Some(true)) {
        let mut uris = asked.resource_subscriptions.unwrap_or_default();
        let mut seen = HashSet::new();
        uris.retain(|uri| seen.insert(uri.clone()));
        if uris.len() > WATCHED {
            return Err(RpcError::invalid_params(format!(
                "`params.notifications.resourceSubscriptions` names {} resources; one stream may name {WATCHED}",
                uris.len()
            )));
        }
        uris.retain(|uri| is_there(uri));
        granted.resource_subscriptions = Some(uris).filter(|uris| !uris.is_empty());
    }
    Ok(granted)
}

fn topics(granted: &SubscriptionFilter) -> Vec<Change> {
    let lists = [
        (granted.tools_list_changed, Change::Tools),
        (granted.prompts_list_changed, Change::Prompts),
        (granted.resources_list_changed, Change::Resources),
    ];
    let lists = lists.into_iter().filter_map(|(granted, topic)| granted.map(|_| topic));
    let uris = granted.resource_subscriptions.iter().flatten().cloned();
    lists.chain(uris.map(Change::Resource)).collect()
}

/// The result that ends a stream in good order.
fn farewell(app: &App, id: &RequestId, revision: Revision) -> Raw {
    let mut result = ListenResult::new();
    result.meta = subscription(id);
    app.name_in(&mut result.meta, revision);
    Raw::at(&result, revision)
}

/// The params of every notification that says no more than that a list has changed.
fn signal(id: &RequestId, revision: Revision) -> Box<[u8]> {
    let mut signal = Signal::new();
    signal.meta = subscription(id);
    let mut text = Vec::new();
    write_at(&signal, revision, &mut text);
    text.into()
}

fn subscription(id: &RequestId) -> Meta {
    let mut meta = Meta::new();
    meta.set_subscription_id(id.clone());
    meta
}

/// An open stream. Dropping it, as every end does, takes its listener away.
struct ListenStream {
    id: RequestId,
    revision: Revision,
    /// Written once: it may be told to very many streams at the same moment.
    signal: Box<[u8]>,
    listener: ListenerHandle,
    replies: Replies,
    /// It is in flight for as long as it is open.
    _permit: Permit,
}

impl ListenStream {
    #[expect(clippy::manual_async_fn, reason = "an `async fn` would keep its arguments twice")]
    fn run(self, granted: SubscriptionFilter) -> impl Future<Output = Outcome> + Send {
        async move {
            // 2026-07-28 basic/patterns/subscriptions §Acknowledgment: the first message of the stream.
            self.acknowledge(granted).await;
            loop {
                // What waits goes out together. Then it waits here, where what is told again is
                // told once, until the client has taken that.
                poll_fn(|context| {
                    ready!(self.listener.poll_ready(context));
                    self.replies.poll_clear(context)
                })
                .await;
                loop {
                    match self.listener.take() {
                        Ok(Some(change)) => self.tell(&change).await,
                        Ok(None) => break,
                        Err(_) => return Err(behind()),
                    }
                }
            }
        }
    }

    async fn acknowledge(&self, granted: SubscriptionFilter) {
        let mut acknowledged = Acknowledged::new(granted);
        acknowledged.meta = subscription(&self.id);
        self.say(Method::Acknowledged, |out| {
            write_at(&acknowledged, self.revision, out);
        })
        .await;
    }

    async fn tell(&self, change: &Change) {
        self.say(method(change), |out| match change {
            Change::Resource(uri) => {
                let mut updated = ResourceUpdated::new(uri);
                updated.meta = subscription(&self.id);
                write_at(&updated, self.revision, out);
            }
            Change::Tools | Change::Prompts | Change::Resources => {
                out.extend_from_slice(&self.signal);
            }
        })
        .await;
    }

    async fn say(&self, method: Method, mut render: impl FnMut(&mut Vec<u8>)) {
        let method = method.as_str();
        poll_fn(|context| self.replies.poll_note(context, method, &mut render)).await;
    }
}

/// What tells of a change.
pub(crate) fn method(change: &Change) -> Method {
    match change {
        Change::Tools => Method::ToolListChanged,
        Change::Prompts => Method::PromptListChanged,
        Change::Resources => Method::ResourceListChanged,
        Change::Resource(_) => Method::ResourceUpdated,
    }
}

fn behind() -> RpcError {
    RpcError::internal(format!(
        "this stream fell behind: more than {BACKLOG} changes waited for it, and some are lost; listen again and read everything again"
    ))
}

/// The lists whose changes are advertised.
pub(crate) fn lists(app: &App) -> Vec<Change> {
    let mut every = SubscriptionFilter::new();
    every.tools_list_changed = Some(true);
    every.prompts_list_changed = Some(true);
    every.resources_list_changed = Some(true);
    // No resources are named, so there is nothing to refuse.
    granted(every, app.capabilities(), |_| false)
        .map(|granted| topics(&granted))
        .unwrap_or_default()
}

#[cfg(test)]
impl crate::server::Server {
    /// With something of every kind, and a resource under every URI.
    pub(crate) fn offering_everything(self) -> crate::server::Server {
        self.tool(crate::tool("tool", async || ()))
            .prompt(crate::prompt("prompt", async || "prompt"))
            .template(crate::template("{+any}", async || "resource"))
    }
}

#[cfg(test)]
mod tests;
