//! Owns the short way to serve over HTTP: what can be said before it starts.
//! Does not own the connections.

use std::{
    fmt,
    future::{IntoFuture, pending},
    net::SocketAddr,
    pin::Pin,
    time::Duration,
};

use super::{
    super::legacy::sse_2024::server::{Connect, SseService},
    HttpAddress, HttpReport, HttpService,
    accept::Accepting,
    address::{Allowed, Listener, Reach},
    front::Front,
};
use crate::{
    dispatch::BoxFuture,
    error::{Error, Result},
};

/// Where the endpoint is unless it is told otherwise.
const PATH: &str = "/mcp";
/// How long calls may go on after the signal.
const DEADLINE: Duration = Duration::from_secs(5);

/// A server about to serve over HTTP; `.await` runs it until it is told to stop.
///
/// ```no_run
/// # async fn serve(stop: impl Future<Output = ()> + Send + 'static) -> turnbuckle::Result<()> {
/// use std::time::Duration;
/// use turnbuckle::Server;
/// Server::new("demo", "1.0")
///     .serve_http("0.0.0.0:8080")
///     .public_host("mcp.example.com")
///     .with_shutdown(stop)
///     .deadline(Duration::from_secs(10))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is served until this is awaited"]
pub struct ServingHttp {
    address: HttpAddress,
    service: HttpService,
    path: String,
    connect: Result<Connect>,
    sse: Option<String>,
    signal: BoxFuture<'static, ()>,
    deadline: Duration,
}

impl ServingHttp {
    pub(crate) fn new(
        address: HttpAddress,
        service: HttpService,
        connect: Result<Connect>,
    ) -> ServingHttp {
        ServingHttp {
            address,
            service,
            path: PATH.to_owned(),
            connect,
            sse: None,
            signal: Box::pin(pending()),
            deadline: DEADLINE,
        }
    }

    /// States a name under which clients reach this server; see [`HttpService::public_host`].
    /// An address that other machines reach is not served without.
    pub fn public_host(self, host: impl Into<String>) -> ServingHttp {
        self.changed(|service| service.public_host(host))
    }

    /// Lets requests through that pages of this origin cause; see
    /// [`HttpService::allow_origin`].
    pub fn allow_origin(self, origin: impl Into<String>) -> ServingHttp {
        self.changed(|service| service.allow_origin(origin))
    }

    /// Lets pages of these origins call this server from a browser; see
    /// [`HttpService::cors`].
    pub fn cors<O: Into<String>>(self, origins: impl IntoIterator<Item = O>) -> ServingHttp {
        self.changed(|service| service.cors(origins))
    }

    /// How long an answer may be silent; see [`HttpService::keep_alive`].
    pub fn keep_alive(self, window: Duration) -> ServingHttp {
        self.changed(|service| service.keep_alive(window))
    }

    /// The path of the endpoint: `/mcp` unless it is set. Anything else is not found.
    pub fn path(mut self, path: impl Into<String>) -> ServingHttp {
        self.path = path.into();
        self
    }

    /// Also serves clients that only know the transport of revision 2024-11-05, HTTP with
    /// server-sent events, at this path, for the same hosts and origins; see
    /// [`Server::into_sse`](crate::Server::into_sse).
    ///
    /// ```no_run
    /// # async fn serve(server: turnbuckle::Server) -> turnbuckle::Result<()> {
    /// server.serve_http("127.0.0.1:8080").with_sse("/sse").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_sse(mut self, path: impl Into<String>) -> ServingHttp {
        self.sse = Some(path.into());
        self
    }

    /// Stops in good order when `signal` resolves: no connection is accepted any more, idle
    /// ones are closed, listen streams are ended, and calls may go on until the
    /// [`deadline`](ServingHttp::deadline).
    pub fn with_shutdown(
        mut self,
        signal: impl Future<Output = ()> + Send + 'static,
    ) -> ServingHttp {
        self.signal = Box::pin(signal);
        self
    }

    /// How long calls may go on after the signal: 5 s. Those that still run then are dropped
    /// and answered that the server is shutting down.
    pub fn deadline(mut self, deadline: Duration) -> ServingHttp {
        self.deadline = deadline;
        self
    }

    /// Starts to listen, so that clients can connect and the address is known. Dropping the
    /// future before it is done leaves nothing open.
    pub async fn bind(self) -> Result<BoundHttp> {
        let ServingHttp { address, mut service, path, connect, sse, signal, deadline } = self;
        if !path.starts_with('/') {
            return Err(Error::refused(format!("the path `{path}` must begin with a slash")));
        }
        service.check()?;
        let allowed =
            if service.0.gate.is_public() { Allowed::Anywhere } else { Allowed::LoopbackOnly };
        let listener = address.listen(allowed).await?;
        if listener.reach() == Reach::Socket {
            service = service.changed(|endpoint| endpoint.gate.any_host());
        }
        let sse = sse.map(|beside| {
            let limits = service.0.limits.clone();
            SseService::behind(Front::of(&service), connect, beside, limits)
        });
        if let Some(sse) = &sse {
            sse.check()?;
            if sse.path() == path {
                return Err(Error::refused(format!(
                    "there are two endpoints at the path `{path}`"
                )));
            }
        }
        Ok(BoundHttp { listener, service, sse, path, signal, deadline })
    }

    pub(crate) fn changed(
        mut self,
        change: impl FnOnce(HttpService) -> HttpService,
    ) -> ServingHttp {
        self.service = change(self.service);
        self
    }
}

impl IntoFuture for ServingHttp {
    type Output = Result<HttpReport>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<HttpReport>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.bind().await?.await })
    }
}

impl fmt::Debug for ServingHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingHttp")
            .field("address", &self.address)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A server that listens; `.await` serves. Dropping it, or the future that serves, closes
/// every connection and drops every handler.
///
/// ```no_run
/// # async fn serve(server: turnbuckle::Server) -> turnbuckle::Result<()> {
/// let bound = server.serve_http("127.0.0.1:0").bind().await?;
/// eprintln!("serving {}", bound.url());
/// bound.await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is served until this is awaited"]
pub struct BoundHttp {
    listener: Listener,
    service: HttpService,
    sse: Option<SseService>,
    path: String,
    signal: BoxFuture<'static, ()>,
    deadline: Duration,
}

impl BoundHttp {
    /// The address; `None` for a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.local_addr()
    }

    /// What a client on this machine connects to.
    pub fn url(&self) -> String {
        self.listener.url(&self.path)
    }
}

impl IntoFuture for BoundHttp {
    type Output = Result<HttpReport>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<HttpReport>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let BoundHttp { listener, service, sse, path, signal, deadline } = self;
        let accepting = Accepting { listener, service, sse, path: path.into(), signal, deadline };
        Box::pin(async move { Ok(accepting.run().await) })
    }
}

impl fmt::Debug for BoundHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundHttp").field("url", &self.url()).finish_non_exhaustive()
    }
}
