//! The client that the conformance suite watches: it does what each scenario expects of a host.
//!
//! Its last argument is the server's URL; the environment names the scenario.

use std::{env, error::Error};

use serde::Deserialize;
use serde_json::json;
use turnbuckle::{Client, types::Raw};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().next_back().ok_or("usage: everything-client URL")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    let client = Client::connect(url.as_str()).await?;
    let tools = client.tools().all().await?;
    match scenario.as_str() {
        // To connect and to look is all there is to do.
        "request-metadata" | "json-schema-ref-no-deref" => {}
        "tools_call" => {
            client.call_tool("add_numbers", json!({"a": 5, "b": 3})).await?;
        }
        "http-standard-headers" | "http-invalid-tool-headers" => {
            for tool in tools {
                client.call_tool(&tool.name, json!({"region": "north"})).await?;
            }
        }
        "http-custom-headers" => {
            for call in context()?.tool_calls {
                client.call_tool(&call.name, call.arguments).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = &tool.ok_or("the tool is not listed")?.input_schema;
            client.call_tool("json_schema_echo", json!({"schema": schema})).await?;
        }
        other => return Err(format!("nothing is written for the scenario `{other}`").into()),
    }
    client.close().await;
    Ok(())
}

/// What the suite tells some scenarios.
#[derive(Deserialize)]
struct Context {
    #[serde(rename = "toolCalls")]
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    /// Kept as text, so that it is sent as it came.
    arguments: Raw,
}

fn context() -> Result<Context, Box<dyn Error>> {
    Ok(serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?)
}
