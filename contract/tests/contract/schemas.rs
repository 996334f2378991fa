//! Schemas that a person wrote: they travel as they are, and the server keeps its word about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle::{
    Client, Json, Server, ToolError,
    server::RawArgs,
    tool,
    types::{CallToolResult, Era, ListToolsResult, Raw},
};

use crate::rig::{Wire, contract, pinned};

contract! { both unconnected on [direct memory] in [legacy modern]:
    // req: mcpserver:output-schema:server-validate
    output_that_breaks_its_schema_is_an_internal_error,
    // req: mcpserver:output-schema:server-validate
    output_that_breaks_what_its_type_promises_is_an_internal_error,
    // req: mcpserver:output-schema:missing-structured
    output_that_is_missing_is_an_internal_error,
    // req: mcpserver:output-schema:skip-on-error
    an_error_needs_no_output,
    output_that_keeps_its_schema_arrives,
    // req: tools:input-schema:json-schema-2020-12, tools:input-schema:preserve-additional-properties
    // req: tools:input-schema:preserve-defs, tools:input-schema:preserve-schema-dialect
    // req: tools:list:basic
    schemas_travel_byte_for_byte,
}

/// The order, the spaces and the words that nobody knows are a person's own.
const INPUT: &str = concat!(
    r#"{ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object","#,
    r#"  "required": [ ], "x-own": 1e2, "additionalProperties":false,"#,
    r##" "properties": {"z": {"$ref": "#/$defs/z"}, "a": {"$ref":"#a"}},"##,
    r#" "$defs": {"z": {"const": 1.0}, "a": {"$anchor": "a", "prefixItems": [{}]}} }"#,
);
const OUTPUT: &str = concat!(
    r#"{"properties": {"sum":  {"type": "integer"}}, "type": "object","#,
    r#" "$schema": "http://json-schema.org/draft-07/schema#"}"#,
);

/// It is taken as it comes, and given back as it promises.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
struct Share {
    #[schemars(range(max = 100))]
    percent: u8,
    #[schemars(length(min = 1))]
    of: Option<String>,
    #[schemars(inner(range(min = 1)))]
    parts: Vec<u32>,
}

async fn share(RawArgs(share): RawArgs) -> Result<Json<Share>, ToolError> {
    share.decode().map(Json).map_err(|error| ToolError::new(error.to_string()))
}

fn raw(text: &str) -> Raw {
    Raw::from_json(text).unwrap()
}

fn structured(content: Value) -> CallToolResult {
    let mut result = CallToolResult::new([]);
    result.structured_content = Some(content.into());
    result
}

async fn connect(wire: Wire, era: Era) -> Client {
    let server = Server::new("schemas", "1.0")
        .tool(tool("kept", async || structured(json!({"sum": 3}))).output_schema(raw(OUTPUT)))
        .tool(tool("broken", async || structured(json!({"sum": "3"}))).output_schema(raw(OUTPUT)))
        // A type's own schema gives way to the one that was written.
        .tool(tool("typed", async || Json(vec![1])).output_schema(raw(OUTPUT)))
        .tool(tool("share", share))
        .tool(tool("missing", async || "3").output_schema(raw(OUTPUT)))
        .tool(
            tool("failing", async || Err::<Json<u8>, _>(ToolError::new("no")))
                .output_schema(raw(OUTPUT)),
        )
        .tool(tool("untouched", async |_: RawArgs| ()).input_schema(raw(INPUT)));
    let builder = Client::builder().revision(pinned(era));
    if wire == Wire::Direct {
        return builder.in_process(&server).await.unwrap();
    }
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(server.serve(theirs).into_future());
    builder.over(ours).await.unwrap()
}

async fn told(client: &Client, tool: &str) -> (i64, String) {
    let error = client.call_tool(tool, ()).await.unwrap_err();
    let error = error.as_rpc().expect("an error of the wire");
    assert!(error.data.is_none(), "nothing is given away: {error:?}");
    (error.code, error.message.to_string())
}

async fn output_that_breaks_its_schema_is_an_internal_error(wire: Wire, era: Era) {
    let client = connect(wire, era).await;
    for tool in ["broken", "typed"] {
        assert_eq!(told(&client, tool).await, (-32603, "internal error".to_owned()), "{tool}");
    }
}

async fn output_that_breaks_what_its_type_promises_is_an_internal_error(wire: Wire, era: Era) {
    let client = connect(wire, era).await;
    for share in [json!({"percent": 101}), json!({"percent": 1, "of": ""}), json!({"parts": [0]})] {
        let error = client.call_tool("share", share.clone()).await.unwrap_err();
        let error = error.as_rpc().expect("an error of the wire");
        assert_eq!((error.code, &*error.message), (-32603, "internal error"), "{share}");
        assert!(error.data.is_none(), "nothing is given away: {error:?}");
    }
    let kept = client.call_tool("share", json!({"percent": 100, "of": "it"})).await.unwrap();
    let expected = json!({"percent": 100, "of": "it", "parts": []});
    assert_eq!(kept.structured_content.unwrap().decode::<Value>().unwrap(), expected);
}

async fn output_that_is_missing_is_an_internal_error(wire: Wire, era: Era) {
    let client = connect(wire, era).await;
    assert_eq!(told(&client, "missing").await, (-32603, "internal error".to_owned()));
}

async fn an_error_needs_no_output(wire: Wire, era: Era) {
    let client = connect(wire, era).await;
    let result = client.call_tool("failing", ()).await.unwrap();
    assert_eq!((result.is_error, &*result.to_text()), (Some(true), "no"));
}

async fn output_that_keeps_its_schema_arrives(wire: Wire, era: Era) {
    let client = connect(wire, era).await;
    let result = client.call_tool("kept", ()).await.unwrap();
    assert_eq!(result.structured_content.unwrap().as_str(), r#"{"sum":3}"#);
}

async fn schemas_travel_byte_for_byte(wire: Wire, era: Era) {
    let client = connect(wire, era).await;
    let listed: ListToolsResult =
        client.request("tools/list", json!({})).await.unwrap().decode().unwrap();
    let named = |name: &str| listed.tools.iter().find(|tool| tool.name == name).unwrap();
    assert_eq!(named("untouched").input_schema.as_str(), INPUT);
    assert_eq!(named("kept").output_schema.as_ref().unwrap().as_str(), OUTPUT);
}
