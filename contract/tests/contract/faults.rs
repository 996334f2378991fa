//! What a session costs when nobody comes back for it, and what a caller is told when its server
//! dies.

use std::{
    future::IntoFuture,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use turnbuckle::{Client, ErrorKind, Limits};
use turnbuckle_contract::{Fixture, server};

use crate::rig::{alone, pinned, program, within};

/// How far memory may rise over 10,000 sessions: 100 bytes for each. What leaks, leaks each time.
const SLACK: u64 = 1 << 20;

#[test]
fn ten_thousand_sessions_opened_and_abandoned_leave_nothing() {
    let name =
        concat!(module_path!(), "::ten_thousand_sessions_opened_and_abandoned_leave_nothing");
    alone(name, async {
        let fixture = Fixture::default();
        let bound =
            server(&fixture, Limits::default()).serve_http("127.0.0.1:0").bind().await.unwrap();
        let address = bound.local_addr().unwrap();
        tokio::spawn(bound.into_future());
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut levels = Vec::new();
        // First to warm up: buffers keep the room they once needed.
        for sessions in [2_000, 10_000, 10_000, 10_000, 10_000] {
            for _ in 0..sessions {
                open(&mut stream).await;
            }
            levels.push(fixture.ledger().resident_bytes);
            let rises = levels.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
            if rises.min().is_some_and(|rise| rise < SLACK) {
                return;
            }
        }
        panic!("bytes after each 10,000: {levels:?}");
    });
}

/// Opens a session and forgets it.
async fn open(stream: &mut TcpStream) {
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}, "sampling": {}},
        "clientInfo": {"name": "socket", "version": "1"},
    }})
    .to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"}}") {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "ended");
    }
    let text = String::from_utf8_lossy(&read).to_lowercase();
    assert!(text.contains("mcp-session-id"), "{text}");
}

/// A fixture in a process of its own, which dies with this.
struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start() -> Process {
        let mut command = program();
        let mut child = command.args(["--http", "1"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Process { child, url: url.trim().to_owned() }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The best of a few: the machine may be busy with something else.
#[tokio::test]
async fn a_caller_learns_of_a_killed_server_within_a_tenth_of_a_second_in_either_era() {
    for era in [turnbuckle::types::Era::Legacy, turnbuckle::types::Era::Modern] {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            best = best.min(within(killed(era)).await);
            if best < Duration::from_millis(100) {
                break;
            }
        }
        assert!(best < Duration::from_millis(100), "{era:?}: {best:?}");
    }
}

async fn killed(era: turnbuckle::types::Era) -> Duration {
    let mut process = Process::start();
    let builder = Client::builder().revision(pinned(era)).no_proxy();
    let client = builder.connect(&process.url).await.unwrap();
    let call = client.call_tool("progress_then_hold", json!({"key": "k", "n": 1}));
    let (told, running) = tokio::sync::oneshot::channel();
    let mut told = Some(told);
    let call = call.on_progress(move |_| {
        let _ = told.take().map(|told| told.send(()));
    });
    let call = tokio::spawn(call.into_future());
    running.await.unwrap();
    process.kill();
    let since = Instant::now();
    let error = call.await.unwrap().unwrap_err();
    let waited = since.elapsed();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    assert!(error.maybe_executed(), "it ran: {error}");
    waited
}
