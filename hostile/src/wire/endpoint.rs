//! The address of a server, and connections to it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpSocket, TcpStream, UnixStream},
};

/// A byte stream of any kind.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

pub(crate) type Stream = Box<dyn Duplex>;

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// How many bytes a client that does not read lets the system keep for it.
const SMALL_BUFFER: u32 = 4096;

impl Endpoint {
    /// Connects from the loopback address with this number: each one is another peer to the server.
    pub(crate) async fn connect(&self, peer: u8) -> io::Result<Stream> {
        match self {
            Endpoint::Tcp(address) => Ok(Box::new(tcp(*address, peer, None).await?)),
            Endpoint::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        }
    }

    /// Connects with a small receive buffer, so that responses stay at the server.
    pub(crate) async fn connect_narrow(&self, peer: u8) -> io::Result<Stream> {
        match self {
            Endpoint::Tcp(address) => Ok(Box::new(tcp(*address, peer, Some(SMALL_BUFFER)).await?)),
            Endpoint::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        }
    }

    /// Connects over TCP and returns the socket itself.
    pub(crate) async fn connect_tcp(&self, peer: u8) -> io::Result<TcpStream> {
        match self {
            Endpoint::Tcp(address) => tcp(*address, peer, None).await,
            Endpoint::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

async fn tcp(server: SocketAddr, peer: u8, buffer: Option<u32>) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 1, peer)), 0))?;
    let stream = socket.connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
