//! rmcp's Streamable HTTP service in an axum router, as its README shows it.

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::{Answers, Failure};

pub(crate) async fn serve<S>(server: S, port: u16, answers: Answers) -> Result<(), Failure>
where
    S: ServerHandler + Clone + Send + Sync + 'static,
{
    let json = matches!(answers, Answers::Json);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_json_response(json),
    );
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    // As documented, axum leaves Nagle's algorithm on; BENCH_NODELAY=1 turns it off.
    if std::env::var_os("BENCH_NODELAY").is_some() {
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await?;
    } else {
        axum::serve(listener, router).await?;
    }
    Ok(())
}
