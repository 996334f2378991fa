//! What a client asks about resources, prompts and completions, and how it turns pages. Its server
//! is a script.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle::{
    Client, ErrorKind,
    client::Retry,
    types::{Era, PromptReference, ResourceTemplateReference},
};

use crate::{
    raw::{Peer, client, in_both_eras},
    reconnects::connected,
    web::launch,
};

in_both_eras! {
    // req: pagination:client:cursor-handling
    every_list_is_read_page_by_page,
    a_list_that_does_not_end_is_left_by_name,
    what_is_said_of_a_list_counts_for_each_page,
    each_page_has_a_time_of_its_own,
    an_argument_is_completed,
    a_resource_is_read_and_a_prompt_rendered,
}

/// The names of all that the client lists of a kind.
async fn all(kind: &str, client: &Client) -> Vec<String> {
    match kind {
        "tools" => client.tools().all().await.unwrap().into_iter().map(|one| one.name).collect(),
        "resources" => {
            client.resources().all().await.unwrap().into_iter().map(|one| one.name).collect()
        }
        "resourceTemplates" => {
            let all = client.resource_templates().all().await.unwrap();
            all.into_iter().map(|one| one.name).collect()
        }
        _ => client.prompts().all().await.unwrap().into_iter().map(|one| one.name).collect(),
    }
}

/// One entry that is enough of every kind.
fn entry(name: &str) -> Value {
    json!({"name": name, "uri": "a://b", "uriTemplate": "a://{b}", "inputSchema": {"type": "object"}})
}

async fn page(peer: &mut Peer, method: &str, cursor: Value, result: Value) {
    let request = peer.read().await;
    assert_eq!((&request["method"], &request["params"]["cursor"]), (&json!(method), &cursor));
    peer.answer(&request, result).await;
}

async fn every_list_is_read_page_by_page(era: Era) {
    let (mut peer, client) = client(era).await;
    for (kind, method) in [
        ("tools", "tools/list"),
        ("resources", "resources/list"),
        ("resourceTemplates", "resources/templates/list"),
        ("prompts", "prompts/list"),
    ] {
        let ours = client.clone();
        let listing = tokio::spawn(async move { all(kind, &ours).await });
        let first = json!({kind: [entry("a"), entry("b")], "nextCursor": "2"});
        page(&mut peer, method, Value::Null, first).await;
        page(&mut peer, method, json!("2"), json!({kind: [], "nextCursor": ""})).await;
        page(&mut peer, method, json!(""), json!({kind: [entry("c")]})).await;
        assert_eq!(listing.await.unwrap(), ["a", "b", "c"], "{kind}");
    }
}

async fn a_list_that_does_not_end_is_left_by_name(era: Era) {
    let (mut peer, client) = client(era).await;
    let ours = client.clone();
    let listing = tokio::spawn(async move {
        let mut prompts = ours.prompts();
        let first = prompts.next().await.unwrap();
        let error = prompts.next().await.unwrap().unwrap_err();
        (first.unwrap().name, error, prompts.next().await.is_none())
    });
    for cursor in [Value::Null, json!("x")] {
        let result = json!({"prompts": [entry("a")], "nextCursor": "x"});
        page(&mut peer, "prompts/list", cursor, result).await;
    }
    let (first, error, is_over) = listing.await.unwrap();
    assert_eq!((&*first, is_over), ("a", true), "nothing comes after an error");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("prompts"), "{error}");
    let listing = tokio::spawn(async move { client.resources().max_pages(1).all().await });
    let result = json!({"resources": [], "nextCursor": "x"});
    page(&mut peer, "resources/list", Value::Null, result).await;
    let error = listing.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("resources"), "{error}");
}

async fn what_is_said_of_a_list_counts_for_each_page(era: Era) {
    let (mut desk, mut peer, client) = connected(era, Client::builder()).await;
    let listing = client.tools().meta("example.com/own", json!(7)).retry(Retry::Idempotent).pages();
    let listing = tokio::spawn(async move {
        let mut pages = listing;
        let mut names = Vec::new();
        while let Some(page) = pages.next().await {
            names.extend(page.unwrap().into_iter().map(|tool| tool.name));
        }
        names
    });
    let more = json!({"tools": [entry("a")], "nextCursor": "2"});
    page_with(&mut peer, Value::Null, Some(more)).await;
    page_with(&mut peer, json!("2"), None).await;
    // It may have been answered: it is asked for again only because that was allowed.
    drop(peer);
    let mut peer = desk.open(era).await;
    page_with(&mut peer, json!("2"), Some(json!({"tools": [entry("b")]}))).await;
    assert_eq!(listing.await.unwrap(), ["a", "b"]);
}

/// Reads a request for a page, which has to carry what was said of the list; answers it, or not.
async fn page_with(peer: &mut Peer, cursor: Value, result: Option<Value>) {
    let request = peer.read().await;
    assert_eq!(request["params"]["cursor"], cursor);
    assert_eq!(request["params"]["_meta"]["example.com/own"], 7, "{request}");
    if let Some(result) = result {
        peer.answer(&request, result).await;
    }
}

async fn each_page_has_a_time_of_its_own(era: Era) {
    const TIME: Duration = Duration::from_secs(10);
    let (mut peer, client) = client(era).await;
    let ours = client.clone();
    let listing = tokio::spawn(async move { ours.tools().timeout(TIME).all().await });
    for cursor in [Value::Null, json!("1")] {
        let request = peer.read().await;
        assert_eq!(request["params"]["cursor"], cursor);
        tokio::time::advance(TIME - Duration::from_secs(1)).await;
        let next = if cursor.is_null() { "1" } else { "2" };
        peer.answer(&request, json!({"tools": [entry("a")], "nextCursor": next})).await;
    }
    let (last, since) = (peer.read().await, Instant::now());
    let error = listing.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(since.elapsed().as_secs(), TIME.as_secs());
    let cancelled = peer.read().await;
    assert_eq!(cancelled["params"]["requestId"], last["id"], "{cancelled}");
    let wrong = client.tools().header("mcp-method", "x").all().await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Refused);
    assert!(client.tools().header("mcp-method", "x").next().await.unwrap().is_err());
}

async fn an_argument_is_completed(era: Era) {
    let (mut peer, client) = client(era).await;
    let prompt = client.complete(PromptReference::new("review"), "language", "ru");
    let resource = client.complete(ResourceTemplateReference::new("a://{b}"), "b", "");
    for (call, reference, argument) in [
        (prompt, json!({"type": "ref/prompt", "name": "review"}), json!(["language", "ru"])),
        (resource, json!({"type": "ref/resource", "uri": "a://{b}"}), json!(["b", ""])),
    ] {
        let call = launch(call);
        let request = peer.read().await;
        assert_eq!(request["method"], "completion/complete");
        assert_eq!(request["params"]["ref"], reference);
        let given = &request["params"]["argument"];
        assert_eq!(json!([given["name"], given["value"]]), argument);
        peer.answer(&request, json!({"completion": {"values": ["rust", "ruby"]}})).await;
        assert_eq!(call.await.unwrap().unwrap().completion.values, ["rust", "ruby"]);
    }
}

async fn a_resource_is_read_and_a_prompt_rendered(era: Era) {
    let (mut peer, client) = client(era).await;
    let read = launch(client.read_resource("a://b"));
    let request = peer.read().await;
    assert_eq!(
        (&request["method"], &request["params"]["uri"]),
        (&json!("resources/read"), &json!("a://b"))
    );
    peer.answer(&request, json!({"contents": [{"uri": "a://b", "text": "hello"}]})).await;
    assert_eq!(read.await.unwrap().unwrap().contents[0].uri(), "a://b");
    let rendered = launch(client.get_prompt("p", ()));
    let request = peer.read().await;
    assert_eq!(
        (&request["method"], &request["params"]["name"]),
        (&json!("prompts/get"), &json!("p"))
    );
    assert!(request["params"].get("arguments").is_none(), "{request}");
    peer.answer(&request, json!({"messages": []})).await;
    assert!(rendered.await.unwrap().unwrap().messages.is_empty());
}
