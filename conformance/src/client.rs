//! The client that the suite watches: it does what each scenario expects of a host.
//!
//! Owns: what is done in each scenario. Does not own: which scenario it is, nor where the server is.

use std::{env, error::Error, future::IntoFuture as _};

use serde::Deserialize;
use serde_json::json;
use turnbuckle::{
    Client, ClientBuilder,
    types::{
        CreateMessageResult, Elicit, ElicitAction, ElicitResult, Raw, Role, Root, TextContent, Tool,
    },
};

/// The host: its user agrees to whatever a form asks and takes the rest as it stands, visits no
/// pages, and has a model that says little.
pub fn host() -> ClientBuilder {
    Client::builder()
        // Some servers of the suite don't declare what they are to be asked for.
        .ignore_capabilities()
        .on_elicitation(async |question| {
            let Elicit::Form(form) = question else {
                return Ok(ElicitResult::new(ElicitAction::Decline));
            };
            let mut answer = ElicitResult::new(ElicitAction::Accept);
            if form.requested_schema.properties.value("confirmed").is_some() {
                answer.content = Some(json!({"confirmed": true}).into());
            }
            Ok(answer)
        })
        .on_sampling(async |_| {
            let said = TextContent::new("Indeed.");
            Ok(CreateMessageResult::new(Role::Assistant, said, "a-model"))
        })
        .roots([Root::new("file:///workspace")])
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
        "http-standard-headers" => {
            call_each(client, &tools).await?;
            for resource in client.resources().all().await? {
                client.read_resource(resource.uri).await?;
            }
            for prompt in client.prompts().all().await? {
                client.get_prompt(&prompt.name, json!({})).await?;
            }
        }
        // Whatever the scenario is about, the SDK sees to it on the way there.
        scenario if scenario.starts_with("auth/") => {
            client.call_tool("test-tool", json!({})).await?;
        }
        "http-invalid-tool-headers" => call_each(client, &tools).await?,
        "sep-2322-client-request-state" => {
            let call = |name| client.call_tool(name, json!({})).into_future();
            // What has nothing to do with the others runs between their rounds.
            let (echo, unrelated) =
                tokio::join!(call("test_mrtr_echo_state"), call("test_mrtr_unrelated"));
            echo?;
            unrelated?;
            call("test_mrtr_no_state").await?;
            call("test_mrtr_no_result_type").await?;
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

async fn call_each(client: &Client, tools: &[Tool]) -> turnbuckle::Result<()> {
    for tool in tools {
        client.call_tool(&tool.name, json!({"region": "north"})).await?;
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
