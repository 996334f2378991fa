//! What becomes of clients when the server behind a bridge ends.

use serde_json::json;
use turnbuckle::{Client, Revision};

use crate::{
    script::{legacy, scripted},
    support::{Fixture, LEGACY, MODERN, Wire, bridge, connect, serve_http},
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

/// How many tasks there are once there are no more than so many, or everything that can has run and
/// seconds of paused time have passed.
async fn settled(most: usize) -> usize {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..500 {
        if tasks() <= most {
            break;
        }
        // All others run before this does again.
        tokio::time::advance(std::time::Duration::from_millis(10)).await;
    }
    tasks()
}

#[tokio::test(start_paused = true)]
async fn every_task_ends_with_the_connection_that_it_runs_for() {
    for near in [MODERN, LEGACY] {
        for far in [MODERN, LEGACY] {
            let before = settled(0).await;
            let bridge = bridge(&Fixture::default().server(), (Wire::Stream, far)).await;
            let client = connect(Client::builder(), &bridge, (Wire::Stream, near)).await;
            client.call_tool("echo", ()).await.unwrap();
            if near == LEGACY {
                let watched = json!({"uri": "note://1"});
                client.request("resources/subscribe", watched).await.unwrap();
            }
            client.close().await;
            assert_eq!(settled(before).await, before, "{near} {far}");
        }
    }
}

/// Nothing waits for a server that neither reads nor answers once its client is gone.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_keeps_nothing_alive() {
    let before = settled(0).await;
    let (mut near, far, rest) = legacy(json!({}), json!({})).await;
    let news = format!(
        r#"{{"jsonrpc":"2.0","method":"acme/news","params":{{"n":"{}"}}}}"#,
        "x".repeat(10_000)
    );
    for _ in 0..50 {
        near.say(&news).await;
    }
    drop(near);
    let _ = rest.serving.await.unwrap();
    assert_eq!(settled(before).await, before);
    drop(far);
}

/// A client that leaves while its server is being started does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_being_made_is_given_up_with_its_client() {
    let before = settled(0).await;
    let (bridge, mut dialed) = scripted(LEGACY);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(async move { bridge.serve(theirs).await });
    let mut near = crate::script::Script::over(ours);
    near.open(json!({})).await;
    let mut far = dialed.recv().await.unwrap();
    far.next("initialize").await;
    near.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    drop(near);
    let _ = serving.await.unwrap();
    assert_eq!(far.line().await, "", "the server's connection has ended");
    assert_eq!(settled(before).await, before);
}
