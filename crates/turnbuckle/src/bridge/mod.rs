//! Puts any server behind any wire, for both eras.
//!
//! Owns: what crosses from a client to a server that do not speak with each other, and how. Does not
//! own: either side's wire, handshake, guards or sessions; those are a server's and a client's.

mod call;
mod far;
mod flight;
mod held;
mod line;
mod link;
mod listen;
mod parking;
mod relay;
mod router;
#[cfg(feature = "http")]
mod seat;
mod text;
mod translate;

use std::{process::Command, sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};
use turnbuckle_types::RpcError;

use crate::{
    Client, ClientBuilder, IntoSpawn, Limits, Server, Serving,
    dispatch::BoxFuture,
    error::{Error, Executed, Result},
    server::forward::Forward,
};
#[cfg(feature = "http")]
use crate::{HttpAddress, HttpService, ServingHttp};
use far::Far;
use router::Clients;

/// Makes a connection to the server.
type Dial = Arc<dyn Fn(ClientBuilder) -> BoxFuture<'static, Result<Client>> + Send + Sync>;

/// Puts a server behind another wire than its own: a process behind HTTP, a server on the web behind
/// standard input and output. Clients of either era reach servers of either era.
///
/// Within one era params, results and notifications cross byte for byte, whether the bridge knows them
/// or not, but for what belongs to one connection: ids, and in `_meta` the progress token and who the
/// client is. Between the eras that holds for all that the protocol does not define. `initialize`,
/// `server/discover` and `ping` are answered by the bridge, with what the server said of itself. An
/// error is written anew: its message is the same text, its data are the same bytes, and its code is
/// that of the client's era. Cancelling a request cancels it on the server, and a question that the server
/// gives up is taken back from the client.
///
/// A legacy server has a connection for each legacy client, which ends with that client's own: what
/// a client sets up there is its own business. All other requests share one connection.
///
/// ```no_run
/// # async fn example() -> turnbuckle::Result<()> {
/// use std::process::Command;
/// use turnbuckle::Bridge;
/// let mut command = Command::new("my-stdio-server");
/// command.arg("--read-only");
/// Bridge::to_command(command).serve_http("127.0.0.1:8080").await?.await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Bridge(Settings);

#[derive(Clone)]
struct Settings {
    dial: Dial,
    limits: Limits,
    connections: usize,
    waiting_calls: usize,
    answer_within: Duration,
    #[cfg(feature = "http")]
    idle: Duration,
}

impl Bridge {
    /// A bridge to whatever `connect` connects to. It is called with settings that are to be kept,
    /// and may add others: headers, a revision, a client of one's own.
    ///
    /// ```
    /// use turnbuckle::{Bridge, Server};
    /// let server = Server::new("inside", "1.0");
    /// let bridge = Bridge::new(move |builder| {
    ///     let server = server.clone();
    ///     async move { builder.in_process(&server).await }
    /// });
    /// # let _ = bridge;
    /// ```
    pub fn new<F, Fut>(connect: F) -> Bridge
    where
        F: Fn(ClientBuilder) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Client>> + Send + 'static,
    {
        Bridge(Settings {
            dial: Arc::new(move |builder| Box::pin(connect(builder))),
            limits: Limits::default(),
            connections: 64,
            waiting_calls: 256,
            answer_within: Duration::from_secs(10 * 60),
            #[cfg(feature = "http")]
            idle: Duration::from_secs(30 * 60),
        })
    }

    /// A bridge to a server that is started as a child process; once for each legacy client, if it
    /// is a legacy server.
    pub fn to_command(command: Command) -> Bridge {
        let command = std::sync::Mutex::new(command);
        Bridge::new(move |builder| {
            let spawn = {
                let mut command = command.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                (&mut *command).into_spawn()
            };
            builder.spawn(spawn)
        })
    }

    /// A bridge to a server at an `http` or `https` address.
    #[cfg(feature = "http")]
    pub fn to_url(url: impl Into<String>) -> Bridge {
        let url = url.into();
        Bridge::new(move |builder| builder.connect(url.clone()))
    }

    /// Limits of each connection, on both sides.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Bridge {
        self.0.limits = limits;
        self
    }

    /// How many legacy clients may have a connection to a legacy server at once: 64. One that
    /// nobody uses at the moment gives way, and is made anew when its client comes back.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Bridge {
        self.0.connections = most.max(1);
        self
    }

    /// How many calls of a legacy server may wait for the answer of a modern client, which has to
    /// come back with it: 256.
    #[must_use]
    pub fn waiting_calls(mut self, most: usize) -> Bridge {
        self.0.waiting_calls = most;
        self
    }

    /// How long such a call waits before it is cancelled: 10 minutes.
    #[must_use]
    pub fn answer_within(mut self, patience: Duration) -> Bridge {
        self.0.answer_within = patience;
        self
    }

    /// How long a session over HTTP may go unused before its connection to the server is closed, to
    /// be made anew when it is used again: 30 minutes.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn idle_connections(mut self, idle: Duration) -> Bridge {
        self.0.idle = idle;
        self
    }

    /// Serves one client over the standard streams, until it closes them. It connects to the server
    /// first, and fails at once if that can't be reached. It is an error, too, if the server ends
    /// before the client does; requests that wait for it are answered before that. Dropping the
    /// future ends both connections.
    ///
    /// The first connection is given up again if both sides turn out to be of the legacy era: the
    /// server is then to know who its client is, and is started for it.
    pub async fn serve_stdio(&self) -> Result<()> {
        let far = Far::new(self.0.clone(), Clients::One);
        far.begin().await?;
        self.serve_with(far, Server::serve_stdio).await
    }

    /// Serves one client over any byte stream, as [`serve_stdio`](Bridge::serve_stdio) does, but
    /// connects to the server when the client says something: a server that can't be reached is an
    /// error of that request. Dropping the future ends both connections.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Result<()> {
        let far = Far::new(self.0.clone(), Clients::One);
        self.serve_with(far, |server| server.serve(stream)).await
    }

    async fn serve_with(
        &self,
        far: Arc<Far>,
        serve: impl FnOnce(&Server) -> Serving,
    ) -> Result<()> {
        let mut lost = far.lost();
        let mut signal = lost.clone();
        let server = self.server(far);
        serve(&server)
            .with_shutdown(async move {
                if signal.wait_for(Option::is_some).await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
            .await?;
        match &*lost.borrow_and_update() {
            Some(why) => Err(why.error(Executed::No)),
            None => Ok(()),
        }
    }

    /// A service for HTTP requests, to be mounted in axum, hyper or anything that speaks tower, with
    /// sessions, guards and resumption as [`Server::http_service`] has them. It connects to the server
    /// first: dropping the future gives that up. A server that ends is started again by the next
    /// request, up to five times a minute.
    #[cfg(feature = "http")]
    pub async fn http_service(&self) -> Result<HttpService> {
        Ok(self.connected().await?.http_service())
    }

    /// Serves over HTTP at `/mcp`, once what this returns is awaited. It connects to the server
    /// first: dropping the future gives that up. See [`http_service`](Bridge::http_service).
    #[cfg(feature = "http")]
    pub async fn serve_http(&self, address: impl Into<HttpAddress>) -> Result<ServingHttp> {
        Ok(self.connected().await?.serve_http(address))
    }

    #[cfg(feature = "http")]
    async fn connected(&self) -> Result<Server> {
        let far = Far::new(self.0.clone(), Clients::Any);
        far.begin().await?;
        Ok(self.server(far))
    }

    fn server(&self, far: Arc<Far>) -> Server {
        Server::forwarding(far as Arc<dyn Forward>).limits(self.0.limits.clone())
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("connections", &self.0.connections).finish_non_exhaustive()
    }
}

/// What a client is told if the server can't be reached, or says so itself.
fn failed(error: Error) -> RpcError {
    match error.as_rpc() {
        Some(rpc) => rpc.clone(),
        None => {
            RpcError::internal(format!("the server behind this bridge did not answer: {error}"))
        }
    }
}
