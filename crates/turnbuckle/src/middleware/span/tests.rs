use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};
use turnbuckle_types::{Meta, Revision};

use super::*;
use crate::{middleware::heard::heard_by, protocol::trace_context::TraceContext};

/// Keeps every field that spans and events have.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, String>>>);

impl Visit for Kept {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.lock().unwrap().insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.lock().unwrap().insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Kept {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        attributes.record(&mut self.clone());
    }

    fn on_record(&self, _: &Id, record: &Record<'_>, _: Context<'_, S>) {
        record.record(&mut self.clone());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut self.clone());
    }
}

fn fields(work: impl FnOnce()) -> BTreeMap<String, String> {
    let kept = Kept::default();
    let heard = heard_by(tracing_subscriber::registry().with(kept.clone()));
    work();
    drop(heard);
    let mut fields = kept.0.lock().unwrap();
    std::mem::take(&mut *fields)
}

fn span_of(
    method: Method,
    name: Option<&str>,
    is_http: bool,
    outcome: RequestOutcome,
) -> BTreeMap<String, String> {
    let mut meta = Meta::new();
    meta.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
    let request = ObservedRequest {
        side: CallSide::Server,
        method: Some(method),
        name,
        id: Some(&7.into()),
        revision: Revision::V2026_07_28,
        is_http,
        trace: &TraceContext::from_meta(&meta),
        bytes_in: 0,
    };
    fields(|| close(CallSide::Server, &open(&request), outcome))
}

fn has(fields: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    let expected = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    assert_eq!(*fields, expected.collect());
}

#[test]
fn a_tool_call_has_the_names_of_the_convention() {
    let fields = span_of(Method::CallTool, Some("add"), true, RequestOutcome::ToolError);
    has(
        &fields,
        &[
            ("otel.name", "tools/call add"),
            ("otel.kind", "server"),
            ("otel.status_code", "ERROR"),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", "2026-07-28"),
            ("jsonrpc.request.id", "7"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "add"),
            ("network.transport", "tcp"),
            ("network.protocol.name", "http"),
            ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"),
            ("error.type", "tool_error"),
            ("outcome", "tool_error"),
        ],
    );
}

#[test]
fn a_uri_is_a_field_and_not_part_of_the_name() {
    let fields = span_of(Method::ReadResource, Some("a://b"), false, RequestOutcome::Ok);
    assert_eq!(fields["otel.name"], "resources/read");
    assert_eq!(fields["mcp.resource.uri"], "a://b");
    assert_eq!(fields["network.transport"], "pipe");
    assert!(!fields.contains_key("error.type") && !fields.contains_key("gen_ai.tool.name"));
    let fields = span_of(Method::GetPrompt, Some("review"), false, RequestOutcome::Ok);
    assert_eq!(fields["otel.name"], "prompts/get review");
    assert_eq!(fields["gen_ai.prompt.name"], "review");
}

#[test]
fn only_the_servers_own_failures_are_errors() {
    let error = |outcome| {
        let fields = span_of(Method::ListTools, None, false, outcome);
        assert_eq!(fields.contains_key("error.type"), fields.contains_key("otel.status_code"));
        (fields.get("rpc.response.status_code").cloned(), fields.get("error.type").cloned())
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(error(RequestOutcome::Ok), (None, None));
    assert_eq!(error(RequestOutcome::Cancelled), (None, None));
    assert_eq!(error(RequestOutcome::InputRequired), (None, None));
    assert_eq!(error(RequestOutcome::Error(-32602)), (text("-32602"), None));
    assert_eq!(error(RequestOutcome::Error(-32603)), (text("-32603"), text("-32603")));
    assert_eq!(error(RequestOutcome::Error(429)), (text("429"), text("429")));
    assert_eq!(error(RequestOutcome::Panicked), (text("-32603"), text("panic")));
}

#[test]
fn a_call_is_the_other_end_and_any_error_is_its_failure() {
    let call = |outcome| {
        let request = ObservedRequest {
            side: CallSide::Client,
            method: Some(Method::CallTool),
            name: Some("add"),
            id: None,
            revision: Revision::V2025_11_25,
            is_http: false,
            trace: &TraceContext::default(),
            bytes_in: 0,
        };
        fields(|| close(CallSide::Client, &open(&request), outcome))
    };
    has(
        &call(RequestOutcome::Error(-32602)),
        &[
            ("otel.name", "tools/call add"),
            ("otel.kind", "client"),
            ("otel.status_code", "ERROR"),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", "2025-11-25"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "add"),
            ("network.transport", "pipe"),
            ("rpc.response.status_code", "-32602"),
            ("error.type", "-32602"),
            ("outcome", "error"),
        ],
    );
    let late = call(RequestOutcome::Failed(crate::error::ErrorKind::Timeout));
    assert_eq!((&*late["error.type"], &*late["outcome"]), ("timeout", "timeout"));
    assert!(!call(RequestOutcome::Cancelled).contains_key("error.type"));
}

#[cfg(feature = "server")]
#[test]
fn arguments_are_logged_at_the_lowest_level_and_cut_short() {
    let long = Raw::new(&"\u{e9}".repeat(PAYLOAD)).unwrap();
    let logged = fields(|| log_arguments("tools/call", Some(&long)));
    assert_eq!(logged["arguments"].len(), PAYLOAD - 1);
    let filter = tracing_subscriber::filter::LevelFilter::DEBUG;
    let kept = Kept::default();
    let subscriber = tracing_subscriber::registry().with(kept.clone().with_filter(filter));
    let heard = heard_by(subscriber);
    log_arguments("tools/call", Some(&long));
    drop(heard);
    assert!(kept.0.lock().unwrap().is_empty());
}

#[test]
fn nobody_wants_spans_unless_someone_does() {
    for side in [CallSide::Client, CallSide::Server] {
        let heard = heard_by(tracing::subscriber::NoSubscriber::new());
        assert!(!wanted(side));
        drop(heard);
        let _heard = heard_by(tracing_subscriber::registry());
        assert!(wanted(side));
    }
}
