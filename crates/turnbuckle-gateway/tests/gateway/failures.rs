//! What becomes of clients when the server behind a gateway ends.

use serde_json::json;
use turnbuckle::{Client, Revision};

use crate::{
    script::{legacy, scripted},
    support::{Fixture, LEGACY, MODERN, Wire, connect, gateway, serve_http},
};

#[tokio::test]
async fn a_stream_is_answered_and_then_ended_with_an_error() {
    let (mut downstream, mut upstream, rest) = legacy(json!({}), json!({})).await;
    downstream.say(r#"{"jsonrpc":"2.0","id":1,"method":"acme/long"}"#).await;
    upstream.next("acme/long").await;
    drop(upstream);
    let (answer, _) = downstream.next("").await;
    assert_eq!(answer["id"], 1);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("the server behind this gateway"), "{message}");
    assert_eq!(downstream.line().await, "", "the stream has ended");
    let error = rest.serving.await.unwrap().unwrap_err();
    assert!(error.is_closed(), "{error}");
}

#[tokio::test]
async fn a_client_that_leaves_is_no_error() {
    let (downstream, mut upstream, rest) = legacy(json!({}), json!({})).await;
    drop(downstream);
    rest.serving.await.unwrap().unwrap();
    assert_eq!(upstream.line().await, "", "the server's connection has ended too");
}

#[tokio::test]
async fn over_http_the_server_is_started_again_up_to_a_limit() {
    let (gateway, mut dialed) = scripted(Revision::V2025_11_25);
    let serving = tokio::spawn(async move { serve_http(&gateway).await });
    let mut first = dialed.recv().await.unwrap();
    first.opened(json!({})).await;
    let mut upstream = Some(first);
    let url = serving.await.unwrap();
    let client = Client::builder().revision(MODERN).no_proxy().connect(url).await.unwrap();
    for start in 1..=5 {
        let calling = client.clone();
        let call = tokio::spawn(async move { calling.request("acme/long", ()).await });
        if start > 1 {
            let mut anew = dialed.recv().await.unwrap();
            anew.opened(json!({})).await;
            upstream = Some(anew);
        }
        upstream.as_mut().unwrap().next("acme/long").await;
        drop(upstream.take());
        let error = call.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("the server behind this gateway"), "{error}");
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
    for downstream in [MODERN, LEGACY] {
        for upstream in [MODERN, LEGACY] {
            let before = settled(0).await;
            let gateway = gateway(&Fixture::default().server(), (Wire::Stream, upstream)).await;
            let client = connect(Client::builder(), &gateway, (Wire::Stream, downstream)).await;
            client.call_tool("echo", ()).await.unwrap();
            if downstream == LEGACY {
                let watched = json!({"uri": "note://1"});
                client.request("resources/subscribe", watched).await.unwrap();
            }
            client.close().await;
            assert_eq!(settled(before).await, before, "{downstream} {upstream}");
        }
    }
}

/// Nothing waits for a server that neither reads nor answers once its client is gone.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_keeps_nothing_alive() {
    let before = settled(0).await;
    let (mut downstream, upstream, rest) = legacy(json!({}), json!({})).await;
    let news = format!(
        r#"{{"jsonrpc":"2.0","method":"acme/news","params":{{"n":"{}"}}}}"#,
        "x".repeat(10_000)
    );
    for _ in 0..50 {
        downstream.say(&news).await;
    }
    drop(downstream);
    let _ = rest.serving.await.unwrap();
    assert_eq!(settled(before).await, before);
    drop(upstream);
}

/// A client that leaves while its server is being started does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_being_made_is_given_up_with_its_client() {
    let before = settled(0).await;
    let (gateway, mut dialed) = scripted(LEGACY);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(async move { gateway.serve(theirs).await });
    let mut downstream = crate::script::Script::over(ours);
    downstream.open(json!({})).await;
    let mut upstream = dialed.recv().await.unwrap();
    upstream.next("initialize").await;
    downstream.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    drop(downstream);
    let _ = serving.await.unwrap();
    assert_eq!(upstream.line().await, "", "the server's connection has ended");
    assert_eq!(settled(before).await, before);
}
