//! Owns what a client of the legacy era is told of changes of a modern server: one stream of the
//! bridge's own, made anew when something else is wanted. Does not own streams of clients.

use std::{
    collections::BTreeSet,
    future::poll_fn,
    sync::{Arc, Weak},
    task::Poll,
    time::Duration,
};

use serde::Deserialize;
use tokio::{sync::watch, task::AbortHandle, time::Instant};
use turnbuckle_types::{
    Acknowledged, Initialize, Listen, Meta, Method, Raw, Revision, RpcError, ServerCapabilities,
    SubscriptionFilter, jsonrpc::Params,
};

use super::{
    call::is,
    failed,
    flight::{Purpose, Told, Topics},
    link::Link,
    listen::{MOST, lists},
    router::{Aside, Entered},
    text,
    translate::{self, Sender},
};
use crate::{
    client::Forwarded,
    dispatch::{Event, Exchange, Note},
};

/// How long a stream that was lost is left alone.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a stream that was replaced is still listened to.
const LINGER: Duration = Duration::from_millis(250);

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
        updated.is_ok_and(|Updated { uri }| {
            self.uris.iter().any(|wanted| uri.starts_with(wanted.as_str()))
        })
    }
}

#[derive(Default)]
struct Granted {
    round: u64,
    uris: Vec<String>,
    refusal: Option<RpcError>,
}

impl Relay {
    /// Begins with these resources.
    pub(super) fn start(
        link: Arc<Link>,
        client: Initialize,
        aside: Weak<dyn Aside>,
        uris: BTreeSet<String>,
    ) -> Relay {
        let (wanted, wants) = watch::channel(Wanted { round: 0, uris });
        let (grants, granted) = watch::channel(Granted::default());
        let telling = Telling { link, client, aside };
        let task = tokio::spawn(telling.run(wants, grants)).abort_handle();
        Relay { wanted, granted, task }
    }

    /// Tells the client of a resource from now on. Returns when the server has agreed.
    pub(super) async fn watch(&self, uri: String) -> Result<(), RpcError> {
        let mut round = 0;
        let mut full = false;
        self.wanted.send_if_modified(|wanted| {
            full = wanted.uris.len() >= MOST && !wanted.uris.contains(&uri);
            if !full {
                wanted.uris.insert(uri.clone());
                wanted.round += 1;
            }
            round = wanted.round;
            !full
        });
        if full {
            let message = format!("too many subscriptions on this connection: the limit is {MOST}");
            return Err(RpcError::internal(message));
        }
        let mut granted = self.granted.clone();
        let reached = granted.wait_for(|granted| granted.round >= round).await;
        let refusal = match reached {
            Ok(granted) if granted.uris.contains(&uri) => return Ok(()),
            Ok(granted) => granted.refusal.clone(),
            Err(_) => Some(RpcError::internal("the server behind this bridge has ended")),
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

struct Telling {
    link: Arc<Link>,
    client: Initialize,
    aside: Weak<dyn Aside>,
}

/// A stream of the bridge's own.
struct Stream {
    entered: Entered,
    exchange: Exchange,
}

enum Step {
    Told(Note),
    Ended(Result<(), RpcError>),
}

impl Telling {
    async fn run(self, mut wants: watch::Receiver<Wanted>, grants: watch::Sender<Granted>) {
        let mut current: Option<Stream> = None;
        loop {
            let wanted = wants.borrow_and_update().clone();
            let (next, granted) = self.replace(&mut current, &wanted).await;
            grants.send_replace(granted);
            let mut leaving = Leaving::new(std::mem::replace(&mut current, next));
            loop {
                tokio::select! {
                    biased;
                    changed = wants.changed() => match changed {
                        Ok(()) => break,
                        Err(_) => return,
                    },
                    step = step(&mut current) => match step {
                        Step::Told(note) => {
                            if leaving.is_news(&note, Side::Current) {
                                self.tell(&note, &wanted);
                            }
                        }
                        Step::Ended(_) => {
                            current = None;
                            if self.link.is_gone() {
                                return;
                            }
                            tokio::time::sleep(PAUSE).await;
                            break;
                        }
                    },
                    note = leaving.next() => {
                        if leaving.is_news(&note, Side::Leaving) {
                            self.tell(&note, &wanted);
                        }
                    }
                }
            }
        }
    }

    /// Opens the next stream while the one before is still told of.
    async fn replace(
        &self,
        current: &mut Option<Stream>,
        wanted: &Wanted,
    ) -> (Option<Stream>, Granted) {
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

    /// Opens a stream for what is wanted, and returns when the server has acknowledged it.
    async fn open(&self, wanted: &Wanted) -> (Option<Stream>, Granted) {
        let round = wanted.round;
        let filter = filter(&self.link.facts.capabilities, wanted);
        if filter == SubscriptionFilter::new() {
            return (None, Granted { round, ..Granted::default() });
        }
        let params = Raw::at(&Listen::new(filter), Revision::LATEST);
        let mut stream = self.send(&Params::of(params).unwrap_or_default());
        loop {
            match stream.step().await {
                Step::Told(note) if is(&note, Method::Acknowledged) => {
                    let granted = serde_json::from_str::<Acknowledged>(note.params.text());
                    let uris =
                        granted.ok().and_then(|all| all.notifications.resource_subscriptions);
                    let uris = uris.unwrap_or_default();
                    return (Some(stream), Granted { round, uris, refusal: None });
                }
                Step::Told(_) => {}
                Step::Ended(ended) => {
                    let refusal = ended.err();
                    return (None, Granted { round, refusal, ..Granted::default() });
                }
            }
        }
    }

    fn send(&self, params: &Params) -> Stream {
        let meta = Meta::new();
        let handshake = Some(&self.client);
        let sender = Sender { meta: &meta, handshake, log_level: None, token: None };
        let written = translate::params(params, sender, self.link.revision());
        let entered = self.link.router.enter(None, Purpose::Stream(Topics::default()));
        let exchange = self.link.client.forward(Forwarded {
            id: entered.flight.id(),
            method: Method::Listen.as_str().into(),
            params: &written.text,
            token_at: None,
        });
        Stream { entered, exchange }
    }
}

impl Stream {
    async fn step(&mut self) -> Step {
        let Stream { entered, exchange } = self;
        poll_fn(|context| {
            loop {
                if let Poll::Ready(told) = entered.flight.poll_told(context) {
                    match told {
                        Told::Note(note) => return Poll::Ready(Step::Told(note)),
                        Told::Asked(_) => continue,
                    }
                }
                let Poll::Ready(event) = exchange.poll_event(context) else { return Poll::Pending };
                match event {
                    Event::Note(note) if is(&note, Method::Cancelled) => {
                        exchange.silence();
                        return Poll::Ready(Step::Ended(Ok(())));
                    }
                    Event::Note(_) => {}
                    Event::Done(result) => {
                        return Poll::Ready(Step::Ended(result.map(drop).map_err(failed)));
                    }
                }
            }
        })
        .await
    }
}

/// What a stream says next; never anything if there is none.
async fn step(stream: &mut Option<Stream>) -> Step {
    match stream {
        Some(stream) => stream.step().await,
        None => std::future::pending().await,
    }
}

/// A stream that was replaced. What the server said on it before it knew of the next one may still
/// be on its way; what it says on both is told once.
struct Leaving {
    stream: Option<Stream>,
    until: Instant,
    /// What was heard on one side and not yet on the other.
    unmatched: Vec<(Side, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Current,
    Leaving,
}

impl Leaving {
    fn new(stream: Option<Stream>) -> Leaving {
        Leaving { stream, until: Instant::now() + LINGER, unmatched: Vec::new() }
    }

    /// What is still said on it. Pending for ever once it is over. Dropping the future loses nothing.
    async fn next(&mut self) -> Note {
        let told = tokio::time::timeout_at(self.until, step(&mut self.stream)).await;
        if let Ok(Step::Told(note)) = told {
            return note;
        }
        self.stream = None;
        std::future::pending().await
    }

    fn is_news(&mut self, note: &Note, side: Side) -> bool {
        if self.stream.is_none() {
            return true;
        }
        let what =
            [&note.method, " ", &*translate::subscription(note.params.text(), None)].concat();
        let other = |(heard, known): &(Side, String)| *heard != side && *known == what;
        if let Some(at) = self.unmatched.iter().position(other) {
            self.unmatched.swap_remove(at);
            return false;
        }
        self.unmatched.push((side, what));
        true
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
