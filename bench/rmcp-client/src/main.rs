//! rmcp 3.8.0 as a client driver.
//!
//! `BENCH_MAX_POSTS` overrides its limit of concurrent requests (16). `BENCH_POOL=1` replaces its
//! default HTTP client, which keeps no idle connections, by one that does.

use std::sync::Arc;

use bench_util::{Arguments, Caller, Era, Target, drive};
use rmcp::model::{CallToolRequestParams, ClientConfig, ProtocolVersion};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};

#[derive(Clone)]
struct Rmcp(Arc<RunningService<RoleClient, ClientConfig>>);

impl Rmcp {
    async fn call(&self, tool: &'static str, arguments: Value) -> Result<String, String> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let parameters = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.0.call_tool(parameters).await.map_err(|error| error.to_string())?;
        let content = result.content.first().and_then(|content| content.as_text());
        content.map(|content| content.text.clone()).ok_or_else(|| "no text".to_owned())
    }
}

impl Caller for Rmcp {
    async fn echo(&self, text: String) -> Result<String, String> {
        self.call("echo", json!({ "text": text })).await
    }

    async fn slow(&self) {
        let _ = self.call("slow", json!({})).await;
    }

    async fn stats(&self) -> Result<String, String> {
        self.call("stats", json!({})).await
    }

    async fn list(&self) -> Result<usize, String> {
        let page = self.0.list_tools(None).await.map_err(|error| error.to_string())?;
        Ok(page.tools.len())
    }
}

async fn connect(arguments: &Arguments) -> Result<Rmcp, Box<dyn std::error::Error>> {
    let mut config = ClientConfig::default();
    let lifecycle = match arguments.era {
        Era::Legacy => {
            config.protocol_version = ProtocolVersion::V_2025_11_25;
            ClientLifecycleMode::Initialize
        }
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let service = match &arguments.target {
        Target::Http(url) => {
            let mut options = StreamableHttpClientTransportConfig::with_uri(url.clone());
            if let Ok(posts) = std::env::var("BENCH_MAX_POSTS") {
                options = options.max_concurrent_requests(posts.parse()?);
            }
            let transport = if std::env::var_os("BENCH_POOL").is_some() {
                StreamableHttpClientTransport::with_client(reqwest::Client::new(), options)
            } else {
                StreamableHttpClientTransport::from_config(options)
            };
            config.serve_with_lifecycle(transport, lifecycle).await?
        }
        Target::Stdio(command) => {
            let mut child = tokio::process::Command::new(&command[0]);
            child.args(&command[1..]);
            config.serve_with_lifecycle(TokioChildProcess::new(child)?, lifecycle).await?
        }
    };
    Ok(Rmcp(Arc::new(service)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::from_env();
    let client = connect(&arguments).await?;
    drive(&arguments, client).await
}
