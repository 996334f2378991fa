//! Owns: the bare limit over HTTP. Does not own: the body of the call.

use bench_util::Era;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

pub(crate) struct Connection {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: http::Uri,
    era: Era,
}

impl Connection {
    pub(crate) fn new(url: &str, era: Era) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client =
            Client::builder(TokioExecutor::new()).pool_max_idle_per_host(4096).build(connector);
        Self { client, uri: url.parse().expect("a URL"), era }
    }

    /// One POST. Dropping the future closes the connection, which is the cancellation.
    pub(crate) async fn exchange(&self, tool: &str, request: String) -> Option<Bytes> {
        let builder = http::Request::post(self.uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        let builder = match self.era {
            Era::Modern => builder
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", tool),
            Era::Legacy => {
                builder.header("mcp-protocol-version", "2025-11-25").header("mcp-session-id", "s1")
            }
        };
        let request = builder.body(Full::new(request.into())).ok()?;
        let response = self.client.request(request).await.ok()?;
        Some(response.into_body().collect().await.ok()?.to_bytes())
    }
}
