//! Owns the ways a server is put on HTTP. Does not own HTTP.

use std::sync::Arc;

use turnbuckle_types::{Initialize, Raw, Revision, RpcError, jsonrpc::Params};

use super::{
    Server,
    app::App,
    kernel::{Kernel, decode},
    legacy::{self, Opened},
};
use crate::{
    dispatch::Serve,
    error::Result,
    transport::http::{
        legacy::{Host, Session, sessions::SessionRecord, token::Handshake},
        server::{HttpAddress, HttpService, ServingHttp},
    },
};

impl Server {
    /// A service for HTTP requests, to be mounted in axum, hyper or anything that speaks
    /// tower. It serves loopback names only until it is told its
    /// [`public_host`](HttpService::public_host).
    ///
    /// If the server has a problem, so has the service: see [`HttpService::check`].
    ///
    /// ```
    /// use turnbuckle::Server;
    /// let server = Server::new("demo", "1.0");
    /// let app: axum::Router = axum::Router::new().nest_service("/mcp", server.into_http());
    /// # let _ = app;
    /// ```
    pub fn into_http(&self) -> HttpService {
        HttpService::new(self.host(), self.connection_limits())
    }

    /// Serves over HTTP at `/mcp`: HTTP/1.1, and HTTP/2 for clients that begin with it.
    ///
    /// On a loopback address only loopback names are served; an address that other machines
    /// reach is refused until [`public_host`](ServingHttp::public_host) is stated. Dropping
    /// the future closes every connection and drops every handler.
    ///
    /// ```no_run
    /// # async fn serve(server: turnbuckle::Server) -> turnbuckle::Result<()> {
    /// server.serve_http("127.0.0.1:8080").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve_http(&self, address: impl Into<HttpAddress>) -> ServingHttp {
        ServingHttp::new(address.into(), self.into_http())
    }

    fn host(&self) -> Result<Arc<dyn Host>> {
        let (app, served) = (self.app()?, self.serves.revisions());
        let stateless = Arc::new(Kernel::new(app.clone(), served.clone()));
        Ok(Arc::new(Hosted { app, served, stateless }))
    }
}

/// A server on an HTTP endpoint.
struct Hosted {
    app: Arc<App>,
    served: Vec<Revision>,
    stateless: Arc<Kernel>,
}

impl Host for Hosted {
    fn served(&self) -> &[Revision] {
        &self.served
    }

    fn stateless(&self) -> Arc<dyn Serve> {
        self.stateless.clone()
    }

    fn initialize(&self, params: &Params) -> Result<(Raw, Handshake), RpcError> {
        let client: Initialize = decode(params)?;
        let revision = legacy::choose(&client.protocol_version, &self.served)?;
        let handshake =
            Handshake { revision, client: client.client_info, capabilities: client.capabilities };
        Ok((self.app.initialize(revision), handshake))
    }

    fn session(&self, handshake: Handshake, record: SessionRecord) -> Arc<dyn Session> {
        let Handshake { revision, client, capabilities } = handshake;
        let client = Initialize::new(revision.as_str(), capabilities, client);
        let opened = Opened { revision, client };
        let handshake = legacy::Handshake::restored(opened, record.log_level);
        Arc::new(Kernel::restored(self.app.clone(), self.served.clone(), handshake))
    }
}
