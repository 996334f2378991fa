//! Layers around what a server asks its client.

use std::task::{Context, Poll};

use serde_json::json;
use tower_service::Service;
use turnbuckle::{
    Client, ClientBuilder, Ctx, RpcError, Server,
    elicit::{Elicitation, InputRequired, elicit, roots},
    middleware::{
        Middleware, Response,
        server::{InputNext, InputRequest, OutgoingInput},
    },
    prompt, resource, tool,
    types::{ElicitAction, ElicitResult, Era, GetPromptResult, Revision, Root},
};

use crate::support::{LEGACY, Log, WAYS, Wire, connect_as};

/// A layer that writes down what passes it in either direction.
#[derive(Clone)]
pub(crate) struct Told {
    name: &'static str,
    log: Log,
}

impl Told {
    pub(crate) fn new(name: &'static str, log: &Log) -> Told {
        Told { name, log: log.clone() }
    }
}

impl tower_layer::Layer<InputNext> for Told {
    type Service = Telling;

    fn layer(&self, next: InputNext) -> Telling {
        Telling { told: self.clone(), next }
    }
}

#[derive(Clone)]
pub(crate) struct Telling {
    told: Told,
    next: InputNext,
}

impl Service<InputRequest> for Telling {
    type Response = Response;
    type Error = <InputNext as Service<InputRequest>>::Error;
    type Future = <InputNext as Service<InputRequest>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.next.poll_ready(context)
    }

    fn call(&mut self, question: InputRequest) -> Self::Future {
        let Told { name, log } = self.told.clone();
        log.add(format!("{name} asks {}", question.method()));
        let asking = self.next.call(question);
        Box::pin(async move {
            let answered = asking.await;
            let what = if answered.is_ok() { "is answered" } else { "has to wait" };
            log.add(format!("{name} {what}"));
            answered
        })
    }
}

/// A layer that adds a root to those that the client names.
fn one_more_root() -> impl Middleware<OutgoingInput> {
    tower_layer::layer_fn(|next: InputNext| {
        tower::ServiceExt::map_response(next, |answer: Response| {
            let mut answer: serde_json::Value = answer.decode().unwrap();
            if let Some(roots) = answer.get_mut("roots") {
                roots.as_array_mut().unwrap().push(json!({"uri": "file:///layer"}));
            }
            Response::new(answer)
        })
    })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

fn name() -> Elicitation<Name> {
    elicit("Who are you?")
}

async fn places(ctx: Ctx) -> Result<String, RpcError> {
    let places = ctx.ask("places", roots()).await?;
    Ok(places.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

/// Asks one after the other: two rounds where there are rounds.
async fn both(ctx: Ctx) -> Result<String, RpcError> {
    let places = places(ctx.clone()).await?;
    let Name { name } = ctx.ask("name", name()).await?;
    Ok(format!("{name} at {places}"))
}

async fn by_hand(ctx: Ctx) -> Result<String, InputRequired> {
    match ctx.answer("places", roots()).await {
        Some(Ok(places)) => Ok(places.iter().map(|root| &*root.uri).collect::<Vec<_>>().join(" ")),
        _ => Err(InputRequired::new().ask("places", roots())),
    }
}

async fn requests(ctx: Ctx) -> String {
    match ctx.request("roots/list", json!({})).await {
        Ok(roots) => roots.as_str().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Someone who knows every answer.
fn able() -> ClientBuilder {
    Client::builder().roots([Root::new("file:///srv")]).on_elicitation(async |_| {
        let mut yes = ElicitResult::new(ElicitAction::Accept);
        yes.content = Some(json!({"name": "Ada"}).into());
        Ok(yes)
    })
}

/// The text of a prompt's message.
fn prompted(result: &GetPromptResult) -> String {
    let message = serde_json::to_value(&result.messages[0]).unwrap();
    message["content"]["text"].as_str().unwrap().to_owned()
}

/// What one layer sees of a question that is asked and answered. Where answers come with another
/// request, the question waits for that.
fn seen(revision: Revision, method: &str) -> Vec<String> {
    let asks = format!("server asks {method}");
    let told = |what: &str| format!("server {what}");
    match revision.era() {
        Era::Legacy => vec![asks, told("is answered")],
        Era::Modern => vec![asks.clone(), told("has to wait"), asks, told("is answered")],
    }
}

#[tokio::test]
async fn questions_pass_layers_in_order() {
    for wire in [Wire::Memory, Wire::Direct, Wire::Http, Wire::Sse] {
        let log = Log::default();
        let server = Server::new("test", "1")
            .input_request_layer(Told::new("first", &log))
            .input_request_layer(Told::new("second", &log))
            .tool(tool("asks", requests));
        let client = connect_as(able(), &server, wire, LEGACY).await;
        let told = client.call_tool("asks", json!({})).await.unwrap();
        assert!(told.to_text().contains("file:///srv"), "{}", told.to_text());
        let expected = [
            "first asks roots/list",
            "second asks roots/list",
            "second is answered",
            "first is answered",
        ];
        assert_eq!(log.take(), expected, "{wire:?}");
    }
}

#[tokio::test]
async fn a_question_knows_whose_request_asks() {
    let log = Log::default();
    let told = log.clone();
    let tell = tower_layer::layer_fn(move |next: InputNext| {
        let told = told.clone();
        tower::ServiceExt::map_request(next, move |question: InputRequest| {
            told.add(question.ctx().request_id().to_string());
            question
        })
    });
    let server = Server::new("test", "1").input_request_layer(tell).tool(tool("asks", requests));
    let client = connect_as(able(), &server, Wire::Memory, LEGACY).await;
    client.call_tool("asks", json!({})).request_id(77).await.unwrap();
    assert_eq!(log.take(), ["77"]);
}

#[tokio::test]
async fn what_tools_prompts_and_resources_ask_passes_the_layers_in_either_era() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let server = Server::new("test", "1")
            .input_request_layer(Told::new("server", &log))
            .input_request_layer(one_more_root())
            .tool(tool("places", places))
            .prompt(prompt("places", places))
            .resource(resource("test://places", places));
        let client = connect_as(able(), &server, wire, revision).await;
        let answers = [
            client.call_tool("places", json!({})).await.unwrap().to_text(),
            prompted(&client.get_prompt("places", json!({})).await.unwrap()),
            client.read_resource("test://places").await.unwrap().to_text(),
        ];
        assert_eq!(answers, ["file:///srv file:///layer"; 3], "{wire:?} {revision}");
        let expected = [(); 3].map(|()| seen(revision, "roots/list")).concat();
        assert_eq!(log.take(), expected, "{wire:?} {revision}");
    }
}

/// However often its handler runs.
#[tokio::test]
async fn an_answer_passes_the_layers_once() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let server = Server::new("test", "1")
            .input_request_layer(Told::new("server", &log))
            .input_request_layer(one_more_root())
            .tool(tool("both", both));
        let client = connect_as(able(), &server, wire, revision).await;
        let told = client.call_tool("both", json!({})).await.unwrap();
        assert_eq!(told.to_text(), "Ada at file:///srv file:///layer", "{wire:?} {revision}");
        let expected = [seen(revision, "roots/list"), seen(revision, "elicitation/create")];
        assert_eq!(log.take(), expected.concat(), "{wire:?} {revision}");
    }
}

#[tokio::test]
async fn what_is_asked_by_hand_passes_the_layers_in_both_directions() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let server = Server::new("test", "1")
            .input_request_layer(Told::new("server", &log))
            .input_request_layer(one_more_root())
            .tool(tool("by_hand", by_hand));
        let client = connect_as(able(), &server, wire, revision).await;
        let told = client.call_tool("by_hand", json!({})).await.unwrap();
        assert_eq!(told.to_text(), "file:///srv file:///layer", "{wire:?} {revision}");
        assert_eq!(log.take(), seen(revision, "roots/list"), "{wire:?} {revision}");
    }
}

#[tokio::test]
async fn a_question_that_is_not_passed_on_is_not_asked() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let heard = log.clone();
        let refuse = tower_layer::layer_fn(|_: InputNext| {
            tower::service_fn(async |question: InputRequest| {
                let why = format!("no {}", question.method());
                Err::<Response, _>(RpcError::new(7, why))
            })
        });
        async fn tries(ctx: Ctx) -> String {
            places(ctx).await.unwrap_or_else(|error| error.message.to_string())
        }
        let server = Server::new("test", "1")
            .input_request_layer(refuse)
            .tool(tool("requests", requests))
            .tool(tool("tries", tries));
        let builder = Client::builder().on_roots(move || {
            heard.add("asked");
            async { Ok(vec![]) }
        });
        let client = connect_as(builder, &server, wire, revision).await;
        let mut tools = vec!["tries"];
        tools.extend((revision == LEGACY).then_some("requests"));
        for name in tools {
            let told = client.call_tool(name, json!({})).await.unwrap().to_text();
            assert!(told.contains("`roots/list` was not asked"), "{wire:?} {name}: {told}");
        }
        assert_eq!(log.len(), 0);
    }
}

#[tokio::test]
async fn a_layer_that_knows_the_answer_spares_the_client_the_question() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let (heard, asked) = (log.clone(), log.clone());
        let know = tower_layer::layer_fn(move |next: InputNext| {
            let asked = asked.clone();
            tower::service_fn(move |question: InputRequest| {
                let mut next = next.clone();
                asked.add(question.method());
                async move {
                    if question.method() == "roots/list" {
                        return Ok(Response::new(json!({"roots": [{"uri": "file:///known"}]})));
                    }
                    next.call(question).await
                }
            })
        });
        let server = Server::new("test", "1").input_request_layer(know).tool(tool("both", both));
        let builder = able().on_roots(move || {
            heard.add("the client is asked");
            async { Ok(vec![]) }
        });
        let client = connect_as(builder, &server, wire, revision).await;
        let told = client.call_tool("both", json!({})).await.unwrap();
        assert_eq!(told.to_text(), "Ada at file:///known", "{wire:?} {revision}");
        // What the layer said is kept with all other answers.
        let asked = log.take();
        let known = asked.iter().filter(|method| *method == "roots/list").count();
        assert_eq!(known, 1, "{wire:?} {revision}: {asked:?}");
        assert!(!asked.contains(&"the client is asked".to_owned()), "{asked:?}");
    }
}
