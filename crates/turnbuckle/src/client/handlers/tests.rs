//! What the callbacks make of questions, without a wire.

use serde_json::{Value, json};
use turnbuckle_types::{ElicitAction, Role, TextContent};

use super::*;
use crate::Client;

/// A client that has an answer to everything.
fn everything() -> ClientBuilder {
    Client::builder()
        .on_sampling(async |question: CreateMessage| {
            let text = TextContent::new(format!("{} tokens", question.max_tokens));
            let blocks = vec![text.into(), TextContent::new("more").into()];
            Ok(CreateMessageResult::new(Role::Assistant, blocks, "m"))
        })
        .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Accept)))
        .roots([Root::new("file:///srv")])
}

fn declared(builder: &ClientBuilder, revision: Revision) -> Value {
    Raw::at(&builder.callbacks.declared(), revision).decode().unwrap()
}

fn params(params: &Value) -> Params {
    Params { raw: Some(params.into()), ..Params::default() }
}

async fn answered(
    builder: &ClientBuilder,
    method: Method,
    asked: Value,
    revision: Revision,
) -> Result<Value, RpcError> {
    let answer = builder.callbacks.answer(method, &params(&asked), revision);
    let outcome = answer.expect("a callback").await;
    outcome.map(|raw| raw.decode().unwrap())
}

fn form(schema: Value) -> Value {
    json!({"message": "?", "requestedSchema": {"type": "object", "properties": schema}})
}

const LATEST_LEGACY: Revision = Revision::LATEST_LEGACY;

#[test]
fn a_callback_declares_its_capability_in_the_shape_of_each_revision() {
    let all = everything();
    let new = json!({"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}});
    assert_eq!(declared(&all, Revision::V2025_11_25), new);
    assert_eq!(declared(&all, Revision::LATEST), new);
    let middle = json!({"roots": {}, "sampling": {}, "elicitation": {}});
    assert_eq!(declared(&all, Revision::V2025_06_18), middle);
    for old in [Revision::V2025_03_26, Revision::V2024_11_05] {
        assert_eq!(declared(&all, old), json!({"roots": {}, "sampling": {}}));
    }
    assert_eq!(declared(&Client::builder(), LATEST_LEGACY), json!({}));
}

#[test]
fn what_is_declared_by_hand_is_merged_and_goes_first() {
    let by_hand: ClientCapabilities = serde_json::from_value(json!({
        "sampling": {"tools": {}}, "elicitation": {"form": {}}, "experimental": {"x": {}},
    }))
    .unwrap();
    let both = everything().capabilities(by_hand.clone());
    let expected = json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}},
        "experimental": {"x": {}}});
    assert_eq!(declared(&both, LATEST_LEGACY), expected);
    // The order of the calls does not matter.
    let other_way = Client::builder().capabilities(by_hand).roots([]);
    assert_eq!(declared(&other_way, LATEST_LEGACY)["roots"], json!({}));
}

#[tokio::test]
async fn answers_are_written_for_the_revision() {
    let able = serde_json::from_value(json!({"sampling": {"tools": {}}})).unwrap();
    let all = everything().capabilities(able);
    let ask = json!({"messages": [], "maxTokens": 7, "tools": []});
    let new = answered(&all, Method::CreateMessage, ask, LATEST_LEGACY).await.unwrap();
    assert_eq!(new["content"].as_array().unwrap().len(), 2);
    let roots = answered(&all, Method::ListRoots, json!({}), LATEST_LEGACY).await.unwrap();
    assert_eq!(roots, json!({"roots": [{"uri": "file:///srv"}]}));
}

#[tokio::test]
async fn an_accepted_form_gets_its_defaults() {
    let ask = form(json!({"age": {"type": "integer", "default": 30}, "note": {"type": "string"}}));
    let answer = answered(&everything(), Method::Elicit, ask, LATEST_LEGACY).await.unwrap();
    assert_eq!(answer, json!({"action": "accept", "content": {"age": 30}}));
    let page =
        json!({"mode": "url", "message": "?", "url": "https://a.test", "elicitationId": "1"});
    let answer = answered(&everything(), Method::Elicit, page, LATEST_LEGACY).await.unwrap();
    assert_eq!(answer, json!({"action": "accept"}));
}

// req: elicitation:capability:mode-mismatch
#[tokio::test]
async fn what_was_not_declared_is_refused_before_any_callback_runs() {
    let never = Client::builder()
        .on_sampling(async |_| panic!("it must not be asked"))
        .on_elicitation(async |_| panic!("it must not be asked"));
    let forms = serde_json::from_value(json!({"elicitation": {"form": {}}})).unwrap();
    let page =
        json!({"mode": "url", "message": "?", "url": "https://a.test", "elicitationId": "1"});
    let tools = json!({"messages": [], "maxTokens": 1, "tools": []});
    // 2025-06-18 has no word for pages, so it can't have been declared there.
    let old = Revision::V2025_06_18;
    for (builder, method, asked, revision, word) in [
        (&never, Method::CreateMessage, tools, LATEST_LEGACY, "sampling.tools"),
        (&never, Method::Elicit, page.clone(), old, "elicitation.url"),
    ] {
        let error = answered(builder, method, asked, revision).await.unwrap_err();
        assert_eq!(error.code, -32602);
        assert!(error.message.contains(word), "{error}");
    }
    let forms_only = never.capabilities(forms);
    let error = answered(&forms_only, Method::Elicit, page, LATEST_LEGACY).await.unwrap_err();
    assert_eq!(error.code, -32602);
}

#[tokio::test]
async fn params_that_can_not_be_read_are_refused_by_name() {
    let all = everything();
    let wrong_property = form(json!({"age": {"type": "integer", "minimum": "low"}}));
    for (method, asked, place) in [
        (Method::CreateMessage, json!({"messages": [{"role": "user"}]}), "params.messages[0]"),
        (Method::CreateMessage, json!({"messages": []}), "`params`: missing field `maxTokens`"),
        (Method::Elicit, json!({"message": 5, "requestedSchema": {}}), "params.message"),
        (Method::Elicit, wrong_property, "params.requestedSchema.properties"),
        (Method::Elicit, json!({"mode": "dance"}), "params.mode"),
        (Method::ListRoots, json!({"_meta": 5}), "params._meta"),
    ] {
        let error = answered(&all, method, asked, LATEST_LEGACY).await.unwrap_err();
        assert_eq!(error.code, -32602, "{error}");
        assert!(error.message.contains(place), "{error}");
    }
}

#[tokio::test]
async fn a_callbacks_own_error_goes_out_as_it_is() {
    let busy = Client::builder()
        .on_sampling(async |_| Err(RpcError::new(-1, "User rejected sampling request")));
    let ask = json!({"messages": [], "maxTokens": 7});
    let error = answered(&busy, Method::CreateMessage, ask, LATEST_LEGACY).await.unwrap_err();
    assert_eq!((error.code, &*error.message), (-1, "User rejected sampling request"));
}

#[test]
fn what_nobody_registered_or_the_revision_lacks_has_no_answer() {
    let (none, all) = (Client::builder(), everything());
    let has = |builder: &ClientBuilder, method, revision| {
        builder.callbacks.answer(method, &Params::default(), revision).is_some()
    };
    for method in [Method::CreateMessage, Method::Elicit, Method::ListRoots] {
        assert!(!has(&none, method, LATEST_LEGACY));
        assert!(has(&all, method, LATEST_LEGACY));
        // Questions of the modern era come inside results; the same callbacks answer them.
        assert!(has(&all, method, Revision::LATEST));
    }
    assert!(!has(&all, Method::Elicit, Revision::V2025_03_26));
    assert!(!has(&all, Method::CallTool, LATEST_LEGACY));
}
