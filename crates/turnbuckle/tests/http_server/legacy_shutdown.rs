//! The end of a server that has sessions.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::oneshot, task::JoinHandle};
use turnbuckle::{
    Server,
    http::{HttpReport, ServingHttp},
};

use crate::{
    legacy_support::{LATEST, initialize, legacy_server, wait},
    support::Raw,
};

struct Serving {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<turnbuckle::Result<HttpReport>>,
}

async fn serve(server: &Server, deadline: Duration) -> Serving {
    start(server.serve_http("127.0.0.1:0"), deadline).await
}

async fn start(serving: ServingHttp, deadline: Duration) -> Serving {
    let (stop, stopped) = oneshot::channel();
    let signal = async { stopped.await.unwrap_or_default() };
    let serving = serving.with_shutdown(signal).deadline(deadline);
    let bound = serving.bind().await.unwrap();
    Serving { address: bound.local_addr().unwrap(), stop, ended: tokio::spawn(bound.into_future()) }
}

fn bytes(method: &str, session: &str, body: &str) -> String {
    format!(
        "{method} /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {LATEST}\r\n\
         {session}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl Serving {
    async fn connect(&self) -> Raw<TcpStream> {
        Raw::new(TcpStream::connect(self.address).await.unwrap())
    }

    /// The header line of a new session.
    async fn open(&self) -> String {
        let mut connection = self.connect().await;
        connection.send(&bytes("POST", "", &initialize(LATEST).to_string())).await;
        // The head comes in lower case, which the id is not.
        let head = connection.raw_head().await;
        let line = head.lines().find(|line| line.starts_with("mcp-session-id")).unwrap();
        format!("{line}\r\n")
    }

    async fn send(&self, method: &str, session: &str, body: &Value) -> Raw<TcpStream> {
        let mut connection = self.connect().await;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        connection.send(&bytes(method, session, &body)).await;
        connection
    }
}

async fn rest(connection: &mut Raw<TcpStream>) -> String {
    let mut all = String::new();
    while let Some(chunk) = connection.chunk().await {
        all += &chunk;
    }
    all
}

#[tokio::test]
async fn calls_finish_and_get_streams_end() {
    let (server, mut watch) = legacy_server();
    let serving = serve(&server, Duration::from_secs(60)).await;
    let session = serving.open().await;
    let mut aside = serving.send("GET", &session, &Value::Null).await;
    assert!(aside.head().await.starts_with("http/1.1 200"));
    let mut attached = serving.send("POST", &session, &wait(1, "a")).await;
    attached.head().await;
    assert_eq!(watch.next().await, "a started");
    let mut gone = serving.send("POST", &session, &wait(2, "b")).await;
    gone.head().await;
    assert_eq!(watch.next().await, "b started");
    drop(gone);
    serving.stop.send(()).unwrap();
    assert!(!rest(&mut aside).await.contains("jsonrpc"));
    watch.nothing();
    watch.release();
    watch.release();
    assert!(rest(&mut attached).await.contains("released"));
    let report = serving.ended.await.unwrap().unwrap();
    assert_eq!((report.finished, report.cancelled, report.listeners), (2, 0, 1));
}

#[tokio::test]
async fn calls_that_run_past_the_deadline_are_told() {
    let (server, mut watch) = legacy_server();
    let serving = serve(&server, Duration::from_millis(20)).await;
    let session = serving.open().await;
    let mut attached = serving.send("POST", &session, &wait(1, "a")).await;
    attached.head().await;
    assert_eq!(watch.next().await, "a started");
    serving.stop.send(()).unwrap();
    let rest = rest(&mut attached).await;
    assert!(rest.contains("-32603") && rest.contains("server is shutting down"), "{rest}");
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, ["a dropped", "a heard"]);
    let report = serving.ended.await.unwrap().unwrap();
    assert_eq!((report.finished, report.cancelled, report.listeners), (0, 1, 0));
}

#[tokio::test]
async fn answers_that_are_json_say_so_with_their_status() {
    let (server, mut watch) = legacy_server();
    for sessions in [true, false] {
        let service = server.http_service().json_only();
        let service = if sessions { service } else { service.without_sessions() };
        let serving = start(service.serve("127.0.0.1:0"), Duration::from_millis(20)).await;
        let session = if sessions { serving.open().await } else { String::new() };
        let mut posted = serving.send("POST", &session, &wait(1, "a")).await;
        assert_eq!(watch.next().await, "a started");
        serving.stop.send(()).unwrap();
        let answer = posted.answer().await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &json!(-32603)));
        let mut told = [watch.next().await, watch.next().await];
        told.sort();
        assert_eq!(told, ["a dropped", "a heard"]);
        let report = serving.ended.await.unwrap().unwrap();
        assert_eq!((report.finished, report.cancelled, report.listeners), (0, 1, 0));
    }
}

#[tokio::test]
async fn a_serving_future_that_is_dropped_ends_handlers_that_nobody_reads() {
    let (server, mut watch) = legacy_server();
    let serving = serve(&server, Duration::from_secs(60)).await;
    let session = serving.open().await;
    let mut gone = serving.send("POST", &session, &wait(1, "a")).await;
    gone.head().await;
    assert_eq!(watch.next().await, "a started");
    drop(gone);
    let mut ping =
        serving.send("POST", &session, &json!({"jsonrpc": "2.0", "id": 5, "method": "ping"})).await;
    assert_eq!(ping.answer().await.status, 200);
    watch.nothing();
    serving.ended.abort();
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, ["a dropped", "a heard"]);
}
