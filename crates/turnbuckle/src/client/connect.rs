//! Owns how a connection is made: over what, and with which settings.
//! Does not own the opening words: `open` says them.

use std::{
    process::Command,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "http")]
use turnbuckle_types::Era;
use turnbuckle_types::{ClientCapabilities, Implementation, Raw, Revision, RpcError};

use super::{
    Client, Inner, ServerFacts, Timeouts,
    answer::{Answering, Answers, OnNotification, OnRequest, OnStrayError, ServerRequest},
    callbacks::Callbacks,
    failure::obituary,
    open::{CloseOnDrop, Opened},
};
use crate::{
    dispatch::Transport,
    envelope::stamp::Stamp,
    error::{Error, ErrorKind, Result},
    limits::Limits,
    transport::{
        child::{ChildHandle, Spawn},
        stream,
    },
};

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
pub struct ClientBuilder {
    pub(super) info: Implementation,
    pub(super) callbacks: Callbacks,
    pub(super) pinned: Option<Revision>,
    pub(super) probe_timeout: Duration,
    pub(super) connect_timeout: Duration,
    timeouts: Timeouts,
    pub(super) limits: Limits,
    on_request: Option<OnRequest>,
    on_notification: Option<OnNotification>,
    on_stray_error: Option<OnStrayError>,
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
            limits: Limits::default(),
            on_request: None,
            on_notification: None,
            on_stray_error: None,
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
    pub fn probe_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.probe_timeout = timeout;
        self
    }

    /// How long a server has to answer `initialize`: 60 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.connect_timeout = timeout;
        self
    }

    /// The longest time a call may take in all: 30 minutes. Each call can choose its own.
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

    /// Limits of the connection.
    pub fn limits(mut self, limits: Limits) -> ClientBuilder {
        self.limits = limits;
        self
    }

    /// Answers what a legacy server asks while a call runs, other than `ping` and what a typed callback is for
    /// (`on_sampling`, `on_elicitation`, `roots`). The future is dropped when the server gives
    /// the question up; while it runs, no call of this client runs out of time.
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

    /// Starts a server as a child process and connects to it. A server that exits because
    /// of the first message is started once more and spoken to in the legacy way. Dropping
    /// the future shuts the process down again.
    pub async fn spawn(self, command: impl IntoSpawn) -> Result<Client> {
        let mut command = command.into_spawn();
        let (transport, answers, child) = self.start(&mut command)?;
        // A process that is given up on the way hears the end of its input first.
        let guard = CloseOnDrop(Some(transport.clone()));
        let revision = match self.negotiate(&transport, &answers, Kind::Process).await? {
            Opened::Ready(opened, _) => {
                guard.keep();
                return Ok(self.client(transport, *opened, answers, Some(child), Kind::Process));
            }
            Opened::Respawn(revision) => revision,
        };
        drop((guard, child));
        let (transport, answers, child) = self.start(&mut command)?;
        let guard = CloseOnDrop(Some(transport.clone()));
        let opened = self.handshake(&transport, &answers, revision, None).await?;
        guard.keep();
        Ok(self.client(transport, opened, answers, Some(child), Kind::Process))
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
        let answers = self.answers();
        let wire = stream::start(read, write, answers.clone(), self.limits.clone(), None);
        self.open(wire.transport, answers, Kind::Stream).await
    }

    /// Opens a connection that needs no process.
    pub(super) async fn open(
        self,
        transport: Arc<dyn Transport>,
        answers: Arc<Answers>,
        kind: Kind,
    ) -> Result<Client> {
        let guard = CloseOnDrop(Some(transport.clone()));
        match self.negotiate(&transport, &answers, kind).await? {
            Opened::Ready(opened, None) => {
                guard.keep();
                Ok(self.client(transport, *opened, answers, None, kind))
            }
            Opened::Ready(opened, Some(other)) => {
                Ok(self.client(other, *opened, answers, None, Kind::Stream))
            }
            Opened::Respawn(_) => {
                Err(Error::new(ErrorKind::Connect, "the server ended the connection"))
            }
        }
    }

    /// Connects through a transport that `make` joins with this client's answers.
    #[cfg(feature = "server")]
    pub(crate) async fn connect_with(
        self,
        make: impl FnOnce(Arc<dyn crate::dispatch::Serve>, Limits) -> Arc<dyn Transport>,
    ) -> Result<Client> {
        let answers = self.answers();
        let transport = make(answers.clone(), self.limits.clone());
        self.open(transport, answers, Kind::Stream).await
    }

    pub(super) fn answers(&self) -> Arc<Answers> {
        Arc::new(Answers {
            callbacks: self.callbacks.clone(),
            on_request: self.on_request.clone(),
            on_notification: self.on_notification.clone(),
            on_stray_error: self.on_stray_error.clone(),
            revision: OnceLock::new(),
            answering: Arc::new(Answering::default()),
        })
    }

    fn start(
        &self,
        command: &mut Spawn,
    ) -> Result<(Arc<dyn Transport>, Arc<Answers>, ChildHandle)> {
        let child = command.spawn().map_err(|error| {
            Error::new(ErrorKind::Connect, error.to_string()).with_source(error)
        })?;
        let answers = self.answers();
        let obituary = obituary(&child.handle);
        let wire = stream::start(
            child.stdout,
            child.stdin,
            answers.clone(),
            self.limits.clone(),
            Some(obituary),
        );
        Ok((wire.transport, answers, child.handle))
    }

    fn client(
        self,
        transport: Arc<dyn Transport>,
        (stamp, server): (Stamp, ServerFacts),
        answers: Arc<Answers>,
        child: Option<ChildHandle>,
        kind: Kind,
    ) -> Client {
        let answering = answers.answering.clone();
        #[cfg(feature = "http")]
        let era = stamp.revision().era();
        #[cfg(not(feature = "http"))]
        let _ = kind;
        Client(Arc::new(Inner {
            transport,
            stamp,
            server,
            timeouts: self.timeouts,
            answering,
            callbacks: self.callbacks,
            child,
            #[cfg(feature = "http")]
            repeated: (kind == Kind::Http && era == Era::Modern).then(Default::default),
            #[cfg(feature = "http")]
            remembered: Default::default(),
        }))
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

/// What a connection runs over, as far as the opening words depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A process that can be started again.
    Process,
    /// A byte stream, or none at all.
    Stream,
    #[cfg(feature = "http")]
    Http,
}
