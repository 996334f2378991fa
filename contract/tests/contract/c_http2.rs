//! Abandoning a request over HTTP/2: its stream is reset, and nothing else happens to the
//! connection.

use h2::Reason;
use serde_json::json;
use tokio::sync::oneshot;
use turnbuckle::Client;

use crate::{
    raw::said,
    rig::within,
    secure::{Authority, Http2, Stream},
    web::{abandon, launch, modern, settle},
};

/// A client of a server that speaks HTTP/2, with one connection between them.
async fn connected() -> (Http2, Client) {
    let authority = Authority::new();
    let mut server = Http2::new(&authority).await;
    let client = modern().tls_root(authority.pem).connect(server.url()).await.unwrap();
    let first = launch(client.call_tool("first", ()));
    let mut stream = server.request().await;
    assert_eq!(stream.head.version, http::Version::HTTP_2);
    assert_eq!(stream.head.headers["mcp-name"], "first");
    stream.result(said("first"));
    first.await.unwrap().unwrap();
    (server, client)
}

/// Abandons a call that `reach` has brought to its stage, while another one runs.
async fn abandoned(text: String, reach: impl AsyncFnOnce(&mut Stream, oneshot::Receiver<()>)) {
    let (mut server, client) = connected().await;
    let other = launch(client.call_tool("other", ()));
    let mut other_stream = server.request().await;
    let (tell, heard) = oneshot::channel();
    let mut tell = Some(tell);
    let call = client
        .call_tool("abandoned", json!({"text": text}))
        .on_progress(move |_| tell.take().unwrap().send(()).unwrap());
    let call = launch(call);
    let mut stream = server.head().await;
    reach(&mut stream, heard).await;
    settle().await;
    abandon(call).await;
    assert_eq!(stream.reset().await, Reason::CANCEL);
    if stream.body.is_null() {
        assert_eq!(stream.read().await.unwrap_err().reason(), Some(Reason::CANCEL));
    }

    assert!(!other.is_finished());
    other_stream.result(said("undisturbed"));
    assert_eq!(other.await.unwrap().unwrap().to_text(), "undisturbed");
    let later = launch(client.call_tool("later", ()));
    let mut stream = server.request().await;
    assert_eq!(stream.body["params"]["name"], "later", "something else was posted");
    stream.result(said("later"));
    later.await.unwrap().unwrap();
    drop(client);
    settle().await;
    assert!(!server.has_more(), "something else was posted");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn c21_dropped_while_it_is_being_sent() {
    // More than fits into the window of a server that does not read.
    within(abandoned("x".repeat(1 << 20), async |_, _| {})).await;
}

#[tokio::test]
async fn c21_dropped_while_the_head_is_awaited() {
    within(abandoned(String::new(), async |stream, _| stream.read().await.unwrap())).await;
}

#[tokio::test]
async fn c21_dropped_in_the_middle_of_json() {
    within(abandoned(String::new(), async |stream, _| {
        stream.read().await.unwrap();
        stream.begin("application/json");
        stream.say("{\"jsonrpc\":");
    }))
    .await;
}

#[tokio::test]
async fn c21_dropped_in_the_middle_of_a_stream() {
    within(abandoned(String::new(), async |stream, heard| {
        stream.read().await.unwrap();
        stream.begin("text/event-stream");
        let token = &stream.body["params"]["_meta"]["progressToken"];
        let params = json!({"progressToken": token, "progress": 1});
        let progress =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        stream.say(format!("data: {progress}\n\n"));
        heard.await.unwrap();
    }))
    .await;
}

#[tokio::test]
async fn c21_a_hundred_streams_are_reset_and_the_connection_lives() {
    within(async {
        let (mut server, client) = connected().await;
        let calls: Vec<_> = (0..100).map(|_| launch(client.call_tool("many", ()))).collect();
        let mut streams = Vec::new();
        for _ in 0..100 {
            streams.push(server.request().await);
        }
        for call in calls {
            abandon(call).await;
        }
        for mut stream in streams {
            assert_eq!(stream.reset().await, Reason::CANCEL);
        }
        let later = launch(client.call_tool("later", ()));
        server.request().await.result(said("later"));
        assert_eq!(later.await.unwrap().unwrap().to_text(), "later");
        assert_eq!(server.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn c23_an_outgoing_cancel_resets_the_stream_it_names() {
    within(async {
        let (mut server, client) = connected().await;
        let call = launch(client.call_tool("t", ()).request_id(5));
        let mut stream = server.request().await;
        client.notify("notifications/cancelled", json!({"requestId": 5})).await.unwrap();
        assert!(call.await.unwrap().unwrap_err().is_closed());
        assert_eq!(stream.reset().await, Reason::CANCEL);
        settle().await;
        assert!(!server.has_more());
        assert_eq!(server.connections(), 1);
    })
    .await;
}
