//! The demo's HTTP server: a real port of this machine, and a count of what arrives there.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use hyper::{Method, Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use tower_service::Service as _;
use turnbuckle::{Server, http::HttpService};

use crate::exit::Failure;

/// A server at work. Dropping it closes every connection.
pub(super) struct Web {
    url: String,
    posts: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Web {
    /// Serves on a free port of this machine alone.
    pub(super) async fn start(server: &Server) -> Result<Web, Failure> {
        let failed = |error| Failure::failed(format!("there is no port to serve on: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let posts = Arc::new(AtomicU64::new(0));
        let accepting = tokio::spawn(accept(listener, server.http_service(), posts.clone()));
        Ok(Web { url: format!("http://{address}/mcp"), posts, accepting })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// How many POST requests have arrived, whatever they said.
    pub(super) fn posts(&self) -> u64 {
        self.posts.load(Relaxed)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, service: HttpService, posts: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // A small answer does not wait for the acknowledgement of the one before; where that
        // can't be said the demo is slower, and right.
        let _ = stream.set_nodelay(true);
        let (service, posts) = (service.clone(), posts.clone());
        let counted = service_fn(move |request: Request<Incoming>| {
            if request.method() == Method::POST {
                posts.fetch_add(1, Relaxed);
            }
            service.clone().call(request)
        });
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), counted));
        // Those that have ended are forgotten.
        while connections.try_join_next().is_some() {}
    }
}
