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
use turnbuckle_types::Meta;

use super::*;
use crate::observe::heard::heard_by;

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

fn span_of(method: &str, about: Topic<'_>, wire: Wire, ended: Ended) -> BTreeMap<String, String> {
    let mut meta = Meta::new();
    meta.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
    let trace = TraceContext::from_meta(&meta);
    let (id, revision) = (7.into(), Revision::V2026_07_28);
    let (side, id, wire) = (Side::Server, Some(&id), Some(wire));
    let subject = Subject { side, method, about, id, revision, wire, trace: &trace };
    fields(|| close(side, &open(&subject), ended))
}

fn has(fields: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    let expected = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    assert_eq!(*fields, expected.collect());
}

#[test]
fn a_tool_call_has_the_names_of_the_convention() {
    let fields = span_of("tools/call", Topic::Tool("add"), Wire::Http, Ended::ToolError);
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
    let fields = span_of("resources/read", Topic::Resource("a://b"), Wire::Other, Ended::Ok);
    assert_eq!(fields["otel.name"], "resources/read");
    assert_eq!(fields["mcp.resource.uri"], "a://b");
    assert_eq!(fields["network.transport"], "pipe");
    assert!(!fields.contains_key("error.type") && !fields.contains_key("gen_ai.tool.name"));
    let fields = span_of("prompts/get", Topic::Prompt("review"), Wire::Other, Ended::Ok);
    assert_eq!(fields["otel.name"], "prompts/get review");
    assert_eq!(fields["gen_ai.prompt.name"], "review");
}

#[test]
fn only_the_servers_own_failures_are_errors() {
    let error = |ended| {
        let fields = span_of("tools/list", Topic::Nothing, Wire::Other, ended);
        assert_eq!(fields.contains_key("error.type"), fields.contains_key("otel.status_code"));
        (fields.get("rpc.response.status_code").cloned(), fields.get("error.type").cloned())
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(error(Ended::Ok), (None, None));
    assert_eq!(error(Ended::Cancelled), (None, None));
    assert_eq!(error(Ended::InputRequired), (None, None));
    assert_eq!(error(Ended::Error(-32602)), (text("-32602"), None));
    assert_eq!(error(Ended::Error(-32603)), (text("-32603"), text("-32603")));
    assert_eq!(error(Ended::Error(429)), (text("429"), text("429")));
    assert_eq!(error(Ended::Panicked), (text("-32603"), text("panic")));
}

#[test]
fn a_call_is_the_other_end_and_any_error_is_its_failure() {
    let call = |ended| {
        let subject = Subject {
            side: Side::Client,
            method: "tools/call",
            about: Topic::Tool("add"),
            id: None,
            revision: Revision::V2025_11_25,
            wire: None,
            trace: &TraceContext::default(),
        };
        fields(|| close(Side::Client, &open(&subject), ended))
    };
    has(
        &call(Ended::Error(-32602)),
        &[
            ("otel.name", "tools/call add"),
            ("otel.kind", "client"),
            ("otel.status_code", "ERROR"),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", "2025-11-25"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "add"),
            ("rpc.response.status_code", "-32602"),
            ("error.type", "-32602"),
            ("outcome", "error"),
        ],
    );
    let late = call(Ended::Failed(crate::error::ErrorKind::Timeout));
    assert_eq!((&*late["error.type"], &*late["outcome"]), ("timeout", "timeout"));
    assert!(!call(Ended::Cancelled).contains_key("error.type"));
}

#[cfg(feature = "server")]
#[test]
fn arguments_are_logged_at_the_lowest_level_and_cut_short() {
    let long = Raw::new(&"\u{e9}".repeat(PAYLOAD)).unwrap();
    let logged = fields(|| payload("tools/call", Some(&long)));
    assert_eq!(logged["arguments"].len(), PAYLOAD - 1);
    let filter = tracing_subscriber::filter::LevelFilter::DEBUG;
    let kept = Kept::default();
    let subscriber = tracing_subscriber::registry().with(kept.clone().with_filter(filter));
    let heard = heard_by(subscriber);
    payload("tools/call", Some(&long));
    drop(heard);
    assert!(kept.0.lock().unwrap().is_empty());
}

#[test]
fn nobody_wants_spans_unless_someone_does() {
    for side in [Side::Client, Side::Server] {
        let heard = heard_by(tracing::subscriber::NoSubscriber::new());
        assert!(!wanted(side));
        drop(heard);
        let _heard = heard_by(tracing_subscriber::registry());
        assert!(wanted(side));
    }
}
