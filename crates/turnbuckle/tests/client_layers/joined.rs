//! Layers where a call does not simply come back from the server: answers that are kept, types of
//! one's own, rounds that are answered by hand.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use turnbuckle::{
    Client, Ctx, ErrorKind, Server, ToolError, TraceContext,
    client::{Round, WireLog},
    middleware::Response,
    server::Cache,
    tool,
    types::{ClientCapabilities, ElicitAction, ElicitResult, ElicitationCapability, Raw},
};

use crate::{
    support::{Doing, echoing},
    ways::{Log, MODERN, WAYS, Wire, connect},
};

/// Says how often tools were listed, by what a client sends.
fn sent(log: &Log) -> WireLog {
    let log = log.clone();
    WireLog::new(move |line| {
        let line = line.to_string();
        if line.starts_with("-> request") && line.contains("tools/list") {
            log.add("sent");
        }
    })
}

#[tokio::test]
async fn layers_see_calls_whose_answers_are_at_hand() {
    for wire in [Wire::Memory, Wire::Direct, Wire::Http] {
        let (seen, travelled) = (Log::default(), Log::default());
        let server = echoing().cache(Cache::new(Duration::from_secs(600)));
        let builder = Client::builder().layer(Doing::telling("", &seen)).wire_log(sent(&travelled));
        let client = connect(builder, &server, (wire, MODERN)).await;
        for _ in 0..3 {
            assert_eq!(client.list_tools().await.unwrap().tools[0].name, "echo", "{wire:?}");
        }
        assert_eq!(seen.take(), [": tools/list -"; 3], "{wire:?}");
        assert_eq!(travelled.take(), ["sent"], "{wire:?}");
    }
}

#[tokio::test]
async fn the_trace_of_a_call_does_not_keep_it_from_answers_at_hand() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let travelled = Log::default();
    let server = echoing().cache(Cache::new(Duration::from_secs(600)));
    let builder = Client::builder()
        .trace_context(|| Some(TraceContext::new(PARENT.parse().unwrap())))
        .wire_log(sent(&travelled));
    let client = connect(builder, &server, (Wire::Memory, MODERN)).await;
    client.list_tools().await.unwrap();
    client.list_tools().await.unwrap();
    assert_eq!(travelled.take(), ["sent"]);
    // Anything else may change the answer.
    client.list_tools().meta("example.com/tenant", json!("blue")).await.unwrap();
    assert_eq!(travelled.take(), ["sent"]);
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Sum {
    sum: u64,
}

#[tokio::test]
async fn what_a_layer_answers_is_read_as_the_server_s_would_be() {
    for way in WAYS {
        let answers = Doing::new(|request| match request.name() {
            Some("adds") => Err(Ok(Response::new(json!({
                "content": [], "structuredContent": {"sum": 7}, "resultType": "complete",
            })))),
            _ => Err(Ok(Response::new(json!({
                "content": [{"type": "text", "text": "no"}], "isError": true, "resultType": "complete",
            })))),
        });
        let client = connect(Client::builder().layer(answers), &echoing(), way).await;
        let sum: Sum = client.call_tool_as("adds", ()).await.unwrap();
        assert_eq!(sum, Sum { sum: 7 }, "{way:?}");
        let failed = client.call_tool_as::<Sum>("fails", ()).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Tool, "{way:?}");
    }
}

async fn asks(ctx: Ctx) -> Result<String, ToolError> {
    let said: crate::support::Said = ctx.ask("which", turnbuckle::elicit::elicit("Which?")).await?;
    Ok(said.text)
}

#[tokio::test]
async fn each_round_that_is_answered_by_hand_passes() {
    let (seen, came) = (Log::default(), Log::default());
    let told = came.clone();
    let hears = tower_layer::layer_fn(move |next| Hears(next, told.clone()));
    let mut able = ClientCapabilities::new();
    let mut form = ElicitationCapability::new();
    form.form = Some(Raw::empty_object());
    able.elicitation = Some(form);
    let builder =
        Client::builder().capabilities(able).layer(Doing::telling("", &seen)).layer(hears);
    let server = Server::new("test", "1").tool(tool("asks", asks));
    let client = connect(builder, &server, (Wire::Memory, MODERN)).await;
    let round = client.call_tool("asks", ()).manual().await.unwrap();
    let Round::Asks(mut questions) = round else { panic!("{round:?}") };
    for key in questions.keys() {
        let mut answer = ElicitResult::new(ElicitAction::Accept);
        answer.content = Some(json!({"text": "this"}).into());
        questions.answer(&key, answer).unwrap();
    }
    let round = questions.send().await.unwrap();
    let Round::Done(result) = round else { panic!("{round:?}") };
    assert_eq!(result.to_text(), "this");
    assert_eq!(seen.take(), [": tools/call asks"; 2]);
    let came = came.take();
    assert!(came[0].contains("input_required"), "{came:?}");
    assert!(came[1].contains("this"), "{came:?}");
}

/// Writes down what comes back.
#[derive(Clone)]
struct Hears(turnbuckle::middleware::client::Next, Log);

impl tower_service::Service<turnbuckle::middleware::client::Request> for Hears {
    type Response = Response;
    type Error = turnbuckle::Error;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Response, turnbuckle::Error>> + Send>>;

    fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), turnbuckle::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: turnbuckle::middleware::client::Request) -> Self::Future {
        let (next, log) = (self.0.call(request), self.1.clone());
        Box::pin(async move {
            let response = next.await?;
            log.add(response.result().as_str());
            Ok(response)
        })
    }
}

#[tokio::test]
async fn who_hears_notifications_hears_them_past_the_wire_log() {
    async fn reports(ctx: Ctx) -> String {
        ctx.progress(1).await;
        "done".to_owned()
    }
    for way in WAYS {
        let (heard, lines) = (Log::default(), Log::default());
        let (hears, tells) = (heard.clone(), lines.clone());
        let builder = Client::builder()
            .on_notification(move |method, _| hears.add(method))
            .wire_log(WireLog::new(move |line| tells.add(line.to_string())));
        let server = Server::new("test", "1").tool(tool("reports", reports));
        let client = connect(builder, &server, way).await;
        let reported = Arc::new(std::sync::Mutex::new(0));
        let counts = reported.clone();
        client
            .call_tool("reports", ())
            .on_progress(move |_| *counts.lock().unwrap() += 1)
            .await
            .unwrap();
        assert_eq!(*reported.lock().unwrap(), 1, "{way:?}");
        assert_eq!(heard.take(), ["notifications/progress"], "{way:?}");
        let lines = lines.take();
        let told = lines.iter().filter(|line| line.contains("notifications/progress")).count();
        assert_eq!(told, 1, "{way:?}: {lines:#?}");
    }
}
