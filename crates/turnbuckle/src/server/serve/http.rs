//! The methods of [`Server`] that serve it over HTTP.

use crate::{
    error::Result,
    protocol::{classify::ClientHello, params::decode},
    rpc::Serve,
    server::{
        Server,
        connection::forward::{ClientScope, SessionMemory},
        connection::{
            dispatch::ServerConnection,
            handshake::{HandshakeState, choose},
        },
        shared::App,
    },
    transport::http::{
        server::{HttpAddress, HttpService, ServingHttp, auth::protect::Protection},
        session::{
            Session, SessionEndpoint,
            store::{SessionId, SessionRecord},
        },
    },
};
use std::sync::Arc;
use turnbuckle_types::{Initialize, Raw, Revision, RpcError, jsonrpc::Params};

impl Server {
    /// Returns a service for HTTP requests, to be mounted in axum, hyper or any other tower stack,
    /// or to be [served](HttpService::serve). It serves loopback names only until
    /// [`public_host`](HttpService::public_host) names others.
    ///
    /// If the server has a problem, so has the service: see [`HttpService::check`].
    ///
    /// ```
    /// use turnbuckle::Server;
    /// let server = Server::new("demo", "1.0");
    /// let app: axum::Router = axum::Router::new().nest_service("/mcp", server.http_service());
    /// # let _ = app;
    /// ```
    pub fn http_service(&self) -> HttpService {
        HttpService::new(self.host(), self.connection_limits())
    }

    /// Serves over HTTP at `/mcp` on a loopback address: short for
    /// `self.http_service().serve(address)`.
    ///
    /// An address that other machines reach needs a [`public_host`](HttpService::public_host); see
    /// [`HttpService::serve`].
    ///
    /// ```no_run
    /// # async fn serve(server: turnbuckle::Server) -> turnbuckle::Result<()> {
    /// server.serve_http("127.0.0.1:8080").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "StreamableHttpService")]
    pub fn serve_http(&self, address: impl Into<HttpAddress>) -> ServingHttp {
        self.http_service().serve(address)
    }

    /// Returns a service for clients that only know the transport of revision 2024-11-05, HTTP
    /// with server-sent events: short for `self.http_service().sse_service(path)`, see
    /// [`HttpService::sse_service`].
    ///
    /// ```
    /// use turnbuckle::Server;
    /// let server = Server::new("demo", "1.0");
    /// let app: axum::Router =
    ///     axum::Router::new().route_service("/old/sse", server.sse_service("/old/sse"));
    /// # let _ = app;
    /// ```
    #[cfg(feature = "sse-2024")]
    pub fn sse_service(&self, path: impl Into<String>) -> crate::http::SseService {
        self.http_service().sse_service(path)
    }

    fn host(&self) -> Result<Arc<dyn SessionEndpoint>> {
        let (app, served) = (self.app()?, Arc::<[Revision]>::from(self.revisions.revisions()));
        let protection = self.protection(&app)?;
        let stateless =
            ServerConnection::near(app.clone(), served.clone(), ClientScope::Stateless).shared();
        let with_handshake = crate::server::revisions::legacy(&served).into();
        Ok(Arc::new(Hosted { app, served, with_handshake, stateless, protection }))
    }
}

/// A server on an HTTP endpoint.
struct Hosted {
    app: Arc<App>,
    served: Arc<[Revision]>,
    /// Those that begin with a handshake.
    with_handshake: Arc<[Revision]>,
    stateless: Arc<ServerConnection>,
    protection: Option<Protection>,
}

impl SessionEndpoint for Hosted {
    fn served(&self) -> &[Revision] {
        &self.served
    }

    fn stateless(&self) -> Arc<dyn Serve> {
        self.stateless.clone()
    }

    fn protection(&self) -> Option<Protection> {
        self.protection.clone()
    }

    fn initialize(&self, params: &Params) -> Result<(Raw, ClientHello), RpcError> {
        let client: Initialize = decode(params)?;
        let revision = choose(&client.protocol_version, &self.served)?;
        let result = match &self.app.forward {
            Some(forward) => forward.initialize(revision)?,
            None => self.app.initialize(revision),
        };
        Ok((result, ClientHello { revision, client }))
    }

    #[cfg(feature = "sse-2024")]
    fn has_handshake(&self) -> bool {
        !self.with_handshake.is_empty()
    }

    #[cfg(feature = "sse-2024")]
    fn connection(&self, head: crate::rpc::HttpHead) -> Arc<dyn Serve> {
        let connection = crate::server::handler::context::ConnectionContext {
            head: Some(head),
            ..Default::default()
        };
        ServerConnection::new(self.app.clone(), self.with_handshake.clone())
            .with(connection)
            .shared()
    }

    fn session(
        &self,
        id: Option<SessionId>,
        hello: Arc<ClientHello>,
        record: SessionRecord,
    ) -> Arc<dyn Session> {
        let scope = match id {
            Some(id) if self.app.forward.is_some() => {
                let (level, subscriptions) = (record.log_level, record.subscriptions.clone());
                let memory = SessionMemory { level, subscriptions };
                ClientScope::Session { id, client: Box::new(hello.client.clone()), memory }
            }
            _ => ClientScope::Stateless,
        };
        let handshake = HandshakeState::restored(hello, record.log_level);
        // A request that declares its own revision does not belong to a session.
        let (app, served) = (self.app.clone(), self.with_handshake.clone());
        ServerConnection::restored(app, served, (handshake, scope), record.subscriptions).shared()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use turnbuckle_types::{ClientCapabilities, Implementation, LogLevel};

    use super::*;
    use crate::{limits::Limits, transport::stream};

    fn hello(revision: Revision) -> Arc<ClientHello> {
        let client = Implementation::new("c", "1");
        let client = Initialize::new(revision.as_str(), ClientCapabilities::new(), client);
        Arc::new(ClientHello { revision, client })
    }

    /// A session that was opened elsewhere goes on here, and can go on elsewhere again.
    #[tokio::test]
    async fn a_session_is_told_of_what_its_record_says_and_gives_a_record_back() {
        let server = Server::new("s", "1").offering_everything();
        let host = server.host().unwrap();
        let hello = hello(Revision::V2025_06_18);
        let record = SessionRecord {
            ended: false,
            log_level: Some(LogLevel::Error),
            subscriptions: ["note://1", "note://2"].map(str::to_owned).into(),
        };
        let session = host.session(None, hello, record.clone());
        assert_eq!(session.record(), record, "also before anything is connected");
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let _wire = stream::start(read, write, session.clone(), Limits::default(), None);
        let mut client = BufReader::new(ours);
        let mut line = String::new();

        server.changes().resource("note://3");
        server.changes().resource("note://2");
        client.read_line(&mut line).await.unwrap();
        let note: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(note["method"], "notifications/resources/updated");
        assert_eq!(note["params"], json!({"uri": "note://2"}));

        let messages = [
            ("resources/unsubscribe", json!({"uri": "note://2"})),
            ("resources/subscribe", json!({"uri": "note://3"})),
            ("logging/setLevel", json!({"level": "info"})),
        ];
        for (method, params) in messages {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            client.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            line.clear();
            client.read_line(&mut line).await.unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["result"], json!({}), "{method}");
        }
        let after = session.record();
        assert_eq!(after.subscriptions, ["note://1", "note://3"].map(str::to_owned).into());
        assert_eq!((after.log_level, after.ended), (Some(LogLevel::Info), false));
    }

    #[tokio::test]
    async fn of_a_batch_that_is_too_long_the_rest_is_refused() {
        let host = Server::new("s", "1").host().unwrap();
        let hello = hello(Revision::V2025_03_26);
        let session = host.session(None, hello, SessionRecord::default());
        let pings: Vec<_> =
            (0..1100).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).collect();
        for (limits, served) in [(Limits::default(), 1000), (Limits::default().unsent_bytes(36), 1)]
        {
            let (ours, theirs) = tokio::io::duplex(1 << 20);
            let (read, write) = tokio::io::split(theirs);
            let _wire = stream::start(read, write, session.clone(), limits, None);
            let mut client = BufReader::new(ours);
            client.write_all(format!("{}\n", json!(pings)).as_bytes()).await.unwrap();
            let mut line = String::new();
            client.read_line(&mut line).await.unwrap();
            let answers: Vec<Value> = serde_json::from_str(&line).unwrap();
            assert_eq!(answers.len(), 1100);
            let good = answers.iter().filter(|answer| answer["result"].is_object()).count();
            assert_eq!(good, served);
        }
    }
}
