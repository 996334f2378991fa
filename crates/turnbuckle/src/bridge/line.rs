//! Owns one client's side of a bridge: which connection to the server its requests go by, and which
//! of them the bridge answers itself. Does not own the way of a request.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use serde::Deserialize;
use tokio::sync::mpsc;
use turnbuckle_types::{EmptyResult, Era, Initialize, Method, Raw, Revision, RpcError, SetLevel};

use super::{call::Running, far::Far, link::Link, listen, relay::Relay, router::Aside};
use crate::{
    dispatch::{BoxFuture, Exchange, Note, Outcome, Outgoing, Peer},
    envelope::params::decode,
    error::Error,
    server::forward::{Line, Memory, Near, Visitor},
};

/// How many notifications may wait for a client that does not read.
const WAITING: usize = 1024;

/// One client's side.
pub(super) struct NearLine {
    me: Weak<NearLine>,
    far: Weak<Far>,
    kind: Kind,
    /// The way to a client outside its requests.
    aside: OnceLock<(Peer, mpsc::Sender<Note>)>,
    /// What was agreed on in a handshake.
    opened: OnceLock<(Revision, Initialize)>,
    /// The connection that requests after a handshake went by last.
    link: Mutex<Option<Arc<Link>>>,
    /// Held while one's own connection is made.
    making: tokio::sync::Mutex<()>,
    /// What a modern server tells of changes.
    relay: OnceLock<Relay>,
    /// What the client has told its server.
    memory: Mutex<Memory>,
}

enum Kind {
    Own,
    #[cfg(feature = "http")]
    Many,
    #[cfg(feature = "http")]
    Session(crate::SessionId, OnceLock<Arc<super::seat::Seat>>),
}

impl NearLine {
    pub(super) fn open(far: Weak<Far>, near: Near) -> Arc<NearLine> {
        let opened = OnceLock::new();
        let (kind, memory) = match near {
            Near::Own => (Kind::Own, Memory::default()),
            #[cfg(feature = "http")]
            Near::Many => (Kind::Many, Memory::default()),
            #[cfg(feature = "http")]
            Near::Session { id, client, memory } => {
                let revision = client.protocol_version.parse().unwrap_or(Revision::LATEST_LEGACY);
                let _ = opened.set((revision, *client));
                (Kind::Session(id, OnceLock::new()), memory)
            }
        };
        Arc::new_cyclic(|me| NearLine {
            me: me.clone(),
            far,
            kind,
            aside: OnceLock::new(),
            opened,
            link: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            relay: OnceLock::new(),
            memory: Mutex::new(memory),
        })
    }

    async fn answer(self: Arc<Self>, visitor: Visitor) -> Outcome {
        let far = self.far.upgrade().ok_or_else(closed)?;
        let near = visitor.ctx.revision();
        let known = Method::from_name(&visitor.method);
        if known.is_some_and(|method| is_foreign(method, near.era())) {
            return Err(RpcError::method_not_found(&visitor.method));
        }
        let link = match visitor.ctx.handshake() {
            Some(client) => self.legacy(&far, client).await?,
            None => self.modern(&far).await?,
        };
        match (known, near.era(), link.era()) {
            (Some(Method::Discover), Era::Modern, _) => Ok(link.facts.discover(near)),
            // Every request of this client is told its level from now on.
            (Some(Method::SetLevel), _, Era::Modern) => Ok(empty(near)),
            (Some(Method::Subscribe), _, Era::Modern) => {
                self.relay(&link)?.watch(uri(&visitor)?).await?;
                self.remember(&visitor);
                Ok(empty(near))
            }
            (Some(Method::Unsubscribe), _, Era::Modern) => {
                self.relay(&link)?.leave(&uri(&visitor)?);
                self.remember(&visitor);
                Ok(empty(near))
            }
            (Some(Method::Listen), Era::Modern, Era::Legacy) => {
                listen::on_legacy(link, visitor).await
            }
            (_, Era::Modern, Era::Legacy) => forward_back(&far, link, visitor).await,
            _ => {
                let running = Running::new(&link, &visitor);
                let outcome = running.run(&visitor.ctx, &far.parking).await;
                if known.is_some_and(is_setting) && outcome.is_ok() {
                    self.remember(&visitor);
                }
                outcome
            }
        }
    }

    /// The connection for requests that stand for themselves.
    async fn modern(&self, far: &Far) -> Result<Arc<Link>, RpcError> {
        let link = far.shared().await?;
        if matches!(self.kind, Kind::Own) {
            link.router.attach(self.me.clone() as Weak<dyn Aside>);
        }
        Ok(link)
    }

    /// The connection for requests of a client that has shaken hands.
    async fn legacy(&self, far: &Far, client: &Initialize) -> Result<Arc<Link>, RpcError> {
        let link = match &self.kind {
            Kind::Own => self.own(far, client).await?,
            #[cfg(feature = "http")]
            Kind::Many => return far.shared().await,
            #[cfg(feature = "http")]
            Kind::Session(key, seat) => {
                seat.get_or_init(|| far.seat(*key))
                    .link(far, client, || self.memory().clone())
                    .await?
            }
        };
        self.settle(&link);
        Ok(link)
    }

    /// On a wire that is one client's own the server is not started anew: it would know nothing of
    /// what the client has told it.
    async fn own(&self, far: &Far, client: &Initialize) -> Result<Arc<Link>, RpcError> {
        let known = || {
            let link = self.place().clone()?;
            Some(if link.is_gone() { Err(closed()) } else { Ok(link) })
        };
        if let Some(known) = known() {
            return known;
        }
        let _making = self.making.lock().await;
        if let Some(known) = known() {
            return known;
        }
        let link = far.own(client).await?;
        self.settle(&link);
        Ok(link)
    }

    /// From now on this is the connection that the client's requests go by.
    fn settle(&self, link: &Arc<Link>) {
        let mut place = self.place();
        if !place.as_ref().is_some_and(|known| Arc::ptr_eq(known, link)) {
            link.router.attach(self.me.clone() as Weak<dyn Aside>);
            *place = Some(link.clone());
        }
    }

    /// Notes what the server was told, in case that has to be told again.
    fn remember(&self, visitor: &Visitor) {
        let mut memory = self.memory();
        match (Method::from_name(&visitor.method), uri(visitor)) {
            (Some(Method::SetLevel), _) => {
                memory.level = decode(&visitor.params).ok().map(|SetLevel { level, .. }| level);
            }
            (Some(Method::Subscribe), Ok(uri)) => drop(memory.subscriptions.insert(uri)),
            (Some(Method::Unsubscribe), Ok(uri)) => drop(memory.subscriptions.remove(&uri)),
            _ => {}
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a modern server tells of changes, for a client that can't listen itself.
    fn relay(&self, link: &Arc<Link>) -> Result<&Relay, RpcError> {
        let (_, client) = self.opened.get().ok_or_else(closed)?;
        let aside = self.me.clone() as Weak<dyn Aside>;
        let uris = self.memory().subscriptions.clone();
        Ok(self.relay.get_or_init(|| Relay::start(link.clone(), client.clone(), aside, uris)))
    }

    /// Begins to tell the client of changes. It must not wait.
    fn begin_telling(&self) {
        let (Some(line), Some(far)) = (self.me.upgrade(), self.far.upgrade()) else { return };
        tokio::spawn(async move {
            let Some((_, client)) = line.opened.get() else { return };
            match line.legacy(&far, client).await {
                Ok(link) if link.era() == Era::Modern => drop(line.relay(&link)),
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "nothing can be told of changes"),
            }
        });
    }

    fn place(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line for NearLine {
    fn initialize(&self, revision: Revision, client: Initialize) -> BoxFuture<'static, Outcome> {
        let _ = self.opened.set((revision, client));
        let line = self.me.upgrade();
        Box::pin(async move {
            let line = line.ok_or_else(closed)?;
            let far = line.far.upgrade().ok_or_else(closed)?;
            let (revision, client) = line.opened.get().ok_or_else(closed)?;
            let link = line.legacy(&far, client).await?;
            Ok(link.facts.initialize(*revision))
        })
    }

    fn request(&self, visitor: Visitor) -> BoxFuture<'static, Outcome> {
        match self.me.upgrade() {
            Some(line) => Box::pin(line.answer(visitor)),
            None => Box::pin(std::future::ready(Err(closed()))),
        }
    }

    fn note(&self, note: Note) {
        let known = Method::from_name(&note.method);
        match known {
            // What a cancellation does has been done: the request was dropped.
            Some(Method::Cancelled) => return,
            Some(Method::Initialized) => return self.begin_telling(),
            _ => {}
        }
        let link = self.place().clone().or_else(|| self.far.upgrade()?.known());
        let Some(link) = link else { return };
        if known.is_none_or(|method| method.sent_by_client(link.revision())) {
            link.note(note);
        }
    }

    fn connected(&self, peer: Peer) {
        self.aside.get_or_init(|| {
            let (sender, waiting) = mpsc::channel(WAITING);
            tokio::spawn(tell(peer.clone(), waiting));
            (peer, sender)
        });
        // A session was opened before; elsewhere the handshake is still to come.
        if self.opened.get().is_some() {
            self.begin_telling();
        }
    }

    fn ended(&self) {
        *self.place() = None;
        #[cfg(feature = "http")]
        if let (Kind::Session(key, _), Some(far)) = (&self.kind, self.far.upgrade()) {
            far.leave(*key);
        }
    }

    fn subscriptions(&self) -> BTreeSet<String> {
        self.memory().subscriptions.clone()
    }
}

impl Aside for NearLine {
    fn tell(&self, note: Note) {
        // A modern client hears of changes on the streams that it opened, and of nothing else that
        // the protocol knows.
        if self.opened.get().is_none() && Method::from_name(&note.method).is_some() {
            return;
        }
        if let Some((_, waiting)) = self.aside.get()
            && waiting.try_send(note).is_err()
        {
            tracing::warn!("a client does not read: a notification for it is dropped");
        }
    }

    fn ask(&self, request: Outgoing) -> Exchange {
        match self.aside.get().and_then(|(peer, _)| peer.transport()) {
            Some(transport) => transport.open(request),
            None => Exchange::failed(Error::refused("the client has no stream to be asked on")),
        }
    }
}

/// Sends a client what waits for it, for as long as it is there.
async fn tell(peer: Peer, mut waiting: mpsc::Receiver<Note>) {
    while let Some(note) = waiting.recv().await {
        let Some(transport) = peer.transport() else { return };
        transport.notify(note).await;
    }
}

/// A request of a modern client to a legacy server, which may ask something meanwhile.
async fn forward_back(far: &Far, link: Arc<Link>, visitor: Visitor) -> Outcome {
    let retry = visitor.params.retry.as_ref().filter(|retry| retry.request_state.is_some());
    let running = match retry {
        Some(retry) => match far.parking.resume(retry, &visitor)? {
            Ok(running) => running,
            Err(asked) => return Ok(asked),
        },
        None => {
            if let Some(level) = visitor.ctx.log_level() {
                link.want_logs(level).await;
            }
            Running::new(&link, &visitor)
        }
    };
    running.run(&visitor.ctx, &far.parking).await
}

/// Whether only the other era has it.
fn is_foreign(method: Method, era: Era) -> bool {
    let mut own = Revision::ALL.into_iter().filter(|revision| revision.era() == era);
    method.row().client.is_some_and(|span| !own.any(|revision| span.contains(revision)))
}

/// Whether a server has to be told it again.
fn is_setting(method: Method) -> bool {
    matches!(method, Method::SetLevel | Method::Subscribe | Method::Unsubscribe)
}

fn uri(visitor: &Visitor) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct About {
        uri: String,
    }
    decode(&visitor.params).map(|About { uri }| uri)
}

fn empty(revision: Revision) -> Raw {
    Raw::at(&EmptyResult::new(), revision)
}

fn closed() -> RpcError {
    RpcError::internal("the server behind this bridge has ended")
}
