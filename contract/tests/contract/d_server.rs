//! CANCELLATION D, and A and E where a session spells them its own way, on the server's side: the
//! fixture is real, its client is a socket and the bytes that are written to it.

use std::{future::IntoFuture, net::SocketAddr};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use turnbuckle::Limits;
use turnbuckle_contract::{Count, Fixture, server};

use crate::rig::{eventually, within};

const DROPPED: Count = Count { started: 1, finished: 0, dropped: 1, cancelled: 0, reached: 0 };
const FINISHED: Count = Count { started: 1, finished: 1, dropped: 0, cancelled: 0, reached: 0 };

/// A fixture that serves at an address, and a session that was opened there.
struct Session {
    address: SocketAddr,
    fixture: Fixture,
    id: String,
}

impl Session {
    async fn open() -> Session {
        let fixture = Fixture::default();
        let bound =
            server(&fixture, Limits::default()).serve_http("127.0.0.1:0").bind().await.unwrap();
        let address = bound.local_addr().unwrap();
        tokio::spawn(bound.into_future());
        let id = initialize(address, "2025-11-25").await;
        Session { address, fixture, id }
    }

    /// Another session at the same server.
    async fn another(&self) -> Session {
        let id = initialize(self.address, "2025-11-25").await;
        Session { address: self.address, fixture: self.fixture.clone(), id }
    }

    async fn post(&self, message: &Value) -> Answer {
        self.send("POST", "", &message.to_string()).await
    }

    /// Opens a stream: the one of no request, or what followed on an event.
    async fn get(&self, last_event: Option<&str>) -> Answer {
        let header = last_event.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        self.send("GET", &header, "").await
    }

    async fn send(&self, method: &str, headers: &str, body: &str) -> Answer {
        let headers =
            format!("Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-11-25\r\n{headers}", self.id);
        send(self.address, method, &headers, body).await
    }

    async fn cancel(&self, id: Value) {
        let params = json!({"requestId": id, "reason": "no longer wanted"});
        let answer = self.post(&note("notifications/cancelled", params)).await;
        assert_eq!(answer.whole().await.0, 202);
    }

    /// Calls a tool that holds, and waits until its handler runs.
    async fn hold(&self, id: Value, key: &str) -> Answer {
        let before = self.fixture.of(key).started;
        let mut answer = self.post(&call(id, "hold", json!({"key": key}))).await;
        answer.until("\r\n\r\n").await;
        eventually(|| self.fixture.of(key).started > before).await;
        answer
    }
}

/// What comes back on a connection that serves one request.
struct Answer {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Answer {
    /// Reads until the text is there.
    async fn until(&mut self, text: &str) -> String {
        loop {
            let read = String::from_utf8_lossy(&self.read).into_owned();
            if read.contains(text) {
                return read;
            }
            assert_ne!(self.stream.read_buf(&mut self.read).await.unwrap(), 0, "ended: {read}");
        }
    }

    /// Everything to the end of the connection: the status, and all of the text.
    async fn whole(mut self) -> (u16, String) {
        self.stream.read_to_end(&mut self.read).await.unwrap();
        let text = String::from_utf8(self.read).unwrap();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status line"), text)
    }

    /// The id of the first event.
    async fn first_event(&mut self) -> String {
        let read = self.until("data:").await;
        let id = read.lines().find_map(|line| line.strip_prefix("id: "));
        id.expect("an event with an id").trim().to_owned()
    }
}

async fn send(address: SocketAddr, method: &str, headers: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    Answer { stream, read: Vec::new() }
}

/// Opens a session; gives its id.
async fn initialize(address: SocketAddr, version: &str) -> String {
    let params = json!({
        "protocolVersion": version,
        "capabilities": {"roots": {}, "sampling": {}, "elicitation": {}},
        "clientInfo": {"name": "socket", "version": "1"},
    });
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let (status, text) = send(address, "POST", "", &message.to_string()).await.whole().await;
    assert_eq!(status, 200, "{text}");
    let find = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
    };
    text.lines().find_map(find).expect("a session id")
}

fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn call(id: Value, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "token"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[tokio::test]
async fn d29_a_posted_cancel_stops_the_handler_and_nothing_else() {
    within(async {
        let session = Session::open().await;
        let gone = session.hold(json!(1), "gone").await;
        let mut other = session.hold(json!(2), "other").await;
        session.cancel(json!(1)).await;
        eventually(|| session.fixture.of("gone") == DROPPED).await;
        let (_, text) = gone.whole().await;
        assert!(!text.contains(r#""id":1"#) && !text.contains("-32800"), "{text}");
        session.fixture.release("other");
        other.until(r#""id":2"#).await;
        assert_eq!(session.fixture.of("other"), FINISHED);
    })
    .await;
}

#[tokio::test]
async fn d29_a_cancel_in_another_session_or_without_one_cancels_nothing() {
    within(async {
        let session = Session::open().await;
        let mut held = session.hold(json!(1), "k").await;
        session.another().await.cancel(json!(1)).await;
        let cancel = note("notifications/cancelled", json!({"requestId": 1})).to_string();
        let (status, text) = send(session.address, "POST", "", &cancel).await.whole().await;
        assert_eq!(status, 400, "{text}");
        session.fixture.release("k");
        held.until(r#""id":1"#).await;
        assert_eq!(session.fixture.of("k"), FINISHED);
    })
    .await;
}

#[tokio::test]
async fn b18_a_cancel_that_names_nothing_is_accepted_and_ignored() {
    within(async {
        let session = Session::open().await;
        let mut held = session.hold(json!(1), "k").await;
        for nothing in [json!(2), json!("x"), json!(true), json!(1.5), json!(null), json!([1])] {
            session.cancel(nothing).await;
        }
        session.fixture.release("k");
        held.until(r#""id":1"#).await;
        session.cancel(json!(1)).await;
        assert_eq!(session.fixture.of("k"), FINISHED);
    })
    .await;
}

#[tokio::test]
async fn a05_a_cancel_may_spell_the_id_as_text() {
    within(async {
        let session = Session::open().await;
        let _held = session.hold(json!(7), "k").await;
        session.cancel(json!("7")).await;
        eventually(|| session.fixture.of("k") == DROPPED).await;
    })
    .await;
}

// req: transport:streamable-http:cancelled-request-terminated
#[tokio::test]
async fn d30_a_cancelled_stream_ends_and_its_events_are_forgotten() {
    within(async {
        let session = Session::open().await;
        let mut held =
            session.post(&call(json!(1), "progress_then_hold", json!({"key": "k", "n": 3}))).await;
        let first = held.first_event().await;
        held.until(r#""progress":3"#).await;
        session.cancel(json!(1)).await;
        let (status, text) = held.whole().await;
        assert_eq!(status, 200);
        assert!(!text.contains(r#""result""#) && !text.contains(r#""error""#), "{text}");
        let (status, text) = session.get(Some(&first)).await.whole().await;
        assert_eq!(status, 200, "{text}");
        assert!(!text.contains("data:"), "an ended, empty stream: {text}");
    })
    .await;
}

// req: hosting:http:disconnect-not-cancel
#[tokio::test]
async fn d31_a_disconnect_is_not_a_cancel_and_the_answer_can_be_resumed() {
    within(async {
        let session = Session::open().await;
        let mut held = session.hold(json!(1), "k").await;
        let primed = held.first_event().await;
        drop(held);
        session.fixture.release("k");
        eventually(|| session.fixture.of("k") == FINISHED).await;
        let (status, text) = session.get(Some(&primed)).await.whole().await;
        assert_eq!(status, 200, "{text}");
        assert!(text.contains(r#""id":1"#), "{text}");
        // Once more: it was not used up.
        let (_, again) = session.get(Some(&primed)).await.whole().await;
        assert!(again.contains(r#""id":1"#), "{again}");
    })
    .await;
}

// req: hosting:resume:replay
#[tokio::test]
async fn d31_a_resumed_stream_goes_on_live_and_in_order() {
    within(async {
        let session = Session::open().await;
        let ask = call(json!(1), "progress_then_hold", json!({"key": "k", "n": 5}));
        let mut held = session.post(&ask).await;
        let primed = held.first_event().await;
        held.until(r#""progress":2"#).await;
        drop(held);
        let mut resumed = session.get(Some(&primed)).await;
        resumed.until(r#""progress":5"#).await;
        session.fixture.release("k");
        let (_, text) = resumed.whole().await;
        let places: Vec<_> = (1..=5)
            .map(|n| text.find(&format!(r#""progress":{n}"#)).expect("every step"))
            .collect();
        assert!(places.is_sorted(), "{text}");
        let answer = text.find(r#""id":1"#).expect("the answer");
        assert!(*places.last().unwrap() < answer, "{text}");
        assert_eq!(text.matches(r#""progress":2"#).count(), 1, "{text}");
    })
    .await;
}

// req: hosting:resume:stream-scoped, hosting:resume:bad-event-id
#[tokio::test]
async fn replay_is_of_that_stream_of_that_session_only() {
    within(async {
        let session = Session::open().await;
        let mut one = session.hold(json!("first"), "one").await;
        let mut two = session.hold(json!("second"), "two").await;
        let (primed, other) = (one.first_event().await, two.first_event().await);
        drop((one, two));
        session.fixture.release("one");
        session.fixture.release("two");
        eventually(|| session.fixture.ledger().in_flight == 0).await;
        let (_, text) = session.get(Some(&primed)).await.whole().await;
        assert!(text.contains("first") && !text.contains("second"), "{text}");
        let stranger = session.another().await;
        for event in [&primed, &other] {
            let (_, text) = stranger.get(Some(event)).await.whole().await;
            assert!(!text.contains("first") && !text.contains("second"), "{text}");
        }
        for junk in ["x", "1-2-3", "", "zzzzzzzzzzzzzzzz-1", "99999999999999999999-1"] {
            let (status, text) = session.get(Some(junk)).await.whole().await;
            assert_eq!(status, 400, "{junk}: {text}");
        }
    })
    .await;
}

#[tokio::test]
async fn a11_an_id_in_flight_is_refused_in_its_session_and_free_in_another() {
    within(async {
        let session = Session::open().await;
        let mut first = session.hold(json!(7), "one").await;
        let again = session.post(&call(json!("7"), "hold", json!({"key": "again"}))).await;
        let (_, text) = again.whole().await;
        assert!(text.contains("-32600") && text.contains(r#""id":"7""#), "{text}");
        assert_eq!(session.fixture.of("again").started, 0);
        let mut elsewhere = session.another().await.hold(json!(7), "two").await;
        session.fixture.release("one");
        session.fixture.release("two");
        first.until(r#""id":7"#).await;
        elsewhere.until(r#""id":7"#).await;
        // Free again.
        session.fixture.release("three");
        let mut third = session.post(&call(json!(7), "hold", json!({"key": "three"}))).await;
        third.until(r#""id":7"#).await;
    })
    .await;
}

// req: transport:streamable-http:server-to-client
#[tokio::test]
async fn e35_a_question_goes_out_on_the_stream_of_its_request_and_is_answered_by_a_post() {
    within(async {
        let session = Session::open().await;
        let mut asked =
            session.post(&call(json!(1), "ask", json!({"key": "k", "method": "roots/list"}))).await;
        let text = asked.until(r#""method":"roots/list""#).await;
        let id = question(&text);
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}});
        let (status, _) = session.post(&answer).await.whole().await;
        assert_eq!(status, 202);
        let text = asked.until(r#""id":1"#).await;
        assert!(text.contains("roots"), "{text}");
        // A second answer is late: taken, and dropped.
        assert_eq!(session.post(&answer).await.whole().await.0, 202);
        assert_eq!(session.fixture.of("k"), FINISHED);
    })
    .await;
}

#[tokio::test]
async fn e35_a_question_that_is_given_up_is_cancelled_once_on_the_same_stream() {
    within(async {
        let session = Session::open().await;
        let mut asked =
            session.post(&call(json!(1), "ask", json!({"key": "k", "method": "roots/list"}))).await;
        let text = asked.until(r#""method":"roots/list""#).await;
        let id = question(&text);
        session.fixture.release("k");
        let (_, text) = asked.whole().await;
        assert_eq!(text.matches("notifications/cancelled").count(), 1, "{text}");
        assert!(text.contains(&format!(r#""requestId":{id}"#)), "{text}");
        assert!(text.contains("gave up"), "{text}");
    })
    .await;
}

/// The id of the question in the text of a stream.
fn question(text: &str) -> Value {
    let asks = |data: &str| {
        serde_json::from_str::<Value>(data).ok().filter(|m| m["method"] == "roots/list")
    };
    let found = text.lines().filter_map(|line| line.strip_prefix("data: ")).find_map(asks);
    found.expect("the question")["id"].clone()
}

// req: hosting:session:delete, hosting:session:delete-cancels-inflight
// req: hosting:session:post-termination-404, hosting:session:isolation
#[tokio::test]
async fn ending_a_session_stops_what_runs_in_it_and_only_that() {
    within(async {
        let session = Session::open().await;
        let other = session.another().await;
        let held = session.hold(json!(1), "one").await;
        let mut elsewhere = other.hold(json!(1), "two").await;
        let stream = session.get(None).await;
        let (status, text) = session.send("DELETE", "", "").await.whole().await;
        assert!(matches!(status, 200 | 202 | 204), "{text}");
        eventually(|| session.fixture.of("one") == DROPPED).await;
        let (_, text) = held.whole().await;
        assert!(!text.contains(r#""id":1"#), "{text}");
        stream.whole().await;
        for again in [
            session.post(&call(json!(2), "echo", json!({"text": "x"}))).await,
            session.get(None).await,
            session.send("DELETE", "", "").await,
        ] {
            assert_eq!(again.whole().await.0, 404);
        }
        session.fixture.release("two");
        elsewhere.until(r#""id":1"#).await;
    })
    .await;
}

// req: hosting:session:missing-id, hosting:session:unknown-id, hosting:http:protocol-version-400
#[tokio::test]
async fn a_request_without_a_session_is_400_and_with_an_unknown_one_404() {
    within(async {
        let session = Session::open().await;
        let echo = call(json!(1), "echo", json!({"text": "x"})).to_string();
        let version = "MCP-Protocol-Version: 2025-11-25\r\n";
        let (status, text) = send(session.address, "POST", version, &echo).await.whole().await;
        assert_eq!(status, 400, "{text}");
        let mut forged = session.id.clone();
        let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
        forged.push(last);
        let long = "x".repeat(4000);
        for unknown in
            ["x", "..", forged.as_str(), long.as_str(), "0123456789abcdef0123456789abcdef"]
        {
            let headers = format!("{version}Mcp-Session-Id: {unknown}\r\n");
            let (status, text) = send(session.address, "POST", &headers, &echo).await.whole().await;
            assert_eq!(status, 404, "{text}");
        }
        let headers =
            format!("Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 1999-01-01\r\n", session.id);
        let (status, text) = send(session.address, "POST", &headers, &echo).await.whole().await;
        assert_eq!(status, 400, "{text}");
        let headers = format!("Mcp-Session-Id: {}\r\n", session.id);
        let (status, text) = send(session.address, "POST", &headers, &echo).await.whole().await;
        assert_eq!(status, 200, "without a version it is the session's: {text}");
    })
    .await;
}

// req: hosting:session:reinitialize
#[tokio::test]
async fn a_second_initialize_in_a_session_is_refused_and_one_without_opens_another() {
    within(async {
        let session = Session::open().await;
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "socket", "version": "1"},
        });
        let again = json!({"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": params});
        let (status, text) = session.post(&again).await.whole().await;
        assert_eq!(status, 400, "{text}");
        assert!(text.contains("-32600"), "{text}");
        assert_ne!(session.another().await.id, session.id);
        let (status, _) =
            session.post(&call(json!(1), "echo", json!({"text": "x"}))).await.whole().await;
        assert_eq!(status, 200, "the first one lives");
    })
    .await;
}

// req: hosting:http:second-sse-rejected, hosting:http:no-broadcast
#[tokio::test]
async fn a_newer_get_stream_replaces_the_older_and_changes_are_told_once() {
    within(async {
        let session = Session::open().await;
        let mut older = session.get(None).await;
        older.until("\r\n\r\n").await;
        let mut newer = session.get(None).await;
        newer.until("\r\n\r\n").await;
        let (_, text) = older.whole().await;
        assert!(!text.contains("list_changed"), "{text}");
        session.fixture.touch();
        let text = newer.until("notifications/tools/list_changed").await;
        assert_eq!(text.matches("list_changed").count(), 1, "{text}");
    })
    .await;
}

// req: hosting:http:legacy-no-modern-vocabulary
#[tokio::test]
async fn a_session_speaks_no_modern_word() {
    const MODERN: &[&str] = &[
        "io.modelcontextprotocol/",
        "resultType",
        "ttlMs",
        "cacheScope",
        "subscriptionId",
        "mcp-method",
        "mcp-name",
        "2026-07-28",
    ];
    within(async {
        let session = Session::open().await;
        let mut said = String::new();
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let level = json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "debug"}});
        let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
        for message in [
            list,
            level,
            ping,
            call(json!(4), "add", json!({"a": 1, "b": 2})),
            call(json!(5), "progress", json!({"n": 3})),
            call(json!(6), "log", json!({"text": "hello"})),
            call(json!(7), "fail", json!({"text": "no"})),
            call(json!(8), "refuse", json!({})),
            call(json!(9), "nothing", json!({})),
            json!({"jsonrpc": "2.0", "id": 10, "method": "server/discover"}),
            json!({"jsonrpc": "2.0", "id": 11, "method": "subscriptions/listen", "params": {}}),
        ] {
            let (_, text) = session.post(&message).await.whole().await;
            said.push_str(&text.to_lowercase());
        }
        assert!(said.contains("notifications/progress") && said.contains("notifications/message"));
        for word in MODERN {
            let found = said.find(&word.to_lowercase());
            assert_eq!(found, None, "`{word}` in {}", &said[found.unwrap_or_default()..][..80]);
        }
    })
    .await;
}
