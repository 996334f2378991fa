//! Owns the ways a server is put on a wire. Does not own the wires.

#[cfg(feature = "http")]
pub(crate) mod http;

use std::{
    future::{Future, IntoFuture, pending},
    pin::Pin,
    sync::Arc,
};

use super::Server;
use crate::{
    error::{Error, Result},
    principal::Principal,
    rpc::{BoxFuture, Serve, Transport as _, connection::io::ConnectionTasks},
    server::handler::{context::ConnectionContext, extract::States},
    transport::{stdio, stream},
};
use tokio::io::{AsyncRead, AsyncWrite};

impl Server {
    /// Serves one client over the standard streams, until it closes them.
    ///
    /// Standard input and output are taken away from the rest of the program: `println!`
    /// goes to stderr, so that nothing a handler or its children print can reach the wire.
    /// Dropping the future ends the connection and every handler.
    #[doc(alias = "stdio")]
    #[doc(alias = "StdioServerTransport")]
    pub fn serve_stdio(&self) -> Serving {
        let limits = self.connection_limits();
        Serving::new(self, move |serve| {
            let (read, write) = stdio::take_stdio()
                .map_err(|error| Error::io("taking over the standard streams", error))?;
            Ok(stream::start(read, write, serve, limits, None))
        })
    }

    /// Serves one client over any byte stream: a socket, a pipe, an in-memory pair.
    /// Dropping the future ends the connection and every handler.
    pub fn serve(&self, stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Serving {
        let (read, write) = tokio::io::split(stream);
        self.serve_halves(Box::pin(read), Box::pin(write))
    }

    /// [`serve`](Server::serve) for a stream that comes in two halves.
    pub fn serve_halves(
        &self,
        read: impl AsyncRead + Unpin + Send + 'static,
        write: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Serving {
        let limits = self.connection_limits();
        Serving::new(self, move |serve| Ok(stream::start(read, write, serve, limits, None)))
    }
}

/// A server about to serve one connection; `.await` runs it until the connection ends.
#[must_use = "nothing is served until this is awaited"]
pub struct Serving {
    server: Server,
    values: States,
    start: Box<dyn FnOnce(Arc<dyn Serve>) -> Result<ConnectionTasks> + Send>,
    signal: BoxFuture<'static, ()>,
}

impl Serving {
    fn new(
        server: &Server,
        start: impl FnOnce(Arc<dyn Serve>) -> Result<ConnectionTasks> + Send + 'static,
    ) -> Serving {
        let (server, values) = (server.clone(), States::default());
        Serving { server, values, start: Box::new(start), signal: Box::pin(pending()) }
    }

    /// Says whose connection this is, instead of [`Principal::local`]: for handlers, and for all
    /// that is bound to one principal or counted for each.
    ///
    /// ```
    /// # use turnbuckle::{Principal, Server};
    /// # let (_, stream) = tokio::io::duplex(64);
    /// let serving = Server::new("demo", "1.0").serve(stream).principal(Principal::new("alice"));
    /// # drop(serving);
    /// ```
    pub fn principal<C: Clone + Send + Sync + 'static>(mut self, who: Principal<C>) -> Serving {
        self.values.insert(Principal::new(who.name()));
        self.values.insert(who);
        self
    }

    /// Gives every handler of this connection a value that it takes as
    /// [`Extension`](crate::server::Extension). Whose connection it is says
    /// [`principal`](Serving::principal).
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Serving {
        self.values.insert(value);
        self
    }

    /// Ends the connection in good order when `signal` resolves: requests that still run
    /// are answered that the server is shutting down, what waits is written within a
    /// second, then the connection is closed.
    pub fn with_shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Serving {
        self.signal = Box::pin(signal);
        self
    }

    async fn run(self) -> Result<()> {
        let connection = ConnectionContext::given(self.values);
        let serve = self.server.connection_with(connection)?;
        let ConnectionTasks { transport, reader } = (self.start)(serve)?;
        let mut reader = EndOnDrop(reader);
        tokio::select! {
            ended = &mut reader.0 => {
                // The reader's task runs no user code; if it failed, so did the connection.
                let _ = ended;
            }
            () = self.signal => transport.close().await,
        }
        Ok(())
    }
}

/// Dropping a serving future ends its connection.
struct EndOnDrop(tokio::task::JoinHandle<()>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl IntoFuture for Serving {
    type Output = Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}
