//! Notifications of changes for a legacy client of a modern server: the gateway has one listen stream
//! for the client, and replaces it when the client subscribes or when the stream is lost.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::json;
use tokio::{sync::watch, task::AbortHandle, time::Instant};
use turnbuckle::{
    __seam::{self, ForwardRequest, Note, copy_error, covers},
    types::{
        Acknowledged, Initialize, Listen, LogLevel, Meta, Method, Raw, Revision, RpcError,
        ServerCapabilities, SubscriptionFilter, jsonrpc::Params,
    },
};

use super::{
    MAX_SUBSCRIPTIONS, list_changes,
    stream::{ChangeStream, ReplacedStream, Source, StreamEnd, StreamStep, step},
    too_many_subscriptions,
};
use crate::{
    call::{RequestPurpose, Topics, is},
    downstream::server_ended,
    gateway::to_rpc_error,
    json,
    translate::{self, Changes, RequestSender},
    upstream::{ClientChannel, Clients, Upstream, UpstreamConnection},
};

/// How often a lost stream is opened again, as a client's own listen stream would be.
const REOPEN_ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a stream has to last until the attempts are counted from the beginning.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// The listen stream for one legacy client. Dropping it ends the stream.
pub(crate) struct ChangeRelay {
    wanted: watch::Sender<WantedChanges>,
    granted: watch::Receiver<GrantedChanges>,
    task: AbortHandle,
}

/// The resources that a client is subscribed to. Each change has another round.
#[derive(Clone)]
struct WantedChanges {
    round: u64,
    uris: BTreeSet<String>,
}

impl WantedChanges {
    /// Returns whether the client wants a notification.
    fn includes(&self, note: &Note) -> bool {
        if !is(note, Method::ResourceUpdated) {
            return true;
        }
        let updated: Option<String> = json::decode_member(note.params.text(), "uri");
        updated.is_some_and(|uri| self.uris.iter().any(|wanted| covers(wanted, &uri)))
    }
}

/// The server's answer to a round.
#[derive(Default)]
struct GrantedChanges {
    round: u64,
    filter: SubscriptionFilter,
    error: Option<RpcError>,
}

impl GrantedChanges {
    fn includes(&self, uri: &String) -> bool {
        self.filter.resource_subscriptions.as_ref().is_some_and(|uris| uris.contains(uri))
    }
}

impl ChangeRelay {
    /// Starts with subscriptions to these resources.
    pub(crate) fn start(task: RelayTask, uris: BTreeSet<String>) -> ChangeRelay {
        let (wanted, wants) = watch::channel(WantedChanges { round: 0, uris });
        let (grants, granted) = watch::channel(GrantedChanges::default());
        let task = tokio::spawn(task.run(wants, grants)).abort_handle();
        ChangeRelay { wanted, granted, task }
    }

    /// Subscribes to a resource, and returns when the server has agreed. Dropping the future before
    /// that unsubscribes.
    pub(crate) async fn subscribe(&self, uri: String) -> Result<(), RpcError> {
        let mut round = 0;
        let mut is_new = false;
        let is_accepted = self.wanted.send_if_modified(|wanted| {
            is_new = !wanted.uris.contains(&uri);
            if is_new && wanted.uris.len() >= MAX_SUBSCRIPTIONS {
                return false;
            }
            wanted.uris.insert(uri.clone());
            wanted.round += 1;
            round = wanted.round;
            true
        });
        if !is_accepted {
            return Err(too_many_subscriptions());
        }
        let guard = SubscribeGuard { relay: self, uri: &uri, is_kept: !is_new };
        let mut granted = self.granted.clone();
        let answer = granted.wait_for(|granted| granted.round >= round).await;
        let error = match answer {
            Ok(granted) if granted.includes(&uri) => {
                guard.keep();
                return Ok(());
            }
            Ok(granted) => granted.error.clone(),
            Err(_) => Some(server_ended()),
        };
        self.unsubscribe(&uri);
        Err(error.unwrap_or_else(|| {
            RpcError::invalid_params(format!("the server does not report changes of `{uri}`"))
        }))
    }

    /// Unsubscribes from a resource.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.wanted.send_if_modified(|wanted| {
            let changed = wanted.uris.remove(uri);
            wanted.round += u64::from(changed);
            changed
        });
    }
}

impl Drop for ChangeRelay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A subscription that the server has not agreed to yet. Dropping it unsubscribes.
struct SubscribeGuard<'a> {
    relay: &'a ChangeRelay,
    uri: &'a str,
    is_kept: bool,
}

impl SubscribeGuard<'_> {
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for SubscribeGuard<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.relay.unsubscribe(self.uri);
        }
    }
}

/// The task of a [`ChangeRelay`].
pub(crate) struct RelayTask {
    pub(crate) upstream: Weak<Upstream>,
    pub(crate) connection: Arc<UpstreamConnection>,
    /// The revision that the client speaks.
    pub(crate) downstream: Revision,
    pub(crate) client: Initialize,
    pub(crate) channel: Weak<dyn ClientChannel>,
}

/// Why forwarding from a stream stops.
enum Stopped {
    /// The client wants other changes.
    Changed,
    Ended(StreamEnd),
    /// The relay was dropped.
    Dropped,
}

impl RelayTask {
    async fn run(
        mut self,
        mut wants: watch::Receiver<WantedChanges>,
        grants: watch::Sender<GrantedChanges>,
    ) {
        let mut current: Option<ChangeStream> = None;
        let mut budget = ReopenBudget::default();
        let mut is_lost = false;
        loop {
            let wanted = wants.borrow_and_update().clone();
            let had_stream = current.is_some();
            let opened = tokio::select! {
                biased;
                opened = self.replace(&mut current, &wanted) => opened,
                changed = wants.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            };
            let since = Instant::now();
            let stopped = match opened {
                Ok((next, filter)) => {
                    let granted = GrantedChanges { round: wanted.round, filter, error: None };
                    if std::mem::take(&mut is_lost) {
                        self.notify_missed(&granted.filter);
                    }
                    grants.send_replace(granted);
                    let replaced = ReplacedStream::new(std::mem::replace(&mut current, next));
                    self.forward(&mut current, replaced, &wanted, &mut wants).await
                }
                Err(end) => {
                    let (round, error) = (wanted.round, Some(to_error(&end)));
                    grants.send_replace(GrantedChanges { round, error, ..Default::default() });
                    match current {
                        // The stream before goes on.
                        Some(_) => {
                            let replaced = ReplacedStream::new(None);
                            self.forward(&mut current, replaced, &wanted, &mut wants).await
                        }
                        None => Stopped::Ended(end),
                    }
                }
            };
            let end = match stopped {
                Stopped::Changed => continue,
                Stopped::Dropped => return,
                Stopped::Ended(end) => end,
            };
            // A stream that the server has never accepted is not lost.
            is_lost |= had_stream || current.take().is_some();
            current = None;
            let pause = budget.pause(since.elapsed()).filter(|_| is_lost && end.is_retryable());
            if pause.is_none() && is_lost {
                self.log_lost(&end);
            }
            if wait(pause, &mut wants).await.is_err() {
                return;
            }
            if pause.is_none() {
                budget = ReopenBudget::default();
            }
            if self.connection.is_closed() && !self.reconnect().await {
                return;
            }
        }
    }

    /// Forwards notifications of a stream, and of the one that it replaces, until the client wants
    /// other changes.
    async fn forward(
        &self,
        current: &mut Option<ChangeStream>,
        mut replaced: ReplacedStream,
        wanted: &WantedChanges,
        wants: &mut watch::Receiver<WantedChanges>,
    ) -> Stopped {
        loop {
            tokio::select! {
                biased;
                changed = wants.changed() => {
                    return if changed.is_ok() { Stopped::Changed } else { Stopped::Dropped };
                }
                step = step(current) => match step {
                    StreamStep::Notification(note) => {
                        if replaced.is_new(&note, Source::Current) {
                            self.notify(&note, wanted);
                        }
                    }
                    StreamStep::Ended(end) => return Stopped::Ended(end),
                },
                note = replaced.next() => {
                    if replaced.is_new(&note, Source::Replaced) {
                        self.notify(&note, wanted);
                    }
                }
            }
        }
    }

    /// Changes to the next shared connection; returns `false` if the relay can't continue there.
    async fn reconnect(&mut self) -> bool {
        let Some(upstream) = self.upstream.upgrade() else { return false };
        // The gateway of a single client ends with its server.
        if upstream.clients == Clients::One {
            return false;
        }
        match upstream.connect_shared().await {
            Ok(connection) => self.connection = connection,
            // The next attempt to open a stream fails, and is counted.
            Err(error) => tracing::debug!(%error, "changes can't be relayed"),
        }
        self.connection.revisions(self.downstream).changes() == Changes::Relayed
    }

    /// Opens the next stream while notifications of the one before are still forwarded.
    async fn replace(
        &self,
        current: &mut Option<ChangeStream>,
        wanted: &WantedChanges,
    ) -> Result<(Option<ChangeStream>, SubscriptionFilter), StreamEnd> {
        let mut opening = std::pin::pin!(self.open(wanted));
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return opened,
                step = step(current) => match step {
                    StreamStep::Notification(note) => self.notify(&note, wanted),
                    StreamStep::Ended(_) => *current = None,
                },
            }
        }
    }

    fn notify(&self, note: &Note, wanted: &WantedChanges) {
        let Some(channel) = self.channel.upgrade() else { return };
        if is(note, Method::Acknowledged) || !wanted.includes(note) {
            return;
        }
        let params = match translate::with_subscription_id(note.params.text(), None) {
            empty if empty == "{}" => None,
            params => Some(json::raw(params)),
        };
        channel.notify(Note::new(note.method.clone(), params));
    }

    /// Reports everything as changed, because changes between two streams were missed.
    fn notify_missed(&self, granted: &SubscriptionFilter) {
        let Some(channel) = self.channel.upgrade() else { return };
        for change in list_changes(granted, &self.connection.server.capabilities) {
            channel.notify(Note::new(change.method.as_str(), None));
        }
        for uri in granted.resource_subscriptions.iter().flatten() {
            let params = Raw::from(json!({ "uri": uri }));
            channel.notify(Note::new(Method::ResourceUpdated.as_str(), Some(params)));
        }
    }

    /// Logs to the client that changes are lost: the legacy era has no other message for it.
    fn log_lost(&self, end: &StreamEnd) {
        tracing::warn!(%end, "changes are not relayed to a client any more");
        let Some(channel) = self.channel.upgrade() else { return };
        channel.log(
            LogLevel::Error,
            &format!(
                "changes are not reported any more: {end}; `resources/subscribe` tries again, and \
                 everything may have changed in between"
            ),
        );
    }

    /// Opens a stream and waits for the server's acknowledgement, which says what the server reports.
    /// There is no stream if the server reports nothing of what is wanted.
    async fn open(
        &self,
        wanted: &WantedChanges,
    ) -> Result<(Option<ChangeStream>, SubscriptionFilter), StreamEnd> {
        let filter = filter(&self.connection.server.capabilities, wanted);
        if filter == SubscriptionFilter::new() {
            return Ok((None, filter));
        }
        let params = Raw::at(&Listen::new(filter), self.connection.server.revision);
        let mut stream = self.send(&Params::of(params).unwrap_or_default());
        loop {
            match stream.step().await {
                StreamStep::Notification(note) if is(&note, Method::Acknowledged) => {
                    let granted = serde_json::from_str::<Acknowledged>(note.params.text());
                    let granted = granted.map(|granted| granted.notifications);
                    return Ok((Some(stream), granted.unwrap_or_default()));
                }
                StreamStep::Notification(_) => {}
                StreamStep::Ended(end) => return Err(end),
            }
        }
    }

    fn send(&self, params: &Params) -> ChangeStream {
        let (meta, revisions) = (Meta::new(), self.connection.revisions(self.downstream));
        let handshake = Some(&self.client);
        let sender =
            RequestSender { meta: &meta, handshake, log_level: None, progress_token: None };
        let encoded = revisions.translate_params(params, sender);
        let purpose = RequestPurpose::Stream(Topics::default());
        let in_flight = self.connection.router.register(None, revisions, purpose);
        let request = ForwardRequest {
            id: in_flight.request.id(),
            method: Method::Listen.as_str().into(),
            params: &encoded.text,
            token_at: None,
        };
        let exchange = __seam::forward(&self.connection.client, request);
        ChangeStream { in_flight, exchange }
    }
}

/// Counts the attempts to open a lost stream again.
#[derive(Default)]
struct ReopenBudget {
    attempts: u32,
}

impl ReopenBudget {
    /// Returns the pause before the next attempt, after a stream of this duration; `None` once the
    /// attempts are used up.
    fn pause(&mut self, lasted: Duration) -> Option<Duration> {
        if lasted >= HEALTHY_AFTER {
            self.attempts = 0;
        }
        if self.attempts >= REOPEN_ATTEMPTS {
            return None;
        }
        let longest = FIRST_PAUSE.saturating_mul(1 << self.attempts).min(LONGEST_PAUSE);
        self.attempts += 1;
        // A random part of it, so that not all gateways come back at once.
        let part = RandomState::new().hash_one(self.attempts) % 1000;
        Some(longest * u32::try_from(part).unwrap_or_default() / 1000)
    }
}

/// Waits for this long, or until the client wants other changes; fails if the relay was dropped.
async fn wait(
    pause: Option<Duration>,
    wants: &mut watch::Receiver<WantedChanges>,
) -> Result<(), watch::error::RecvError> {
    match pause {
        Some(pause) => match tokio::time::timeout(pause, wants.changed()).await {
            Ok(changed) => changed,
            Err(_) => Ok(()),
        },
        None => wants.changed().await,
    }
}

fn to_error(end: &StreamEnd) -> RpcError {
    match end {
        StreamEnd::Failed(error) => to_rpc_error(copy_error(error)),
        StreamEnd::Finished => RpcError::internal(format!("changes are not reported: {end}")),
    }
}

/// Returns a filter for everything that the server reports, and the resources that are wanted.
fn filter(server: &ServerCapabilities, wanted: &WantedChanges) -> SubscriptionFilter {
    let mut every = SubscriptionFilter::new();
    every.tools_list_changed = Some(true);
    every.prompts_list_changed = Some(true);
    every.resources_list_changed = Some(true);
    let mut filter = SubscriptionFilter::new();
    for change in list_changes(&every, server) {
        *(change.wanted)(&mut filter) = Some(true);
    }
    let uris: Vec<_> = wanted.uris.iter().cloned().collect();
    filter.resource_subscriptions = Some(uris).filter(|uris| !uris.is_empty());
    filter
}
