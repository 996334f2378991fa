//! The typed questions of a legacy server, which is a script, and what becomes of the callbacks.

use serde_json::{Value, json};
use turnbuckle::{
    Client, ClientBuilder, RpcError,
    types::{
        CreateMessage, CreateMessageResult, Elicit, ElicitAction, ElicitResult, Era, Role, Root,
        TextContent,
    },
};
use turnbuckle_contract::{Fixture, SECRET};

use crate::{
    raw::{Peer, cancelled, client_with, connecting, initialized},
    rig::{eventually, virtually},
};

/// A client with a model that answers when the fixture lets the prompt go.
fn thinking() -> (ClientBuilder, Fixture) {
    let fixture = Fixture::default();
    let ours = fixture.clone();
    let builder = Client::builder().on_sampling(move |question: CreateMessage| {
        let ours = ours.clone();
        async move {
            let prompt = question.system_prompt.unwrap_or_default();
            let running = ours.start(&prompt);
            ours.gate(&prompt).await;
            running.finish();
            Ok(CreateMessageResult::new(Role::Assistant, TextContent::new(prompt), "m"))
        }
    });
    (builder, fixture)
}

fn sampling(id: u64, prompt: &str) -> Value {
    let params = json!({"messages": [], "maxTokens": 5, "systemPrompt": prompt});
    json!({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": params})
}

fn elicitation(params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
}

async fn legacy(builder: ClientBuilder) -> (Peer, Client) {
    client_with(Era::Legacy, builder, 1 << 20).await
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_at_once_and_in_any_order() {
    virtually(async {
        let (builder, ours) = thinking();
        let (mut peer, _client) = legacy(builder.roots([Root::new("file:///srv")])).await;
        peer.say(sampling(1, "first")).await;
        peer.say(sampling(2, "second")).await;
        eventually(|| ours.of("first").started == 1 && ours.of("second").started == 1).await;
        // Neither keeps a third one waiting.
        let roots = peer.ask(json!({"jsonrpc": "2.0", "id": 3, "method": "roots/list"})).await;
        assert_eq!(roots["result"], json!({"roots": [{"uri": "file:///srv"}]}));
        for (id, prompt) in [(2, "second"), (1, "first")] {
            ours.release(prompt);
            let answer = peer.read().await;
            assert_eq!((&answer["id"], &answer["result"]["model"]), (&json!(id), &json!("m")));
            assert_eq!(answer["result"]["content"], json!({"type": "text", "text": prompt}));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e35_a_callback_is_dropped_when_the_server_gives_its_question_up() {
    virtually(async {
        let (builder, ours) = thinking();
        let (mut peer, _client) = legacy(builder).await;
        peer.say(sampling(1, "k")).await;
        eventually(|| ours.of("k").started == 1).await;
        peer.say(cancelled(1)).await;
        eventually(|| ours.of("k").dropped == 1).await;
        ours.release("k");
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a10_what_went_wrong_inside_a_callback_stays_inside() {
    virtually(async {
        let builder = Client::builder()
            .on_elicitation(|_: Elicit| async { panic!("{}", SECRET) })
            .on_sampling(async |_| Err(RpcError::new(-1, "the user said no")));
        let (mut peer, _client) = legacy(builder).await;
        let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        let answer = peer.ask(elicitation(form)).await;
        assert_eq!(answer["error"], json!({"code": -32603, "message": "internal error"}));
        let answer = peer.ask(sampling(2, "k")).await;
        assert_eq!(answer["error"], json!({"code": -1, "message": "the user said no"}));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_typed_callback_goes_before_the_one_for_everything_else() {
    virtually(async {
        let builder = Client::builder()
            .on_request(async |question| Err(RpcError::method_not_found(&question.method)))
            .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Decline)));
        let (mut peer, _client) = legacy(builder).await;
        let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        let answer = peer.ask(elicitation(form)).await;
        assert_eq!(answer["result"], json!({"action": "decline"}));
        let answer = peer.ask(elicitation(json!({"message": 5}))).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("`params.message`"));
        assert_eq!(peer.ask(sampling(2, "k")).await["error"]["code"], -32601);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn registering_declares_in_the_shape_of_the_revision() {
    virtually(async {
        for (revision, elicitation) in [
            ("2025-11-25", json!({"form": {}, "url": {}})),
            ("2025-06-18", json!({})),
            ("2025-03-26", Value::Null),
        ] {
            let builder = Client::builder()
                .revision(revision.parse().unwrap())
                .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Cancel)))
                .roots([]);
            let (mut peer, connecting) = connecting(builder, 1 << 20);
            let initialize = peer.read().await;
            let declared = &initialize["params"]["capabilities"];
            assert_eq!(declared["elicitation"], elicitation, "{initialize}");
            assert_eq!(declared["roots"], json!({}), "{initialize}");
            assert!(declared.get("sampling").is_none(), "{initialize}");
            peer.answer(&initialize, initialized(revision)).await;
            connecting.await.unwrap().unwrap();
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_request_declares_what_has_a_callback() {
    virtually(async {
        let (mut peer, client) = client_with(Era::Modern, thinking().0, 1 << 20).await;
        let call = tokio::spawn(async move { client.call_tool("t", ()).await });
        let request = peer.read().await;
        let declared = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared, &json!({"sampling": {}}), "{request}");
        call.abort();
    })
    .await;
}
