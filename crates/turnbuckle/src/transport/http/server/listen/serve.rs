//! `ServingHttp` and `BoundHttp`: a listener that serves an [`HttpService`].

use std::{
    fmt,
    future::{IntoFuture, pending},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use super::{
    accept::Accepting,
    address::{AllowedReach, Listener, Reach},
};
use crate::{
    error::{Error, Result},
    rpc::BoxFuture,
    transport::http::server::{HttpAddress, HttpBody, HttpReport, HttpService},
};
use http::{Request, Response};
use hyper::body::Incoming;

/// The default path of the endpoint.
const PATH: &str = "/mcp";
/// The default time that calls have to finish after the shutdown signal.
const DEADLINE: Duration = Duration::from_secs(5);

/// A second endpoint on the same listener.
pub(crate) trait SideEndpoint: Send + Sync {
    fn path(&self) -> &str;
    fn check(&self) -> Result<()>;
    fn respond(&self, request: Request<Incoming>) -> BoxFuture<'static, Response<HttpBody>>;
    /// Begins the shutdown: running calls may finish.
    fn drain(&self);
    /// Ends running calls with an error.
    fn end(&self);
    /// Returns how many calls finished since the shutdown began, and how many were ended.
    fn ended(&self) -> (u64, u64);
}

/// Creates a second endpoint with the hosts, origins and limits of the main one.
type MakeSide = Box<dyn FnOnce(&HttpService) -> Arc<dyn SideEndpoint> + Send>;

/// A server about to serve over HTTP; `.await` runs it until the shutdown signal.
///
/// [`Server::serve_http`](crate::Server::serve_http) and [`HttpService::serve`] create it.
///
/// ```no_run
/// # async fn serve(stop: impl Future<Output = ()> + Send + 'static) -> turnbuckle::Result<()> {
/// use std::time::Duration;
/// use turnbuckle::Server;
/// Server::new("demo", "1.0")
///     .http_service()
///     .public_host("mcp.example.com")
///     .serve("0.0.0.0:8080")
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
    side: Option<MakeSide>,
    signal: BoxFuture<'static, ()>,
    deadline: Duration,
}

impl HttpService {
    /// Serves this service at `/mcp`: HTTP/1.1, and HTTP/2 for clients that begin with it.
    ///
    /// An address that other machines reach is refused unless the service has a
    /// [`public_host`](HttpService::public_host). Dropping the future closes every connection and
    /// drops every handler.
    ///
    /// A client that closes its connection, or only its own direction of it, has left: its requests
    /// are cancelled, except for calls of a legacy session, which the client can resume.
    ///
    /// ```no_run
    /// # async fn serve(server: turnbuckle::Server) -> turnbuckle::Result<()> {
    /// server.http_service().public_host("mcp.example.com").serve("0.0.0.0:8080").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve(self, address: impl Into<HttpAddress>) -> ServingHttp {
        ServingHttp {
            address: address.into(),
            service: self,
            path: PATH.to_owned(),
            side: None,
            signal: Box::pin(pending()),
            deadline: DEADLINE,
        }
    }
}

impl ServingHttp {
    /// Sets the path of the endpoint, `/mcp` by default. Every other path is not found.
    pub fn path(mut self, path: impl Into<String>) -> ServingHttp {
        self.path = path.into();
        self
    }

    /// Shuts down gracefully when `signal` resolves: no connection is accepted any more, idle
    /// ones are closed, listen streams are ended, and calls may go on until the
    /// [`deadline`](ServingHttp::deadline).
    pub fn with_shutdown(
        mut self,
        signal: impl Future<Output = ()> + Send + 'static,
    ) -> ServingHttp {
        self.signal = Box::pin(signal);
        self
    }

    /// Sets how long calls may go on after the signal, 5 s by default. Calls that still run then
    /// are dropped and answered that the server is shutting down.
    pub fn deadline(mut self, deadline: Duration) -> ServingHttp {
        self.deadline = deadline;
        self
    }

    /// Starts to listen, so that clients can connect and the address is known. Dropping the
    /// future before it is done leaves nothing open.
    pub async fn bind(self) -> Result<BoundHttp> {
        let ServingHttp { address, mut service, path, side, signal, deadline } = self;
        if !path.starts_with('/') {
            return Err(Error::refused(format!("the path `{path}` must begin with a slash")));
        }
        service.check()?;
        let allowed = if service.0.gate.is_public() {
            AllowedReach::Anywhere
        } else {
            AllowedReach::LoopbackOnly
        };
        let listener = address.listen(allowed).await?;
        if listener.reach() == Reach::Socket {
            service = service.changed(|endpoint| endpoint.gate.any_host());
        }
        let side = side.map(|make| make(&service));
        if let Some(side) = &side {
            side.check()?;
            if side.path() == path {
                return Err(Error::refused(format!(
                    "there are two endpoints at the path `{path}`"
                )));
            }
        }
        Ok(BoundHttp { listener, service, side, path, signal, deadline })
    }

    /// Serves a second endpoint.
    #[cfg(feature = "sse-2024")]
    pub(crate) fn with_side(mut self, make: MakeSide) -> ServingHttp {
        self.side = Some(make);
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

/// A server that listens; `.await` serves. Dropping this value or the future closes every
/// connection and drops every handler.
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
    side: Option<Arc<dyn SideEndpoint>>,
    path: String,
    signal: BoxFuture<'static, ()>,
    deadline: Duration,
}

impl BoundHttp {
    /// Returns the address; `None` for a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the URL that a client on this machine connects to.
    pub fn url(&self) -> String {
        self.listener.url(&self.path)
    }
}

impl IntoFuture for BoundHttp {
    type Output = Result<HttpReport>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<HttpReport>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let BoundHttp { listener, service, side, path, signal, deadline } = self;
        let accepting = Accepting { listener, service, side, path: path.into(), signal, deadline };
        Box::pin(async move { Ok(accepting.run().await) })
    }
}

impl fmt::Debug for BoundHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundHttp").field("url", &self.url()).finish_non_exhaustive()
    }
}
