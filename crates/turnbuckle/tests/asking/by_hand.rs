//! Handlers that ask by hand: one way to write them, both eras.

use serde_json::{Value, json};
use turnbuckle::{
    Ctx, RpcError, Server,
    elicit::{Asking, InputRequired, elicit},
    middleware::{
        Response,
        server::{InputNext, InputRequest},
    },
    prompt, resource, tool,
};

use crate::{
    peer::{Peer, able, accept, asked, code, message, text},
    tools::{Age, Name},
};

/// A value or a question, and a count of the runs in the state.
async fn guess(ctx: Ctx) -> Result<String, InputRequired> {
    let tries = ctx.state::<u32>().unwrap_or(0);
    match ctx.answer("age", elicit::<Age>("How old am I?")).await {
        Some(Ok(Age { age: 36 })) => Ok(format!("yes, after {tries}")),
        _ => Err(InputRequired::new().ask("age", elicit::<Age>("How old am I?")).state(tries + 1)),
    }
}

async fn two(ctx: Ctx) -> Result<String, InputRequired> {
    let name = ctx.answer("name", elicit::<Name>("Name?")).await;
    let age = ctx.answer("age", elicit::<Age>("Age?")).await;
    match (name, age) {
        (Some(Ok(name)), Some(Ok(age))) => Ok(format!("{} is {}", name.name, age.age)),
        _ => Err(InputRequired::new()
            .ask("name", elicit::<Name>("Name?"))
            .ask("age", elicit::<Age>("Age?"))),
    }
}

async fn never() -> InputRequired {
    InputRequired::new().ask("name", elicit::<Name>("Name?"))
}

async fn wait(ctx: Ctx) -> Result<&'static str, InputRequired> {
    match ctx.state() {
        Some(2) => Ok("it is time"),
        before => Err(InputRequired::new().state(before.unwrap_or(0) + 1)),
    }
}

async fn for_whom(ctx: Ctx) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    match ctx.answer("name", elicit::<Name>("Name?")).await.transpose()? {
        Some(Name { name }) => Ok(format!("for {name}")),
        None => Err(InputRequired::new().ask("name", elicit::<Name>("Name?")).into()),
    }
}

fn server() -> Server {
    Server::new("by hand", "1.0")
        .tool(tool("guess", guess))
        .tool(tool("two", two))
        .tool(tool("never", never))
        .tool(tool("wait", wait))
        .prompt(prompt("for_whom", for_whom))
        .resource(resource("demo://for_whom", for_whom).name("for_whom"))
}

fn age(age: u8) -> Value {
    json!({"age": accept(json!({"age": age}))})
}

#[tokio::test]
async fn a_handler_keeps_state_that_a_client_can_neither_read_nor_change() {
    let mut peer = Peer::modern(&server(), able());
    let mut answer = peer.tool("guess", json!({})).await;
    for wrong in [20, 30] {
        assert_eq!(asked(&answer), ["age"]);
        let before = answer.clone();
        answer = peer.retry("guess", &before, age(wrong)).await;
        assert_ne!(before["result"]["requestState"], answer["result"]["requestState"]);
    }
    // What does not fit is for the handler to see, which asks again.
    answer = peer.retry("guess", &answer, json!({"age": accept(json!({"age": 5}))})).await;
    let done = peer.retry("guess", &answer, age(36)).await;
    assert_eq!(text(&done), "yes, after 4");
}

#[tokio::test]
async fn a_question_may_be_left_out() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("wait", json!({})).await;
    assert_eq!(first["result"]["resultType"], "input_required");
    assert!(first["result"].get("inputRequests").is_none(), "{first}");
    let second = peer.retry("wait", &first, json!(null)).await;
    assert_eq!(text(&peer.retry("wait", &second, json!({})).await), "it is time");
}

#[tokio::test]
async fn what_a_client_lacks_is_not_asked_by_hand_either() {
    let mut peer = Peer::modern(&server(), json!({"sampling": {}}));
    let refused = peer.tool("never", json!({})).await;
    assert_eq!(code(&refused), -32021);
    let required = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
    assert_eq!(refused["error"]["data"], required);
    let mut peer = Peer::legacy(&server(), json!({"sampling": {}}), "2025-11-25").await;
    let refused = peer.legacy_call("tools/call", json!({"name": "never"})).await;
    assert_eq!(refused["result"]["isError"], true);
    assert!(text(&refused).contains("`elicitation.form`"), "{refused}");
}

#[tokio::test]
async fn prompts_and_resources_ask_by_hand_too() {
    let mut peer = Peer::modern(&server(), able());
    for (method, params) in [
        ("prompts/get", json!({"name": "for_whom"})),
        ("resources/read", json!({"uri": "demo://for_whom"})),
    ] {
        let first = peer.call(method, params.clone()).await;
        assert_eq!(asked(&first), ["name"]);
        let mut again = params;
        again["requestState"] = first["result"]["requestState"].clone();
        again["inputResponses"] = json!({"name": accept(json!({"name": "Ada"}))});
        assert!(peer.call(method, again.clone()).await.to_string().contains("for Ada"));
        again["inputResponses"] = json!({"name": 5});
        assert_eq!(code(&peer.call(method, again).await), -32602);
    }
}

// req: typescript:mrtr:legacy-shim:write-once-on-2025
#[tokio::test]
async fn a_legacy_client_is_asked_live_and_the_handler_runs_again() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    let id = peer.send("tools/call", json!({"name": "guess"})).await;
    for guess in [20, 36] {
        let question = peer.read().await;
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], "How old am I?");
        peer.answer(&question, accept(json!({"age": guess}))).await;
    }
    let done = peer.read().await;
    assert_eq!((&done["id"], text(&done)), (&json!(id), "yes, after 2"));

    // Both are asked at once, before either is answered.
    peer.send("tools/call", json!({"name": "two"})).await;
    let (name, age) = (peer.read().await, peer.read().await);
    assert_eq!(
        (&name["params"]["message"], &age["params"]["message"]),
        (&json!("Name?"), &json!("Age?"))
    );
    peer.answer(&age, accept(json!({"age": 36}))).await;
    peer.answer(&name, accept(json!({"name": "Ada"}))).await;
    assert_eq!(text(&peer.read().await), "Ada is 36");

    for (method, params) in [
        ("prompts/get", json!({"name": "for_whom"})),
        ("resources/read", json!({"uri": "demo://for_whom"})),
    ] {
        peer.send(method, params).await;
        let question = peer.read().await;
        peer.answer(&question, accept(json!({"name": "Ada"}))).await;
        assert!(peer.read().await.to_string().contains("for Ada"));
    }
    let waited = peer.legacy_call("tools/call", json!({"name": "wait"})).await;
    assert_eq!(text(&waited), "it is time");
}

#[tokio::test]
async fn nobody_is_asked_without_end() {
    let server = server().asking(Asking::default().rounds(2));
    let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
    peer.send("tools/call", json!({"name": "never"})).await;
    for _ in 0..2 {
        let question = peer.read().await;
        peer.answer(&question, accept(json!({"name": "Ada"}))).await;
    }
    let refused = peer.read().await;
    assert_eq!(message(&refused), "the request has asked for input too often");
}

#[tokio::test]
async fn a_legacy_client_that_fails_to_answer_is_an_error_for_the_handler_s_caller() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    peer.send("tools/call", json!({"name": "two"})).await;
    let (name, age) = (peer.read().await, peer.read().await);
    peer.refuse(&age, json!({"code": -1, "message": "not now"})).await;
    // The other question is taken back.
    let (one, other) = (peer.read().await, peer.read().await);
    let (taken_back, failed) = if one["method"].is_string() { (one, other) } else { (other, one) };
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], name["id"]);
    assert_eq!(failed["result"]["isError"], true);
    assert!(text(&failed).contains("not now"), "{failed}");
}

/// So that the type of an error that is no [`InputRequired`] stays what it was.
#[tokio::test]
async fn other_errors_are_what_they_are() {
    async fn fails() -> Result<InputRequired, RpcError> {
        Err(RpcError::new(7, "seven"))
    }
    let server = Server::new("fails", "1.0").tool(tool("fails", fails));
    let mut peer = Peer::modern(&server, able());
    assert_eq!(code(&peer.tool("fails", json!({})).await), 7);
}

#[tokio::test]
async fn what_is_asked_by_hand_passes_the_layers_too() {
    let refuse = tower_layer::layer_fn(|_: InputNext| {
        tower::service_fn(async |question: InputRequest| {
            Err::<Response, _>(RpcError::new(7, format!("no {}", question.method())))
        })
    });
    let server_that_refuses = server().input_request_layer(refuse);
    let refused = Peer::modern(&server_that_refuses, able()).tool("never", json!({})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(text(&refused).contains("was not asked"), "{refused}");

    // A layer that knows the answer spares the client the question.
    let know = tower_layer::layer_fn(|_: InputNext| {
        tower::service_fn(async |_: InputRequest| {
            Ok::<_, RpcError>(Response::new(accept(json!({"age": 36}))))
        })
    });
    let mut peer = Peer::modern(&server().input_request_layer(know), able());
    let first = peer.tool("guess", json!({})).await;
    assert_eq!(first["result"]["resultType"], "input_required");
    assert_eq!(first["result"]["inputRequests"], json!(null));
    assert_eq!(text(&peer.retry("guess", &first, json!({})).await), "yes, after 1");
}

/// Nor does an answer that nobody asked for yet get past them.
#[tokio::test]
async fn what_is_answered_unasked_passes_the_layers_too() {
    let refuse = tower_layer::layer_fn(|_: InputNext| {
        tower::service_fn(async |_: InputRequest| Err::<Response, _>(RpcError::new(7, "no")))
    });
    let ahead =
        json!({"name": "for_whom", "inputResponses": {"name": accept(json!({"name": "Eve"}))}});
    let mut peer = Peer::modern(&server(), able());
    let served = peer.call("prompts/get", ahead.clone()).await;
    assert_eq!(served["result"]["messages"][0]["content"]["text"], "for Eve", "{served}");
    let mut peer = Peer::modern(&server().input_request_layer(refuse), able());
    let refused = peer.call("prompts/get", ahead).await;
    assert_eq!(code(&refused), -32603, "{refused}");
}
