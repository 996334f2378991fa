//! CANCELLATION C, and A and E where HTTP spells them its own way, on the server's side: the
//! fixture is real, its client is a socket and the bytes that are written to it.

use std::{future::IntoFuture, net::SocketAddr, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use turnbuckle::{Limits, http::HttpReport};
use turnbuckle_contract::{Count, Fixture, server};

use crate::rig::{eventually, within};

const DROPPED: Count = Count { started: 1, finished: 0, dropped: 1, cancelled: 0, reached: 0 };

/// A fixture that serves at an address.
struct Served {
    address: SocketAddr,
    fixture: Fixture,
    serving: tokio::task::JoinHandle<turnbuckle::Result<HttpReport>>,
}

/// `deadline` is how long calls may go on once it leaves.
async fn serve(deadline: Duration) -> Served {
    let fixture = Fixture::default();
    let serving = server(&fixture, Limits::default())
        .serve_http("127.0.0.1:0")
        .with_shutdown(fixture.leaving())
        .deadline(deadline);
    let bound = serving.bind().await.unwrap();
    let address = bound.local_addr().unwrap();
    Served { address, fixture, serving: tokio::spawn(bound.into_future()) }
}

/// A socket, as a client that knows only HTTP/1.1 would hold it.
struct Socket {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Socket {
    async fn connect(address: SocketAddr) -> Socket {
        Socket { stream: TcpStream::connect(address).await.unwrap(), read: Vec::new() }
    }

    async fn post(&mut self, message: &Value) {
        self.stream.write_all(&bytes(message)).await.unwrap();
    }

    /// Reads until `wish` holds for everything that has come.
    async fn until(&mut self, wish: impl Fn(&str) -> bool) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.read).into_owned();
            if wish(&text) {
                return text;
            }
            assert_ne!(self.stream.read_buf(&mut self.read).await.unwrap(), 0, "ended: {text}");
        }
    }

    /// Everything up to the end.
    async fn rest(mut self) -> String {
        self.stream.read_to_end(&mut self.read).await.unwrap();
        String::from_utf8(self.read).unwrap()
    }
}

/// A message with the headers that it needs.
fn bytes(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {}\r\nContent-Length: {}\r\n",
        message["method"].as_str().unwrap(),
        body.len()
    );
    if let Some(name) = message["params"]["name"].as_str() {
        head.push_str(&format!("Mcp-Name: {name}\r\n"));
    }
    format!("{head}\r\n{body}").into_bytes()
}

fn request(id: Value, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": id,
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: Value, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn hold(id: Value, key: &str) -> Value {
    call(id, "hold", json!({"key": key}))
}

// req: hosting:stateless:concurrent-clients
#[tokio::test]
async fn a11_equal_ids_in_two_posts_are_both_served() {
    within(async {
        let served = serve(Duration::ZERO).await;
        let mut one = Socket::connect(served.address).await;
        let mut two = Socket::connect(served.address).await;
        one.post(&hold(json!(7), "one")).await;
        eventually(|| served.fixture.of("one").started == 1).await;
        two.post(&hold(json!(7), "two")).await;
        eventually(|| served.fixture.of("two").started == 1).await;
        served.fixture.release("one");
        served.fixture.release("two");
        for (socket, key) in [(&mut one, "one"), (&mut two, "two")] {
            let text = socket.until(|text| text.contains("}}")).await;
            assert!(text.contains(r#""id":7"#) && text.contains(key), "{text}");
        }
    })
    .await;
}

#[tokio::test]
async fn a12_a_shutdown_answers_what_still_runs() {
    within(async {
        let served = serve(Duration::ZERO).await;
        let mut socket = Socket::connect(served.address).await;
        socket.post(&hold(json!("still"), "k")).await;
        eventually(|| served.fixture.of("k").started == 1).await;
        served.fixture.leave();
        let text = socket.rest().await;
        assert!(text.starts_with("HTTP/1.1 503"), "{text}");
        assert!(text.contains(r#""id":"still""#) && text.contains("-32603"), "{text}");
        assert!(text.contains("server is shutting down"), "{text}");
        assert_eq!(served.fixture.of("k"), DROPPED);
        assert_eq!(served.serving.await.unwrap().unwrap().cancelled, 1);
    })
    .await;
}

#[tokio::test]
async fn c22_closing_the_connection_drops_exactly_that_handler() {
    within(async {
        let served = serve(Duration::ZERO).await;
        let mut one = Socket::connect(served.address).await;
        let mut two = Socket::connect(served.address).await;
        one.post(&hold(json!(1), "one")).await;
        two.post(&hold(json!(1), "two")).await;
        eventually(|| served.fixture.of("one").started + served.fixture.of("two").started == 2)
            .await;
        drop(one);
        eventually(|| served.fixture.of("one") == DROPPED).await;
        assert_eq!(served.fixture.of("two").dropped, 0);
        served.fixture.release("two");
        two.until(|text| text.contains("two")).await;
        assert_eq!(served.fixture.ledger().in_flight, 0);
    })
    .await;
}

#[tokio::test]
async fn c22_bytes_behind_a_request_do_not_hide_the_close() {
    within(async {
        let served = serve(Duration::ZERO).await;
        for (key, behind) in [("line", "\r\n"), ("begun", "POST /mcp HT"), ("whole", "")] {
            let mut socket = Socket::connect(served.address).await;
            let mut text = bytes(&hold(json!(1), key));
            text.extend_from_slice(behind.as_bytes());
            if behind.is_empty() {
                text.extend(bytes(&hold(json!(2), "never")));
            }
            socket.stream.write_all(&text).await.unwrap();
            eventually(|| served.fixture.of(key).started == 1).await;
            drop(socket);
            eventually(|| served.fixture.of(key) == DROPPED).await;
        }
        assert_eq!(served.fixture.of("never"), Count::default());
    })
    .await;
}

#[tokio::test]
async fn c22_closing_an_event_stream_drops_exactly_that_handler() {
    within(async {
        let served = serve(Duration::ZERO).await;
        let mut one = Socket::connect(served.address).await;
        let mut two = Socket::connect(served.address).await;
        let speak = |key| call(json!(key), "progress_then_hold", json!({"key": key, "n": 3}));
        one.post(&speak("one")).await;
        two.post(&speak("two")).await;
        for socket in [&mut one, &mut two] {
            let text = socket.until(|text| text.matches("notifications/progress").count() == 3);
            assert!(text.await.contains("text/event-stream"));
        }
        drop(one);
        eventually(|| served.fixture.of("one").dropped == 1).await;
        assert_eq!(served.fixture.of("two").dropped, 0);
        served.fixture.release("two");
        let text = two.until(|text| text.ends_with("0\r\n\r\n")).await;
        assert!(text.contains(r#""result""#), "{text}");
    })
    .await;
}

#[tokio::test]
async fn c22_resetting_a_stream_drops_exactly_that_handler() {
    within(async {
        let served = serve(Duration::ZERO).await;
        let stream = TcpStream::connect(served.address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut streams = Vec::new();
        for key in ["one", "two"] {
            let message = hold(json!(1), key);
            let request = http::Request::post("http://127.0.0.1/mcp")
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "hold")
                .body(())
                .unwrap();
            client = client.ready().await.unwrap();
            let (response, mut body) = client.send_request(request, false).unwrap();
            body.send_data(Bytes::from(message.to_string()), true).unwrap();
            eventually(|| served.fixture.of(key).started == 1).await;
            streams.push((response, body));
        }
        let (two, _body) = streams.pop().unwrap();
        let (one, mut body) = streams.pop().unwrap();
        body.send_reset(h2::Reason::CANCEL);
        drop(one);
        eventually(|| served.fixture.of("one") == DROPPED).await;
        assert_eq!(served.fixture.of("two").dropped, 0);
        served.fixture.release("two");
        assert_eq!(two.await.unwrap().status(), 200);
    })
    .await;
}

#[tokio::test]
async fn c22_closing_a_listen_stream_releases_its_subscription() {
    within(async {
        let served = serve(Duration::ZERO).await;
        let mut socket = Socket::connect(served.address).await;
        let params = json!({"notifications": {"toolsListChanged": true}});
        socket.post(&request(json!("l"), "subscriptions/listen", params)).await;
        socket.until(|text| text.contains("notifications/subscriptions/acknowledged")).await;
        assert_eq!(served.fixture.ledger().listeners, 1);
        drop(socket);
        eventually(|| served.fixture.ledger().listeners == 0).await;
    })
    .await;
}

#[tokio::test]
async fn c24a_a_posted_cancel_is_accepted_and_cancels_nothing() {
    within(async {
        let served = serve(Duration::ZERO).await;
        let mut call = Socket::connect(served.address).await;
        call.post(&hold(json!(1), "k")).await;
        eventually(|| served.fixture.of("k").started == 1).await;
        for id in [json!(1), json!("1"), json!(null)] {
            let mut other = Socket::connect(served.address).await;
            let method = "notifications/cancelled";
            other
                .post(&json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": id}}))
                .await;
            let text = other.until(|text| text.ends_with("\r\n\r\n")).await;
            assert!(text.starts_with("HTTP/1.1 202"), "{text}");
        }
        assert_eq!(served.fixture.of("k").dropped, 0);
        served.fixture.release("k");
        call.until(|text| text.contains(r#""result""#)).await;
    })
    .await;
}

#[tokio::test]
async fn e35_the_result_ends_a_listen_stream_and_nothing_follows_it() {
    within(async {
        let served = serve(Duration::from_secs(5)).await;
        let mut socket = Socket::connect(served.address).await;
        let params = json!({"notifications": {"toolsListChanged": true}});
        socket.post(&request(json!("mine"), "subscriptions/listen", params)).await;
        socket.until(|text| text.contains("notifications/subscriptions/acknowledged")).await;
        served.fixture.touch();
        socket.until(|text| text.contains("notifications/tools/list_changed")).await;
        served.fixture.leave();
        let text = socket.rest().await;
        let events: Vec<Value> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        assert_eq!(events.len(), 3, "{text}");
        let name = "io.modelcontextprotocol/subscriptionId";
        assert_eq!(events[0]["params"]["_meta"][name], "mine");
        assert_eq!(events[1]["params"]["_meta"][name], "mine");
        assert_eq!(events[2]["id"], "mine");
        assert_eq!(events[2]["result"]["_meta"][name], "mine");
        assert_eq!(events[2]["result"]["resultType"], "complete");
        assert!(!text.contains("notifications/cancelled"), "{text}");
        assert!(text.ends_with("0\r\n\r\n"), "{text}");
        assert_eq!(served.serving.await.unwrap().unwrap().listeners, 1);
    })
    .await;
}

/// Nobody from elsewhere learns what there is, on any path.
// req: hosting:http:dns-rebinding, transport:streamable-http:origin-validation
#[tokio::test]
async fn a_foreign_origin_is_refused_on_every_path() {
    within(async {
        let served = serve(Duration::ZERO).await;
        for path in ["/mcp", "/", "/other"] {
            let mut socket = Socket::connect(served.address).await;
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://evil.example.com\r\n\
                 Connection: close\r\nContent-Length: 0\r\n\r\n"
            );
            socket.stream.write_all(head.as_bytes()).await.unwrap();
            let text = socket.rest().await;
            assert!(text.starts_with("HTTP/1.1 403"), "{path}: {text}");
        }
    })
    .await;
}
