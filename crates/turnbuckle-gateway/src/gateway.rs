//! The public type: settings, and the transports that a gateway is served on.

use std::{pin::Pin, process::Command, sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};
use turnbuckle::{
    __seam::{Forward, copy_error, forwarding_server},
    Client, ClientBuilder, Error, Limits, Result, Server,
    client::IntoSpawn,
    http::{HttpAddress, HttpService, ServingHttp},
    server::Serving,
    types::{Raw, RpcError},
};

use crate::upstream::{Clients, Upstream};

/// A boxed future.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The answer to a request.
pub(crate) type Outcome = Result<Raw, RpcError>;

/// Connects to the server.
pub(crate) type Connect =
    Arc<dyn Fn(ClientBuilder) -> BoxFuture<'static, Result<Client>> + Send + Sync>;

/// Puts a server behind another transport than its own: a process behind HTTP, a server on the web
/// behind standard input and output. Clients of every protocol revision reach servers of every
/// revision.
///
/// The revisions fall into two eras: the modern one (2026-07-28), and the legacy one before it, which
/// opens each connection with `initialize`. Within one era params, results and notifications pass
/// byte for byte, whether the gateway knows them or not, except for the parts that belong to one
/// connection: ids, and in `_meta` the progress token and the description of the client. Between the
/// eras this holds for everything that the protocol does not define. The gateway itself answers
/// `initialize`, `server/discover` and `ping`, with the server's description of itself. Errors keep
/// their message and data, and get the code of the client's era. Cancelling a request cancels it on
/// the server, and a question that the server withdraws is withdrawn from the client.
///
/// Each legacy client has its own connection to a legacy server, which ends with the client's, because
/// such a server keeps settings for each connection. All other requests share one connection.
///
/// ```no_run
/// # async fn example() -> turnbuckle::Result<()> {
/// use std::process::Command;
/// use turnbuckle_gateway::Gateway;
/// let mut command = Command::new("my-stdio-server");
/// command.arg("--read-only");
/// Gateway::to_command(command).serve_http("127.0.0.1:8080").await?.await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Gateway(Settings);

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) connect: Connect,
    pub(crate) limits: Limits,
    pub(crate) connections: usize,
    pub(crate) waiting_calls: usize,
    pub(crate) answer_within: Duration,
    pub(crate) idle: Duration,
}

impl Gateway {
    /// Creates a gateway to the server that `connect` connects to. `connect` must keep the settings of
    /// the builder that it gets, and may add others: headers, a revision, an HTTP client.
    ///
    /// ```
    /// use turnbuckle::Server;
    /// use turnbuckle_gateway::Gateway;
    /// let server = Server::new("inside", "1.0");
    /// let gateway = Gateway::new(move |builder| {
    ///     let server = server.clone();
    ///     async move { builder.in_process(&server).await }
    /// });
    /// # let _ = gateway;
    /// ```
    pub fn new<F, Fut>(connect: F) -> Gateway
    where
        F: Fn(ClientBuilder) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Client>> + Send + 'static,
    {
        Gateway(Settings {
            connect: Arc::new(move |builder| Box::pin(connect(builder))),
            limits: Limits::default(),
            connections: 64,
            waiting_calls: 256,
            answer_within: Duration::from_secs(10 * 60),
            idle: Duration::from_secs(30 * 60),
        })
    }

    /// Creates a gateway to a server that is started as a child process. A legacy server is started
    /// once for each legacy client.
    pub fn to_command(command: Command) -> Gateway {
        let command = std::sync::Mutex::new(command);
        Gateway::new(move |builder| {
            let spawn = {
                let mut command = command.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                (&mut *command).into_spawn()
            };
            builder.spawn(spawn)
        })
    }

    /// Creates a gateway to a server at an `http` or `https` URL.
    pub fn to_url(url: impl Into<String>) -> Gateway {
        let url = url.into();
        Gateway::new(move |builder| builder.connect(url.clone()))
    }

    /// Sets the limits of each connection, on both sides.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Gateway {
        self.0.limits = limits;
        self
    }

    /// Sets how many legacy clients may have a connection to a legacy server at once. The default is
    /// 64. Beyond that the connection that has been unused for longest is closed; it is opened again
    /// when its client comes back.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Gateway {
        self.0.connections = most.max(1);
        self
    }

    /// Sets how many calls to a legacy server may wait for the answer of a modern client, which sends
    /// it with another request. The default is 256.
    #[must_use]
    pub fn waiting_calls(mut self, most: usize) -> Gateway {
        self.0.waiting_calls = most;
        self
    }

    /// Sets how long such a call waits before it is cancelled. The default is 10 minutes.
    #[must_use]
    pub fn answer_within(mut self, timeout: Duration) -> Gateway {
        self.0.answer_within = timeout;
        self
    }

    /// Sets how long an HTTP session may be unused before its connection to the server is closed. The
    /// connection is opened again when the session is used. The default is 30 minutes.
    #[must_use]
    pub fn idle_connections(mut self, idle: Duration) -> Gateway {
        self.0.idle = idle;
        self
    }

    /// Serves one client over the standard streams, until it closes them. It connects to the server
    /// first, and fails if the server can't be reached. It also fails if the server ends before the
    /// client does; pending requests are answered before that. Dropping the future ends both
    /// connections.
    ///
    /// If both sides turn out to be of the legacy era, the first connection is closed and another one
    /// is opened that introduces the client to the server.
    pub async fn serve_stdio(&self) -> Result<()> {
        let upstream = Upstream::new(self.0.clone(), Clients::One);
        upstream.connect_first().await?;
        self.serve_with(upstream, Server::serve_stdio).await
    }

    /// Serves one client over any byte stream, as [`serve_stdio`](Gateway::serve_stdio) does, but
    /// connects to the server with the first message of the client: if the server can't be reached,
    /// that request fails. Dropping the future ends both connections.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Result<()> {
        let upstream = Upstream::new(self.0.clone(), Clients::One);
        self.serve_with(upstream, |server| server.serve(stream)).await
    }

    async fn serve_with(
        &self,
        upstream: Arc<Upstream>,
        serve: impl FnOnce(&Server) -> Serving,
    ) -> Result<()> {
        let mut lost = upstream.lost();
        let mut signal = lost.clone();
        let server = self.server(upstream);
        serve(&server)
            .with_shutdown(async move {
                if signal.wait_for(Option::is_some).await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
            .await?;
        match &*lost.borrow_and_update() {
            Some(error) => Err(copy_error(error)),
            None => Ok(()),
        }
    }

    /// Returns a service for HTTP requests, to be mounted in axum, hyper or any other tower
    /// application. Sessions, checks and resumption are those of [`Server::http_service`]. It connects to
    /// the server first; dropping the future stops that. A server that ends is started again by the
    /// next request, up to five times a minute.
    pub async fn http_service(&self) -> Result<HttpService> {
        Ok(self.connect().await?.http_service())
    }

    /// Serves over HTTP at `/mcp`, once the returned value is awaited. It connects to the server
    /// first; dropping the future stops that. See [`http_service`](Gateway::http_service).
    pub async fn serve_http(&self, address: impl Into<HttpAddress>) -> Result<ServingHttp> {
        Ok(self.connect().await?.serve_http(address))
    }

    async fn connect(&self) -> Result<Server> {
        let upstream = Upstream::new(self.0.clone(), Clients::Any);
        upstream.connect_first().await?;
        Ok(self.server(upstream))
    }

    fn server(&self, upstream: Arc<Upstream>) -> Server {
        forwarding_server(upstream as Arc<dyn Forward>).limits(self.0.limits.clone())
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("connections", &self.0.connections).finish_non_exhaustive()
    }
}

/// Returns the error that a client gets: the server's own, or that the server can't be reached.
pub(crate) fn to_rpc_error(error: Error) -> RpcError {
    match error.as_rpc() {
        Some(rpc) => rpc.clone(),
        None => {
            RpcError::internal(format!("the server behind this gateway did not answer: {error}"))
        }
    }
}
