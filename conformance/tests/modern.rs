//! What the suite's modern scenarios look at, without the suite.

use serde_json::json;
use turnbuckle::{Client, Revision};
use turnbuckle_conformance::server::server;

/// `input-required-result-validate-input` is content with any error, that of a tool which is not
/// there included: this is the one that it means.
#[tokio::test]
async fn an_answer_that_is_none_is_refused_by_the_tool_that_asks() {
    let able = serde_json::from_value(json!({"elicitation": {}})).unwrap();
    let builder = Client::builder().capabilities(able).revision(Revision::V2026_07_28);
    let client = builder.in_process(&server()).await.unwrap();
    let params = json!({"name": "test_input_required_result_elicitation", "arguments": {},
        "inputResponses": {"user_name": 12345}});
    let error = client.request("tools/call", params).await.unwrap_err();
    let error = error.as_rpc().unwrap();
    assert_eq!(error.code, -32602);
    assert!(error.message.contains("user_name"), "{error:?}");
}
