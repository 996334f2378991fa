//! What is read of a result that asks, and what is sent again, without a wire.

use serde_json::{Value, json};
use turnbuckle_types::{ElicitAction, ElicitResult, Root, RpcError};

use super::*;
use crate::{Client, ClientBuilder};

fn read(result: &str) -> Result<Option<ServerInputRequest>> {
    asked("tools/call", &Raw::from_json(result).unwrap())
}

async fn retried(result: Value, builder: ClientBuilder) -> Result<String> {
    let asked = read(&result.to_string()).unwrap().unwrap();
    let call = ("tools/call", r#"{"name":"t"}"#);
    asked.answered(call, &builder.callbacks, Revision::LATEST).await
}

fn form() -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}},
    }})
}

#[test]
fn only_a_result_that_says_so_asks() {
    for complete in [
        r#"{"content":[]}"#,
        r#"{"resultType":"complete","inputRequests":{}}"#,
        r#"{"resultType":"task"}"#,
        r#"{"resultType":5}"#,
        "[]",
    ] {
        assert!(read(complete).unwrap().is_none(), "{complete}");
    }
    assert!(read(r#"{"resultType":"input\u005frequired","requestState":""}"#).unwrap().is_some());
}

#[test]
fn a_broken_question_is_the_servers_fault() {
    for members in [
        r#""x":1"#,
        r#""inputRequests":null,"requestState":null"#,
        r#""requestState":5"#,
        r#""inputRequests":[]"#,
        r#""inputRequests":{"a":{}}"#,
        r#""inputRequests":{"a":{"method":"roots/list","params":[]}}"#,
        r#""inputRequests":{"a":{"method":"roots/list"},"a":{"method":"roots/list"}}"#,
    ] {
        let error = read(&format!(r#"{{"resultType":"input_required",{members}}}"#)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{members}");
        assert!(error.to_string().contains("tools/call"), "{error}");
    }
}

#[test]
fn the_state_goes_back_byte_for_byte_and_only_if_there_is_one() {
    let state = r#""é\u00e9\/ \\ \ud83d\ude00 ""#;
    let spelled = Raw::from_json(state).unwrap();
    let text = again(r#"{"name":"t"}"#, None, Some(&spelled));
    assert_eq!(text, format!(r#"{{"name":"t","requestState":{state}}}"#));
    let asked = read(&format!(r#"{{"resultType":"input_required","requestState":{state}}}"#));
    assert_eq!(asked.unwrap().unwrap().state.unwrap().as_str(), state);
    assert_eq!(again("{}", Some(&[]), None), r#"{"inputResponses":{}}"#);
    let answers = [("a\"b".to_owned(), Raw::from(json!(1))), ("c".to_owned(), Raw::from(json!(2)))];
    assert_eq!(
        again("", Some(&answers), Some(&spelled)),
        format!(r#"{{"inputResponses":{{"a\"b":1,"c":2}},"requestState":{state}}}"#)
    );
}

#[tokio::test]
async fn answers_go_back_by_their_keys() {
    let asks = json!({"resultType": "input_required", "requestState": "s",
        "inputRequests": {"z": form(), "a": {"method": "roots/list"}}});
    let builder = Client::builder()
        .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Decline)))
        .roots([Root::new("file:///srv")]);
    let retry: Value = serde_json::from_str(&retried(asks, builder).await.unwrap()).unwrap();
    assert_eq!(
        retry,
        json!({"name": "t", "requestState": "s", "inputResponses": {
            "z": {"action": "decline"}, "a": {"roots": [{"uri": "file:///srv"}]},
        }})
    );
}

#[tokio::test]
async fn what_nobody_can_answer_is_named_before_anybody_is_asked() {
    for unknown in ["sampling/createMessage", "acme/own", "tools/call"] {
        let asks = json!({"resultType": "input_required",
            "inputRequests": {"a": form(), "b": {"method": unknown, "params": {}}}});
        let builder = Client::builder().on_elicitation(async |_| panic!("it must not be asked"));
        let error = retried(asks, builder).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert!(error.to_string().contains(unknown), "{error}");
    }
}

#[tokio::test]
async fn a_callbacks_failure_is_the_calls() {
    let asks = || json!({"resultType": "input_required", "inputRequests": {"a": form()}});
    let refuses = Client::builder().on_elicitation(async |_| Err(RpcError::new(-1, "not now")));
    let error = retried(asks(), refuses).await.unwrap_err();
    assert_eq!(error.as_rpc().unwrap(), &RpcError::new(-1, "not now"));
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("elicitation/create"), "{error}");
    let panics = Client::builder().on_elicitation(async |_| panic!("oh"));
    let error = retried(asks(), panics).await.unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
}

/// There is a callback, and it did answer.
#[tokio::test]
async fn an_answer_that_does_not_fit_the_form_is_told_so() {
    let mut asked = form();
    asked["params"]["requestedSchema"]["properties"] = json!({"age": {"type": "integer"}});
    let asks = json!({"resultType": "input_required", "inputRequests": {"a": asked}});
    let builder = Client::builder().on_elicitation(async |_| {
        let mut answer = ElicitResult::new(ElicitAction::Accept);
        answer.content = Some(json!({"age": "old"}).into());
        Ok(answer)
    });
    let error = retried(asks, builder).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let told = "this client's answer to `elicitation/create` does not fit the form: \
                `age` must be a number";
    assert_eq!(error.to_string(), told);
}

#[tokio::test]
async fn nobody_is_asked_too_much_at_once() {
    let many: serde_json::Map<String, Value> =
        (0..=QUESTIONS).map(|key| (key.to_string(), form())).collect();
    let asks = json!({"resultType": "input_required", "inputRequests": many});
    let builder = Client::builder().on_elicitation(async |_| panic!("it must not be asked"));
    assert_eq!(retried(asks, builder).await.unwrap_err().kind(), ErrorKind::Limit);
}
