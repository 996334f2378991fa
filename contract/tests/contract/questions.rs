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

// req: protocol:cancel:server-to-client, protocol:cancel:handler-abort-propagates
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

// req: protocol:error:internal-error, sampling:error:user-rejected
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

// req: protocol:error:invalid-params, elicitation:form:action:decline
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

// req: lifecycle:initialize:client-capabilities, elicitation:capability:empty-is-form
// req: lifecycle:capability:client-not-declared
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

// req: sampling:capability:declare, lifecycle:stateless:request-envelope
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

/// Answers with what the callback was given, which must be all that was asked.
async fn whole(builder: ClientBuilder, method: &str, params: Value) -> Value {
    let (mut peer, _client) = legacy(builder).await;
    peer.ask(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await
}

// req: sampling:create:basic, sampling:create:system-prompt, sampling:create:model-preferences
// req: sampling:create:include-context, sampling:create-message:image-content
// req: sampling:create-message:audio-content, sampling:create:tools
// req: sampling:message:content-cardinality, sampling:result:with-tools-array-content
#[tokio::test(start_paused = true)]
async fn a_question_for_a_model_arrives_whole() {
    virtually(async {
        let image = json!({"type": "image", "data": "AP8QgA==", "mimeType": "image/png"});
        let audio = json!({"type": "audio", "data": "AP8QgA==", "mimeType": "audio/wav"});
        let used = json!({"type": "tool_use", "id": "u", "name": "look", "input": {"at": "sky"}});
        let result = json!({"type": "tool_result", "toolUseId": "u",
            "content": [{"type": "text", "text": "blue"}]});
        let params = json!({
            "messages": [
                {"role": "user", "content": image},
                {"role": "user", "content": [audio, {"type": "text", "text": "and?"}]},
                {"role": "assistant", "content": [used]},
                {"role": "user", "content": [result]},
            ],
            "maxTokens": 50,
            "systemPrompt": "Be brief.",
            "includeContext": "thisServer",
            "temperature": 0.5,
            "stopSequences": ["."],
            "modelPreferences": {"hints": [{"name": "small"}], "costPriority": 0.75, "speedPriority": 0.25},
            "tools": [{"name": "look", "inputSchema": {"type": "object"}}],
            "toolChoice": {"mode": "auto"},
            "metadata": {"example.com/own": 1},
        });
        let expected = params.clone();
        let answer = json!({"role": "assistant", "model": "m", "content": [used, image],
            "stopReason": "toolUse"});
        let answers = answer.clone();
        let able = json!({"sampling": {"tools": {}, "context": {}}});
        let able = Client::builder().capabilities(serde_json::from_value(able).unwrap());
        let builder = able.on_sampling(move |question: CreateMessage| {
            let (expected, answer) = (expected.clone(), answers.clone());
            async move {
                assert_eq!(serde_json::to_value(&question).unwrap(), expected);
                Ok(serde_json::from_value::<CreateMessageResult>(answer).unwrap())
            }
        });
        let told = whole(builder, "sampling/createMessage", params).await;
        assert_eq!(told["result"], answer, "{told}");
    })
    .await;
}

// req: elicitation:form:basic, elicitation:form:mode-omitted-default
// req: elicitation:form:schema:primitives, elicitation:form:schema:enum-variants
// req: elicitation:form:defaults, elicitation:form:action:accept
#[tokio::test(start_paused = true)]
async fn a_form_arrives_whole() {
    virtually(async {
        let titled = json!([{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]);
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 9},
            "mail": {"type": "string", "format": "email"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "size": {"type": "number", "default": 1.5},
            "sure": {"type": "boolean", "default": true},
            "one": {"type": "string", "enum": ["a", "b"]},
            "hue": {"type": "string", "oneOf": titled},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 2},
            "hues": {"type": "array", "items": {"anyOf": titled}},
        }});
        let expected = schema.clone();
        let builder = Client::builder().on_elicitation(move |question: Elicit| {
            let expected = expected.clone();
            async move {
                let Elicit::Form(form) = question else { panic!("no mode is a form") };
                assert_eq!(form.message, "Who?");
                assert_eq!(serde_json::to_value(&form.requested_schema).unwrap(), expected);
                let mut answer = ElicitResult::new(ElicitAction::Accept);
                let filled = json!({"name": "Ada", "many": ["a"]});
                answer.content = Some(serde_json::from_value(filled).unwrap());
                Ok(answer)
            }
        });
        let params = json!({"message": "Who?", "requestedSchema": schema});
        let told = whole(builder, "elicitation/create", params).await;
        // What was left out is what the form said it would be.
        let content = json!({"name": "Ada", "many": ["a"], "size": 1.5, "sure": true});
        assert_eq!(told["result"], json!({"action": "accept", "content": content}), "{told}");
    })
    .await;
}
