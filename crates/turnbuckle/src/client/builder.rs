//! Owns how a connection is made: over what, and with which settings.
//! Does not own the opening words: `open` says them.

use std::{
    process::Command,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicBool},
    time::Duration,
};

use super::{
    Client, ConnectionState, ConnectionStates, Inner, LogSetting, Reconnect, ResponseCache,
    Timeouts, WireLog,
    cache::{ClientCache, IdentityParts, command_parts},
    seam::ServerEvents,
};
use crate::{
    client::{
        connection::{
            Dialer, Process, Restored, Supervisor,
            handle::{
                ClientConnection, ServerFacts, {self},
            },
        },
        handlers::{
            Callbacks,
            answer::{
                Answering, ClientService, OnNotification, OnRequest, OnStrayError, ServerRequest,
            },
            roots,
        },
        handshake::{
            open::{CloseUnlessOpened, OpenedConnection, PriorKnowledge},
            process::CommandKey,
        },
        subscribe::Hearers,
    },
    error::{Error, ErrorKind, Result},
    limits::Limits,
    middleware::client::ClientMiddleware,
    protocol::stamp::Stamp,
    rpc::Transport,
    transport::{
        child_process::{Spawn, UnreadInput},
        stream,
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};
use turnbuckle_types::{ClientCapabilities, Implementation, Raw, Revision, RpcError, write_at};

/// Settings for a connection, then the connection itself.
///
/// ```no_run
/// # async fn example() -> turnbuckle::Result<()> {
/// use std::{process::Command, time::Duration};
/// use turnbuckle::{Client, Revision};
/// let client = Client::builder()
///     .info("my-host", "2.1")
///     .revision(Revision::V2025_11_25)
///     .timeout(Duration::from_secs(20))
///     .spawn(Command::new("my-server").arg("--stdio"))
///     .await?;
/// # let _ = client; Ok(()) }
/// ```
#[must_use = "a builder does nothing until a connection is made with it"]
#[doc(alias = "ClientInfo")]
pub struct ClientBuilder {
    pub(super) info: Implementation,
    pub(crate) callbacks: Callbacks,
    pub(super) pinned: Option<Revision>,
    pub(super) probe_timeout: Duration,
    pub(super) connect_timeout: Duration,
    pub(super) timeouts: Timeouts,
    pub(super) reconnect: Reconnect,
    /// Whether calls are made that the server did not say it can answer.
    pub(super) ignores_capabilities: bool,
    pub(super) validate_output: Option<crate::client::tools::CompileOutput>,
    /// One for all connections, so that a clock can go on from one to the next.
    pub(super) answering: Arc<Answering>,
    /// The same for answers that are kept.
    pub(super) cache: Arc<ClientCache>,
    /// One for all connections, so that nobody has to come anew.
    pub(super) hearers: Arc<Hearers>,
    /// One for all connections: what the next is to be told, too.
    pub(super) restored: Arc<Restored>,
    /// How the connection is, which can be watched before there is any.
    pub(super) states: watch::Sender<ConnectionState>,
    /// Tells of changes of the roots, where they can change.
    pub(super) root_changes: Option<watch::Receiver<()>>,
    pub(super) limits: Limits,
    pub(crate) middleware: ClientMiddleware,
    pub(super) wire_log: Option<WireLog>,
    on_request: Option<OnRequest>,
    on_notification: Option<OnNotification>,
    on_stray_error: Option<OnStrayError>,
    pub(super) events: Option<Arc<dyn ServerEvents>>,
    #[cfg(feature = "http")]
    pub(super) http: super::http::HttpSettings,
}

impl Default for ClientBuilder {
    fn default() -> ClientBuilder {
        ClientBuilder {
            info: Implementation::new("turnbuckle", env!("CARGO_PKG_VERSION")),
            callbacks: Callbacks::default(),
            pinned: None,
            probe_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(60),
            timeouts: Timeouts::default(),
            reconnect: Reconnect::default(),
            ignores_capabilities: false,
            validate_output: None,
            answering: Arc::default(),
            cache: Arc::default(),
            hearers: Arc::default(),
            restored: Arc::default(),
            states: watch::Sender::new(ConnectionState::Connecting),
            root_changes: None,
            limits: Limits::default(),
            middleware: ClientMiddleware::default(),
            wire_log: None,
            on_request: None,
            on_notification: None,
            on_stray_error: None,
            events: None,
            #[cfg(feature = "http")]
            http: Default::default(),
        }
    }
}

/// What [`Client::spawn`] takes: a [`Command`], as it is or as its builder methods return
/// it, or a [`Spawn`].
pub trait IntoSpawn {
    /// Makes the settings of the process.
    fn into_spawn(self) -> Spawn;
}

impl IntoSpawn for Spawn {
    fn into_spawn(self) -> Spawn {
        self
    }
}

impl IntoSpawn for Command {
    fn into_spawn(self) -> Spawn {
        Spawn::new(self)
    }
}

impl IntoSpawn for &mut Command {
    fn into_spawn(self) -> Spawn {
        let mut copy = Command::new(self.get_program());
        copy.args(self.get_args());
        for (name, value) in self.get_envs() {
            match value {
                Some(value) => copy.env(name, value),
                None => copy.env_remove(name),
            };
        }
        if let Some(directory) = self.get_current_dir() {
            copy.current_dir(directory);
        }
        Spawn::new(copy)
    }
}

impl Client {
    /// Starts a server as a child process and connects to it. Dropping the future shuts
    /// the process down again.
    #[doc(alias = "TokioChildProcess")]
    #[doc(alias = "stdio")]
    #[doc(alias = "StdioClientTransport")]
    pub async fn spawn(command: impl IntoSpawn) -> Result<Client> {
        Client::builder().spawn(command).await
    }

    /// Connects over any byte stream: a socket, a pipe, an in-memory pair. Dropping the
    /// future closes the stream.
    pub async fn over(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Result<Client> {
        Client::builder().over(stream).await
    }
}

impl ClientBuilder {
    /// Who this client is.
    pub fn info(mut self, name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        self.info = Implementation::new(name, version);
        self
    }

    /// What this client says it can do, besides what follows from its callbacks. A capability
    /// that is given here is declared as it stands here.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> ClientBuilder {
        self.callbacks.explicit = capabilities;
        self
    }

    /// Speaks this revision and no other, and sends exactly what it needs: no probe, and
    /// for a modern one no opening words at all.
    pub fn revision(mut self, revision: Revision) -> ClientBuilder {
        self.pinned = Some(revision);
        self
    }

    /// How long a server may be silent about `server/discover` before it is taken for a
    /// legacy one: 10 seconds. What it says after that still counts, until it has answered
    /// `initialize`.
    ///
    /// A child process has at most 1.5 seconds after it has read the request; the time that it takes to
    /// start does not count ([`spawn`](ClientBuilder::spawn)). On Windows it has the whole timeout,
    /// from its start.
    pub fn probe_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.probe_timeout = timeout;
        self
    }

    /// How long a server has to answer `initialize`: 60 seconds. A child process also has this long to
    /// read its first message.
    pub fn connect_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.connect_timeout = timeout;
        self
    }

    /// The longest time a call may take in all: 30 minutes. Each call can choose its own. What of it
    /// counts while this client answers questions: see [`Call::timeout`](crate::Call::timeout).
    pub fn timeout(mut self, total: Duration) -> ClientBuilder {
        self.timeouts.total = Some(total);
        self
    }

    /// The longest time a call may go without a sign of life: 60 seconds.
    pub fn idle_timeout(mut self, idle: Duration) -> ClientBuilder {
        self.timeouts.idle = Some(idle);
        self
    }

    /// Lets calls take as long as they take.
    pub fn no_timeouts(mut self) -> ClientBuilder {
        self.timeouts = Timeouts { idle: None, total: None };
        self
    }

    /// When a connection that was lost is made again. A server that was spawned is started once
    /// more; one that is reached by its address, or over a stream that a function makes
    /// ([`dial`](ClientBuilder::dial)), is tried a few times; a stream that was handed over
    /// ([`over`](ClientBuilder::over)) can't be made again. Each new connection is negotiated
    /// anew; a server at an address is asked `server/discover` even if the revision is pinned, to
    /// find out whether it is back.
    ///
    /// A call that was in flight fails, and its error says whether it may have run; one that was
    /// not sent waits for the new connection ([`Call::retry`](crate::Call::retry)).
    pub fn reconnect(mut self, reconnect: Reconnect) -> ClientBuilder {
        self.reconnect = reconnect;
        self
    }

    /// How the connection is and how it goes on, from before it is made:
    /// [`Connecting`](ConnectionState::Connecting), then what [`Client::states`] tells. Where the first
    /// connection can't be made, [`Closed`](ConnectionState::Closed) says why.
    ///
    /// ```no_run
    /// # async fn example() -> turnbuckle::Result<()> {
    /// use turnbuckle::Client;
    /// let builder = Client::builder();
    /// let mut states = builder.states();
    /// tokio::spawn(async move {
    ///     while let Some(state) = states.next().await {
    ///         println!("{state:?}");
    ///     }
    /// });
    /// let client = builder.connect("https://mcp.example.com/mcp").await?;
    /// # let _ = client; Ok(()) }
    /// ```
    pub fn states(&self) -> ConnectionStates {
        ConnectionStates::new(self.states.subscribe())
    }

    /// How answers are kept for as long as the server says that they are fresh: in this client's
    /// own memory, unless said otherwise.
    pub fn cache(mut self, cache: ResponseCache) -> ClientBuilder {
        self.cache = Arc::new(ClientCache::new(cache));
        self
    }

    /// Makes calls even if the server did not say that it can answer them. Otherwise such a verb
    /// fails at once, by the name of the capability that the server lacks, and nothing is sent.
    /// [`Client::listen`] then counts on all that it is asked for. [`Client::request`] never asks.
    pub fn ignore_capabilities(mut self) -> ClientBuilder {
        self.ignores_capabilities = true;
        self
    }

    /// Limits of the connection.
    pub fn limits(mut self, limits: Limits) -> ClientBuilder {
        self.limits = limits;
        self
    }

    /// Answers what a legacy server asks while a call runs, other than `ping` and what a typed callback is for
    /// (`on_sampling`, `on_elicitation`, `roots`). The future is dropped when the server gives
    /// the question up; while it runs, the call that it is asked for does not run out of time, nor does
    /// any other where that can't be told ([`Call::timeout`](crate::Call::timeout)).
    pub fn on_request<F, Fut>(mut self, answer: F) -> ClientBuilder
    where
        F: Fn(ServerRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Raw, RpcError>> + Send + 'static,
    {
        self.on_request = Some(Arc::new(move |request| Box::pin(answer(request))));
        self
    }

    /// Sees every notification of the server, also those that a call has used already. It
    /// is called by the reader and must not wait.
    pub fn on_notification(
        mut self,
        observer: impl Fn(&str, Option<&Raw>) + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.on_notification = Some(Arc::new(observer));
        self
    }

    /// Sees the errors that the server sends without naming a request: it could not read
    /// whose they are. It is called by the reader and must not wait.
    pub fn on_stray_error(
        mut self,
        observer: impl Fn(&RpcError) + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.on_stray_error = Some(Arc::new(observer));
        self
    }

    /// Starts a server as a child process and connects to it. Dropping the future shuts the process
    /// down again.
    ///
    /// A server that exits or stops answering because of `server/discover`, as servers on the Python SDK
    /// up to 1.8 do, is ended and started again, and gets `initialize` as its first message. This is
    /// remembered for the command line, its variables and its directory for one hour, so that the next
    /// process gets `initialize` at once.
    pub async fn spawn(self, command: impl IntoSpawn) -> Result<Client> {
        let mut command = command.into_spawn();
        // What a program inherits may be someone's key: whose it is has to be said.
        self.identify(Some(command_parts(command.command())), None);
        let key = CommandKey::new(command.command());
        let link = self.process(|| self.start(&mut command), key, FIRST).await;
        let again = || -> Box<dyn Dialer> { Box::new(Process(Mutex::new(command), key)) };
        self.connected(link.map(|link| (link, Some(again()))))
    }

    /// Connects over any byte stream. Dropping the future closes the stream.
    pub async fn over(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> Result<Client> {
        let (read, write) = tokio::io::split(stream);
        self.over_halves(Box::pin(read), Box::pin(write)).await
    }

    /// Connects over a stream that comes in two halves. Dropping the future closes it.
    pub async fn over_halves(
        self,
        read: impl AsyncRead + Unpin + Send + 'static,
        write: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Client> {
        self.identify(None, None);
        let link = self.stream(read, write, FIRST).await;
        self.connected(link.map(|link| (link, None)))
    }

    /// A connection over a stream.
    pub(super) async fn stream(
        &self,
        read: impl AsyncRead + Unpin + Send + 'static,
        write: impl AsyncWrite + Unpin + Send + 'static,
        generation: u64,
    ) -> Result<ClientConnection> {
        let answers = self.answers(None);
        let wire = stream::start(read, write, answers.clone(), self.limits.clone(), None);
        self.open(wire.transport, answers, (Kind::Stream, None), generation).await
    }

    /// Opens a connection that needs no process.
    pub(super) async fn open(
        &self,
        transport: Arc<dyn Transport>,
        answers: Arc<ClientService>,
        (kind, known): (Kind<'_>, Option<PriorKnowledge>),
        generation: u64,
    ) -> Result<ClientConnection> {
        let transport = self.log_transport(transport);
        let guard = CloseUnlessOpened(Some(transport.clone()));
        match self.negotiate(&transport, &answers, kind, known).await? {
            OpenedConnection::Ready(opened, None) => {
                guard.keep();
                Ok(self.link(transport, *opened, &answers, kind, generation))
            }
            OpenedConnection::Ready(opened, Some(other)) => {
                let link = self.link(other, *opened, &answers, Kind::Stream, generation);
                // Only HTTP has another wire.
                #[cfg(feature = "http")]
                let link = {
                    let mut link = link;
                    link.carried = handle::Carried::ByHttp;
                    link
                };
                Ok(link)
            }
            OpenedConnection::Respawn(_) => {
                Err(Error::new(ErrorKind::Connect, "the server ended the connection"))
            }
        }
    }

    /// Connects through a transport that `make` joins with this client's answers.
    #[cfg(feature = "server")]
    pub(crate) async fn connect_with(
        self,
        make: impl FnOnce(Arc<dyn crate::rpc::Serve>, Limits) -> Arc<dyn Transport>,
    ) -> Result<Client> {
        self.identify(None, None);
        let answers = self.answers(None);
        let transport = make(answers.clone(), self.limits.clone());
        let link = self.open(transport, answers, (Kind::Stream, None), FIRST).await;
        self.connected(link.map(|link| (link, None)))
    }

    /// This side's answers on one connection; to a program, where one is started for it.
    pub(super) fn answers(&self, program: Option<String>) -> Arc<ClientService> {
        Arc::new(ClientService {
            callbacks: self.callbacks.clone(),
            on_request: self.on_request.clone(),
            on_notification: self.on_notification.clone(),
            on_stray_error: self.on_stray_error.clone(),
            events: self.events.clone(),
            revision: OnceLock::new(),
            answering: self.answering.clone(),
            cache: self.cache.clone(),
            wire_log: self.wire_log.clone(),
            hearers: self.hearers.clone(),
            subscriptions: Arc::default(),
            known: Arc::default(),
            restored: self.restored.clone(),
            restore_limit: self.connect_timeout,
            transport: OnceLock::new(),
            program,
        })
    }

    pub(super) fn link(
        &self,
        transport: Arc<dyn Transport>,
        (stamp, server): (Stamp, ServerFacts),
        answers: &ClientService,
        kind: Kind<'_>,
        generation: u64,
    ) -> ClientConnection {
        #[cfg(feature = "http")]
        let has_param_headers = stamp.revision().has_param_headers();
        let _ = answers.transport.set(Arc::downgrade(&transport));
        ClientConnection {
            generation,
            transport,
            stamp,
            server,
            answering: answers.answering.clone(),
            subscriptions: answers.subscriptions.clone(),
            child: None,
            answered: AtomicBool::new(true),
            known: answers.known.clone(),
            carried: handle::Carried::of(kind),
            #[cfg(feature = "http")]
            repeated: (matches!(kind, Kind::Http) && has_param_headers).then(Default::default),
            #[cfg(feature = "http")]
            remembered: None,
        }
    }

    /// A client that begins with this connection, and can make more of them where it is told how. Who
    /// watches is told why there is none.
    pub(super) fn connected(
        mut self,
        made: Result<(ClientConnection, Option<Box<dyn Dialer>>)>,
    ) -> Result<Client> {
        let (link, dial) = made.inspect_err(|error| {
            let reason = Arc::new(error.again());
            self.states.send_replace(ConnectionState::Closed { reason });
        })?;
        let root_changes = self.root_changes.take();
        let supervisor = Supervisor::start(self, link, dial);
        if let Some(changes) = root_changes {
            let known = Arc::downgrade(&supervisor);
            tokio::spawn(roots::herald(changes, supervisor.states(), known));
        }
        Ok(Client(Arc::new(Inner { supervisor, log_level: LogSetting::default() })))
    }

    /// Says whose answers will be kept, and for whom, as far as that can be seen.
    pub(super) fn identify(&self, server: IdentityParts, principal: IdentityParts) {
        let mut able = Vec::new();
        write_at(&self.callbacks.declared(), Revision::LATEST, &mut able);
        self.cache.identify(server, principal, &able);
    }

    pub(super) fn stamp(&self, revision: Revision) -> Stamp {
        Stamp::new(revision, &self.info, &self.callbacks.declared())
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The number of a client's first connection.
pub(super) const FIRST: u64 = 1;

/// What a connection runs over, as far as the opening words depend on it.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// A process that can be started again, and whether it has read its input, where that is known.
    Process(Option<&'a UnreadInput>),
    /// A byte stream, or none at all.
    Stream,
    #[cfg(feature = "http")]
    Http,
}
