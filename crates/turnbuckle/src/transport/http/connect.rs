//! Owns how a connection to a server is made, whoever makes it: straight, through a proxy, or to a
//! Unix socket; with TLS where the address says so. Does not own when: the pool asks for one.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

#[cfg(feature = "client")]
use std::path::PathBuf;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{
            Connected, Connection, HttpConnector,
            dns::{GaiResolver, Name},
            proxy::Tunnel,
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use super::tls;
use crate::{error::Result, rpc::BoxFuture};

pub(crate) type ConnectError = Box<dyn std::error::Error + Send + Sync>;

/// What connections need to be made.
pub(crate) struct Dialing {
    pub(crate) via: Via,
    /// Certificates in PEM that are trusted besides the system's.
    pub(crate) roots: Vec<Vec<u8>>,
    /// Whether any address can be `https`: then the system's certificates are needed.
    pub(crate) tls: Tls,
    /// How long making one connection may take, TLS included.
    pub(crate) timeout: Duration,
}

/// Whether TLS can be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    Possible,
    #[cfg(feature = "client")]
    Never,
}

/// The way to the server.
#[derive(Clone)]
pub(crate) enum Via {
    #[cfg(feature = "client")]
    Proxy(Arc<Matcher>),
    /// Only what is encrypted goes through a proxy: what isn't stays on this machine.
    #[cfg(feature = "auth")]
    Tunnel(Arc<Matcher>),
    #[cfg(feature = "client")]
    Unix(Arc<PathBuf>),
}

impl Via {
    /// The same, but for what is not encrypted.
    #[cfg(all(feature = "auth", feature = "client"))]
    pub(crate) fn encrypted(&self) -> Via {
        match self {
            Via::Proxy(matcher) => Via::Tunnel(matcher.clone()),
            via => via.clone(),
        }
    }

    /// The proxy that stands before an address.
    fn proxy(&self, address: &Uri) -> Option<Intercept> {
        match self {
            #[cfg(feature = "client")]
            Via::Proxy(matcher) => matcher.intercept(address),
            #[cfg(feature = "auth")]
            Via::Tunnel(matcher) if address.scheme_str() == Some("https") => {
                matcher.intercept(address)
            }
            _ => None,
        }
    }
}

/// Says whether a connection to an address may be made.
pub(crate) type Allows = fn(IpAddr) -> bool;

/// Makes connections for the pool.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<RawConnector>,
    #[cfg(feature = "auth")]
    tls: Arc<ClientConfig>,
    timeout: Duration,
}

impl Connector {
    pub(crate) fn new(dialing: Dialing) -> Result<Connector> {
        let tls = match dialing.tls {
            Tls::Possible => tls::trusting(&dialing.roots)?,
            #[cfg(feature = "client")]
            Tls::Never => Arc::new(tls::config(rustls::RootCertStore::empty())?),
        };
        Ok(Connector::over(RawConnector::new(dialing.via, None), tls, dialing.timeout))
    }

    /// As patient and as trusting, by another way and only to addresses that `allows` allows.
    #[cfg(feature = "auth")]
    pub(super) fn guarded(&self, via: Via, allows: Allows) -> Connector {
        Connector::over(RawConnector::new(via, Some(allows)), self.tls.clone(), self.timeout)
    }

    fn over(dial: RawConnector, tls: Arc<ClientConfig>, timeout: Duration) -> Connector {
        let inner = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(ClientConfig::clone(&tls))
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(dial);
        Connector {
            inner,
            #[cfg(feature = "auth")]
            tls,
            timeout,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<RawStream>;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let (dialing, timeout) = (self.inner.call(address), self.timeout);
        Box::pin(async move {
            tokio::time::timeout(timeout, dialing).await.unwrap_or_else(|_| {
                let message = format!("no connection within {timeout:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, message).into())
            })
        })
    }
}

/// Opens the bare stream that TLS may then run on.
#[derive(Clone)]
struct RawConnector {
    straight: Tcp,
    /// To proxies: the user chose them, wherever they are.
    proxy: Tcp,
    via: Via,
}

impl RawConnector {
    fn new(via: Via, allows: Option<Allows>) -> RawConnector {
        RawConnector { straight: Tcp::new(allows), proxy: Tcp::new(None), via }
    }
}

impl Service<Uri> for RawConnector {
    type Response = RawStream;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<RawStream, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        #[cfg(feature = "client")]
        if let Via::Unix(path) = &self.via {
            return Box::pin(unix(path.clone()));
        }
        let Some(proxy) = self.via.proxy(&address) else { return self.straight.call(address) };
        let mut tcp = self.proxy.clone();
        Box::pin(async move {
            let to = proxy.uri().clone();
            if to.scheme_str() != Some("http") {
                return Err("only http proxies are supported (http://host:port)".into());
            }
            if address.scheme_str() != Some("https") {
                return tcp.call(to).await.map(RawStream::into_proxied);
            }
            let mut tunnel = Tunnel::new(to, tcp);
            if let Some(auth) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(auth.clone());
            }
            tunnel.call(address).await.map_err(Into::into)
        })
    }
}

#[cfg(all(feature = "client", unix))]
async fn unix(path: Arc<PathBuf>) -> Result<RawStream, ConnectError> {
    let stream = tokio::net::UnixStream::connect(&*path).await?;
    Ok(RawStream::Unix(TokioIo::new(stream)))
}

#[cfg(all(feature = "client", not(unix)))]
async fn unix(path: Arc<PathBuf>) -> Result<RawStream, ConnectError> {
    Err(format!("there are no Unix sockets here: {}", path.display()).into())
}

/// `HttpConnector` that gives our kind of stream, as a tunnel needs it, and dials only what is
/// allowed.
#[derive(Clone)]
struct Tcp {
    http: HttpConnector<AllowedResolver>,
    allows: Option<Allows>,
}

impl Tcp {
    fn new(allows: Option<Allows>) -> Tcp {
        let mut http =
            HttpConnector::new_with_resolver(AllowedResolver { all: GaiResolver::new(), allows });
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(Duration::from_secs(60)));
        Tcp { http, allows }
    }

    /// Addresses that are numbers are not resolved.
    fn refuses(&self, address: &Uri) -> bool {
        let host = address.host().unwrap_or_default().trim_matches(['[', ']']);
        match (self.allows, host.parse()) {
            (Some(allows), Ok(ip)) => !allows(ip),
            _ => false,
        }
    }
}

impl Service<Uri> for Tcp {
    type Response = RawStream;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<RawStream, ConnectError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        if self.refuses(&address) {
            return Box::pin(async { Err(NotAllowed.into()) });
        }
        let mut http = self.http.clone();
        Box::pin(async move {
            std::future::poll_fn(|context| http.poll_ready(context)).await?;
            Ok(RawStream::Tcp(http.call(address).await?))
        })
    }
}

/// Resolves names, to what may be dialled.
#[derive(Clone)]
struct AllowedResolver {
    all: GaiResolver,
    allows: Option<Allows>,
}

impl Service<Name> for AllowedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.all.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (resolving, allows) = (self.all.call(name), self.allows);
        Box::pin(async move {
            let mut found: Vec<SocketAddr> = resolving.await?.collect();
            let any = !found.is_empty();
            if let Some(allows) = allows {
                found.retain(|address| allows(address.ip()));
            }
            if any && found.is_empty() {
                return Err(NotAllowed.into());
            }
            Ok(found.into_iter())
        })
    }
}

/// There is an address, and it must not be dialled.
#[derive(Debug)]
pub(crate) struct NotAllowed;

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is at an address that must not be asked")
    }
}

impl std::error::Error for NotAllowed {}

/// A connection without TLS.
pub(crate) enum RawStream {
    Tcp(TokioIo<TcpStream>),
    /// To a proxy that wants to see whole addresses.
    Proxied(TokioIo<TcpStream>),
    #[cfg(all(feature = "client", unix))]
    Unix(TokioIo<tokio::net::UnixStream>),
}

impl RawStream {
    fn into_proxied(self) -> RawStream {
        match self {
            RawStream::Tcp(tcp) => RawStream::Proxied(tcp),
            other => other,
        }
    }
}

impl Connection for RawStream {
    fn connected(&self) -> Connected {
        match self {
            RawStream::Proxied(_) => Connected::new().proxy(true),
            _ => Connected::new(),
        }
    }
}

/// Calls the same function on whichever stream it is.
macro_rules! delegate {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            RawStream::Tcp($inner) | RawStream::Proxied($inner) => $call,
            #[cfg(all(feature = "client", unix))]
            RawStream::Unix($inner) => $call,
        }
    };
}

impl Read for RawStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl Write for RawStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_shutdown(context))
    }

    fn is_write_vectored(&self) -> bool {
        delegate!(self, stream => stream.is_write_vectored())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_write_vectored(context, slices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_elsewhere(ip: IpAddr) -> bool {
        !ip.is_loopback()
    }

    #[tokio::test]
    async fn what_is_not_allowed_is_not_dialled_by_name_or_by_number() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["localhost", "127.0.0.1", "127.1", "[::1]"] {
            let address: Uri = format!("http://{host}:{port}/").parse().unwrap();
            let Err(error) = Tcp::new(Some(only_elsewhere)).call(address).await else {
                panic!("{host} was dialled");
            };
            let refused = crate::error::find::<NotAllowed>(&*error).is_some();
            assert!(refused, "{host}: {error}");
        }
        let address: Uri = format!("http://localhost:{port}/").parse().unwrap();
        assert!(Tcp::new(None).call(address).await.is_ok());
    }

    #[cfg(all(feature = "auth", feature = "server"))]
    #[tokio::test]
    async fn only_what_is_encrypted_goes_through_the_proxy_of_a_tunnel() {
        use tokio::io::AsyncReadExt as _;
        let [proxy, here] = [
            tokio::net::TcpListener::bind("127.0.0.1:0"),
            tokio::net::TcpListener::bind("127.0.0.1:0"),
        ];
        let (proxy, here) = (proxy.await.unwrap(), here.await.unwrap());
        let at = format!("http://{}", proxy.local_addr().unwrap());
        let via = Via::Tunnel(Arc::new(Matcher::builder().all(at).build()));
        let mut dial = RawConnector::new(via, None);
        let secure = dial.call(Uri::from_static("https://issuer.test/token"));
        let tunnel = async {
            let (mut stream, _) = proxy.accept().await.unwrap();
            let mut text = [0; 27];
            stream.read_exact(&mut text).await.unwrap();
            assert_eq!(&text, b"CONNECT issuer.test:443 HTT");
        };
        // The proxy leaves without an answer.
        let (dialled, ()) = tokio::join!(secure, tunnel);
        assert!(dialled.is_err());
        let plain = format!("http://{}/token", here.local_addr().unwrap());
        assert!(dial.call(plain.parse().unwrap()).await.is_ok());
        assert!(here.accept().await.is_ok());
    }
}
