//! One client of a gateway: the connection that its requests are forwarded on, and the requests that
//! the gateway answers itself.

mod handle;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle::{
    __seam::{
        ClientPeer, ClientScope, Exchange, ForwardedRequest, Note, SessionMemory, decode, decode_as,
    },
    http::SessionId,
    types::{EmptyResult, Initialize, LogLevel, Method, Raw, Revision, RpcError, SetLevel},
};

pub(crate) use handle::DownstreamHandle;

use crate::{
    call::{Resumed, RunningCall},
    changes::{
        ChangeRelay, MAX_SUBSCRIPTIONS, RelayTask, serve_listen_stream, too_many_subscriptions,
    },
    gateway::Outcome,
    translate::{self, Changes, Handling},
    upstream::{ClientChannel, LegacyClient, SessionConnection, Upstream, UpstreamConnection},
};

/// One client, or all clients whose requests stand alone.
pub(crate) struct Downstream {
    this: Weak<Downstream>,
    upstream: Weak<Upstream>,
    scope: Scope,
    /// Reaches the client outside of its requests.
    channel: OnceLock<(ClientPeer, mpsc::Sender<Note>)>,
    /// The revision and the params of its `initialize`.
    handshake: OnceLock<(Revision, Initialize)>,
    /// The connection that its requests were forwarded on last.
    connection: Mutex<Option<Arc<UpstreamConnection>>>,
    /// Held while its own connection is opened.
    connecting: tokio::sync::Mutex<()>,
    /// The changes of a modern server.
    relay: OnceLock<ChangeRelay>,
    /// The settings that the client has made on its server.
    memory: Mutex<SessionMemory>,
}

/// The clients that a [`Downstream`] stands for.
enum Scope {
    Connection,
    Stateless,
    Session(SessionId, OnceLock<Arc<SessionConnection>>),
}

impl Downstream {
    fn new(upstream: Weak<Upstream>, client: ClientScope) -> Arc<Downstream> {
        let handshake = OnceLock::new();
        let (scope, memory) = match client {
            ClientScope::Connection => (Scope::Connection, SessionMemory::default()),
            ClientScope::Stateless => (Scope::Stateless, SessionMemory::default()),
            ClientScope::Session { id, client, memory } => {
                let revision = client.protocol_version.parse().unwrap_or(Revision::LATEST_LEGACY);
                let _ = handshake.set((revision, *client));
                (Scope::Session(id, OnceLock::new()), memory)
            }
        };
        Arc::new_cyclic(|this| Downstream {
            this: this.clone(),
            upstream,
            scope,
            channel: OnceLock::new(),
            handshake,
            connection: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            relay: OnceLock::new(),
            memory: Mutex::new(memory),
        })
    }

    /// Answers a request. Dropping the future cancels it.
    async fn answer(self: Arc<Self>, request: ForwardedRequest) -> Outcome {
        let upstream = self.upstream.upgrade().ok_or_else(server_ended)?;
        let revision = request.caller.revision();
        let known = Method::from_name(&request.method);
        if known.is_some_and(|method| translate::is_foreign(method, revision)) {
            return Err(RpcError::method_not_found(&request.method));
        }
        let connection = match request.caller.handshake() {
            Some(initialize) => {
                self.connect_legacy(&upstream, LegacyClient { revision, initialize }).await?
            }
            None => self.connect_modern(&upstream).await?,
        };
        match connection.revisions(revision).handling(known) {
            Handling::Describe => Ok(connection.server.discover(revision)),
            Handling::StoreLogLevel => {
                self.remember(&request);
                Ok(empty_result(revision))
            }
            Handling::Subscribe => {
                self.relay(&connection)?.subscribe(uri(&request)?).await?;
                self.remember(&request);
                Ok(empty_result(revision))
            }
            Handling::Unsubscribe => {
                self.relay(&connection)?.unsubscribe(&uri(&request)?);
                self.remember(&request);
                Ok(empty_result(revision))
            }
            Handling::ServeListenStream => serve_listen_stream(connection, request).await,
            Handling::ForwardOrResume => forward_or_resume(&upstream, connection, request).await,
            Handling::Forward => {
                self.check_subscriptions(&request)?;
                let call = RunningCall::new(&connection, &request);
                let outcome = call.run(&request.caller, &upstream.pending_calls).await;
                if known.is_some_and(is_setting) && outcome.is_ok() {
                    self.remember(&request);
                }
                outcome
            }
        }
    }

    /// Returns the connection for requests that stand alone.
    async fn connect_modern(
        &self,
        upstream: &Upstream,
    ) -> Result<Arc<UpstreamConnection>, RpcError> {
        let connection = upstream.connect_shared().await?;
        if matches!(self.scope, Scope::Connection) {
            connection.router.attach(self.this.clone() as Weak<dyn ClientChannel>);
        }
        Ok(connection)
    }

    /// Returns the connection for requests of a legacy client.
    async fn connect_legacy(
        &self,
        upstream: &Upstream,
        client: LegacyClient<'_>,
    ) -> Result<Arc<UpstreamConnection>, RpcError> {
        let connection = match &self.scope {
            Scope::Connection => self.connect_own(upstream, client).await?,
            Scope::Stateless => return upstream.connect_shared().await,
            Scope::Session(id, session) => {
                let session = session.get_or_init(|| upstream.session(*id));
                session.connect(upstream, client, || self.memory().clone()).await?
            }
        };
        self.use_connection(&connection);
        Ok(connection)
    }

    /// Returns the connection of a client with a stream of its own. The server is not started again,
    /// because it would not have the settings that the client has made.
    async fn connect_own(
        &self,
        upstream: &Upstream,
        client: LegacyClient<'_>,
    ) -> Result<Arc<UpstreamConnection>, RpcError> {
        let current = || {
            let connection = self.connection().clone()?;
            Some(if connection.is_closed() { Err(server_ended()) } else { Ok(connection) })
        };
        if let Some(current) = current() {
            return current;
        }
        let _connecting = self.connecting.lock().await;
        if let Some(current) = current() {
            return current;
        }
        let connection = upstream.connect_for(client).await?;
        self.use_connection(&connection);
        Ok(connection)
    }

    /// Stores the connection of the client, and receives its messages.
    fn use_connection(&self, connection: &Arc<UpstreamConnection>) {
        let mut current = self.connection();
        if !current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            connection.router.attach(self.this.clone() as Weak<dyn ClientChannel>);
            *current = Some(connection.clone());
        }
    }

    /// Returns the connection of this client, if it is open. It is never that of other clients, if
    /// the client has its own.
    fn current_connection(&self) -> Option<Arc<UpstreamConnection>> {
        let upstream = self.upstream.upgrade()?;
        match &self.scope {
            Scope::Connection if self.handshake.get().is_some() => {
                self.connection().clone().filter(|connection| !connection.is_closed())
            }
            Scope::Connection | Scope::Stateless => upstream.current(),
            Scope::Session(id, session) => session.get_or_init(|| upstream.session(*id)).current(),
        }
    }

    /// Returns whether messages of this client may wait for a connection to be opened.
    fn may_defer(&self) -> bool {
        !matches!(self.scope, Scope::Connection)
    }

    /// Refuses a subscription above the limit of a session.
    fn check_subscriptions(&self, request: &ForwardedRequest) -> Result<(), RpcError> {
        if Method::from_name(&request.method) != Some(Method::Subscribe) {
            return Ok(());
        }
        let memory = self.memory();
        let is_known = uri(request).is_ok_and(|uri| memory.subscriptions.contains(&uri));
        if is_known || memory.subscriptions.len() < MAX_SUBSCRIPTIONS {
            Ok(())
        } else {
            Err(too_many_subscriptions())
        }
    }

    /// Stores a setting of the client, in case that a new connection needs it again.
    fn remember(&self, request: &ForwardedRequest) {
        let mut memory = self.memory();
        match (Method::from_name(&request.method), uri(request)) {
            (Some(Method::SetLevel), _) => {
                memory.level = decode(&request.params).ok().map(|SetLevel { level, .. }| level);
            }
            (Some(Method::Subscribe), Ok(uri)) => drop(memory.subscriptions.insert(uri)),
            (Some(Method::Unsubscribe), Ok(uri)) => drop(memory.subscriptions.remove(&uri)),
            _ => {}
        }
    }

    fn subscriptions(&self) -> BTreeSet<String> {
        self.memory().subscriptions.clone()
    }

    fn memory(&self) -> MutexGuard<'_, SessionMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the relay of a modern server's changes, and starts it if there is none.
    fn relay(&self, connection: &Arc<UpstreamConnection>) -> Result<&ChangeRelay, RpcError> {
        let (downstream, client) = self.handshake.get().ok_or_else(server_ended)?;
        let uris = self.subscriptions();
        Ok(self.relay.get_or_init(|| {
            let task = RelayTask {
                upstream: self.upstream.clone(),
                connection: connection.clone(),
                downstream: *downstream,
                client: client.clone(),
                channel: self.this.clone() as Weak<dyn ClientChannel>,
            };
            ChangeRelay::start(task, uris)
        }))
    }

    /// Starts to relay changes, if the client does not get them from the server. Dropping the future
    /// stops connecting.
    async fn start_relay(self: Arc<Self>) {
        let (Some((revision, initialize)), Some(upstream)) =
            (self.handshake.get(), self.upstream.upgrade())
        else {
            return;
        };
        let client = LegacyClient { revision: *revision, initialize };
        match self.connect_legacy(&upstream, client).await {
            Ok(connection) if connection.revisions(*revision).changes() == Changes::Relayed => {
                drop(self.relay(&connection));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "changes can't be relayed"),
        }
    }

    /// Closes the connection of a session that the client has ended.
    fn end(&self) {
        *self.connection() = None;
        if let (Scope::Session(id, _), Some(upstream)) = (&self.scope, self.upstream.upgrade()) {
            upstream.end_session(*id);
        }
    }

    fn connection(&self) -> MutexGuard<'_, Option<Arc<UpstreamConnection>>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientChannel for Downstream {
    fn notify(&self, note: Note) {
        // A modern client gets the protocol's notifications on its listen streams only.
        if self.handshake.get().is_none() && Method::from_name(&note.method).is_some() {
            return;
        }
        if let Some((_, unsent)) = self.channel.get()
            && unsent.try_send(note).is_err()
        {
            tracing::warn!("a client does not read: a notification for it is dropped");
        }
    }

    fn ask(&self, method: &str, params: String) -> Result<Exchange, RpcError> {
        let unable = |why: &str| RpcError::internal(format!("the client can't be asked: {why}"));
        // A modern client can only be asked in a result.
        if self.handshake.get().is_none() {
            return Err(unable("it has no call in flight"));
        }
        match self.channel.get() {
            Some((peer, _)) => Ok(peer.ask(method, params)),
            None => Err(unable("it has no stream to be asked on")),
        }
    }

    fn log(&self, level: LogLevel, message: &str) {
        let least = self.memory().level;
        if least.is_none_or(|least| level >= least) {
            let params = json!({"level": level, "logger": "gateway", "data": message});
            self.notify(Note::new(Method::LogMessage.as_str(), Some(Raw::from(params))));
        }
    }
}

/// Forwards a request of a modern client to a legacy server, or resumes the call that it answers.
async fn forward_or_resume(
    upstream: &Upstream,
    connection: Arc<UpstreamConnection>,
    request: ForwardedRequest,
) -> Outcome {
    let retry = request.params.retry.as_deref();
    let call = match retry {
        Some(retry) if retry.request_state.is_some() => {
            match upstream.pending_calls.resume(retry, &request)? {
                Resumed::Running(call) => *call,
                Resumed::InputRequired(result) => return Ok(result),
            }
        }
        _ => {
            let answers = retry.and_then(|retry| retry.input_responses.as_ref());
            if let Some(error) = answers.and_then(|all| translate::declined(all.as_str())) {
                return Err(error);
            }
            if let Some(level) = request.caller.log_level() {
                connection.request_logs(level).await;
            }
            RunningCall::new(&connection, &request)
        }
    };
    call.run(&request.caller, &upstream.pending_calls).await
}

/// Returns whether a request changes a setting that a new connection needs again.
fn is_setting(method: Method) -> bool {
    matches!(method, Method::SetLevel | Method::Subscribe | Method::Unsubscribe)
}

fn uri(request: &ForwardedRequest) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Subject {
        uri: String,
    }
    decode_as(&request.params).map(|Subject { uri }| uri)
}

fn empty_result(revision: Revision) -> Raw {
    Raw::at(&EmptyResult::new(), revision)
}

/// Returns the error for a request whose server has ended.
pub(crate) fn server_ended() -> RpcError {
    RpcError::internal("the server behind this gateway has ended")
}
