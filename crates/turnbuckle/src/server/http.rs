//! Owns the ways a server is put on HTTP. Does not own HTTP.

use super::Server;
use crate::transport::http::server::{HttpAddress, HttpService, ServingHttp};

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
        HttpService::new(self.stateless(), self.connection_limits())
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
}
