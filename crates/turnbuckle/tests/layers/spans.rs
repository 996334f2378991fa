//! Spans of requests, and traces that go through them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use serde_json::json;
use tracing::{
    Subscriber,
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};
use turnbuckle::{
    Client, ClientBuilder, Ctx, RpcError, Server,
    elicit::{InputRequired, elicit, sample},
    tool,
    types::{
        CreateMessage, CreateMessageResult, Elicit, ElicitAction, ElicitResult, Meta, Role,
        TextContent,
    },
};

use crate::{
    fields::Fields,
    heard::heard_by,
    support::{LEGACY, Log, MODERN, WAYS, Wire, connect, connect_as},
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

/// Every request's span that was closed, and in which of them each event was.
#[derive(Clone, Default)]
struct Spans {
    closed: Arc<Mutex<Vec<Fields>>>,
    events: Log,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        record.record(span.extensions_mut().get_mut::<Fields>().unwrap());
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        if event.metadata().target() == "handler" {
            let span = context.event_span(event).expect("it is in a span");
            self.events.add(span.extensions().get::<Fields>().unwrap().0["otel.name"].clone());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        if span.name() == "mcp.request" {
            let fields = span.extensions_mut().remove::<Fields>().unwrap();
            self.closed.lock().unwrap().push(fields);
        }
    }
}

impl Spans {
    fn named(&self, name: &str) -> BTreeMap<String, String> {
        let closed = self.closed.lock().unwrap();
        let mut found = closed.iter().filter(|fields| fields.0["otel.name"] == name);
        let fields = found.next().unwrap_or_else(|| panic!("there was no {name}"));
        assert!(found.next().is_none(), "there were several {name}");
        fields.0.clone()
    }
}

async fn speaks() -> &'static str {
    tracing::info!(target: "handler", "hello");
    tokio::task::yield_now().await;
    "done"
}

fn subscribed() -> (Spans, tracing::subscriber::DefaultGuard) {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    (spans, heard_by(subscriber))
}

#[tokio::test]
async fn every_request_has_a_span_with_its_trace() {
    for (wire, transport) in [(Wire::Memory, "pipe"), (Wire::Direct, "pipe"), (Wire::Http, "tcp")] {
        for revision in [MODERN, LEGACY] {
            let (spans, _subscribed) = subscribed();
            let server = Server::new("test", "1").tool(tool("speaks", speaks));
            let client = connect(&server, wire, revision).await;
            client
                .call_tool("speaks", json!({}))
                .meta("traceparent", json!(PARENT))
                .request_id("mine")
                .await
                .unwrap();
            client.call_tool("made up", json!({})).await.unwrap_err();
            let span = spans.named("tools/call speaks");
            for (key, value) in [
                ("mcp.protocol.version", revision.as_str()),
                ("jsonrpc.request.id", "mine"),
                ("network.transport", transport),
                ("traceparent", PARENT),
                ("outcome", "ok"),
            ] {
                assert!(span[key].contains(value), "{key} over {wire:?}: {}", span[key]);
            }
            // What a client makes up is in no span's name, and none of the server's errors.
            let refused = spans.named("tools/call");
            assert_eq!(refused["rpc.response.status_code"], "-32602");
            assert!(!refused.contains_key("error.type"));
        }
    }
}

#[tokio::test]
async fn events_of_a_handler_are_in_the_span_of_its_request() {
    let (spans, _subscribed) = subscribed();
    let server = Server::new("test", "1")
        .tool(tool("plain", speaks))
        .tool(tool("cooperative", speaks).cooperative(std::time::Duration::from_secs(1)))
        .tool(tool("shielded", async |ctx: Ctx| ctx.shielded(speaks()).await));
    let client = connect(&server, Wire::Memory, MODERN).await;
    for name in ["plain", "cooperative", "shielded"] {
        client.call_tool(name, json!({})).await.unwrap();
        assert_eq!(spans.events.take(), [format!("tools/call {name}")]);
    }
}

/// A client that says which trace each question belongs to.
fn asked(heard: &Log) -> ClientBuilder {
    let (sampled, elicited) = (heard.clone(), heard.clone());
    let tell = |heard: &Log, method: &str, meta: &Meta| {
        let parent = meta.traceparent().unwrap();
        let state = meta.tracestate().unwrap();
        let (parent, state) = (parent.as_deref().unwrap_or("-"), state.as_deref().unwrap_or("-"));
        heard.add(format!("{method} {parent} {state}"));
    };
    Client::builder()
        .on_sampling(move |question: CreateMessage| {
            tell(&sampled, "sampling", &question.meta);
            async { Ok(CreateMessageResult::new(Role::Assistant, TextContent::new("yes"), "m")) }
        })
        .on_elicitation(move |question: Elicit| {
            let Elicit::Form(form) = &question else { panic!("not a form: {question:?}") };
            tell(&elicited, "elicitation", &form.meta);
            async { Ok(ElicitResult::new(ElicitAction::Decline)) }
        })
}

#[tokio::test]
async fn a_handler_reads_the_trace_and_its_questions_carry_it_on() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Name {
        #[expect(dead_code, reason = "nobody gives it")]
        name: String,
    }
    fn parent(ctx: &Ctx) -> String {
        ctx.trace().parent().map(|parent| parent.to_string()).unwrap_or_default()
    }
    async fn asks(ctx: Ctx) -> Result<String, RpcError> {
        ctx.ask("model", sample("Hm?").max_tokens(5)).await?;
        ctx.ask("name", elicit::<Name>("Who?").action()).await?;
        Ok(parent(&ctx))
    }
    async fn by_hand(ctx: Ctx) -> Result<String, InputRequired> {
        let question = || elicit::<Name>("Who?").action();
        match ctx.answer("name", question()).await {
            Some(_) => Ok(parent(&ctx)),
            None => Err(InputRequired::new().ask("name", question())),
        }
    }
    let heard = Log::default();
    let server = Server::new("test", "1").tool(tool("asks", asks)).tool(tool("by_hand", by_hand));
    for (wire, revision) in WAYS {
        let client = connect_as(asked(&heard), &server, wire, revision).await;
        let traced = async |name: &str| {
            let call = client.call_tool(name, json!({})).meta("traceparent", json!(PARENT));
            assert_eq!(call.meta("tracestate", json!("a=1")).await.unwrap().to_text(), PARENT);
            heard.take()
        };
        let expected = ["sampling", "elicitation"].map(|method| format!("{method} {PARENT} a=1"));
        assert_eq!(traced("asks").await, expected, "{wire:?} {revision}");
        assert_eq!(traced("by_hand").await, expected[1..], "{wire:?} {revision}");
        assert_eq!(client.call_tool("asks", json!({})).await.unwrap().to_text(), "");
        assert_eq!(heard.take(), ["sampling - -", "elicitation - -"], "{wire:?} {revision}");
    }
}

#[tokio::test]
async fn what_is_asked_of_a_legacy_client_carries_the_trace_on() {
    async fn asks(ctx: Ctx) -> Result<(), RpcError> {
        let question = json!({"messages": [], "maxTokens": 5});
        let asked = ctx.request("sampling/createMessage", question).await;
        asked.map(drop).map_err(|error| RpcError::internal(error.to_string()))
    }
    let heard = Log::default();
    let server = Server::new("test", "1").tool(tool("asks", asks));
    let client = connect_as(asked(&heard), &server, Wire::Memory, LEGACY).await;
    client.call_tool("asks", json!({})).meta("traceparent", json!(PARENT)).await.unwrap();
    client.call_tool("asks", json!({})).await.unwrap();
    assert_eq!(heard.take(), [format!("sampling {PARENT} -"), "sampling - -".to_owned()]);
}
