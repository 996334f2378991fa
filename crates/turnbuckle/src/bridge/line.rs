//! Owns one client's side of a bridge: which connection to the server its requests go by, and which
//! of them the bridge answers itself. Does not own the way of a request, nor what lives as long as
//! the client's own connection: `held` does.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle_types::{
    EmptyResult, Initialize, LogLevel, Method, Raw, Revision, RpcError, SetLevel,
};

use super::{
    call::Running,
    far::Far,
    link::{Guest, Link},
    listen::{self, MOST},
    relay::{Relay, Telling},
    router::Aside,
    translate::{self, Changes, Course},
};
use crate::{
    dispatch::{Exchange, Note, Outcome, Outgoing, Peer},
    envelope::params::decode,
    error::Error,
    server::forward::{Memory, Near, Visitor},
};

/// One client's side.
pub(super) struct NearLine {
    me: Weak<NearLine>,
    pub(super) far: Weak<Far>,
    kind: Kind,
    /// The way to a client outside its requests.
    pub(super) aside: OnceLock<(Peer, mpsc::Sender<Note>)>,
    /// What was agreed on in a handshake.
    pub(super) opened: OnceLock<(Revision, Initialize)>,
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

    pub(super) async fn answer(self: Arc<Self>, visitor: Visitor) -> Outcome {
        let far = self.far.upgrade().ok_or_else(closed)?;
        let near = visitor.ctx.revision();
        let known = Method::from_name(&visitor.method);
        if known.is_some_and(|method| translate::is_foreign(method, near)) {
            return Err(RpcError::method_not_found(&visitor.method));
        }
        let link = match visitor.ctx.handshake() {
            Some(client) => self.legacy(&far, Guest { revision: near, client }).await?,
            None => self.modern(&far).await?,
        };
        match link.sides(near).course(known) {
            Course::Described => Ok(link.facts.discover(near)),
            // Every request of this client is told its level from now on.
            Course::Noted => {
                self.remember(&visitor);
                Ok(empty(near))
            }
            Course::Watched => {
                self.relay(&link)?.watch(uri(&visitor)?).await?;
                self.remember(&visitor);
                Ok(empty(near))
            }
            Course::Unwatched => {
                self.relay(&link)?.leave(&uri(&visitor)?);
                self.remember(&visitor);
                Ok(empty(near))
            }
            Course::Streamed => listen::on_legacy(link, visitor).await,
            Course::Parkable => forward_back(&far, link, visitor).await,
            Course::Forwarded => {
                self.may_remember(&visitor)?;
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
    pub(super) async fn legacy(&self, far: &Far, guest: Guest<'_>) -> Result<Arc<Link>, RpcError> {
        let link = match &self.kind {
            Kind::Own => self.own(far, guest).await?,
            #[cfg(feature = "http")]
            Kind::Many => return far.shared().await,
            #[cfg(feature = "http")]
            Kind::Session(key, seat) => {
                let seat = seat.get_or_init(|| far.seat(*key));
                seat.link(far, guest, || self.memory().clone()).await?
            }
        };
        self.settle(&link);
        Ok(link)
    }

    /// On a wire that is one client's own the server is not started anew: it would know nothing of
    /// what the client has told it.
    async fn own(&self, far: &Far, guest: Guest<'_>) -> Result<Arc<Link>, RpcError> {
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
        let link = far.own(guest).await?;
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

    /// The connection by which this client's requests go, if there is one at this moment. Never
    /// that of others, where the client has its own.
    pub(super) fn known(&self) -> Option<Arc<Link>> {
        let far = self.far.upgrade()?;
        let settled = self.place().clone().filter(|link| !link.is_gone());
        match &self.kind {
            Kind::Own if self.opened.get().is_some() => settled,
            Kind::Own => far.known(),
            #[cfg(feature = "http")]
            Kind::Many => far.known(),
            #[cfg(feature = "http")]
            Kind::Session(key, seat) => seat.get_or_init(|| far.seat(*key)).known(),
        }
    }

    /// Whether what this client says can wait for a connection to be made.
    pub(super) fn can_wait(&self) -> bool {
        !matches!(self.kind, Kind::Own)
    }

    /// A session is told how much it may have remembered; every other server says so itself.
    fn may_remember(&self, visitor: &Visitor) -> Result<(), RpcError> {
        if Method::from_name(&visitor.method) != Some(Method::Subscribe) {
            return Ok(());
        }
        let memory = self.memory();
        let is_known = uri(visitor).is_ok_and(|uri| memory.subscriptions.contains(&uri));
        if is_known || memory.subscriptions.len() < MOST { Ok(()) } else { Err(too_many()) }
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

    pub(super) fn subscriptions(&self) -> BTreeSet<String> {
        self.memory().subscriptions.clone()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a modern server tells of changes, for a client that can't listen itself.
    fn relay(&self, link: &Arc<Link>) -> Result<&Relay, RpcError> {
        let (near, client) = self.opened.get().ok_or_else(closed)?;
        let uris = self.subscriptions();
        Ok(self.relay.get_or_init(|| {
            let telling = Telling {
                far: self.far.clone(),
                link: link.clone(),
                near: *near,
                client: client.clone(),
                aside: self.me.clone() as Weak<dyn Aside>,
            };
            Relay::start(telling, uris)
        }))
    }

    /// Begins to tell the client of changes, where it is not the server that does. Dropping the
    /// future gives up connecting.
    pub(super) async fn begin_telling(self: Arc<Self>) {
        let (Some((revision, client)), Some(far)) = (self.opened.get(), self.far.upgrade()) else {
            return;
        };
        let guest = Guest { revision: *revision, client };
        match self.legacy(&far, guest).await {
            Ok(link) if link.sides(*revision).changes() == Changes::Relayed => {
                drop(self.relay(&link));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "nothing can be told of changes"),
        }
    }

    /// The client has ended its session for good.
    pub(super) fn ended(&self) {
        *self.place() = None;
        #[cfg(feature = "http")]
        if let (Kind::Session(key, _), Some(far)) = (&self.kind, self.far.upgrade()) {
            far.leave(*key);
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
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
        // Only in a result can a modern client be asked.
        if self.opened.get().is_none() {
            return Exchange::failed(Error::refused("the client has no call in flight"));
        }
        match self.aside.get().and_then(|(peer, _)| peer.transport()) {
            Some(transport) => transport.open(request),
            None => Exchange::failed(Error::refused("the client has no stream to be asked on")),
        }
    }

    fn log(&self, level: LogLevel, message: &str) {
        let least = self.memory().level;
        if least.is_none_or(|least| level >= least) {
            let params = json!({"level": level, "logger": "bridge", "data": message});
            self.tell(Note::new(Method::LogMessage.as_str(), Some(Raw::from(params))));
        }
    }
}

/// A request of a modern client to a legacy server, which may ask something meanwhile.
async fn forward_back(far: &Far, link: Arc<Link>, visitor: Visitor) -> Outcome {
    let retry = visitor.params.retry.as_deref();
    let running = match retry {
        Some(retry) if retry.request_state.is_some() => {
            match far.parking.resume(retry, &visitor)? {
                Ok(running) => running,
                Err(asked) => return Ok(asked),
            }
        }
        _ => {
            let answers = retry.and_then(|retry| retry.input_responses.as_ref());
            if let Some(refused) = answers.and_then(|all| translate::refused(all.as_str())) {
                return Err(refused);
            }
            if let Some(level) = visitor.ctx.log_level() {
                link.want_logs(level).await;
            }
            Running::new(&link, &visitor)
        }
    };
    running.run(&visitor.ctx, &far.parking).await
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

pub(super) fn too_many() -> RpcError {
    RpcError::internal(format!("too many subscriptions on this connection: the limit is {MOST}"))
}

pub(super) fn closed() -> RpcError {
    RpcError::internal("the server behind this bridge has ended")
}
