//! The bare limit over HTTP.

use std::sync::Arc;

use bench_util::Era;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::Semaphore;

/// How many cancellations are on their way at once: a few connections, used again, are faster than
/// a new one for each.
const CANCELLATIONS: usize = 16;

pub(crate) struct Connection {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: http::Uri,
    era: Era,
    cancellations: Arc<Semaphore>,
}

impl Connection {
    pub(crate) fn new(url: &str, era: Era) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client =
            Client::builder(TokioExecutor::new()).pool_max_idle_per_host(4096).build(connector);
        let cancellations = Arc::new(Semaphore::new(CANCELLATIONS));
        Self { client, uri: url.parse().expect("a URL"), era, cancellations }
    }

    /// One POST. Dropping the future closes the connection, which is the cancellation in the
    /// modern era; in the legacy era a notification says so.
    pub(crate) async fn exchange(&self, id: u64, tool: &str, request: String) -> Option<Bytes> {
        let builder = match self.era {
            Era::Modern => self
                .post()
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", tool),
            Era::Legacy => self.legacy_post(),
        };
        let request = builder.body(Full::new(request.into())).ok()?;
        let abandon = (self.era == Era::Legacy).then(|| Abandon { connection: self, id });
        let response = self.client.request(request).await.ok()?;
        let answer = response.into_body().collect().await.ok()?.to_bytes();
        std::mem::forget(abandon);
        Some(answer)
    }

    fn post(&self) -> http::request::Builder {
        http::Request::post(self.uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
    }

    fn legacy_post(&self) -> http::request::Builder {
        self.post().header("mcp-protocol-version", "2025-11-25").header("mcp-session-id", "s1")
    }
}

/// Cancels the call of the legacy era when it is dropped before the answer.
struct Abandon<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        let Self { connection, id } = self;
        let note = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        let Ok(request) = connection.legacy_post().body(Full::new(note.into())) else { return };
        let (client, turns) = (connection.client.clone(), connection.cancellations.clone());
        tokio::spawn(async move {
            let _turn = turns.acquire().await;
            if let Ok(response) = client.request(request).await {
                // Read to its end, so that the next can have the connection.
                let _ = response.into_body().collect().await;
            }
        });
    }
}
