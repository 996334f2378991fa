//! Owns what a client of the legacy era is told of changes of a modern server: one stream of the
//! bridge's own, made anew when something else is wanted or when it was lost. Does not own streams of
//! clients.

mod stream;

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Weak},
    time::Duration,
};

use serde::Deserialize;
use serde_json::json;
use tokio::{sync::watch, task::AbortHandle, time::Instant};
use turnbuckle_types::{
    Acknowledged, Initialize, Listen, LogLevel, Meta, Method, Raw, Revision, RpcError,
    ServerCapabilities, SubscriptionFilter, jsonrpc::Params,
};

use super::{
    call::is,
    failed,
    far::Far,
    flight::{Purpose, Topics},
    line::{closed, too_many},
    link::Link,
    listen::{MOST, lists},
    router::{Aside, Clients},
    text,
    translate::{self, Changes, Sender},
};
use crate::{
    Reconnect,
    client::{Forwarded, lies_in},
    dispatch::Note,
};
use stream::{End, Leaving, Side, Step, Stream, step};

/// What a modern server tells of changes, for a client of the legacy era: one stream, made anew
/// when the client subscribes to something. Dropping it ends the stream.
pub(super) struct Relay {
    wanted: watch::Sender<Wanted>,
    granted: watch::Receiver<Granted>,
    task: AbortHandle,
}

#[derive(Clone)]
struct Wanted {
    round: u64,
    uris: BTreeSet<String>,
}

impl Wanted {
    /// Whether the client is to be told this.
    fn has(&self, note: &Note) -> bool {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        if !is(note, Method::ResourceUpdated) {
            return true;
        }
        let updated = serde_json::from_str::<Updated>(note.params.text());
        updated.is_ok_and(|Updated { uri }| self.uris.iter().any(|wanted| lies_in(&uri, wanted)))
    }
}

#[derive(Default)]
struct Granted {
    round: u64,
    filter: SubscriptionFilter,
    refusal: Option<RpcError>,
}

impl Granted {
    fn has(&self, uri: &String) -> bool {
        self.filter.resource_subscriptions.as_ref().is_some_and(|uris| uris.contains(uri))
    }
}

impl Relay {
    /// Begins with these resources.
    pub(super) fn start(telling: Telling, uris: BTreeSet<String>) -> Relay {
        let (wanted, wants) = watch::channel(Wanted { round: 0, uris });
        let (grants, granted) = watch::channel(Granted::default());
        let task = tokio::spawn(telling.run(wants, grants)).abort_handle();
        Relay { wanted, granted, task }
    }

    /// Tells the client of a resource from now on. Returns when the server has agreed. Dropping the
    /// future before that takes the wish back.
    pub(super) async fn watch(&self, uri: String) -> Result<(), RpcError> {
        let mut round = 0;
        let mut is_new = false;
        let is_taken = self.wanted.send_if_modified(|wanted| {
            is_new = !wanted.uris.contains(&uri);
            if is_new && wanted.uris.len() >= MOST {
                return false;
            }
            wanted.uris.insert(uri.clone());
            wanted.round += 1;
            round = wanted.round;
            true
        });
        if !is_taken {
            return Err(too_many());
        }
        let wish = Wish { relay: self, uri: &uri, is_kept: !is_new };
        let mut granted = self.granted.clone();
        let reached = granted.wait_for(|granted| granted.round >= round).await;
        let refusal = match reached {
            Ok(granted) if granted.has(&uri) => {
                wish.keep();
                return Ok(());
            }
            Ok(granted) => granted.refusal.clone(),
            Err(_) => Some(closed()),
        };
        self.leave(&uri);
        Err(refusal.unwrap_or_else(|| {
            RpcError::invalid_params(format!("the server does not tell of changes of `{uri}`"))
        }))
    }

    /// Tells the client no more of a resource.
    pub(super) fn leave(&self, uri: &str) {
        self.wanted.send_if_modified(|wanted| {
            let changed = wanted.uris.remove(uri);
            wanted.round += u64::from(changed);
            changed
        });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A resource that the server has not agreed to tell of. Dropping it takes the wish back.
struct Wish<'a> {
    relay: &'a Relay,
    uri: &'a str,
    is_kept: bool,
}

impl Wish<'_> {
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.relay.leave(self.uri);
        }
    }
}

/// Whom to tell, and of what.
pub(super) struct Telling {
    pub(super) far: Weak<Far>,
    pub(super) link: Arc<Link>,
    /// What the client speaks.
    pub(super) near: Revision,
    pub(super) client: Initialize,
    pub(super) aside: Weak<dyn Aside>,
}

/// Why a stream is not told of any more.
enum Turn {
    /// Something else is wanted.
    Changed,
    Ended(End),
    /// Nobody wants anything.
    Over,
}

impl Telling {
    async fn run(mut self, mut wants: watch::Receiver<Wanted>, grants: watch::Sender<Granted>) {
        let mut current: Option<Stream> = None;
        let mut budget = Budget::new(Reconnect::new());
        let mut lost = false;
        loop {
            let wanted = wants.borrow_and_update().clone();
            let had_one = current.is_some();
            let opened = tokio::select! {
                biased;
                opened = self.replace(&mut current, &wanted) => opened,
                changed = wants.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            };
            let since = Instant::now();
            let turn = match opened {
                Ok((next, filter)) => {
                    let granted = Granted { round: wanted.round, filter, refusal: None };
                    if std::mem::take(&mut lost) {
                        self.tell_missed(&granted.filter);
                    }
                    grants.send_replace(granted);
                    let leaving = Leaving::new(std::mem::replace(&mut current, next));
                    self.listen(&mut current, leaving, &wanted, &mut wants).await
                }
                Err(end) => {
                    let refusal = Some(refusal(&end));
                    let round = wanted.round;
                    grants.send_replace(Granted { round, refusal, ..Granted::default() });
                    match current {
                        // What was told of before still is.
                        Some(_) => {
                            let leaving = Leaving::new(None);
                            self.listen(&mut current, leaving, &wanted, &mut wants).await
                        }
                        None => Turn::Ended(end),
                    }
                }
            };
            let end = match turn {
                Turn::Changed => continue,
                Turn::Over => return,
                Turn::Ended(end) => end,
            };
            // One that was refused to begin with is no loss.
            lost |= had_one || current.take().is_some();
            current = None;
            let pause = budget.pause(since.elapsed()).filter(|_| lost && end.is_passing());
            if pause.is_none() && lost {
                self.tell_lost(&end);
            }
            if wait(pause, &mut wants).await.is_err() {
                return;
            }
            if pause.is_none() {
                budget = Budget::new(Reconnect::new());
            }
            if self.link.is_gone() && !self.renew().await {
                return;
            }
        }
    }

    /// Tells what a stream says, and the one before, until something else is wanted.
    async fn listen(
        &self,
        current: &mut Option<Stream>,
        mut leaving: Leaving,
        wanted: &Wanted,
        wants: &mut watch::Receiver<Wanted>,
    ) -> Turn {
        loop {
            tokio::select! {
                biased;
                changed = wants.changed() => {
                    return if changed.is_ok() { Turn::Changed } else { Turn::Over };
                }
                step = step(current) => match step {
                    Step::Told(note) => {
                        if leaving.is_news(&note, Side::Current) {
                            self.tell(&note, wanted);
                        }
                    }
                    Step::Ended(end) => return Turn::Ended(end),
                },
                note = leaving.next() => {
                    if leaving.is_news(&note, Side::Leaving) {
                        self.tell(&note, wanted);
                    }
                }
            }
        }
    }

    /// Goes on with the connection that follows one that has ended; `false` if there is none to be
    /// had in this way.
    async fn renew(&mut self) -> bool {
        let Some(far) = self.far.upgrade() else { return false };
        // What is one client's own ends with its server.
        if far.clients == Clients::One {
            return false;
        }
        match far.shared().await {
            Ok(link) => self.link = link,
            // The attempt that follows fails, and is paid for.
            Err(error) => tracing::debug!(%error, "nothing can be told of changes"),
        }
        self.link.sides(self.near).changes() == Changes::Relayed
    }

    /// Opens the next stream while the one before is still told of.
    async fn replace(
        &self,
        current: &mut Option<Stream>,
        wanted: &Wanted,
    ) -> Result<(Option<Stream>, SubscriptionFilter), End> {
        let mut opening = std::pin::pin!(self.open(wanted));
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return opened,
                step = step(current) => match step {
                    Step::Told(note) => self.tell(&note, wanted),
                    Step::Ended(_) => *current = None,
                },
            }
        }
    }

    fn tell(&self, note: &Note, wanted: &Wanted) {
        let Some(aside) = self.aside.upgrade() else { return };
        if is(note, Method::Acknowledged) || !wanted.has(note) {
            return;
        }
        let params = match translate::subscription(note.params.text(), None) {
            empty if empty == "{}" => None,
            params => Some(text::raw(params)),
        };
        aside.tell(Note::new(note.method.clone(), params));
    }

    /// Nobody heard what happened between two streams: anything may have changed.
    fn tell_missed(&self, granted: &SubscriptionFilter) {
        let Some(aside) = self.aside.upgrade() else { return };
        for (method, _) in lists(granted, &self.link.facts.capabilities) {
            aside.tell(Note::new(method.as_str(), None));
        }
        for uri in granted.resource_subscriptions.iter().flatten() {
            let params = Raw::from(json!({ "uri": uri }));
            aside.tell(Note::new(Method::ResourceUpdated.as_str(), Some(params)));
        }
    }

    /// The protocol of that era has no other words for it.
    fn tell_lost(&self, end: &End) {
        tracing::warn!(%end, "a client is not told of changes any more");
        let Some(aside) = self.aside.upgrade() else { return };
        aside.log(
            LogLevel::Error,
            &format!(
                "changes are not told any more: {end}; `resources/subscribe` tries it again, and \
                 everything may have changed meanwhile"
            ),
        );
    }

    /// Opens a stream for what is wanted, and returns when the server has acknowledged it, with
    /// what it will tell of. There is none if nothing is wanted that the server tells of.
    async fn open(&self, wanted: &Wanted) -> Result<(Option<Stream>, SubscriptionFilter), End> {
        let filter = filter(&self.link.facts.capabilities, wanted);
        if filter == SubscriptionFilter::new() {
            return Ok((None, filter));
        }
        let params = Raw::at(&Listen::new(filter), self.link.facts.revision);
        let mut stream = self.send(&Params::of(params).unwrap_or_default());
        loop {
            match stream.step().await {
                Step::Told(note) if is(&note, Method::Acknowledged) => {
                    let granted = serde_json::from_str::<Acknowledged>(note.params.text());
                    let granted = granted.map(|granted| granted.notifications);
                    return Ok((Some(stream), granted.unwrap_or_default()));
                }
                Step::Told(_) => {}
                Step::Ended(end) => return Err(end),
            }
        }
    }

    fn send(&self, params: &Params) -> Stream {
        let (meta, sides) = (Meta::new(), self.link.sides(self.near));
        let handshake = Some(&self.client);
        let sender = Sender { meta: &meta, handshake, log_level: None, token: None };
        let written = sides.params(params, sender);
        let entered = self.link.router.enter(None, sides, Purpose::Stream(Topics::default()));
        let exchange = self.link.client.forward(Forwarded {
            id: entered.flight.id(),
            method: Method::Listen.as_str().into(),
            params: &written.text,
            token_at: None,
        });
        Stream { entered, exchange }
    }
}

/// How often a stream that was lost is opened again, as a client's own stream would be.
struct Budget {
    policy: Reconnect,
    spent: u32,
}

impl Budget {
    fn new(policy: Reconnect) -> Budget {
        Budget { policy, spent: 0 }
    }

    /// The pause before the next attempt, after a stream that lasted for so long; `None` once the
    /// budget is spent.
    fn pause(&mut self, lasted: Duration) -> Option<Duration> {
        if lasted >= self.policy.healthy_after {
            self.spent = 0;
        }
        if self.spent >= self.policy.attempts {
            return None;
        }
        self.spent += 1;
        let chance = RandomState::new().hash_one(self.spent);
        Some(self.policy.pause(self.spent, chance))
    }
}

/// Waits for this long, or until something else is wanted; fails if nobody wants anything any more.
async fn wait(
    pause: Option<Duration>,
    wants: &mut watch::Receiver<Wanted>,
) -> Result<(), watch::error::RecvError> {
    match pause {
        Some(pause) => match tokio::time::timeout(pause, wants.changed()).await {
            Ok(changed) => changed,
            Err(_) => Ok(()),
        },
        None => wants.changed().await,
    }
}

fn refusal(end: &End) -> RpcError {
    match end {
        End::Failed(error) => failed(error.again()),
        End::Farewell => RpcError::internal(format!("changes are not told: {end}")),
    }
}

/// Everything that the server tells of, and the resources that are wanted.
fn filter(has: &ServerCapabilities, wanted: &Wanted) -> SubscriptionFilter {
    let mut every = SubscriptionFilter::new();
    every.tools_list_changed = Some(true);
    every.prompts_list_changed = Some(true);
    every.resources_list_changed = Some(true);
    let mut filter = SubscriptionFilter::new();
    lists(&every, has).iter().for_each(|(_, grant)| grant(&mut filter));
    let uris: Vec<_> = wanted.uris.iter().cloned().collect();
    filter.resource_subscriptions = Some(uris).filter(|uris| !uris.is_empty());
    filter
}
