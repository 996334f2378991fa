//! What a client does when a modern server, which is a script, asks for input before it answers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use turnbuckle::{
    Client, ClientBuilder, ErrorKind, Result, Revision, RpcError,
    types::{CallToolResult, Elicit, ElicitAction, ElicitResult, Era, Root},
};
use turnbuckle_contract::Fixture;

use crate::{
    raw::{Peer, SILENCE, client_with, said},
    rig::{Rig, Wire, contract, eventually, virtually, within},
    web::{self, Post, Web, launch, settle},
};

/// What the script speaks over.
#[derive(Clone, Copy)]
enum Way {
    Stream,
    Http,
}

enum Script {
    Stream(Peer),
    Http(Web),
}

/// A request that the script has read.
struct Heard {
    body: Value,
    post: Option<Post>,
}

impl Heard {
    fn params(&self) -> &Value {
        &self.body["params"]
    }
}

async fn scripted(way: Way, builder: ClientBuilder) -> (Script, Client) {
    match way {
        Way::Stream => {
            let (peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
            (Script::Stream(peer), client)
        }
        Way::Http => {
            let web = Web::new().await;
            let builder = builder.revision(Revision::V2026_07_28).no_proxy();
            let client = builder.connect(web.url()).await.unwrap();
            (Script::Http(web), client)
        }
    }
}

impl Script {
    async fn heard(&mut self) -> Heard {
        match self {
            Script::Stream(peer) => Heard { body: peer.read().await, post: None },
            Script::Http(web) => {
                let post = web.post().await;
                Heard { body: post.body.clone(), post: Some(post) }
            }
        }
    }

    async fn answer(&mut self, heard: &Heard, result: Value) {
        match (self, &heard.post) {
            (Script::Stream(peer), _) => peer.answer(&heard.body, result).await,
            (_, Some(post)) => post.result(result).await,
            _ => unreachable!("what came over HTTP has a post"),
        }
    }

    /// Reports progress, then answers.
    async fn answer_slowly(&mut self, heard: &Heard, progress: u64, result: Value) {
        let token = &heard.params()["_meta"]["progressToken"];
        let params = json!({"progressToken": token, "progress": progress});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        match (self, &heard.post) {
            (Script::Stream(peer), _) => {
                peer.say(note).await;
                peer.answer(&heard.body, result).await;
            }
            (_, Some(post)) => {
                post.stream().await;
                post.event(note).await;
                post.last_event(result).await;
                post.end().await;
            }
            _ => unreachable!("what came over HTTP has a post"),
        }
    }

    /// Asserts that nothing more is said.
    async fn quiet(&mut self) {
        match self {
            Script::Stream(peer) => peer.quiet().await,
            Script::Http(web) => {
                settle().await;
                assert!(!web.has_more(), "something was posted");
            }
        }
    }
}

pub(crate) fn form(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

pub(crate) fn asks(questions: Value, state: &str) -> Value {
    json!({"resultType": "input_required", "inputRequests": questions, "requestState": state})
}

/// A user who repeats the question.
fn parrot() -> ClientBuilder {
    Client::builder().on_elicitation(async |question| {
        let Elicit::Form(form) = question else { return Err(RpcError::new(-1, "forms only")) };
        let mut answer = ElicitResult::new(ElicitAction::Accept);
        answer.content = Some(json!({"name": form.message}).into());
        Ok(answer)
    })
}

/// A user who answers when the fixture lets the question go.
fn thinker() -> (ClientBuilder, Fixture) {
    let fixture = Fixture::default();
    let ours = fixture.clone();
    let builder = Client::builder().on_elicitation(move |question| {
        let ours = ours.clone();
        async move {
            let Elicit::Form(form) = question else { return Err(RpcError::new(-1, "forms only")) };
            let running = ours.start(&form.message);
            ours.gate(&form.message).await;
            running.finish();
            Ok(ElicitResult::new(ElicitAction::Decline))
        }
    });
    (builder, fixture)
}

fn called(client: &Client) -> JoinHandle<Result<CallToolResult>> {
    launch(client.call_tool("t", json!({"x": 1})).no_timeouts())
}

/// A test for each kind of wire: the stream in paused time.
macro_rules! on_both_wires {
    ($group:ident: $($test:ident),+ $(,)?) => {
        mod $group {
            mod stream {
                $(
                    #[tokio::test(start_paused = true)]
                    async fn $test() {
                        let test = super::super::$test(super::super::Way::Stream);
                        crate::rig::virtually(test).await;
                    }
                )+
            }
            mod http {
                $(
                    #[tokio::test]
                    async fn $test() {
                        let test = super::super::$test(super::super::Way::Http);
                        crate::rig::within(test).await;
                    }
                )+
            }
        }
    };
}

contract! { everywhere unconnected on [memory stdio unix direct http] in [modern]:
    a_tool_that_asks_twice_is_called_three_times,
    a_tool_whose_question_is_dropped_is_not_called_again,
}

on_both_wires! { rounds:
    // req: flow:elicitation:multi-step-form
    two_rounds_are_answered_and_each_is_a_request_of_its_own,
    two_calls_keep_their_states_apart,
}

on_both_wires! { endless:
    // req: typescript:mrtr:rounds-cap
    a_server_that_never_stops_asking_is_left,
}

on_both_wires! { undeclared:
    // req: sampling:create-message:not-supported
    what_was_not_declared_and_can_not_be_answered_fails_by_name,
}

on_both_wires! { course:
    a_state_alone_is_sent_back_at_once,
    every_verb_that_may_be_asked_answers,
    questions_of_one_round_are_put_at_once,
    a_call_dropped_while_it_is_asked_drops_the_callback_and_says_no_more,
    a_call_dropped_in_its_second_round_is_cancelled,
    progress_is_told_in_every_round,
    a_callbacks_error_is_the_calls_error,
    a_request_made_by_hand_is_handed_what_is_asked,
}

async fn a_tool_that_asks_twice_is_called_three_times(wire: Wire, era: Era) {
    let rig = Rig::with(wire, era, parrot(), &[]).await;
    assert_eq!(rig.text("inquire", json!({"key": "k"})).await, "3 rounds");
    assert_eq!(rig.report().await.of("k").finished, 3);
}

async fn a_tool_whose_question_is_dropped_is_not_called_again(wire: Wire, era: Era) {
    let (builder, user) = thinker();
    let rig = Rig::with(wire, era, builder, &[]).await;
    let flight = rig.launch(rig.tool("inquire", json!({"key": "k"})));
    eventually(|| user.of("k").started == 1).await;
    flight.abandon().await;
    assert_eq!(user.of("k").dropped, 1);
    user.release("k");
    rig.alive().await;
    assert_eq!(rig.report().await.of("k").started, 1);
}

async fn two_rounds_are_answered_and_each_is_a_request_of_its_own(way: Way) {
    let (mut script, client) = scripted(way, parrot()).await;
    let call = launch(client.call_tool("t", json!({"x": 1})).no_timeouts().request_id("mine"));
    let first = script.heard().await;
    assert_eq!(first.body["id"], "mine");
    let able = &first.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(able["elicitation"], json!({"form": {}, "url": {}}), "{}", first.body);
    for word in ["inputResponses", "requestState"] {
        assert!(first.params().get(word).is_none(), "{}", first.body);
    }
    let mut ids = vec![first.body["id"].clone()];
    let mut heard = first;
    // The first state is spelled in a way that nobody would choose who read it.
    for (key, state) in [("who", "é\u{1F600}\\/\" \u{7f}{}"), ("why", "")] {
        let asked = asks(json!({key: form(key)}), state);
        script.answer(&heard, asked).await;
        let before = heard.params()["arguments"].clone();
        heard = script.heard().await;
        let answer = json!({key: {"action": "accept", "content": {"name": key}}});
        assert_eq!(heard.params()["inputResponses"], answer, "only what was asked this time");
        assert_eq!(heard.params()["requestState"], state);
        assert_eq!(heard.params()["arguments"], before);
        assert_eq!(heard.params()["name"], "t");
        assert!(!ids.contains(&heard.body["id"]), "{} was used before", heard.body["id"]);
        ids.push(heard.body["id"].clone());
        if let Some(post) = &heard.post {
            assert_eq!(post.header("mcp-name"), Some("t"));
            assert_eq!(post.header("mcp-method"), Some("tools/call"));
        }
    }
    script.answer(&heard, said("done")).await;
    assert_eq!(call.await.unwrap().unwrap().to_text(), "done");
    // The next call knows nothing of it.
    let call = called(&client);
    let next = script.heard().await;
    for word in ["inputResponses", "requestState"] {
        assert!(next.params().get(word).is_none(), "{}", next.body);
    }
    script.answer(&next, said("again")).await;
    call.await.unwrap().unwrap();
}

async fn a_state_alone_is_sent_back_at_once(way: Way) {
    let (mut script, client) = scripted(way, Client::builder()).await;
    let call = called(&client);
    let first = script.heard().await;
    script.answer(&first, json!({"resultType": "input_required", "requestState": "later"})).await;
    let second = script.heard().await;
    assert_eq!(second.params()["requestState"], "later");
    assert!(second.params().get("inputResponses").is_none(), "{}", second.body);
    // And questions alone leave no state behind.
    let asked = json!({"resultType": "input_required", "inputRequests": {}});
    script.answer(&second, asked).await;
    let third = script.heard().await;
    assert!(third.params().get("requestState").is_none(), "{}", third.body);
    assert_eq!(third.params()["inputResponses"], json!({}));
    script.answer(&third, said("done")).await;
    assert_eq!(call.await.unwrap().unwrap().to_text(), "done");
}

async fn every_verb_that_may_be_asked_answers(way: Way) {
    let (mut script, client) =
        scripted(way, Client::builder().roots([Root::new("file:///a")])).await;
    let question = || asks(json!({"where": {"method": "roots/list"}}), "s");
    let given = json!({"where": {"roots": [{"uri": "file:///a"}]}});

    let read = launch(client.read_resource("demo://a").no_timeouts());
    let heard = script.heard().await;
    script.answer(&heard, question()).await;
    let heard = script.heard().await;
    assert_eq!(heard.params()["uri"], "demo://a");
    assert_eq!(heard.params()["inputResponses"], given);
    if let Some(post) = &heard.post {
        assert_eq!(post.header("mcp-name"), Some("demo://a"));
    }
    let contents = json!([{"uri": "demo://a", "text": "hello"}]);
    script.answer(&heard, json!({"resultType": "complete", "contents": contents})).await;
    assert_eq!(read.await.unwrap().unwrap().contents.len(), 1);

    let prompt = launch(client.get_prompt("p", json!({"a": "b"})).no_timeouts());
    let heard = script.heard().await;
    assert_eq!(heard.params()["arguments"], json!({"a": "b"}));
    script.answer(&heard, question()).await;
    let heard = script.heard().await;
    assert_eq!(heard.params()["arguments"], json!({"a": "b"}));
    assert_eq!(heard.params()["inputResponses"], given);
    if let Some(post) = &heard.post {
        assert_eq!(post.header("mcp-name"), Some("p"));
    }
    script.answer(&heard, json!({"resultType": "complete", "messages": []})).await;
    assert!(prompt.await.unwrap().unwrap().messages.is_empty());

    // No other may be asked.
    let list = launch(client.list_tools().no_timeouts());
    let heard = script.heard().await;
    script.answer(&heard, question()).await;
    assert_eq!(list.await.unwrap().unwrap_err().kind(), ErrorKind::Protocol);
    script.quiet().await;
}

async fn questions_of_one_round_are_put_at_once(way: Way) {
    let (builder, user) = thinker();
    let (mut script, client) = scripted(way, builder).await;
    let call = called(&client);
    let heard = script.heard().await;
    script.answer(&heard, asks(json!({"a": form("a"), "b": form("b"), "c": form("c")}), "s")).await;
    eventually(|| ["a", "b", "c"].iter().all(|key| user.of(key).started == 1)).await;
    for key in ["c", "a"] {
        user.release(key);
        eventually(|| user.of(key).finished == 1).await;
    }
    // Not before the last of them is answered.
    script.quiet().await;
    user.release("b");
    let heard = script.heard().await;
    let declined = json!({"action": "decline"});
    let all = json!({"a": declined, "b": declined, "c": declined});
    assert_eq!(heard.params()["inputResponses"], all);
    script.answer(&heard, said("done")).await;
    call.await.unwrap().unwrap();
}

async fn a_call_dropped_while_it_is_asked_drops_the_callback_and_says_no_more(way: Way) {
    let (builder, user) = thinker();
    let (mut script, client) = scripted(way, builder).await;
    let call = called(&client);
    let heard = script.heard().await;
    script.answer(&heard, asks(json!({"a": form("a"), "b": form("b")}), "s")).await;
    eventually(|| user.of("a").started == 1 && user.of("b").started == 1).await;
    web::abandon(call).await;
    assert_eq!((user.of("a").dropped, user.of("b").dropped), (1, 1));
    user.release("a");
    user.release("b");
    script.quiet().await;
}

async fn a_call_dropped_in_its_second_round_is_cancelled(way: Way) {
    let (mut script, client) = scripted(way, parrot()).await;
    let call = called(&client);
    let heard = script.heard().await;
    script.answer(&heard, asks(json!({"a": form("a")}), "s")).await;
    let second = script.heard().await;
    web::abandon(call).await;
    match (&mut script, &second.post) {
        (Script::Stream(peer), _) => {
            let cancel = peer.read().await;
            assert_eq!(cancel["method"], "notifications/cancelled");
            assert_eq!(cancel["params"]["requestId"], second.body["id"]);
        }
        (_, Some(post)) => post.closed().await,
        _ => unreachable!("what came over HTTP has a post"),
    }
    script.quiet().await;
}

async fn progress_is_told_in_every_round(way: Way) {
    let (mut script, client) = scripted(way, parrot()).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let ours = told.clone();
    let call = client.call_tool("t", ()).no_timeouts();
    let call = launch(call.on_progress(move |report| ours.lock().unwrap().push(report.progress)));
    let heard = script.heard().await;
    script.answer_slowly(&heard, 1, asks(json!({"a": form("a")}), "s")).await;
    let heard = script.heard().await;
    script.answer_slowly(&heard, 2, said("done")).await;
    call.await.unwrap().unwrap();
    assert_eq!(*told.lock().unwrap(), [1.0, 2.0]);
}

async fn what_was_not_declared_and_can_not_be_answered_fails_by_name(way: Way) {
    let (mut script, client) = scripted(way, parrot()).await;
    for method in ["sampling/createMessage", "roots/list", "acme/own"] {
        let call = called(&client);
        let heard = script.heard().await;
        let able = &heard.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert!(able.get("sampling").is_none() && able.get("roots").is_none(), "{able}");
        let question = json!({"method": method, "params": {}});
        script.answer(&heard, asks(json!({"a": form("a"), "b": question}), "s")).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert!(error.to_string().contains(method), "{error}");
        assert!(error.maybe_executed());
    }
    script.quiet().await;
}

async fn a_callbacks_error_is_the_calls_error(way: Way) {
    let builder = Client::builder().on_elicitation(async |_| Err(RpcError::new(-1, "not now")));
    let (mut script, client) = scripted(way, builder).await;
    let call = called(&client);
    let heard = script.heard().await;
    script.answer(&heard, asks(json!({"a": form("a")}), "s")).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.as_rpc(), Some(&RpcError::new(-1, "not now")), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused);
    script.quiet().await;
}

async fn a_server_that_never_stops_asking_is_left(way: Way) {
    let (mut script, client) = scripted(way, parrot()).await;
    for (most, call) in [
        (10, client.call_tool("t", ())),
        (2, client.call_tool("t", ()).max_rounds(2)),
        (0, client.call_tool("t", ()).max_rounds(0)),
    ] {
        let call = launch(call.no_timeouts());
        for _ in 0..=most {
            let heard = script.heard().await;
            script.answer(&heard, asks(json!({"a": form("a")}), "s")).await;
        }
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains(&format!("{most} times")), "{error}");
        let last: Value = error.input_required().unwrap().decode().unwrap();
        assert_eq!(last["inputRequests"]["a"], form("a"), "what it asked last is there");
        assert!(error.maybe_executed());
        script.quiet().await;
    }
}

async fn a_request_made_by_hand_is_handed_what_is_asked(way: Way) {
    let (mut script, client) = scripted(way, parrot()).await;
    let call = launch(client.request("tools/call", json!({"name": "t"})).no_timeouts());
    let heard = script.heard().await;
    let asked = asks(json!({"a": form("a")}), "s");
    script.answer(&heard, asked.clone()).await;
    assert_eq!(call.await.unwrap().unwrap().decode::<Value>().unwrap(), asked);
    script.quiet().await;
}

async fn two_calls_keep_their_states_apart(way: Way) {
    let (mut script, client) = scripted(way, parrot()).await;
    let calls = ["one", "two"].map(|name| launch(client.call_tool(name, ()).no_timeouts()));
    for _ in &calls {
        let heard = script.heard().await;
        let name = heard.params()["name"].as_str().unwrap().to_owned();
        script.answer(&heard, asks(json!({&name: form(&name)}), &format!("of {name}"))).await;
    }
    for _ in &calls {
        let heard = script.heard().await;
        let name = heard.params()["name"].as_str().unwrap().to_owned();
        assert_eq!(heard.params()["requestState"], format!("of {name}"));
        assert!(heard.params()["inputResponses"][&name].is_object(), "{}", heard.body);
        script.answer(&heard, said(&name)).await;
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

// req: protocol:timeout:max-total
#[tokio::test(start_paused = true)]
async fn all_rounds_share_one_time_and_the_users_does_not_count() {
    virtually(async {
        let (builder, user) = thinker();
        let (mut script, client) = scripted(Way::Stream, builder).await;
        let total = Duration::from_secs(10);
        let call = client.call_tool("t", ()).idle_timeout(Duration::from_secs(8)).timeout(total);
        let call = launch(call);
        let second = Duration::from_secs(1);
        let heard = script.heard().await;
        // The server takes six seconds, the user an hour, the server three and for ever.
        tokio::time::advance(6 * second).await;
        script.answer(&heard, asks(json!({"a": form("a")}), "s")).await;
        eventually(|| user.of("a").started == 1).await;
        tokio::time::advance(3600 * second).await;
        assert!(!call.is_finished());
        user.release("a");
        let heard = script.heard().await;
        tokio::time::advance(3 * second).await;
        script.answer(&heard, json!({"resultType": "input_required", "requestState": "t"})).await;
        let heard = script.heard().await;
        let asked_at = tokio::time::Instant::now();
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert!(error.to_string().contains("10s"), "{error}");
        assert!(
            asked_at.elapsed() <= second + Duration::from_millis(10),
            "{:?}",
            asked_at.elapsed()
        );
        let Script::Stream(peer) = &mut script else { unreachable!("it is a stream") };
        let cancel = peer.read().await;
        assert_eq!(cancel["params"]["requestId"], heard.body["id"]);
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_time_that_ran_out_while_nobody_looked_sends_no_further_request() {
    virtually(async {
        let (mut script, client) = scripted(Way::Stream, parrot()).await;
        let call = launch(client.call_tool("t", ()).timeout(SILENCE));
        let heard = script.heard().await;
        let asked = json!({"resultType": "input_required", "requestState": "s"});
        script.answer(&heard, asked).await;
        // Both are there when the call is polled next: its answer, and the end of its time.
        tokio::time::advance(SILENCE).await;
        assert!(call.await.unwrap().unwrap_err().is_timeout());
        script.quiet().await;
    })
    .await;
}

#[tokio::test]
async fn arguments_are_repeated_in_headers_of_every_round() {
    within(async {
        let (mut script, client) = scripted(Way::Http, parrot()).await;
        let region = json!({"type": "string", "x-mcp-header": "Region"});
        let schema = json!({"type": "object", "properties": {"region": region}});
        let tools = json!([{"name": "query", "inputSchema": schema}]);
        let list = launch(client.list_tools());
        let heard = script.heard().await;
        script.answer(&heard, json!({"resultType": "complete", "tools": tools})).await;
        list.await.unwrap().unwrap();
        let call = launch(client.call_tool("query", json!({"region": "eu"})).header("x-own", "1"));
        for _ in 0..2 {
            let heard = script.heard().await;
            let post = heard.post.as_ref().unwrap();
            assert_eq!(post.header("mcp-param-region"), Some("eu"));
            assert_eq!(post.header("x-own"), Some("1"));
            script.answer(&heard, asks(json!({"a": form("a")}), "s")).await;
        }
        let heard = script.heard().await;
        script.answer(&heard, said("done")).await;
        call.await.unwrap().unwrap();
    })
    .await;
}
