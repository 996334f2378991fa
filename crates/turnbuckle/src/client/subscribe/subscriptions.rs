//! Owns the subscriptions of one legacy connection: each URI is subscribed once, for as long as
//! anyone wants it. Does not own who wants it, nor what is told.
//!
//! A task brings what the server knows in line with what is wanted. It is there while anything is
//! wanted or known, so that letting go needs nothing but a word to it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{
    client::connection::handle::{Carried, ClientConnection},
    error::{Closed, Error, Executed, Result},
    middleware::client::{ClientMiddleware, NewCall, Request},
    protocol::stamp::WantsProgress,
    rpc::Outgoing,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use turnbuckle_types::{Encode, Meta, Method, Raw, Revision, Subscribe, Unsubscribe, write_at};

/// How many requests of the task may be in flight at once.
const AT_ONCE: usize = 16;

/// What is subscribed on one connection.
#[derive(Default)]
pub(crate) struct ClientSubscriptions {
    state: Mutex<State>,
    /// Something is to be done.
    due: Notify,
    /// Something was answered.
    answered: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    uris: HashMap<String, Entry>,
    /// Invariant: set iff a task runs that has not yet seen that it has nothing to do.
    kept: bool,
    /// How often the server has forgotten everything: what it answered before counts for nothing.
    renewals: u64,
}

#[derive(Default)]
struct Entry {
    /// How many want it. An entry that nobody wants stays until the server knows that.
    wanted: usize,
    at_server: AtServer,
    /// As the first of them wished.
    with: With,
}

/// What goes with a request besides what it says.
#[derive(Clone, Default)]
pub(crate) struct With {
    pub(super) meta: Meta,
    #[cfg(feature = "http")]
    pub(super) headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

/// What the server knows of a URI.
#[derive(Default)]
enum AtServer {
    #[default]
    Nothing,
    /// It is being told to tell of changes, or to stop.
    Asked,
    Subscribed,
    Refused(Error),
}

/// What the server is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SubscriptionRequest {
    Subscribe,
    Unsubscribe,
}

/// Something that the server was asked.
struct SentRequest {
    uri: String,
    ask: SubscriptionRequest,
    with: With,
    /// How often it had forgotten everything by then.
    renewals: u64,
}

/// The wish to hear of one URI. Dropping it takes the wish back.
pub(crate) struct Claim {
    subscriptions: Arc<ClientSubscriptions>,
    uri: String,
}

impl ClientSubscriptions {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants a URI, on the connection that these are the subscriptions of; what is sent for it passes
    /// whatever is around. Has to be called in a runtime.
    pub(crate) fn claim(
        self: &Arc<Self>,
        uri: &str,
        link: &Arc<ClientConnection>,
        middleware: &ClientMiddleware,
        with: With,
    ) -> Claim {
        let mut state = self.lock();
        let entry = state.uris.entry(uri.to_owned()).or_default();
        entry.wanted += 1;
        // Who comes later may be luckier.
        if matches!(entry.at_server, AtServer::Refused(_)) {
            entry.at_server = AtServer::Nothing;
        }
        if matches!(entry.at_server, AtServer::Nothing) {
            entry.with = with;
        }
        let kept = std::mem::replace(&mut state.kept, true);
        drop(state);
        if !kept {
            tokio::spawn(keep(self.clone(), Arc::downgrade(link), middleware.clone()));
        }
        self.due.notify_one();
        Claim { subscriptions: self.clone(), uri: uri.to_owned() }
    }

    /// The server has forgotten everything: what is wanted is asked for again.
    #[cfg(feature = "http")]
    pub(crate) fn renewed(&self) {
        let mut state = self.lock();
        state.renewals += 1;
        for entry in state.uris.values_mut() {
            if matches!(entry.at_server, AtServer::Subscribed) {
                entry.at_server = AtServer::Nothing;
            }
        }
        drop(state);
        self.due.notify_one();
    }

    /// What is to be asked now, marked as asked; `None` if all is done and the task may end.
    fn next(&self, in_flight: usize) -> Option<Vec<SentRequest>> {
        let mut state = self.lock();
        let renewals = state.renewals;
        state.uris.retain(|_, entry| {
            let idle = matches!(entry.at_server, AtServer::Nothing | AtServer::Refused(_));
            entry.wanted > 0 || !idle
        });
        if state.uris.is_empty() {
            state.kept = false;
            return None;
        }
        let mut asks = Vec::new();
        for (uri, entry) in &mut state.uris {
            let ask = match (&entry.at_server, entry.wanted) {
                (AtServer::Nothing, 1..) => SubscriptionRequest::Subscribe,
                (AtServer::Subscribed, 0) => SubscriptionRequest::Unsubscribe,
                _ => continue,
            };
            if in_flight + asks.len() >= AT_ONCE {
                break;
            }
            entry.at_server = AtServer::Asked;
            asks.push(SentRequest { uri: uri.clone(), ask, with: entry.with.clone(), renewals });
        }
        Some(asks)
    }

    fn settle(&self, asked: &SentRequest, answer: Result<()>) {
        let mut state = self.lock();
        let forgotten = asked.renewals != state.renewals;
        if let Some(entry) = state.uris.get_mut(&asked.uri) {
            entry.at_server = match (asked.ask, answer) {
                // It may have been answered by who has forgotten it since: twice does no harm.
                (SubscriptionRequest::Subscribe, _) if forgotten => AtServer::Nothing,
                (SubscriptionRequest::Subscribe, Ok(())) => AtServer::Subscribed,
                (SubscriptionRequest::Subscribe, Err(error)) => AtServer::Refused(error),
                // A server that does not take it back is not asked for ever.
                (SubscriptionRequest::Unsubscribe, _) => AtServer::Nothing,
            };
        }
        drop(state);
        self.answered.send_replace(());
    }
}

impl Claim {
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Resolves when the server has said whether it will tell of the URI. Dropping the future
    /// loses nothing.
    pub(crate) async fn answered(&self) -> Result<()> {
        let mut answered = self.subscriptions.answered.subscribe();
        loop {
            match self.subscriptions.lock().uris.get(&self.uri).map(|entry| &entry.at_server) {
                Some(AtServer::Subscribed) => return Ok(()),
                Some(AtServer::Refused(error)) => return Err(error.again()),
                _ => {}
            }
            if answered.changed().await.is_err() {
                return Err(ended());
            }
        }
    }
}

/// Only a word to the task: nothing waits, nothing is spawned.
impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(entry) = self.subscriptions.lock().uris.get_mut(&self.uri) {
            entry.wanted = entry.wanted.saturating_sub(1);
        }
        self.subscriptions.due.notify_one();
    }
}

/// Asks until what the server knows is what is wanted. Does not keep the connection open.
async fn keep(
    subscriptions: Arc<ClientSubscriptions>,
    link: Weak<ClientConnection>,
    middleware: ClientMiddleware,
) {
    let mut asking = JoinSet::new();
    while let Some(asks) = subscriptions.next(asking.len()) {
        for one in asks {
            let (link, middleware) = (link.clone(), middleware.clone());
            asking.spawn(async move {
                let answer = asked(link, &middleware, &one).await;
                if let Err(error) = &answer {
                    tracing::debug!(%error, uri = one.uri, "a subscription was not changed");
                }
                (one, answer)
            });
        }
        tokio::select! {
            () = subscriptions.due.notified() => {}
            Some(answered) = asking.join_next() => {
                // A task of ours ends in no other way.
                if let Ok((one, answer)) = answered {
                    subscriptions.settle(&one, answer);
                }
            }
        }
    }
}

async fn asked(
    link: Weak<ClientConnection>,
    middleware: &ClientMiddleware,
    one: &SentRequest,
) -> Result<()> {
    let Some((revision, carried)) = link.upgrade().map(|link| (link.revision(), link.carried))
    else {
        return Err(ended());
    };
    let (method, params) = match one.ask {
        SubscriptionRequest::Subscribe => {
            (Method::Subscribe, text(&Subscribe::new(&*one.uri), revision))
        }
        SubscriptionRequest::Unsubscribe => {
            (Method::Unsubscribe, text(&Unsubscribe::new(&*one.uri), revision))
        }
    };
    let call = NewCall {
        method: method.as_str().into(),
        params,
        meta: one.with.meta.clone(),
        #[cfg(feature = "http")]
        headers: one.with.headers.clone(),
        id: None,
        revision,
        is_http: carried != Carried::Otherwise,
    };
    let send = move |request| sent(link.clone(), method, request);
    // An answer of middleware counts as the server's.
    middleware.send(call, send).await.map(drop)
}

/// Holds the connection only while nothing is waited for: whoever closes it ends this.
async fn sent(
    link: Weak<ClientConnection>,
    method: Method,
    #[cfg_attr(not(feature = "http"), expect(unused_mut, reason = "headers are taken out"))]
    mut request: Request,
) -> Result<((), Raw)> {
    let exchange = {
        let Some(link) = link.upgrade() else { return Err(ended()) };
        let stamped =
            link.stamp.apply(request.params().as_str(), request.meta(), WantsProgress::No);
        link.transport.open(Outgoing {
            #[cfg(feature = "http")]
            mirror: crate::rpc::Mirror {
                revision: Some(link.revision()),
                extra: request.take_headers(),
                ..Default::default()
            },
            ..Outgoing::new(method.as_str(), stamped.params)
        })
    };
    Ok(((), exchange.done().await?))
}

fn text(params: &impl Encode, revision: Revision) -> String {
    let mut text = Vec::new();
    write_at(params, revision, &mut text);
    // The encoder writes text.
    String::from_utf8(text).unwrap_or_default()
}

fn ended() -> Error {
    Closed::new("the connection ended").error(Executed::No)
}
