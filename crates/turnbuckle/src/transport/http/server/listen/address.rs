//! Owns where the short way listens: addresses, sockets, listeners that exist already.
//! Does not own what is served there, nor who may connect.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::error::{Error, ErrorKind, Result};

/// How many connections may wait to be accepted; the system may allow fewer.
const BACKLOG: u32 = 4096;

/// Where to serve: anything that names a socket, or is one.
///
/// | from | meaning |
/// |---|---|
/// | `"127.0.0.1:8080"`, `"localhost:0"` | an address; port 0 takes a free one |
/// | `"unix:/run/mcp.sock"` | a Unix socket |
/// | `SocketAddr`, `("127.0.0.1", 8080)` | an address |
/// | a `TcpListener` of std or tokio, a `UnixListener` | a socket that listens already |
///
/// ```
/// use turnbuckle::http::HttpAddress;
/// let address = HttpAddress::from("127.0.0.1:0");
/// # let _ = address;
/// ```
pub struct HttpAddress(AddressPlace);

enum AddressPlace {
    Named(String),
    Tcp(TcpListener),
    StdTcp(std::net::TcpListener),
    #[cfg(unix)]
    Unix(unix::UnixPlace),
}

/// A socket that takes connections.
pub(crate) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(unix::Listener),
}

/// A connection that was taken.
pub(crate) enum Accepted {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl Accepted {
    /// Returns the address of the peer; `None` for a Unix socket, or if the peer has left.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        match self {
            Accepted::Tcp(stream) => stream.peer_addr().ok().map(|address| address.ip()),
            #[cfg(unix)]
            Accepted::Unix(_) => None,
        }
    }
}

/// Whether a socket is reached from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// Only from this machine, over the network.
    Loopback,
    /// Only from this machine, through the file system.
    Socket,
    /// From other machines too; it needs a name.
    Public,
}

impl HttpAddress {
    /// Listens, unless other machines could reach what would be opened and that is not allowed.
    pub(crate) async fn listen(self, allowed: AllowedReach) -> Result<Listener> {
        let listener = match self.0 {
            AddressPlace::Named(name) => return named(&name, allowed).await,
            AddressPlace::Tcp(listener) => listener,
            AddressPlace::StdTcp(listener) => listener
                .set_nonblocking(true)
                .and_then(|()| TcpListener::from_std(listener))
                .map_err(|error| Error::io("taking over a listener", error))?,
            #[cfg(unix)]
            AddressPlace::Unix(place) => return place.listen().map(Listener::Unix),
        };
        let address =
            listener.local_addr().map_err(|error| Error::io("looking at a listener", error))?;
        allowed.check(address)?;
        Ok(Listener::Tcp(listener))
    }
}

/// Whether an address that other machines reach may be served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AllowedReach {
    LoopbackOnly,
    /// A public name was stated.
    Anywhere,
}

impl AllowedReach {
    fn check(self, address: SocketAddr) -> Result<()> {
        if self == AllowedReach::Anywhere || is_loopback(address.ip()) {
            return Ok(());
        }
        let port = address.port();
        Err(Error::refused(format!(
            "{address} can be reached from other machines, so the server must know its public \
             name: call .http_service().public_host(\"mcp.example.com\").serve(..) with the name \
             that clients use, or serve on 127.0.0.1:{port}"
        )))
    }
}

async fn named(name: &str, allowed: AllowedReach) -> Result<Listener> {
    let failed = |error| {
        Error::new(ErrorKind::Io, format!("can't listen on `{name}`: {error}")).with_source(error)
    };
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(name).await.map_err(failed)?.collect();
    for address in &addresses {
        allowed.check(*address)?;
    }
    let mut last = None;
    for address in addresses {
        match listen(address) {
            Ok(listener) => return Ok(Listener::Tcp(listener)),
            Err(error) => last = Some(error),
        }
    }
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "it names no address");
    Err(failed(last.unwrap_or_else(none)))
}

/// A queue of the usual length loses connections when many come at once, and a client tries
/// again only after a second.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that is started again finds its address free. Elsewhere this means another thing.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl Listener {
    pub(crate) async fn accept(&self) -> std::io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // A small answer must not wait for the acknowledgement of the one before.
                // One that is gone already shows that soon enough.
                let _ = stream.set_nodelay(true);
                Ok(Accepted::Tcp(stream))
            }
            #[cfg(unix)]
            Listener::Unix(listener) => listener.accept().await.map(Accepted::Unix),
        }
    }

    pub(crate) fn reach(&self) -> Reach {
        match self {
            Listener::Tcp(listener) => match listener.local_addr() {
                Ok(address) if is_loopback(address.ip()) => Reach::Loopback,
                _ => Reach::Public,
            },
            #[cfg(unix)]
            Listener::Unix(_) => Reach::Socket,
        }
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Listener::Unix(_) => None,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        match self {
            Listener::Tcp(_) => match self.local_addr() {
                Some(mut address) => {
                    // Every address is also this one.
                    if address.ip().is_unspecified() {
                        address.set_ip(match address {
                            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
                        });
                    }
                    format!("http://{address}{path}")
                }
                None => format!("http://localhost{path}"),
            },
            #[cfg(unix)]
            Listener::Unix(listener) => listener.url(),
        }
    }
}

impl From<&str> for HttpAddress {
    fn from(address: &str) -> HttpAddress {
        #[cfg(unix)]
        if let Some(path) = address.strip_prefix("unix:") {
            return HttpAddress(AddressPlace::Unix(unix::UnixPlace::Path(path.into())));
        }
        HttpAddress(AddressPlace::Named(address.to_owned()))
    }
}

impl From<String> for HttpAddress {
    fn from(address: String) -> HttpAddress {
        HttpAddress::from(&*address)
    }
}

impl From<&String> for HttpAddress {
    fn from(address: &String) -> HttpAddress {
        HttpAddress::from(&**address)
    }
}

impl From<SocketAddr> for HttpAddress {
    fn from(address: SocketAddr) -> HttpAddress {
        HttpAddress(AddressPlace::Named(address.to_string()))
    }
}

impl From<(IpAddr, u16)> for HttpAddress {
    fn from(address: (IpAddr, u16)) -> HttpAddress {
        SocketAddr::from(address).into()
    }
}

impl From<(&str, u16)> for HttpAddress {
    fn from((host, port): (&str, u16)) -> HttpAddress {
        match host.parse::<IpAddr>() {
            Ok(address) => (address, port).into(),
            Err(_) => HttpAddress(AddressPlace::Named(format!("{host}:{port}"))),
        }
    }
}

impl From<TcpListener> for HttpAddress {
    fn from(listener: TcpListener) -> HttpAddress {
        HttpAddress(AddressPlace::Tcp(listener))
    }
}

impl From<std::net::TcpListener> for HttpAddress {
    fn from(listener: std::net::TcpListener) -> HttpAddress {
        HttpAddress(AddressPlace::StdTcp(listener))
    }
}

#[cfg(unix)]
impl From<tokio::net::UnixListener> for HttpAddress {
    fn from(listener: tokio::net::UnixListener) -> HttpAddress {
        HttpAddress(AddressPlace::Unix(unix::UnixPlace::Listener(listener)))
    }
}

impl fmt::Debug for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            AddressPlace::Named(name) => f.debug_tuple("HttpAddress").field(name).finish(),
            AddressPlace::Tcp(listener) => f.debug_tuple("HttpAddress").field(listener).finish(),
            AddressPlace::StdTcp(listener) => f.debug_tuple("HttpAddress").field(listener).finish(),
            #[cfg(unix)]
            AddressPlace::Unix(place) => f.debug_tuple("HttpAddress").field(place).finish(),
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::{
        io,
        os::unix::{fs::FileTypeExt as _, net},
        path::{Path, PathBuf},
    };

    use tokio::net::{UnixListener, UnixStream};

    use crate::error::{Error, Result};

    #[derive(Debug)]
    pub(super) enum UnixPlace {
        Path(PathBuf),
        Listener(UnixListener),
    }

    /// A Unix socket, and its file if that is ours to remove.
    #[derive(Debug)]
    pub(crate) struct Listener {
        listener: UnixListener,
        path: Option<PathBuf>,
    }

    impl UnixPlace {
        pub(super) fn listen(self) -> Result<Listener> {
            let path = match self {
                UnixPlace::Listener(listener) => return Ok(Listener { listener, path: None }),
                UnixPlace::Path(path) => path,
            };
            let bound = UnixListener::bind(&path).or_else(|error| {
                if error.kind() == io::ErrorKind::AddrInUse && is_left_behind(&path) {
                    std::fs::remove_file(&path)?;
                    return UnixListener::bind(&path);
                }
                Err(error)
            });
            let listener = bound.map_err(|error| {
                Error::io(&format!("can't listen on `unix:{}`", path.display()), error)
            })?;
            Ok(Listener { listener, path: Some(path) })
        }
    }

    /// Whether this is the socket of a server that is gone. One that is alive is not touched.
    fn is_left_behind(path: &Path) -> bool {
        let is_socket =
            std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        is_socket && net::UnixStream::connect(path).err().is_some_and(refused)
    }

    impl Listener {
        pub(super) async fn accept(&self) -> io::Result<UnixStream> {
            self.listener.accept().await.map(|(stream, _)| stream)
        }

        pub(super) fn url(&self) -> String {
            let address = self.listener.local_addr().ok();
            let path = address.as_ref().and_then(|address| address.as_pathname());
            format!("unix:{}", path.unwrap_or(Path::new("")).display())
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            if let Some(path) = &self.path {
                // Whoever removed it first was right to.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
