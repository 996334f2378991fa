//! What observers of a client see of things that no call waits for.

#![cfg(feature = "client")]

#[path = "common/fields.rs"]
mod fields;
#[path = "common/heard.rs"]
mod heard;

use std::sync::{Arc, Mutex, mpsc};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use turnbuckle::{Client, Revision};

use fields::Fields;
use heard::heard_by;

/// Keeps what is told as a warning.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<Fields>>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::WARN {
            let mut fields = Fields::default();
            event.record(&mut fields);
            self.0.lock().unwrap().push(fields);
        }
    }
}

/// A server of shell that prints what is none of the protocol's, before its first word and after.
#[cfg(unix)]
const CHATTY: &str = r#"
    printf 'Server starting\033[0m\n'
    read -r probe
    echo 'second line'
    echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    read -r hello
    echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}'
    cat > /dev/null
"#;

#[cfg(unix)]
#[tokio::test]
async fn what_a_child_prints_that_is_no_message_is_warned_of_once() {
    let warnings = Warnings::default();
    let _heard = heard_by(tracing_subscriber::registry().with(warnings.clone()));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", CHATTY]);
    let client = Client::spawn(command).await.unwrap();
    assert_eq!(client.counters().unreadable, 2);
    client.close().await;
    let told = std::mem::take(&mut *warnings.0.lock().unwrap());
    assert_eq!(told.len(), 1, "{:?}", told.iter().map(|fields| &fields.0).collect::<Vec<_>>());
    assert_eq!(told[0].0["program"], "sh");
    assert_eq!(told[0].0["line"], r"Server starting\u{1b}[0m");
    for part in ["standard output belongs to the protocol", "print to standard error"] {
        assert!(told[0].0["message"].contains(part), "{}", told[0].0["message"]);
    }
}

/// Whoever is at the other end of a stream has no standard output that we know of.
#[tokio::test]
async fn what_comes_over_another_stream_is_not_warned_of() {
    let warnings = Warnings::default();
    let _heard = heard_by(tracing_subscriber::registry().with(warnings.clone()));
    let (ours, mut theirs) = tokio::io::duplex(4096);
    theirs.write_all(b"hello\n").await.unwrap();
    theirs.shutdown().await.unwrap();
    let error = Client::builder().over(ours).await.unwrap_err();
    assert!(error.to_string().contains("`hello`, which is no message"), "{error}");
    assert!(warnings.0.lock().unwrap().is_empty());
}

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
