//! What becomes of clients when the server behind a bridge ends.

use serde_json::json;
use turnbuckle::{Client, Revision};

use crate::{
    script::{legacy, scripted},
    support::{MODERN, serve_http},
};

#[tokio::test]
async fn a_stream_is_answered_and_then_ended_with_an_error() {
    let (mut near, mut far, rest) = legacy(json!({}), json!({})).await;
    near.say(r#"{"jsonrpc":"2.0","id":1,"method":"acme/long"}"#).await;
    far.next("acme/long").await;
    drop(far);
    let (answer, _) = near.next("").await;
    assert_eq!(answer["id"], 1);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("the server behind this bridge"), "{message}");
    assert_eq!(near.line().await, "", "the stream has ended");
    let error = rest.serving.await.unwrap().unwrap_err();
    assert!(error.is_closed(), "{error}");
}

#[tokio::test]
async fn a_client_that_leaves_is_no_error() {
    let (near, mut far, rest) = legacy(json!({}), json!({})).await;
    drop(near);
    rest.serving.await.unwrap().unwrap();
    assert_eq!(far.line().await, "", "the server's connection has ended too");
}

#[tokio::test]
async fn over_http_the_server_is_started_again_up_to_a_limit() {
    let (bridge, mut dialed) = scripted(Revision::V2025_11_25);
    let serving = tokio::spawn(async move { serve_http(&bridge).await });
    let mut first = dialed.recv().await.unwrap();
    first.opened(json!({})).await;
    let mut far = Some(first);
    let url = serving.await.unwrap();
    let client = Client::builder().revision(MODERN).no_proxy().connect(url).await.unwrap();
    for start in 1..=5 {
        let calling = client.clone();
        let call = tokio::spawn(async move { calling.request("acme/long", ()).await });
        if start > 1 {
            let mut anew = dialed.recv().await.unwrap();
            anew.opened(json!({})).await;
            far = Some(anew);
        }
        far.as_mut().unwrap().next("acme/long").await;
        drop(far.take());
        let error = call.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("the server behind this bridge"), "{error}");
    }
    let error = client.request("acme/long", ()).await.unwrap_err();
    assert!(error.to_string().contains("not started again"), "{error}");
}
