//! What a server asks, in every pair of wires and eras.

use std::{
    future::IntoFuture as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle::{
    Client, ClientBuilder,
    types::{
        CreateMessageResult, Elicit, ElicitAction, ElicitResult, Raw, Role, Root, TextContent,
    },
};

use crate::support::{Fixture, LEGACY, MODERN, Wire, connect, gateway, through, ways};

fn answering(asked: &Arc<Mutex<Vec<String>>>) -> ClientBuilder {
    let asked = asked.clone();
    Client::builder()
        .on_elicitation(move |question| {
            let Elicit::Form(form) = question else { panic!("a form was asked for") };
            asked.lock().unwrap().push(form.message.clone());
            let name = if form.message == "Who are you?" { "Ada" } else { "Grace" };
            let mut answer = ElicitResult::new(ElicitAction::Accept);
            answer.content = Some(Raw::from(json!({"name": name})).decode().unwrap());
            std::future::ready(Ok(answer))
        })
        .on_sampling(async |_| {
            Ok(CreateMessageResult::new(Role::Assistant, TextContent::new("Hm."), "parrot-1"))
        })
        .roots([Root::new("file:///here"), Root::new("file:///there")])
}

#[tokio::test]
async fn forms_are_answered_one_after_the_other() {
    for way in ways() {
        let asked = Arc::default();
        let client = through(way, &Fixture::default(), answering(&asked)).await;
        let result = client.call_tool("greet", ()).await;
        let result = result.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!(result.to_text(), "Hello, Ada and Grace!", "{way:?}");
        assert_eq!(*asked.lock().unwrap(), ["Who are you?", "And who is that?"], "{way:?}");
    }
}

#[tokio::test]
async fn models_and_roots_are_lent() {
    for way in ways() {
        let client = through(way, &Fixture::default(), answering(&Arc::default())).await;
        let thought = client.call_tool("think", ()).await;
        let thought = thought.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!(thought.to_text(), "parrot-1 thinks", "{way:?}");
        let roots = client.call_tool("where", ()).await.unwrap();
        assert_eq!(roots.to_text(), "file:///here file:///there", "{way:?}");
    }
}

#[tokio::test]
async fn a_client_that_can_not_be_asked_is_not_asked() {
    for way in ways() {
        let client = through(way, &Fixture::default(), Client::builder()).await;
        let called = client.call_tool("greet", ()).await;
        let lacks = "did not declare the capability `elicitation.form`";
        if way.upstream.1 == MODERN {
            // The server refuses the call for what the client lacks, with the code of the client's era.
            let error = called.unwrap_err();
            let rpc = error.as_rpc().unwrap_or_else(|| panic!("{way:?}: {error}"));
            let expected = if way.downstream.1 == MODERN { -32021 } else { -32600 };
            assert_eq!(rpc.code, expected, "{way:?}: {rpc}");
            assert!(rpc.message.contains(lacks), "{way:?}: {rpc}");
            let data: Value = rpc.data.as_ref().unwrap().decode().unwrap();
            let required = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
            assert_eq!(data, required, "{way:?}");
        } else {
            // Its handler is told, by the server itself or, where that can't know, by the gateway.
            let failed = called.unwrap();
            assert_eq!(failed.is_error, Some(true), "{way:?}");
            let by_the_gateway = "was not asked: the client did not declare that it can answer it";
            let word = if way.downstream.1 == MODERN { by_the_gateway } else { lacks };
            assert!(failed.to_text().contains(word), "{way:?}: {}", failed.to_text());
        }
        assert_eq!(client.call_tool("echo", ()).await.unwrap().to_text(), "{}", "{way:?}");
    }
}

/// Someone who is asked, and never answers.
fn silent(fixture: &Fixture) -> ClientBuilder {
    let fixture = fixture.clone();
    Client::builder().on_elicitation(move |_| {
        struct Gone(Fixture);
        impl Drop for Gone {
            fn drop(&mut self) {
                self.0.happened("taken back");
            }
        }
        let gone = Gone(fixture.clone());
        fixture.happened("asked");
        async move {
            let _gone = gone;
            std::future::pending().await
        }
    })
}

#[tokio::test]
async fn dropping_a_call_that_waits_for_an_answer_takes_the_question_back() {
    for way in ways() {
        let fixture = Fixture::default();
        let client = through(way, &fixture, silent(&fixture)).await;
        let call = tokio::spawn(client.call_tool("greet", ()).into_future());
        fixture.wait("asked").await;
        call.abort();
        fixture.wait("taken back").await;
        assert_eq!(client.call_tool("echo", ()).await.unwrap().to_text(), "{}", "{way:?}");
    }
}

#[tokio::test]
async fn a_question_that_the_server_gives_up_is_taken_back_from_the_client() {
    // Only a legacy server asks while it runs, and only a legacy client is asked meanwhile.
    for way in
        ways().into_iter().filter(|way| way.downstream.1 == LEGACY && way.upstream.1 == LEGACY)
    {
        let fixture = Fixture::default();
        let client = through(way, &fixture, silent(&fixture)).await;
        let call = tokio::spawn(client.call_tool("wonder", ()).into_future());
        fixture.wait("asked").await;
        fixture.happened("give up");
        fixture.wait("taken back").await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "gave up", "{way:?}");
    }
}

#[tokio::test]
async fn a_call_that_nobody_comes_back_for_is_cancelled_in_time() {
    for wire in [Wire::Stream, Wire::Http] {
        let fixture = Fixture::default();
        let server = fixture.server().tool(turnbuckle::tool("patient", patient));
        let gateway = gateway(&server, (wire, LEGACY)).await;
        let gateway = gateway.answer_within(Duration::from_secs(3600));
        let client = connect(declaring(), &gateway, (Wire::Stream, MODERN)).await;
        let asked = client.request("tools/call", json!({"name": "patient"})).await.unwrap();
        let asked: serde_json::Value = asked.decode().unwrap();
        assert_eq!(asked["resultType"], "input_required");
        assert_eq!(asked["inputRequests"]["1"]["method"], "elicitation/create");
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(3601)).await;
        fixture.wait("patient dropped").await;
        tokio::time::resume();
        let state = &asked["requestState"];
        let late = json!({"name": "patient", "requestState": state, "inputResponses": {}});
        let error = client.request("tools/call", late).await.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().code, -32_602, "{error}");
    }
}

/// A call that waits for its client does not keep the gateway, and with it the server, alive.
#[tokio::test]
async fn the_end_of_a_gateway_cancels_the_calls_that_wait() {
    for wire in [Wire::Stream, Wire::Http] {
        let fixture = Fixture::default();
        let server = fixture.server().tool(turnbuckle::tool("patient", patient));
        let gateway = gateway(&server, (Wire::Stream, LEGACY)).await;
        let (client, serving) = match wire {
            Wire::Stream => {
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                let serving = tokio::spawn(async move { drop(gateway.serve(theirs).await) });
                (declaring().revision(MODERN).over(ours).await.unwrap(), serving)
            }
            Wire::Http => {
                let bound = gateway.serve_http("127.0.0.1:0").await.unwrap().bind().await.unwrap();
                let builder = declaring().revision(MODERN).no_proxy();
                let url = bound.url();
                let serving = tokio::spawn(async move { drop(bound.into_future().await) });
                (builder.connect(url).await.unwrap(), serving)
            }
        };
        let asked = client.request("tools/call", json!({"name": "patient"})).await.unwrap();
        let asked: serde_json::Value = asked.decode().unwrap();
        assert_eq!(asked["resultType"], "input_required", "{wire:?}");
        serving.abort();
        let cancelled = fixture.wait("patient dropped");
        tokio::time::timeout(Duration::from_secs(20), cancelled).await.expect("it goes on");
    }
}

#[tokio::test]
async fn only_the_request_that_was_made_before_goes_on_with_a_parked_call() {
    let fixture = Fixture::default();
    let gateway = gateway(&fixture.server(), (Wire::Stream, LEGACY)).await;
    let client = connect(declaring(), &gateway, (Wire::Http, MODERN)).await;
    let asked = client.request("tools/call", json!({"name": "greet"})).await.unwrap();
    let asked: serde_json::Value = asked.decode().unwrap();
    let state = &asked["requestState"];
    let accept = json!({"1": {"action": "accept", "content": {"name": "Eve"}}});
    for other in [
        json!({"name": "think", "requestState": state, "inputResponses": accept}),
        json!({"name": "greet", "arguments": {"x": 1}, "requestState": state, "inputResponses": accept}),
        json!({"name": "greet", "requestState": "made up", "inputResponses": accept}),
    ] {
        let error = client.request("tools/call", other).await.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().code, -32_602, "{error}");
    }
    let ours = json!({"name": "greet", "requestState": state, "inputResponses": {}});
    let again = client.request("tools/call", ours).await.unwrap();
    let again: serde_json::Value = again.decode().unwrap();
    assert_eq!(again["inputRequests"]["1"]["method"], "elicitation/create", "asked once more");
    let ours =
        json!({"name": "greet", "requestState": again["requestState"], "inputResponses": accept});
    let next: serde_json::Value =
        client.request("tools/call", ours).await.unwrap().decode().unwrap();
    let accept = json!({"1": {"action": "accept", "content": {"name": "Bob"}}});
    let ours =
        json!({"name": "greet", "requestState": next["requestState"], "inputResponses": accept});
    let done: serde_json::Value =
        client.request("tools/call", ours).await.unwrap().decode().unwrap();
    assert_eq!(done["content"][0]["text"], "Hello, Eve and Bob!");
    assert_eq!(done["resultType"], "complete");
}

/// Over stdio nothing tells which call a question belongs to: nobody is asked for someone else.
#[tokio::test]
async fn nobody_is_asked_what_may_be_about_another_clients_call() {
    let fixture = Fixture::default();
    let gateway = gateway(&fixture.server(), (Wire::Stream, LEGACY)).await;
    let url = crate::support::serve_http(&gateway).await;
    let other = Client::builder().revision(MODERN).no_proxy().connect(&url).await.unwrap();
    let hanging = tokio::spawn(other.call_tool("hang", ()).into_future());
    fixture.wait("started").await;
    let asked = Arc::default();
    let client = answering(&asked).revision(MODERN).no_proxy().connect(&url).await.unwrap();
    let refused = client.call_tool("greet", ()).await.unwrap();
    assert_eq!(refused.is_error, Some(true), "{}", refused.to_text());
    assert!(asked.lock().unwrap().is_empty());
    hanging.abort();
    fixture.wait("dropped").await;
    let greeted = client.call_tool("greet", ()).await.unwrap();
    assert_eq!(greeted.to_text(), "Hello, Ada and Grace!");
}

/// Lets requests in under the name that they give.
async fn doorman(
    mut request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    let name = request.headers()["x-user"].to_str().unwrap().to_owned();
    turnbuckle::Principal::new(name).attach(request.extensions_mut());
    next.run(request).await
}

const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;

/// Over stdio nothing tells which of several calls a question belongs to. Among those of one caller
/// the oldest is taken: the same person is asked.
#[tokio::test]
async fn of_one_callers_calls_the_oldest_is_asked_and_nobody_in_anothers_stead() {
    let (gateway, mut dialed) = crate::script::scripted(LEGACY);
    let mounting = tokio::spawn(async move { gateway.http_service().await.unwrap() });
    let mut upstream = dialed.recv().await.unwrap();
    upstream.opened(json!({"tools": {}})).await;
    let app = axum::Router::new()
        .nest_service("/mcp", mounting.await.unwrap())
        .layer(axum::middleware::from_fn(doorman));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, app).into_future());
    let user = async |builder: ClientBuilder, name: &str| {
        let builder = builder.revision(MODERN).no_proxy().header("x-user", name);
        builder.connect(&url).await.unwrap()
    };
    let (ada, eve) = (user(declaring(), "ada").await, user(Client::builder(), "eve").await);
    let call = |client: &Client, name: &str| {
        let (client, params) = (client.clone(), json!({ "name": name }));
        tokio::spawn(async move { client.request("tools/call", params).await })
    };
    let oldest = call(&ada, "oldest");
    upstream.next("tools/call").await;
    let newest = call(&ada, "newest");
    upstream.next("tools/call").await;
    upstream.say(QUESTION).await;
    let asked: serde_json::Value = oldest.await.unwrap().unwrap().decode().unwrap();
    assert_eq!(asked["resultType"], "input_required");
    // The one that was asked waits for its client: what is asked now is the other's.
    upstream.say(&QUESTION.replace("\"q\"", "\"r\"")).await;
    let other: serde_json::Value = newest.await.unwrap().unwrap().decode().unwrap();
    assert_eq!(other["resultType"], "input_required");
    let ours = json!({"name": "oldest", "requestState": asked["requestState"],
        "inputResponses": {"1": {"action": "decline"}}});
    let again = tokio::spawn(async move { ada.request("tools/call", ours).await });
    let (answer, line) = upstream.next("").await;
    assert_eq!(
        (&answer["id"], &answer["result"]["action"]),
        (&json!("q"), &json!("decline")),
        "{line}"
    );
    // Another caller's call: it may be about that, although nobody could be asked for it.
    let _others = call(&eve, "others");
    upstream.next("tools/call").await;
    upstream.say(&QUESTION.replace("\"q\"", "\"s\"")).await;
    let (answer, line) = upstream.next("").await;
    assert!(answer["id"] == "s" && line.contains("several callers"), "{line}");
    again.abort();
}

#[tokio::test]
async fn more_calls_than_may_wait_are_refused() {
    let gateway =
        gateway(&Fixture::default().server(), (Wire::Stream, LEGACY)).await.waiting_calls(1);
    let client = connect(declaring(), &gateway, (Wire::Stream, MODERN)).await;
    client.request("tools/call", json!({"name": "greet"})).await.unwrap();
    let error = client.request("tools/call", json!({"name": "greet"})).await.unwrap_err();
    assert!(error.to_string().contains("waiting_calls"), "{error}");
}

/// A client that says that it can be asked, and is not: its calls are made by hand.
fn declaring() -> ClientBuilder {
    let capabilities = json!({"elicitation": {"form": {}}, "sampling": {}});
    Client::builder().capabilities(serde_json::from_value(capabilities).unwrap())
}

/// Asks, and tells when it is dropped.
async fn patient(
    ctx: turnbuckle::Ctx,
    turnbuckle::State(fixture): turnbuckle::State<Fixture>,
) -> Result<String, turnbuckle::ToolError> {
    struct Gone(Fixture);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.happened("patient dropped");
        }
    }
    let _gone = Gone(fixture);
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Name {
        name: String,
    }
    let Name { name } = ctx.ask("name", turnbuckle::elicit::elicit("Who are you?")).await?;
    Ok(name)
}
