//! The client that the suite watches: it does what each scenario expects of a host.
//!
//! Owns: what is done in each scenario. Does not own: which scenario it is, nor where the server is.

use std::{env, error::Error};

use serde::Deserialize;
use serde_json::json;
use turnbuckle::{
    Client, ClientBuilder,
    types::{Elicit, ElicitAction, ElicitResult, Raw},
};

/// The host: its user takes every form as it stands, and visits no pages.
pub fn host() -> ClientBuilder {
    Client::builder().on_elicitation(async |question| {
        Ok(ElicitResult::new(match question {
            Elicit::Form(_) => ElicitAction::Accept,
            _ => ElicitAction::Decline,
        }))
    })
}

/// Does what this scenario expects. Dropping the future leaves it undone.
pub async fn act(client: &Client, scenario: &str) -> Result<(), Box<dyn Error>> {
    let tools = client.tools().all().await?;
    match scenario {
        // To connect and to look is all there is to do.
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => {}
        "tools_call" => {
            client.call_tool("add_numbers", json!({"a": 5, "b": 3})).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            client.call_tool("test_client_elicitation_defaults", ()).await?;
        }
        "sse-retry" => {
            client.call_tool("test_reconnection", ()).await?;
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
