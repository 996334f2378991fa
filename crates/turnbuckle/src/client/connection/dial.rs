//! Owns how a connection is made again, and connections over streams that a function makes.
//! Does not own when: `supervise` says.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use super::super::{Client, ClientBuilder};
use crate::{
    client::{
        builder::FIRST, connection::handle::ClientConnection, handshake::process::CommandKey,
    },
    error::{Error, ErrorKind, Result, timed_out},
    rpc::BoxFuture,
    transport::child_process::Spawn,
};
use tokio::io::{AsyncRead, AsyncWrite};

/// Makes a connection to the same server as before.
pub(crate) trait Dialer: Send + Sync + 'static {
    /// Negotiates anew. Dropping the future gives up what was begun.
    fn dial<'a>(
        &'a self,
        settings: &'a ClientBuilder,
        generation: u64,
    ) -> BoxFuture<'a, Result<ClientConnection>>;

    /// What is on the other side.
    fn way(&self) -> ConnectionTarget;
}

/// What a connection is made to: that decides what it costs, and what its loss means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionTarget {
    /// A process, of which there may be only so many.
    Process,
    /// A stream that a function makes.
    Stream,
    /// An address, at which nothing is lost while nobody calls: only calls find out that it can't
    /// be reached, and any later one may find it back.
    #[cfg(feature = "http")]
    Address,
}

/// Starts the program again.
pub(crate) struct Process(pub(crate) Mutex<Spawn>, pub(crate) CommandKey);

impl Dialer for Process {
    fn dial<'a>(
        &'a self,
        settings: &'a ClientBuilder,
        generation: u64,
    ) -> BoxFuture<'a, Result<ClientConnection>> {
        let start = move || {
            let mut command = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            settings.start(&mut command)
        };
        Box::pin(settings.process(start, self.1, generation))
    }

    fn way(&self) -> ConnectionTarget {
        ConnectionTarget::Process
    }
}

impl ClientBuilder {
    /// Connects over a byte stream that `make` makes: a TCP or Unix socket, a tunnel. When the
    /// connection is lost, `make` is called again ([`reconnect`](ClientBuilder::reconnect)).
    /// Dropping the future gives it up.
    ///
    /// ```no_run
    /// # async fn example() -> turnbuckle::Result<()> {
    /// use tokio::net::TcpStream;
    /// use turnbuckle::Client;
    /// let client = Client::builder().dial(|| TcpStream::connect("127.0.0.1:7000")).await?;
    /// # let _ = client; Ok(()) }
    /// ```
    pub async fn dial<F, Fut, S>(self, make: F) -> Result<Client>
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let again = Made(make);
        let link = again.dial(&self, FIRST).await;
        self.connected(link.map(|link| (link, Some(Box::new(again) as Box<dyn Dialer>))))
    }
}

/// Has the stream made again.
struct Made<F>(F);

impl<F, Fut, S> Dialer for Made<F>
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    fn dial<'a>(
        &'a self,
        settings: &'a ClientBuilder,
        generation: u64,
    ) -> BoxFuture<'a, Result<ClientConnection>> {
        Box::pin(async move {
            let limit = settings.connect_timeout;
            let stream = match tokio::time::timeout(limit, (self.0)()).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    let message = format!("no stream was made: {error}");
                    return Err(Error::new(ErrorKind::Connect, message).with_source(error));
                }
                Err(_) => {
                    let message = format!("making a stream {}", timed_out(limit));
                    return Err(Error::new(ErrorKind::Connect, message));
                }
            };
            let (read, write) = tokio::io::split(stream);
            settings.stream(Box::pin(read), Box::pin(write), generation).await
        })
    }

    fn way(&self) -> ConnectionTarget {
        ConnectionTarget::Stream
    }
}
