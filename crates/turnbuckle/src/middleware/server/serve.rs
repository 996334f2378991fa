//! Serves requests through middleware, a span, metrics and log forwarding.

use std::{borrow::Cow, sync::Arc};

use tracing::Instrument as _;
use turnbuckle_types::{
    LogLevel, Method, Raw,
    jsonrpc::{Params, Text},
};

use super::{
    input::OutgoingInput,
    request::{IncomingRequest, Request},
};
#[cfg(feature = "logs")]
use crate::middleware::log_forwarding;
use crate::{
    middleware::{
        Metrics, RequestOutcome, Stack,
        observer::{CallSide, ObservedRequest, RequestObserver},
        request_target, span,
    },
    rpc::{BoxFuture, Outcome, Reply},
    server::{Ctx, HandlerRequest},
};

/// The middleware of a server.
#[derive(Clone, Default)]
pub(crate) struct ServerMiddleware {
    pub(crate) requests: Stack<IncomingRequest>,
    pub(crate) input: Stack<OutgoingInput>,
    pub(crate) metrics: Option<Arc<dyn Metrics>>,
}

impl ServerMiddleware {
    /// Whether there is any, or anything observes requests. This is all that a request costs if
    /// not.
    pub(crate) fn is_active(&self, log_level: Option<LogLevel>) -> bool {
        !self.requests.is_empty()
            || self.metrics.is_some()
            || span::wanted(CallSide::Server)
            || forwards_logs(log_level)
    }
}

/// Serves a request. This runs in the reader of a connection; middleware runs when the reply is
/// polled.
pub(crate) fn serve(
    method: Text,
    visit: HandlerRequest,
    answer: impl FnOnce(Text, HandlerRequest) -> Reply + Send + 'static,
) -> Reply {
    let (app, ctx) = (visit.app.clone(), visit.ctx.clone());
    let name = name(Method::from_name(&method), &visit.params);
    let observer = observe(&visit, &method, name.as_deref());
    if !app.middleware.requests.is_empty() {
        let request = Request::of(&visit, method.clone(), name);
        let running = app.middleware.requests.reply(request, move || answer(method, visit));
        return Reply::Later(observed(observer, ctx, running));
    }
    let span = observer.span().clone();
    match span.in_scope(|| answer(method, visit)) {
        Reply::Now(outcome) => {
            finish(observer, &ctx, &outcome);
            Reply::Now(outcome)
        }
        Reply::Later(running) => Reply::Later(observed(observer, ctx, running)),
        Reply::Never => Reply::Never,
    }
}

/// The name of a request's target, as the client wrote it.
fn name(method: Option<Method>, params: &Params) -> Option<String> {
    match method {
        // The name that the handler is found by, not another reading of the params.
        Some(Method::CallTool | Method::GetPrompt) => {
            params.name.as_ref()?.text().ok().map(Cow::into_owned)
        }
        _ => request_target(method, params.text()),
    }
}

fn observe(visit: &HandlerRequest, method: &str, name: Option<&str>) -> RequestObserver {
    let (app, ctx) = (&visit.app, &visit.ctx);
    let method = Method::from_name(method);
    // A name that a client makes up is no label.
    let name = name.filter(|name| app.has_named(method, name));
    let request = ObservedRequest {
        side: CallSide::Server,
        method,
        name,
        id: Some(ctx.request_id()),
        revision: ctx.revision(),
        is_http: !ctx.is_local(),
        trace: &ctx.trace(),
        bytes_in: visit.params.raw.as_ref().map_or(0, |raw| raw.as_str().len()),
    };
    let observer = RequestObserver::start(&request, app.middleware.metrics.clone());
    let arguments = visit.params.arguments.as_ref();
    observer.span().in_scope(|| span::log_arguments(request.label(), arguments));
    observer
}

fn finish(observer: RequestObserver, ctx: &Ctx, outcome: &Outcome) {
    observer.finish(|| {
        let bytes = outcome.as_ref().map_or(0, |result: &Raw| result.as_str().len());
        let panicked = ctx.has_panicked();
        (
            if panicked { RequestOutcome::Panicked } else { RequestOutcome::of(outcome.as_ref()) },
            bytes,
        )
    });
}

/// Observes a request until it ends. Dropping the future drops the request first.
fn observed(
    observer: RequestObserver,
    ctx: Ctx,
    running: BoxFuture<'static, Outcome>,
) -> BoxFuture<'static, Outcome> {
    let span = observer.span().clone();
    let observed = async move {
        let outcome = forward_logs(&ctx, running).await;
        finish(observer, &ctx, &outcome);
        outcome
    };
    Box::pin(observed.instrument(span))
}

fn forwards_logs(log_level: Option<LogLevel>) -> bool {
    #[cfg(feature = "logs")]
    {
        log_forwarding::is_forwarding(log_level)
    }
    #[cfg(not(feature = "logs"))]
    {
        let _ = log_level;
        false
    }
}

/// Runs a request and sends its events to its client.
#[cfg(feature = "logs")]
async fn forward_logs(ctx: &Ctx, running: BoxFuture<'static, Outcome>) -> Outcome {
    let inner = &ctx.0;
    let Some(least) = inner.log_level.filter(|_| forwards_logs(inner.log_level)) else {
        return running.await;
    };
    log_forwarding::relay(least, running, |context, message| {
        let mut render =
            |out: &mut Vec<u8>| turnbuckle_types::write_at(message, inner.revision, out);
        inner.replies.poll_note(context, "notifications/message", &mut render)
    })
    .await
}

#[cfg(not(feature = "logs"))]
async fn forward_logs(_: &Ctx, running: BoxFuture<'static, Outcome>) -> Outcome {
    running.await
}
