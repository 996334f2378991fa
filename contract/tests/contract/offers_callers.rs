//! What handlers take besides their arguments, and where sync functions run.

use serde_json::json;
use turnbuckle::{
    Client, Principal, Server, State, prompt, resource,
    server::Typed,
    template, tool,
    types::{Era, PromptArgument},
};

use crate::{
    offered::Offered,
    offers_tools::problem,
    rig::{Wire, contract, eventually, pinned, within},
};

contract! { everywhere unconnected on [memory stdio unix direct http sse] in [legacy modern]:
    a_connections_own_value_reaches_every_kind_of_handler,
    who_asks_is_local_where_the_wire_is_ones_own,
    // req: typescript:hosting:entry:ctx-http-req-headers
    headers_are_there_where_there_is_http,
    an_extractor_of_ones_own_sees_the_call_and_may_refuse,
    a_sync_function_holds_up_nobody,
}

/// Wires that carry one client, and whose server was told whose they are.
fn has_tenant(wire: Wire) -> bool {
    matches!(wire, Wire::Memory | Wire::Unix | Wire::Stdio)
}

fn is_http(wire: Wire) -> bool {
    matches!(wire, Wire::Http | Wire::Sse)
}

/// What the tool, the prompt and the resource of one name say.
async fn three_ways(offered: &Offered, name: &str) -> [String; 3] {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    [
        offered.text(name, json!({})).await,
        text(&offered.prompt(name, json!({})).await["messages"][0]["content"]["text"]),
        text(&offered.read(&format!("offer://{name}")).await[0]["text"]),
    ]
}

async fn a_connections_own_value_reaches_every_kind_of_handler(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let expected = if has_tenant(wire) { "connection" } else { "nobody" };
    assert_eq!(three_ways(&offered, "tenant").await, [expected; 3]);
    if has_tenant(wire) {
        assert_eq!(offered.text("tenant_required", json!({})).await, "connection");
    } else {
        let error = offered.refused("tools/call", json!({"name": "tenant_required"})).await;
        assert_eq!((error.code, &*error.message), (-32603, "internal error"));
    }
}

async fn who_asks_is_local_where_the_wire_is_ones_own(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    assert_eq!(offered.text("claims", json!({})).await, "false", "nobody knows more of them");
    if is_http(wire) {
        let error = offered.refused("tools/call", json!({"name": "who"})).await;
        assert_eq!((error.code, &*error.message), (-32603, "internal error"));
    } else {
        assert_eq!(offered.text("who", json!({})).await, Principal::local().name());
    }
}

async fn headers_are_there_where_there_is_http(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    assert_eq!(offered.text("any_region", json!({})).await, "anywhere");
    let error = offered.refused("tools/call", json!({"name": "region"})).await;
    assert_eq!(error.code, -32602);
    assert!(error.message.contains("`x-region` is missing"), "{error:?}");
    if !is_http(wire) {
        return;
    }
    let from = |region| Client::builder().header("x-region", region);
    let offered = Offered::with(wire, era, from("south")).await;
    assert_eq!(offered.text("region", json!({})).await, "south");
    assert_eq!(offered.text("any_region", json!({})).await, "south");
    let offered = Offered::with(wire, era, from("west")).await;
    for tool in ["region", "any_region"] {
        let error = offered.refused("tools/call", json!({"name": tool})).await;
        assert_eq!(error.code, -32602, "{tool}");
        assert!(error.message.contains("neither north nor south"), "{error:?}");
    }
}

async fn an_extractor_of_ones_own_sees_the_call_and_may_refuse(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let seen = ["json", "text", "text"].map(|kind| format!("{kind} in {}", pinned(era)));
    assert_eq!(three_ways(&offered, "seen").await, seen);
    let meta = json!({"example.com/refuse": true});
    for (method, mut params) in [
        ("tools/call", json!({"name": "seen"})),
        ("prompts/get", json!({"name": "seen"})),
        ("resources/read", json!({"uri": "offer://seen"})),
    ] {
        params["_meta"] = meta.clone();
        let error = offered.refused(method, params).await;
        assert_eq!((error.code, &*error.message), (-32099, "refused by an extractor"), "{method}");
    }
}

/// Client and server share one thread in these tests, or the server has one of its own: a handler
/// that held it up would hold up everything.
async fn a_sync_function_holds_up_nobody(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let requests = [
        ("tools/call", json!({"name": "block", "arguments": {"key": "tool"}}), "tool"),
        ("prompts/get", json!({"name": "block", "arguments": {"key": "prompt"}}), "prompt"),
        ("resources/read", json!({"uri": "offer://block"}), "resource"),
        ("resources/read", json!({"uri": "offer://block/template"}), "template"),
    ];
    let mut held = Vec::new();
    for (method, params, key) in requests {
        let call = offered.client.request(method, params).no_timeouts();
        held.push((key, tokio::spawn(call.into_future())));
        while offered.runs(key).await != "1" {
            tokio::task::yield_now().await;
        }
    }
    // All of them hold a thread, and others are answered.
    assert_eq!(offered.text("numbers", json!({})).await, "[1,2,3]");
    assert!(held.iter().all(|(_, call)| !call.is_finished()));
    for (key, call) in held {
        offered.tool("release", json!({"key": key})).await;
        eventually(|| call.is_finished()).await;
        let result = call.await.unwrap().unwrap();
        assert!(result.as_str().contains(&format!("\"{key}\"")), "{}", result.as_str());
    }
}

#[derive(Clone)]
struct Missing;

#[tokio::test]
async fn state_that_is_missing_is_told_before_anything_is_served() {
    let needs = || async |_: State<Missing>| "";
    let list = async |_: Typed, _: State<Missing>| vec![""];
    let server = || Server::new("s", "1");
    for (server, who) in [
        (server().tool(tool("t", needs())), "tool `t`"),
        (server().prompt(prompt("p", needs())), "prompt `p`"),
        (server().resource(resource("x://r", needs())), "resource `x://r`"),
        (server().template(template("x://{id}", needs())), "template `x://{id}`"),
        (
            server().prompt(
                prompt("q", async || "").argument(PromptArgument::new("a")).complete("a", list),
            ),
            "prompt `q`",
        ),
        (
            server().template(template("y://{id}", async || "").complete("id", list)),
            "template `y://{id}`",
        ),
    ] {
        let told = problem(&server);
        assert!(told.contains(who) && told.contains("Missing"), "{told}");
        let told = within(Client::in_process(&server)).await.unwrap_err().to_string();
        assert!(told.contains(who), "{told}");
        server.state(Missing).check().unwrap();
    }
}
