//! What whoever looks on at calls is told: numbers, spans, traces.

use std::{
    collections::BTreeMap,
    future::IntoFuture as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
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
    Client, Ctx, RpcError, Server, TraceContext,
    middleware::{Metrics, RequestFinished, RequestStarted},
    tool,
};

use crate::{
    fields::Fields,
    heard::heard_by,
    support::{Doing, echoing, holding},
    ways::{Log, MODERN, WAYS, Wire, connect, eventually},
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const OTHER: &str = "00-1af7651916cd43dd8448eb211c80319c-10f067aa0ba902b7-01";

#[derive(Default)]
pub(crate) struct Numbers {
    in_flight: AtomicI64,
    pub(crate) finished: Log,
}

impl Metrics for Numbers {
    fn started(&self, _: &RequestStarted<'_>) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    fn finished(&self, finished: &RequestFinished<'_>) {
        self.in_flight.fetch_sub(1, Relaxed);
        let RequestStarted { method, name, .. } = finished.started;
        let bytes = finished.bytes_out > 0;
        self.finished.add(format!("{method} {} {} {bytes}", name.unwrap_or("-"), finished.outcome));
    }
}

#[tokio::test]
async fn every_call_is_counted_once_with_how_it_ended() {
    for way in WAYS {
        let numbers = Arc::new(Numbers::default());
        let refusing = Doing::new(|request| match request.name() {
            Some("refused") => Err(Err(RpcError::new(77, "no"))),
            _ => Ok(request),
        });
        let (server, mut told) = holding();
        async fn fails() -> Result<(), turnbuckle::ToolError> {
            Err("no".into())
        }
        let server = server.tool(tool("fails", fails));
        let builder = Client::builder().metrics(numbers.clone()).layer(refusing);
        let client = connect(builder, &server, way).await;
        client.list_tools().await.unwrap();
        client.call_tool("fails", ()).await.unwrap();
        client.call_tool("refused", ()).await.unwrap_err();
        client.call_tool("none", ()).await.unwrap_err();
        client.request("no/such", ()).await.unwrap_err();
        let late = client.call_tool("holds", ()).timeout(Duration::from_millis(1));
        late.await.unwrap_err();
        let call = tokio::spawn(client.call_tool("holds", ()).no_timeouts().into_future());
        // The one that was late may not even have begun.
        eventually(|| numbers.in_flight.load(Relaxed) == 1).await;
        while told.recv().await != Some("begun") || told.try_recv().is_ok() {}
        call.abort();
        eventually(|| numbers.in_flight.load(Relaxed) == 0).await;
        assert_eq!(
            numbers.finished.take(),
            [
                "tools/list - ok true",
                "tools/call fails tool_error true",
                "tools/call refused refused false",
                "tools/call none error -32602 false",
                "_OTHER - error -32601 false",
                "tools/call holds timeout false",
                "tools/call holds cancelled false",
            ],
            "{way:?}"
        );
    }
}

/// The spans of calls that were closed.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

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

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        if span.name() == "mcp.call" {
            let Fields(fields) = span.extensions_mut().remove::<Fields>().unwrap();
            self.0.lock().unwrap().push(fields);
        }
    }
}

#[tokio::test]
async fn every_call_has_a_span_without_what_it_says() {
    for way in WAYS {
        let spans = Spans::default();
        let subscriber = tracing_subscriber::registry().with(spans.clone());
        let _subscribed = heard_by(subscriber);
        let client = connect(Client::builder(), &echoing(), way).await;
        let call = client.call_tool("echo", json!({"text": "7h1515453cr37"}));
        call.meta("traceparent", json!(PARENT)).request_id("mine").await.unwrap();
        client.call_tool("none", ()).await.unwrap_err();
        let closed = std::mem::take(&mut *spans.0.lock().unwrap());
        let [called, refused] = closed.as_slice() else { panic!("{way:?}: {closed:?}") };
        let transport = match way.0 {
            Wire::Memory | Wire::Direct => "pipe",
            Wire::Http | Wire::Sse => "tcp",
        };
        for (key, value) in [
            ("otel.name", "tools/call echo"),
            ("otel.kind", "client"),
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "echo"),
            ("mcp.protocol.version", way.1.as_str()),
            ("network.transport", transport),
            ("traceparent", PARENT),
            ("outcome", "ok"),
        ] {
            assert_eq!(called[key], value, "{key} on {way:?}");
        }
        assert!(called["jsonrpc.request.id"].contains("mine"));
        assert!(!format!("{called:?}").contains("7h1515453cr37"));
        assert_eq!(refused["error.type"], "-32602");
        assert_eq!(refused["otel.status_code"], "ERROR");
    }
}

async fn traced(ctx: Ctx) -> String {
    let trace = ctx.trace();
    let parent = trace.parent().map(|parent| parent.to_string()).unwrap_or_default();
    format!("{parent} {}", trace.baggage().unwrap_or("-"))
}

#[tokio::test]
async fn a_call_carries_the_trace_that_it_is_made_in() {
    for way in WAYS {
        let server = Server::new("test", "1").tool(tool("traced", traced));
        let parsed = |text: &str| TraceContext::new(text.parse().unwrap());
        let source = move || Some(parsed(PARENT));
        let log = Log::default();
        let seen = log.clone();
        let looks = Doing::new(move |request| {
            seen.add(request.meta().traceparent().unwrap().unwrap().into_owned());
            Ok(request)
        });
        let builder = Client::builder().trace_context(source).layer(looks);
        let client = connect(builder, &server, way).await;
        let told = client.call_tool("traced", ()).await.unwrap().to_text();
        assert_eq!(told, format!("{PARENT} -"), "{way:?}");
        // One that the call names itself goes before.
        let told = client.call_tool("traced", ()).trace(&parsed(OTHER)).await.unwrap().to_text();
        assert_eq!(told, format!("{OTHER} -"), "{way:?}");
        assert_eq!(log.take(), [PARENT, OTHER]);
    }
}

#[tokio::test]
async fn the_source_is_asked_inside_the_span_of_its_call() {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    let _subscribed = heard_by(subscriber);
    let log = Log::default();
    let asked = log.clone();
    let builder = Client::builder().trace_context(move || {
        let name = tracing::Span::current().metadata().map(|span| span.name());
        asked.add(name.unwrap_or("none"));
        None
    });
    let client = connect(builder, &echoing(), (Wire::Memory, MODERN)).await;
    client.list_tools().await.unwrap();
    assert_eq!(log.take(), ["mcp.call"]);
}
