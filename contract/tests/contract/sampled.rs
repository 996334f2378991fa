//! What a client's model may be asked and may answer. Its server is a script, of either era: a live
//! question, or one in a result.

use serde_json::{Value, json};
use turnbuckle::{
    Client, ErrorKind,
    types::{CreateMessage, CreateMessageResult, Era},
};

use crate::{
    raw::{client_with, said},
    rig::virtually,
    web::launch,
};

/// What the server hears.
#[derive(Debug, PartialEq)]
enum Heard {
    /// This content.
    Answer(Value),
    /// This error, or that the call is not made again; the program has the same error.
    Nothing { code: i64, message: String },
}

/// Has a model that answers with `content` asked, in one era.
async fn asked(era: Era, params: &Value, role: &str, content: &Value) -> Heard {
    let able = serde_json::from_value(json!({"sampling": {"tools": {}}})).unwrap();
    let answer = json!({"role": role, "model": "m", "content": content});
    let builder = Client::builder().capabilities(able).on_sampling(move |_: CreateMessage| {
        let answer = answer.clone();
        async move { Ok(serde_json::from_value::<CreateMessageResult>(answer).unwrap()) }
    });
    let (mut peer, client) = client_with(era, builder, 1 << 20).await;
    let question = json!({"method": "sampling/createMessage", "params": params});
    if era == Era::Legacy {
        let mut live = question;
        live["jsonrpc"] = json!("2.0");
        live["id"] = json!(7);
        let told = peer.ask(live).await;
        return match told.get("error") {
            None => Heard::Answer(told["result"]["content"].clone()),
            Some(error) => Heard::Nothing {
                code: error["code"].as_i64().unwrap(),
                message: error["message"].as_str().unwrap().to_owned(),
            },
        };
    }
    let call = launch(client.call_tool("t", ()).no_timeouts());
    let first = peer.read().await;
    let asks = json!({"resultType": "input_required", "inputRequests": {"q": question}});
    peer.answer(&first, asks).await;
    let more = peer.lull().await;
    let Some(second) = more.first() else {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let rpc = error.as_rpc().unwrap();
        return Heard::Nothing { code: rpc.code, message: rpc.message.to_string() };
    };
    let content = second["params"]["inputResponses"]["q"]["content"].clone();
    peer.answer(second, said("done")).await;
    call.await.unwrap().unwrap();
    Heard::Answer(content)
}

fn text() -> Value {
    json!({"type": "text", "text": "x"})
}

fn call(name: &str) -> Value {
    json!({"type": "tool_use", "id": "1", "name": name, "input": {}})
}

fn result() -> Value {
    json!({"type": "tool_result", "toolUseId": "1", "content": []})
}

fn question(tools: bool) -> Value {
    let mut params = json!({"messages": [{"role": "user", "content": text()}], "maxTokens": 5});
    if tools {
        params["tools"] = json!([{"name": "look", "inputSchema": {"type": "object"}}]);
    }
    params
}

/// What a model may say of what it was asked, in both eras.
async fn is_sent(params: &Value, role: &str, content: Value, expected: &Value) {
    for era in [Era::Legacy, Era::Modern] {
        let heard = asked(era, params, role, &content).await;
        assert_eq!(heard, Heard::Answer(expected.clone()), "{era:?}: {content}");
    }
}

/// What it may not say: the server is not told, and the program is, with this word.
async fn is_kept_back(params: &Value, role: &str, content: Value, word: &str) {
    for era in [Era::Legacy, Era::Modern] {
        match asked(era, params, role, &content).await {
            Heard::Nothing { code, message } => {
                assert_eq!(code, -32603, "{era:?}: {message}");
                assert!(message.contains(word), "{era:?}, {content}: {message}");
            }
            Heard::Answer(_) => panic!("{era:?}: {content} was sent"),
        }
    }
}

// req: sampling:result:no-tools-single-content
#[tokio::test(start_paused = true)]
async fn without_tools_a_models_answer_is_one_block() {
    virtually(async {
        let bare = question(false);
        is_sent(&bare, "assistant", text(), &text()).await;
        // A list of one says the same.
        is_sent(&bare, "assistant", json!([text()]), &text()).await;
        let one = "one block";
        is_kept_back(&bare, "assistant", json!([text(), text()]), one).await;
        is_kept_back(&bare, "assistant", json!([]), one).await;
        for content in [call("look"), json!([call("look")])] {
            is_kept_back(&bare, "assistant", content, "`look`, which was not offered").await;
        }
        is_kept_back(&bare, "user", result(), "tool's result").await;
    })
    .await;
}

// req: sampling:result:with-tools-array-content
#[tokio::test(start_paused = true)]
async fn a_model_calls_what_it_was_offered_and_nothing_else() {
    virtually(async {
        let with = question(true);
        for content in [json!([text(), call("look")]), json!([call("look")]), text()] {
            is_sent(&with, "assistant", content.clone(), &content).await;
        }
        let other = json!([call("look"), call("jump")]);
        is_kept_back(&with, "assistant", other, "`jump`, which was not offered").await;
        is_kept_back(&with, "user", json!([call("look")]), "only an assistant").await;
        let mut none = question(true);
        none["toolChoice"] = json!({"mode": "none"});
        is_kept_back(&none, "assistant", call("look"), "must not call any").await;
    })
    .await;
}

// req: sampling:tool-result:no-mixed-content
#[tokio::test(start_paused = true)]
async fn a_tools_result_is_no_part_of_a_models_answer() {
    virtually(async {
        let with = question(true);
        let mixed = json!([text(), result()]);
        is_kept_back(&with, "assistant", mixed.clone(), "tool's result").await;
        is_kept_back(&with, "user", mixed, "tool's result").await;
    })
    .await;
}

/// 2025-11-25 client/sampling §Error Handling: the client says what is wrong with the question.
// req: sampling:tool-result:no-mixed-content, sampling:tool-use:result-balance
#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_out_of_balance_reaches_no_model() {
    virtually(async {
        let user = |content: Value| json!({"role": "user", "content": content});
        let called = json!({"role": "assistant", "content": [call("look")]});
        for (messages, word) in [
            (json!([called, user(json!([result(), text()]))]), "stand alone"),
            (json!([called, user(text())]), "no result for the call `1`"),
            (json!([called]), "nothing answers the call `1`"),
        ] {
            let mut params = question(true);
            params["messages"] = messages;
            for era in [Era::Legacy, Era::Modern] {
                match asked(era, &params, "assistant", &text()).await {
                    Heard::Nothing { code, message } => {
                        assert_eq!(code, -32602, "{era:?}: {message}");
                        assert!(message.contains(word), "{era:?}: {message}");
                    }
                    Heard::Answer(_) => panic!("{era:?}: {params} was answered"),
                }
            }
        }
    })
    .await;
}
