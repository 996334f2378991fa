//! Layers around what a server asks its client.

use serde_json::json;
use tower::ServiceExt as _;
use turnbuckle::{
    Client, Ctx, RpcError, Server,
    layer::{NextQuestion, Question},
    tool,
    types::Root,
};

use crate::support::{LEGACY, Log, Wire, connect_as};

async fn asks(ctx: Ctx) -> String {
    match ctx.request("roots/list", json!({})).await {
        Ok(roots) => roots.as_str().to_owned(),
        Err(error) => error.to_string(),
    }
}

fn telling(
    name: &'static str,
    log: &Log,
) -> impl tower_layer::Layer<
    NextQuestion,
    Service = impl tower_service::Service<
        Question,
        Response = turnbuckle::types::Raw,
        Error = Box<dyn std::error::Error + Send + Sync>,
        Future: Send,
    > + Clone
              + Send
              + Sync
              + use<>,
> + use<> {
    let log = log.clone();
    tower_layer::layer_fn(move |next: NextQuestion| {
        let log = log.clone();
        next.map_request(move |question: Question| {
            log.add(format!("{name}: {} for {}", question.method(), question.ctx().request_id()));
            question
        })
    })
}

#[tokio::test]
async fn questions_pass_layers_in_order() {
    for wire in [Wire::Memory, Wire::Direct, Wire::Http, Wire::Sse] {
        let log = Log::default();
        let server = Server::new("test", "1")
            .ask_layer(telling("first", &log))
            .ask_layer(telling("second", &log))
            .tool(tool("asks", asks));
        let builder = Client::builder().roots([Root::new("file:///srv")]);
        let client = connect_as(builder, &server, wire, LEGACY).await;
        let told = client.call_tool("asks", json!({})).request_id(77).await.unwrap();
        assert!(told.to_text().contains("file:///srv"), "{}", told.to_text());
        let expected = ["first: roots/list for 77", "second: roots/list for 77"];
        assert_eq!(log.take(), expected, "{wire:?}");
    }
}

#[tokio::test]
async fn a_question_that_is_not_passed_on_is_not_asked() {
    let log = Log::default();
    let heard = log.clone();
    let refuse = tower_layer::layer_fn(|_: NextQuestion| {
        tower::service_fn(async |question: Question| {
            let why = format!("no {}", question.method());
            Err::<turnbuckle::types::Raw, _>(RpcError::new(7, why))
        })
    });
    let server = Server::new("test", "1").ask_layer(refuse).tool(tool("asks", asks));
    let builder = Client::builder().on_roots(move || {
        heard.add("asked");
        async { Ok(vec![]) }
    });
    let client = connect_as(builder, &server, Wire::Memory, LEGACY).await;
    let told = client.call_tool("asks", json!({})).await.unwrap();
    assert_eq!(told.to_text(), "`roots/list` was not asked");
    assert_eq!(log.len(), 0);
}
