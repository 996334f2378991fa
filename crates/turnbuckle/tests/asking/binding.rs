//! What a client keeps for a server is worth something for its own request only, for a while.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle::{
    Ctx, Server, ToolError,
    elicit::{Asking, MemoryStates, elicit, roots},
    server::KeyRing,
    tool,
};

use crate::{
    peer::{Peer, able, accept, asked, code, message, text},
    tools::{Age, server},
};

const FOREIGN: &str = "`params.requestState` is not what this server gave out for this request";

fn ada() -> Value {
    json!({"name": accept(json!({"name": "Ada"}))})
}

async fn refused(peer: &mut Peer, params: Value, sentence: &str) {
    let refused = peer.call("tools/call", params.clone()).await;
    assert_eq!((code(&refused), message(&refused)), (-32602, sentence), "{params}");
}

#[tokio::test]
async fn state_that_is_not_this_server_s_own_is_refused() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("greet", json!({})).await;
    let state = first["result"]["requestState"].as_str().unwrap();
    let mut swapped = state.to_owned();
    let last = swapped.pop().unwrap();
    swapped.push(if last == 'A' { 'B' } else { 'A' });
    let other = Peer::modern(&server(), able()).tool("greet", json!({})).await;
    let other = other["result"]["requestState"].as_str().unwrap();
    for forged in ["", "x", &format!("{state}-TAMPERED"), &swapped, &state[1..], other] {
        let params = json!({"name": "greet", "arguments": {}, "inputResponses": ada(),
            "requestState": forged});
        refused(&mut peer, params, FOREIGN).await;
    }
    for odd in [json!(5), json!({}), json!(true)] {
        let params = json!({"name": "greet", "inputResponses": ada(), "requestState": odd});
        refused(&mut peer, params, "`params.requestState` must be a string").await;
    }
    assert_eq!(text(&peer.retry("greet", &first, ada()).await), "Hello, Ada!");
}

#[tokio::test]
async fn state_opens_for_the_request_it_was_made_for() {
    let mut peer = Peer::modern(&server(), able());
    let params = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let first = peer.call("tools/call", params("greet", json!({"a": 1, "b": 2}))).await;
    let with = |mut params: Value| {
        params["inputResponses"] = ada();
        params["requestState"] = first["result"]["requestState"].clone();
        params
    };
    for other in [
        params("greet", json!({"a": 1, "b": 3})),
        params("greet", json!({"a": 1})),
        params("greet", json!({})),
        params("greet_politely", json!({"a": 1, "b": 2})),
    ] {
        refused(&mut peer, with(other), FOREIGN).await;
    }
    let mut prompt = with(params("review", json!({})));
    prompt.as_object_mut().unwrap().remove("arguments");
    let refused = peer.call("prompts/get", prompt).await;
    assert_eq!(message(&refused), FOREIGN);
    // The same request, written otherwise.
    let again = with(params("greet", json!({"b": 2, "a": 1.0})));
    assert_eq!(text(&peer.call("tools/call", again).await), "Hello, Ada!");
}

#[tokio::test]
async fn state_expires() {
    let asking = Asking::default().expires(Duration::ZERO);
    let mut peer = Peer::modern(&server().asking(asking), able());
    let first = peer.tool("greet", json!({})).await;
    let params = json!({"name": "greet", "arguments": {}, "inputResponses": ada(),
        "requestState": first["result"]["requestState"]});
    let sentence = "`params.requestState` has expired; send the request again without it";
    refused(&mut peer, params, sentence).await;
}

#[tokio::test]
async fn replicas_that_share_keys_go_on_for_each_other_and_keys_can_change() {
    let with = |keys| server().keys(keys);
    let old = with(KeyRing::new([1; 32]));
    let first = Peer::modern(&old, able()).tool("greet", json!({})).await;
    let new = with(KeyRing::new([2; 32]).and_accept([1; 32]));
    let done = Peer::modern(&new, able()).retry("greet", &first, ada()).await;
    assert_eq!(text(&done), "Hello, Ada!");
    let gone = with(KeyRing::new([2; 32]));
    let refused = Peer::modern(&gone, able()).retry("greet", &first, ada()).await;
    assert_eq!(message(&refused), FOREIGN);
}

// req: typescript:mrtr:rounds-cap
#[tokio::test]
async fn a_request_asks_only_so_often() {
    let mut peer = Peer::modern(&server().asking(Asking::default().rounds(3)), able());
    let mut answer = peer.tool("endless", json!({})).await;
    for step in 0..3 {
        let key = format!("step{step}");
        assert_eq!(asked(&answer), [key.as_str()]);
        let answers = json!({key: accept(json!({"name": "on"}))});
        answer = peer.retry("endless", &answer, answers).await;
    }
    let sentence = "the request has asked for input too often";
    assert_eq!((code(&answer), message(&answer)), (-32602, sentence));
    // What a server that allows more gave out is not taken by one that allows less.
    let keys = || KeyRing::new([1; 32]);
    let many = server().keys(keys());
    let few = server().keys(keys()).asking(Asking::default().rounds(0));
    let first = Peer::modern(&many, able()).tool("greet", json!({})).await;
    let refused = Peer::modern(&few, able()).retry("greet", &first, ada()).await;
    assert_eq!(message(&refused), sentence);
}

#[tokio::test]
async fn state_can_be_made_to_be_used_once() {
    let once = server().asking(Asking::default().single_use(MemoryStates::new(2)));
    let mut peer = Peer::modern(&once, able());
    let first = peer.tool("greet", json!({})).await;
    assert_eq!(text(&peer.retry("greet", &first, ada()).await), "Hello, Ada!");
    let params = json!({"name": "greet", "arguments": {}, "inputResponses": ada(),
        "requestState": first["result"]["requestState"]});
    let sentence = "`params.requestState` was used before; send the request again without it";
    refused(&mut peer, params.clone(), sentence).await;
    // Another connection of the same server knows too; without the store nobody does.
    refused(&mut Peer::modern(&once, able()), params, sentence).await;
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("greet", json!({})).await;
    for _ in 0..2 {
        assert_eq!(text(&peer.retry("greet", &first, ada()).await), "Hello, Ada!");
    }
}

#[tokio::test]
async fn where_an_answer_counts_once_it_needs_a_state() {
    let once = server().asking(Asking::default().single_use(MemoryStates::new(2)));
    let mut peer = Peer::modern(&once, able());
    let first = peer.retry("greet", &json!({"result": {}}), ada()).await;
    assert_eq!(asked(&first), ["name"]);
    assert_eq!(text(&peer.retry("greet", &first, ada()).await), "Hello, Ada!");
}

#[tokio::test]
async fn an_answer_that_was_kept_for_another_question_is_asked_for_anew() {
    async fn steps(ctx: Ctx) -> Result<String, ToolError> {
        let age: Age = ctx.ask("name", elicit("How old are you?")).await?;
        Ok(age.age.to_string())
    }
    let keys = || KeyRing::new([1; 32]);
    let mut before = Peer::modern(&server().keys(keys()), able());
    let first = before.tool("steps", json!({})).await;
    let second = before.retry("steps", &first, ada()).await;
    assert_eq!(asked(&second), ["age"]);

    let now = Server::new("asking", "1.1").keys(keys()).tool(tool("steps", steps));
    let mut peer = Peer::modern(&now, able());
    let anew = peer.retry("steps", &second, json!({})).await;
    assert_eq!(asked(&anew), ["name"]);
    let age = json!({"name": accept(json!({"age": 36}))});
    assert_eq!(text(&peer.retry("steps", &anew, age.clone()).await), "36");
    // What is given now goes before what does not fit.
    assert_eq!(text(&peer.retry("steps", &second, age).await), "36");
}

#[tokio::test]
async fn what_is_too_long_to_be_kept_is_an_error() {
    async fn hoards(ctx: Ctx) -> Result<String, ToolError> {
        let much = ctx.once("much", async { Ok::<_, ToolError>("x".repeat(100_000)) }).await?;
        ctx.ask("roots", roots()).await?;
        Ok(much)
    }
    let server = Server::new("hoards", "1.0").tool(tool("hoards", hoards));
    let refused = Peer::modern(&server, able()).tool("hoards", json!({})).await;
    assert_eq!(code(&refused), -32603);
    assert!(message(&refused).contains("too long"), "{refused}");
}

#[tokio::test]
async fn a_full_store_refuses_without_saying_why() {
    let full = server().asking(Asking::default().single_use(MemoryStates::new(0)));
    let mut peer = Peer::modern(&full, able());
    let first = peer.tool("greet", json!({})).await;
    let refused = peer.retry("greet", &first, ada()).await;
    assert_eq!((code(&refused), message(&refused)), (-32603, "internal error"));
}
