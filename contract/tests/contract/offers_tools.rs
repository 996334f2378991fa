//! What tools say of themselves, and what they return.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnbuckle::{
    Args, Client, ErrorKind, Server, tool,
    types::{ContentBlock, Era, ResourceContents},
};
use turnbuckle_contract::SECRET;

use crate::{
    offered::{Offered, capabilities, data},
    rig::{Wire, contract, pinned, within},
};

contract! { everywhere unconnected on [memory stdio unix direct http sse] in [legacy modern]:
    // req: tools:call:content:image, tools:call:content:audio
    // req: tools:call:content:embedded-resource, tools:call:content:resource-link
    content_of_every_kind_arrives,
    // req: flow:tool-result:resource-link-follow
    a_link_in_a_result_can_be_read,
    // req: tools:call:content:mixed
    blocks_keep_their_order,
    // req: tools:capability:declared
    // req: lifecycle:initialize:capabilities:from-handlers
    tools_are_declared,
    // req: tools:list:metadata
    all_that_a_tool_says_of_itself_is_listed,
    // req: tools:call:progress
    a_part_is_there_before_the_next_and_all_are_the_result,
    parts_that_are_not_text_keep_their_place,
    an_error_ends_the_parts,
    // req: mcpserver:tool:output-schema:model
    the_type_of_the_output_is_its_schema,
    // req: server:jsonschema:array-structured-content-textfallback
    a_list_is_also_text,
    // req: mcpserver:tool:extra
    a_handler_reads_what_came_with_its_request,
    // req: mcpserver:context:read-resource
    a_handler_reads_what_its_server_offers_as_its_caller_would,
    what_a_part_of_the_work_says_is_not_what_the_whole_says,
}

contract! { then unconnected on [memory stdio unix direct http sse] in [legacy]:
    // req: mcpserver:tool:url-elicitation-error
    what_has_to_be_visited_first_is_in_the_error,
}

/// `BYTES` in base64.
const ENCODED: &str = "AP8QgA==";

fn link() -> Value {
    json!({"type": "resource_link", "uri": "offer://text", "name": "text", "title": "A text",
        "mimeType": "text/markdown"})
}

fn embedded() -> Value {
    json!({"type": "resource",
        "resource": {"uri": "offer://text", "text": "# Text", "mimeType": "text/markdown"}})
}

async fn content_of_every_kind_arrives(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    for (tool, block) in [
        ("image", json!({"type": "image", "data": ENCODED, "mimeType": "image/png"})),
        ("picture", json!({"type": "image", "data": ENCODED, "mimeType": "image/x-own"})),
        ("audio", json!({"type": "audio", "data": ENCODED, "mimeType": "audio/wav"})),
        ("embedded", embedded()),
        ("link", link()),
    ] {
        let result = offered.tool(tool, json!({})).await;
        assert_eq!(result["content"], json!([block]), "{tool}");
        assert_ne!(result["isError"], true);
    }
}

async fn a_link_in_a_result_can_be_read(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let result = offered.client.call_tool("link", ()).await.unwrap();
    let [ContentBlock::ResourceLink(link)] = &result.content[..] else { panic!("{result:?}") };
    let read = offered.client.read_resource(&link.uri).await.unwrap();
    let [ResourceContents::Text(text)] = &read.contents[..] else { panic!("{read:?}") };
    assert_eq!((&text.uri, &*text.text, &text.mime_type), (&link.uri, "# Text", &link.mime_type));
}

async fn blocks_keep_their_order(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = json!([
        text("first"),
        {"type": "image", "data": ENCODED, "mimeType": "image/jpeg"},
        link(),
        text("second"),
        embedded(),
        {"type": "audio", "data": ENCODED, "mimeType": "audio/mpeg"},
        text("third"),
    ]);
    assert_eq!(offered.tool("mixed", json!({})).await["content"], expected);
}

async fn tools_are_declared(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    assert_eq!(offered.capabilities().await["tools"], json!({"listChanged": true}));
}

// req: lifecycle:initialize:capabilities:minimal
#[tokio::test]
async fn a_server_without_tools_declares_none_and_has_no_such_method() {
    for era in [Era::Legacy, Era::Modern] {
        let builder = Client::builder().revision(pinned(era));
        let client = builder.in_process(&Server::new("bare", "1.0")).await.unwrap();
        let declared = capabilities(&client, era).await;
        for kind in ["tools", "resources", "prompts", "completions"] {
            assert_eq!(declared.get(kind), None, "{declared}");
        }
        for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            let error = client.request(method, json!({})).await.unwrap_err();
            assert_eq!(error.as_rpc().unwrap().code, -32601, "{method}");
        }
    }
}

async fn all_that_a_tool_says_of_itself_is_listed(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let listed = offered.listed("tools/list", ("name", "described")).await;
    assert_eq!(listed["title"], "Described");
    assert_eq!(listed["description"], "Says all that a tool can say of itself.");
    let icon = json!({"src": "https://example.com/icon.png", "mimeType": "image/png"});
    assert_eq!(listed["icons"], json!([icon]));
    assert_eq!(listed["annotations"], json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(listed["_meta"], json!({"example.com/team": "scales"}));
    assert_eq!(listed["inputSchema"]["type"], "object");
    assert_eq!(listed["outputSchema"]["properties"]["grams"]["type"], "integer");
    let plain = offered.listed("tools/list", ("name", "image")).await;
    let mut members: Vec<&String> = plain.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["inputSchema", "name"], "what was not said is not listed");
    assert_eq!(plain["inputSchema"], json!({"type": "object", "properties": {}}));
}

async fn a_part_is_there_before_the_next_and_all_are_the_result(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let (sender, mut parts) = mpsc::channel(8);
    let call = offered.client.call_tool("drip", json!({"key": "k"})).no_timeouts();
    let call = call.on_progress(move |part| sender.try_send(part).unwrap());
    let call = tokio::spawn(call.into_future());
    let first = parts.recv().await.unwrap();
    assert_eq!((first.progress, first.message.as_deref()), (1.0, Some("one, ")));
    assert!(!call.is_finished(), "the second part is held back");
    offered.tool("release", json!({"key": "k"})).await;
    let result = call.await.unwrap().unwrap();
    assert_eq!((result.content.len(), &*result.to_text()), (1, "one, two"));
    let second = parts.recv().await.unwrap();
    assert_eq!((second.progress, second.message.as_deref()), (2.0, Some("two")));
    assert!(parts.recv().await.is_none(), "no part twice");
}

async fn parts_that_are_not_text_keep_their_place(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let (told, result) = spilled(&offered, "good").await;
    let words = ["a", "b", "", "end"].map(|word| (!word.is_empty()).then(|| word.to_owned()));
    assert_eq!(told, words);
    let image = json!({"type": "image", "data": ENCODED, "mimeType": "image/png"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let content = serde_json::to_value(result.unwrap().content).unwrap();
    assert_eq!(content, json!([text("ab"), image, text("end")]));
}

async fn an_error_ends_the_parts(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let (told, result) = spilled(&offered, "told").await;
    assert_eq!(told.len(), 3, "{told:?}");
    let result = result.unwrap();
    assert_eq!((result.is_error, &*result.to_text()), (Some(true), "it ran dry"));
    let (told, result) = spilled(&offered, "hidden").await;
    assert_eq!(told.len(), 3, "{told:?}");
    let error = result.unwrap_err();
    assert_eq!(error.as_rpc().unwrap().code, -32603);
    assert!(!error.to_string().contains(SECRET), "{error}");
}

/// The messages of the progress, and what came then.
async fn spilled(
    offered: &Offered,
    end: &str,
) -> (Vec<Option<String>>, turnbuckle::Result<turnbuckle::types::CallToolResult>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let call = offered.client.call_tool("spill", json!({"end": end}));
    let result = call.on_progress(move |part| heard.lock().unwrap().push(part.message)).await;
    let told = std::mem::take(&mut *told.lock().unwrap());
    (told, result)
}

async fn the_type_of_the_output_is_its_schema(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let listed = offered.listed("tools/list", ("name", "weigh")).await;
    let schema = &listed["outputSchema"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["grams"]["description"], "In grams.");
    let required = schema["required"].as_array().unwrap();
    assert!(required.contains(&json!("grams")), "{schema}");
    let result = offered.tool("weigh", json!({"name": "four"})).await;
    assert_eq!(result["structuredContent"], json!({"grams": 4, "of": "rust"}));
}

async fn a_list_is_also_text(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let result = offered.tool("numbers", json!({})).await;
    assert_eq!(result["content"], json!([{"type": "text", "text": "[1,2,3]"}]));
    let structured = match era {
        Era::Legacy => json!({"result": [1, 2, 3]}),
        _ => json!([1, 2, 3]),
    };
    assert_eq!(result["structuredContent"], structured);
}

async fn a_handler_reads_what_came_with_its_request(wire: Wire, era: Era) {
    let sampling = turnbuckle::types::SamplingCapability::new();
    let mut able = turnbuckle::types::ClientCapabilities::new();
    able.sampling = Some(sampling);
    let builder = Client::builder().info("caller", "2.0").capabilities(able);
    let offered = Offered::with(wire, era, builder).await;
    let call = offered.client.call_tool("extra", json!({})).request_id("my id");
    let call = call.meta("example.com/note", json!({"a": [1]})).on_progress(drop);
    let extra: Value = call.await.unwrap().structured_content.unwrap().decode().unwrap();
    assert_eq!(extra["id"], r#""my id""#);
    assert_eq!(extra["revision"], pinned(era).as_str());
    assert_eq!(extra["client"], "caller 2.0");
    assert_eq!(extra["samples"], true);
    assert_eq!(extra["token"], extra["id"], "this client's token is the request's id");
    assert_eq!(extra["note"], json!({"a": [1]}));
}

async fn what_has_to_be_visited_first_is_in_the_error(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let error = offered.refused("tools/call", json!({"name": "pay"})).await;
    assert_eq!((error.code, &*error.message), (-32042, "pay first"));
    let page = json!({"mode": "url", "message": "Please pay.", "url": "https://example.com/pay",
        "elicitationId": "e-1"});
    assert_eq!(data(&error), json!({"elicitations": [page]}));
}

async fn a_handler_reads_what_its_server_offers_as_its_caller_would(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let own = offered.tool("read", json!({"uri": "offer://text"})).await;
    assert_eq!(own["structuredContent"]["contents"][0]["text"], "# Text", "{own}");
    for uri in [
        "offer://text",
        "offer://bytes",
        "offer://several",
        "offer://shelves/rust/7",
        "offer://shelves/rust/0",
        "offer://shelves/rust/none",
        "offer://hidden",
        "offer://gone",
        "offer://told",
        "offer://broken",
        "offer://nowhere",
        "no uri",
    ] {
        let own = offered.client.call_tool("read", json!({"uri": uri})).await;
        match offered.client.request("resources/read", json!({"uri": uri})).await {
            Ok(theirs) => {
                let own: Value = own.unwrap().structured_content.unwrap().decode().unwrap();
                assert_eq!(own["contents"], theirs.decode::<Value>().unwrap()["contents"], "{uri}");
            }
            Err(theirs) => {
                assert_eq!(own.unwrap_err().as_rpc(), Some(theirs.as_rpc().unwrap()), "{uri}");
            }
        }
    }
}

async fn what_a_part_of_the_work_says_is_not_what_the_whole_says(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let result = offered.tool("read", json!({"uri": "offer://own"})).await;
    assert_eq!(result["_meta"]["example.com/of"], "the tool");
    assert_eq!(result["structuredContent"]["of"], r#""the resource""#);
}

/// Why a server can't be served.
pub(crate) fn problem(server: &Server) -> String {
    let error = server.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    error.to_string()
}

// req: mcpserver:tool:naming-validation
#[test]
fn a_name_that_hosts_do_not_take_is_told_before_anything_is_served() {
    for name in ["", "two words", "größe", "a:b", "x\n", &"x".repeat(129)] {
        let told = problem(&Server::new("s", "1").tool(tool(name, async || ())));
        assert!(told.contains(&format!("the tool name `{name}` must be 1 to 128")), "{told}");
    }
    for name in ["a", "A-1_b.c/d", &"x".repeat(128)] {
        Server::new("s", "1").tool(tool(name, async || ())).check().unwrap();
    }
}

// req: mcpserver:tool:naming-validation
#[tokio::test]
async fn a_server_with_a_problem_is_not_served() {
    within(async {
        let server = Server::new("s", "1").tool(tool("two words", async |_: Args<()>| ()));
        let told = Client::builder().in_process(&server).await.unwrap_err().to_string();
        assert!(told.contains("two words"), "{told}");
        let (_ours, theirs) = tokio::io::duplex(64);
        let told = server.serve(theirs).await.unwrap_err().to_string();
        assert!(told.contains("two words"), "{told}");
        let told = server.serve_http("127.0.0.1:0").bind().await.unwrap_err().to_string();
        assert!(told.contains("two words"), "{told}");
    })
    .await;
}
