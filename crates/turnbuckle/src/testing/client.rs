//! Owns a client and a server joined in one process by the bytes they would exchange anywhere.
//! Does not own the bytes' way: `link` does.

use std::{fmt, future::IntoFuture, ops::Deref, pin::Pin};

use tokio::task::JoinHandle;
use turnbuckle_types::Revision;

use super::{
    Faults, Transcript,
    link::{self, Tape},
};
use crate::{Client, ClientBuilder, Error, Result, Server};

/// A client of a server in the same process, over the real codec. It derefs to [`Client`].
///
/// ```
/// # use turnbuckle::{Server, testing::TestClient, tool};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> turnbuckle::Result<()> {
/// let server = Server::new("demo", "1.0").tool(tool("hello", async || "Hello!"));
/// let modern = TestClient::new(&server).await?;
/// assert_eq!(modern.tools().all().await?.len(), 1);
/// let legacy = TestClient::new(&server).legacy().await?;
/// assert_eq!(legacy.server_info().unwrap().name, "demo");
/// # Ok(()) }
/// ```
pub struct TestClient {
    client: Client,
    tape: Tape,
    serving: JoinHandle<Result<()>>,
}

impl TestClient {
    /// A client of this server, to be awaited: of the latest revision, with no callbacks and no
    /// faults on its way.
    #[expect(clippy::new_ret_no_self, reason = "what it returns is awaited, and gives one")]
    pub fn new(server: &Server) -> TestClientBuilder {
        TestClientBuilder {
            server: server.clone(),
            // Named so that a transcript does not change with this crate's version.
            client: Client::builder().info("test-client", "1.0").revision(Revision::LATEST),
            faults: Faults::none(),
        }
    }

    /// The client itself.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Every line that has crossed so far, in either direction.
    pub fn transcript(&self) -> Transcript {
        self.tape.transcript()
    }

    /// Closes the connection for every clone of the client, and waits until the server has left it.
    /// Dropping the future does not stop the closing.
    pub async fn close(self) -> Result<()> {
        self.client.close().await;
        // Handlers have no part in it if it panics.
        self.serving.await.unwrap_or_else(|error| {
            Err(Error::protocol(format!("serving the connection ended badly: {error}")))
        })
    }
}

impl Deref for TestClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl fmt::Debug for TestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClient").field("client", &self.client).finish_non_exhaustive()
    }
}

/// A [`TestClient`] that is not connected yet; `.await` connects it. Dropping that future closes
/// the connection.
#[must_use = "nothing is connected until this is awaited"]
pub struct TestClientBuilder {
    server: Server,
    client: ClientBuilder,
    faults: Faults,
}

impl TestClientBuilder {
    /// Speaks the latest revision that opens with a handshake.
    pub fn legacy(self) -> TestClientBuilder {
        self.revision(Revision::LATEST_LEGACY)
    }

    /// Speaks this revision.
    pub fn revision(self, revision: Revision) -> TestClientBuilder {
        self.with(|client| client.revision(revision))
    }

    /// Changes anything else about the client: callbacks, timeouts, limits.
    ///
    /// ```
    /// # use turnbuckle::{Server, testing::TestClient, types::Root};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> turnbuckle::Result<()> {
    /// # let server = Server::new("demo", "1.0");
    /// let client = TestClient::new(&server)
    ///     .with(|client| client.roots([Root::new("file:///srv")]))
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn with(
        mut self,
        change: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> TestClientBuilder {
        self.client = change(self.client);
        self
    }

    /// What goes wrong on the way.
    pub fn faults(mut self, faults: Faults) -> TestClientBuilder {
        self.faults = faults;
        self
    }

    async fn connect(self) -> Result<TestClient> {
        // Else a server that can't serve would look like a connection that ended.
        self.server.check()?;
        let (ours, theirs, tape) = link::taped(self.faults);
        let serving = tokio::spawn(self.server.serve(theirs).into_future());
        let client = self.client.over(ours).await?;
        Ok(TestClient { client, tape, serving })
    }
}

impl IntoFuture for TestClientBuilder {
    type Output = Result<TestClient>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<TestClient>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.connect())
    }
}

impl fmt::Debug for TestClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClientBuilder")
            .field("client", &self.client)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool;

    #[tokio::test]
    async fn a_serving_task_that_panicked_is_told_of() {
        let server = Server::new("demo", "1.0").tool(tool("hello", async || "Hello!"));
        TestClient::new(&server).await.unwrap().close().await.unwrap();
        let mut client = TestClient::new(&server).await.unwrap();
        client.serving = tokio::spawn(async { panic!("it ends here") });
        let error = client.close().await.unwrap_err();
        assert!(error.to_string().contains("panic"), "{error}");
    }
}
