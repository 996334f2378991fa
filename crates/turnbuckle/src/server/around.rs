//! Owns what stands around every request: layers, a span, numbers, forwarded logs.
//! Does not own how a request is answered: the kernel does, once it has passed.

use std::sync::Arc;

use tracing::{Instrument as _, Span};
use turnbuckle_types::{
    LogLevel, Method, Raw,
    jsonrpc::{Params, Text},
};

use super::{
    calls::{self, Visit},
    context::Ctx,
    kernel::{Arrived, Kernel},
    layer::{Questions, Request, Stack},
};
use crate::{
    dispatch::{BoxFuture, Outcome, Reply},
    observe::{self, Ended, Labels, Metrics, Side, Subject, Topic, Watch, Wire},
};

/// What a server was told to put around its requests.
#[derive(Clone, Default)]
pub(super) struct Around {
    pub(super) layers: Stack,
    /// Around what is asked of clients.
    pub(super) questions: Questions,
    pub(super) metrics: Option<Arc<dyn Metrics>>,
}

impl Around {
    /// Whether there is anything. All that a request costs where there is not.
    pub(super) fn is_wanted(&self, log_level: Option<LogLevel>) -> bool {
        !self.layers.is_empty()
            || self.metrics.is_some()
            || observe::wanted(Side::Server)
            || forwarded(log_level)
    }
}

/// Serves a request with all that stands around it. Runs in the reader: what layers do comes later.
pub(super) fn serve(kernel: Arc<Kernel>, method: Text, visit: Visit) -> Reply {
    let (app, ctx) = (visit.app.clone(), visit.ctx.clone());
    let known = Method::from_name(&method);
    let name = name(known, &visit.params);
    let watch = watch(&visit, known, name.as_deref());
    let answer = move |method, visit| {
        let answered = kernel.answer(Arrived::Passed(method, visit));
        answered.unwrap_or_else(|error| Reply::Now(Err(error)))
    };
    if !app.around.layers.is_empty() {
        let request = Request::of(&visit, method.clone(), name);
        let run = app.around.layers.run(request, move |_| answer(method, visit).into_outcome());
        return Reply::Later(over(watch, ctx, run));
    }
    let span = watch.span().clone();
    match span.in_scope(|| answer(method, visit)) {
        Reply::Now(outcome) => {
            tell(watch, &ctx, &outcome);
            Reply::Now(outcome)
        }
        Reply::Later(running) => Reply::Later(over(watch, ctx, running)),
        Reply::Never => Reply::Never,
    }
}

/// What a request is about, as the client wrote it.
fn name(method: Option<Method>, params: &Params) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        uri: String,
    }
    #[derive(serde::Deserialize)]
    struct Completing {
        #[serde(rename = "ref")]
        reference: Reference,
    }
    /// Read by hand: the whole of it is only for servers that complete something.
    #[derive(serde::Deserialize)]
    struct Reference {
        #[serde(rename = "type")]
        kind: String,
        name: Option<String>,
        uri: Option<String>,
    }
    match method? {
        Method::CallTool | Method::GetPrompt => {
            params.name.as_ref().and_then(calls::text).map(std::borrow::Cow::into_owned)
        }
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe => {
            serde_json::from_str(params.text()).ok().map(|Named { uri }| uri)
        }
        Method::Complete => {
            let Completing { reference } = serde_json::from_str(params.text()).ok()?;
            match &*reference.kind {
                "ref/prompt" => reference.name,
                "ref/resource" => reference.uri,
                _ => Some(String::new()),
            }
        }
        _ => None,
    }
}

/// Begins to look on.
fn watch(visit: &Visit, known: Option<Method>, name: Option<&str>) -> Watch {
    let (app, ctx) = (&visit.app, &visit.ctx);
    // What a client makes up is no label.
    let offered = name.filter(|name| match known {
        Some(Method::CallTool) => app.snapshot().tool(name).is_some(),
        Some(Method::GetPrompt) => app.snapshot().prompt(name).is_some(),
        _ => false,
    });
    let label = known.map_or("_OTHER", Method::as_str);
    let wanted = observe::wanted(Side::Server);
    let span = if wanted { span(ctx, label, known, name, offered) } else { Span::none() };
    span.in_scope(|| observe::payload(label, visit.params.arguments.as_ref()));
    Watch::start(Side::Server, span, app.around.metrics.clone(), || Labels {
        method: label,
        name: offered.map(str::to_owned),
        revision: ctx.revision(),
        bytes_in: visit.params.raw.as_ref().map_or(0, |raw| raw.as_str().len()),
    })
}

fn tell(watch: Watch, ctx: &Ctx, outcome: &Outcome) {
    watch.tell(|| {
        let bytes = outcome.as_ref().map_or(0, |result: &Raw| result.as_str().len());
        let panicked = ctx.has_panicked();
        (if panicked { Ended::Panicked } else { Ended::of(outcome.as_ref()) }, bytes)
    });
}

/// Looks on until `running` ends. Dropping the future drops that first.
fn over(
    watch: Watch,
    ctx: Ctx,
    running: BoxFuture<'static, Outcome>,
) -> BoxFuture<'static, Outcome> {
    let span = watch.span().clone();
    let watched = async move {
        let outcome = told(&ctx, running).await;
        tell(watch, &ctx, &outcome);
        outcome
    };
    Box::pin(watched.instrument(span))
}

fn span(
    ctx: &Ctx,
    method: &str,
    known: Option<Method>,
    name: Option<&str>,
    offered: Option<&str>,
) -> Span {
    let about = match (known, name, offered) {
        (Some(Method::CallTool), _, Some(tool)) => Topic::Tool(tool),
        (Some(Method::GetPrompt), _, Some(prompt)) => Topic::Prompt(prompt),
        (Some(Method::ReadResource | Method::Subscribe | Method::Unsubscribe), Some(uri), _) => {
            Topic::Resource(uri)
        }
        _ => Topic::Nothing,
    };
    let wire = if ctx.is_local() { Wire::Other } else { Wire::Http };
    observe::open(&Subject {
        side: Side::Server,
        method,
        about,
        id: Some(ctx.request_id()),
        revision: ctx.revision(),
        wire: Some(wire),
        trace: &ctx.trace(),
    })
}

#[cfg(feature = "logs")]
fn forwarded(log_level: Option<LogLevel>) -> bool {
    super::observe::Queue::is_wanted(log_level)
}

#[cfg(not(feature = "logs"))]
fn forwarded(_: Option<LogLevel>) -> bool {
    false
}

/// Runs a request and tells its client of the events that happen in it.
#[cfg(feature = "logs")]
async fn told(ctx: &Ctx, running: BoxFuture<'static, Outcome>) -> Outcome {
    let Some(queue) = super::observe::Queue::wanted(ctx.0.log_level) else { return running.await };
    let inner = &ctx.0;
    super::observe::relayed(queue, running, |context, message| {
        let mut render =
            |out: &mut Vec<u8>| turnbuckle_types::write_at(message, inner.revision, out);
        inner.replies.poll_note(context, "notifications/message", &mut render)
    })
    .await
}

#[cfg(not(feature = "logs"))]
async fn told(_: &Ctx, running: BoxFuture<'static, Outcome>) -> Outcome {
    running.await
}
