//! What observers of a client see of things that no call waits for.

#![cfg(feature = "client")]

use std::sync::mpsc;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use turnbuckle::{Client, Revision};

#[tokio::test]
async fn a12a_errors_without_an_id_reach_their_observer_and_are_counted() {
    let (ours, theirs) = tokio::io::duplex(4096);
    let (tell, told) = mpsc::channel();
    let client = Client::builder()
        .revision(Revision::LATEST)
        .on_stray_error(move |error| tell.send(error.code).expect("the test listens"))
        .over(ours)
        .await
        .expect("a pinned modern revision needs no words");
    let (read, mut write) = tokio::io::split(theirs);
    let call = tokio::spawn(client.request("x/y", ()).into_future());
    let mut lines = BufReader::new(read).lines();
    let request = lines.next_line().await.expect("a line").expect("not the end");
    assert!(request.contains("\"x/y\""), "{request}");
    let answers = concat!(
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a"}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"b"}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        "\n",
    );
    write.write_all(answers.as_bytes()).await.expect("it is read");
    call.await.expect("no panic").expect("its own answer came");
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [-32700, -32600]);
    assert_eq!(client.counters().stray_errors, 2);
}
