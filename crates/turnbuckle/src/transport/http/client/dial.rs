//! Owns how a connection is made: straight, through a proxy, or to a Unix socket; with TLS
//! where the address says so. Does not own when: the pool asks for one.

use std::{
    io,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use tokio::net::TcpStream;
use tower_service::Service;

use super::stack::BoxError;
use crate::{
    dispatch::BoxFuture,
    error::{Error, ErrorKind, Result},
};

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
    Never,
}

/// The way to the server.
#[derive(Clone)]
pub(crate) enum Via {
    Proxy(Arc<Matcher>),
    Unix(Arc<PathBuf>),
}

/// Makes connections for the pool.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<Dial>,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(dialing: Dialing) -> Result<Connector> {
        let tls = match dialing.tls {
            Tls::Possible => trusting(&dialing.roots)?,
            Tls::Never => Arc::new(config(RootCertStore::empty())?),
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let dial = Dial { tcp, via: dialing.via };
        let inner = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(ClientConfig::clone(&tls))
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(dial);
        Ok(Connector { inner, timeout: dialing.timeout })
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Stream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
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

/// The system's certificates and these. Reading the system's takes a while, so a client that
/// adds none shares them with the others.
fn trusting(roots: &[Vec<u8>]) -> Result<Arc<ClientConfig>> {
    static SYSTEM: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let (true, Some(system)) = (roots.is_empty(), SYSTEM.get()) {
        return Ok(system.clone());
    }
    let mut store = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::debug!(%error, "a certificate of the system can't be read");
    }
    store.add_parsable_certificates(native.certs);
    for pem in roots {
        add(&mut store, pem)?;
    }
    let config = Arc::new(config(store)?);
    if roots.is_empty() {
        return Ok(SYSTEM.get_or_init(|| config).clone());
    }
    Ok(config)
}

fn add(store: &mut RootCertStore, pem: &[u8]) -> Result<()> {
    use rustls::pki_types::pem::PemObject as _;
    let refuse = |why: String| Error::refused(format!("a TLS root certificate {why}"));
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| refuse(format!("is not PEM: {error}")))?;
        store.add(certificate).map_err(|error| refuse(format!("is not valid: {error}")))?;
        count += 1;
    }
    if count == 0 {
        return Err(refuse("was expected, but the PEM text has none".to_owned()));
    }
    Ok(())
}

fn config(store: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Connect, format!("TLS: {error}")))?;
    Ok(versions.with_root_certificates(store).with_no_client_auth())
}

/// Opens the bare stream that TLS may then run on.
#[derive(Clone)]
struct Dial {
    tcp: HttpConnector,
    via: Via,
}

impl Service<Uri> for Dial {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let tcp = Tcp(self.tcp.clone());
        match &self.via {
            Via::Proxy(matcher) => match matcher.intercept(&address) {
                None => Box::pin(straight(tcp, address)),
                Some(proxy) => Box::pin(async move {
                    let to = proxy.uri().clone();
                    if to.scheme_str() != Some("http") {
                        let message = "only http proxies are supported (http://host:port)";
                        return Err(message.into());
                    }
                    if address.scheme_str() != Some("https") {
                        return straight(tcp, to).await.map(Stream::into_proxied);
                    }
                    let mut tunnel = Tunnel::new(to, tcp);
                    if let Some(auth) = proxy.basic_auth() {
                        tunnel = tunnel.with_auth(auth.clone());
                    }
                    tunnel.call(address).await.map_err(Into::into)
                }),
            },
            Via::Unix(path) => Box::pin(unix(path.clone())),
        }
    }
}

async fn straight(mut tcp: Tcp, address: Uri) -> Result<Stream, BoxError> {
    tcp.call(address).await
}

#[cfg(unix)]
async fn unix(path: Arc<PathBuf>) -> Result<Stream, BoxError> {
    let stream = tokio::net::UnixStream::connect(&*path).await?;
    Ok(Stream::Unix(TokioIo::new(stream)))
}

#[cfg(not(unix))]
async fn unix(path: Arc<PathBuf>) -> Result<Stream, BoxError> {
    Err(format!("there are no Unix sockets here: {}", path.display()).into())
}

/// `HttpConnector` that gives our kind of stream, as a tunnel needs it.
#[derive(Clone)]
struct Tcp(HttpConnector);

impl Service<Uri> for Tcp {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let mut tcp = self.0.clone();
        Box::pin(async move {
            std::future::poll_fn(|context| tcp.poll_ready(context)).await?;
            Ok(Stream::Tcp(tcp.call(address).await?))
        })
    }
}

/// A connection without TLS.
pub(crate) enum Stream {
    Tcp(TokioIo<TcpStream>),
    /// To a proxy that wants to see whole addresses.
    Proxied(TokioIo<TcpStream>),
    #[cfg(unix)]
    Unix(TokioIo<tokio::net::UnixStream>),
}

impl Stream {
    fn into_proxied(self) -> Stream {
        match self {
            Stream::Tcp(tcp) => Stream::Proxied(tcp),
            other => other,
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Stream::Proxied(_) => Connected::new().proxy(true),
            _ => Connected::new(),
        }
    }
}

/// Calls the same function on whichever stream it is.
macro_rules! delegate {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($inner) | Stream::Proxied($inner) => $call,
            #[cfg(unix)]
            Stream::Unix($inner) => $call,
        }
    };
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl Write for Stream {
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
