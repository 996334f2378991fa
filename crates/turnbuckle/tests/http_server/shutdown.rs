//! The end of a server.

use std::time::Duration;

use serde_json::json;
use tokio::{net::TcpStream, sync::oneshot, task::JoinHandle};
use turnbuckle::{Server, http::HttpReport};

use crate::support::{
    Progress::{Unwanted, Wanted},
    Raw, call, events, listen, server,
};

struct Serving {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<turnbuckle::Result<HttpReport>>,
}

async fn serve(server: &Server, deadline: Duration) -> Serving {
    let (stop, stopped) = oneshot::channel();
    let signal = async { stopped.await.unwrap_or_default() };
    let serving = server.serve_http("127.0.0.1:0").with_shutdown(signal).deadline(deadline);
    let bound = serving.bind().await.unwrap();
    Serving { address: bound.local_addr().unwrap(), stop, ended: tokio::spawn(bound.into_future()) }
}

impl Serving {
    async fn connect(&self) -> Raw<TcpStream> {
        Raw::new(TcpStream::connect(self.address).await.unwrap())
    }
}

#[tokio::test]
async fn listeners_are_told_idle_connections_closed_and_calls_finish() {
    let (server, mut watch) = server();
    let serving = serve(&server, Duration::from_secs(60)).await;
    let mut idle = serving.connect().await;
    idle.ask(&call(json!(1), "echo", json!({"text": "a"}), Unwanted)).await;
    let mut listener = serving.connect().await;
    listener.send(&listen(json!("l")).bytes()).await;
    listener.head().await;
    assert!(listener.chunk().await.unwrap().contains("acknowledged"));
    let (mut quiet, mut loud) = (serving.connect().await, serving.connect().await);
    quiet.send(&call(json!(2), "wait", json!({"text": "quiet"}), Unwanted).bytes()).await;
    assert_eq!(watch.next().await, "quiet started");
    loud.send(&call(json!(3), "wait", json!({"text": "loud"}), Wanted).bytes()).await;
    assert_eq!(watch.next().await, "loud started");

    let Serving { address, stop, ended } = serving;
    stop.send(()).unwrap();
    let last = events(&listener.chunk().await.unwrap());
    assert_eq!(last.len(), 1);
    assert_eq!(last[0]["id"], "l");
    assert!(last[0]["result"].is_object());
    assert_eq!(listener.chunk().await, None);
    listener.ends().await;
    idle.ends().await;
    assert!(TcpStream::connect(address).await.is_err());
    watch.nothing();

    watch.release();
    watch.release();
    assert!(quiet.answer().await.body.contains("released"));
    assert!(events(&loud.answer().await.body)[2]["result"].is_object());
    let report = ended.await.unwrap().unwrap();
    assert_eq!((report.finished, report.cancelled, report.listeners), (2, 0, 1));
}

#[tokio::test]
async fn calls_that_run_past_the_deadline_are_answered_that_this_is_the_end() {
    let (server, mut watch) = server();
    let serving = serve(&server, Duration::from_millis(20)).await;
    let (mut quiet, mut loud) = (serving.connect().await, serving.connect().await);
    quiet.send(&call(json!(2), "wait", json!({"text": "quiet"}), Unwanted).bytes()).await;
    assert_eq!(watch.next().await, "quiet started");
    loud.send(&call(json!("3"), "wait", json!({"text": "loud"}), Wanted).bytes()).await;
    assert_eq!(watch.next().await, "loud started");
    serving.stop.send(()).unwrap();
    let answer = quiet.answer().await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["id"], 2);
    assert_eq!(answer.json()["error"]["code"], -32603);
    assert!(answer.body.contains("server is shutting down"));
    let seen = events(&loud.answer().await.body);
    assert_eq!(seen.len(), 2);
    assert_eq!((&seen[1]["id"], &seen[1]["error"]["code"]), (&json!("3"), &json!(-32603)));
    let report = serving.ended.await.unwrap().unwrap();
    assert_eq!((report.finished, report.cancelled, report.listeners), (0, 2, 0));
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(watch.next().await);
    }
    told.sort();
    assert_eq!(told, ["loud dropped", "loud heard", "quiet dropped", "quiet heard"]);
}

#[tokio::test]
async fn a_serving_future_that_is_dropped_ends_every_handler() {
    let (server, mut watch) = server();
    let serving = serve(&server, Duration::from_secs(60)).await;
    let mut one = serving.connect().await;
    one.send(&call(json!(2), "wait", json!({"text": "one"}), Unwanted).bytes()).await;
    assert_eq!(watch.next().await, "one started");
    serving.ended.abort();
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, ["one dropped", "one heard"]);
    one.ends().await;
}
