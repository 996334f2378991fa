//! Records of who requested what and how it ended.

use std::{fmt, sync::Arc, time::Duration};

use tower_layer::Layer;
use turnbuckle_types::{RequestId, Revision};

use super::{
    policy::{Inner, Policy, PolicyService, policy_layer},
    request::Request,
};
use crate::{
    error::find,
    middleware::{BoxError, RequestOutcome, Response, observer::ReportOnce},
    server::{Ctx, ToolError},
};

/// Calls a function with every request that has ended, including cancelled ones.
///
/// The function is called where the request is handled: it must be quick and must not block. A
/// panic is logged.
///
/// ```
/// use turnbuckle::{Server, middleware::server::Audit};
/// let server = Server::new("demo", "1.0").layer(Audit::new(|entry| {
///     let (who, name) = (entry.principal.unwrap_or("someone"), entry.name.unwrap_or(""));
///     eprintln!("{who}: {} {name}: {} in {:?}", entry.method, entry.outcome, entry.latency);
/// }));
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct Audit {
    report: Arc<dyn Fn(&AuditEntry<'_>) + Send + Sync>,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AuditEntry<'a> {
    /// The name of the caller's [`Principal`](crate::Principal), if it is known.
    pub principal: Option<&'a str>,
    /// The method, as the client wrote it.
    pub method: &'a str,
    /// The tool, prompt or URI, as the client wrote it.
    pub name: Option<&'a str>,
    /// The id of the request.
    pub request_id: &'a RequestId,
    /// The revision of the request.
    pub revision: Revision,
    /// How the request ended.
    pub outcome: RequestOutcome,
    /// How long the request took.
    pub latency: Duration,
}

impl Audit {
    /// Creates middleware that calls `report`.
    pub fn new(report: impl Fn(&AuditEntry<'_>) + Send + Sync + 'static) -> Audit {
        Audit { report: Arc::new(report) }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

policy_layer!(Audit);

impl Policy for Audit {
    fn apply(
        self,
        request: Request,
        inner: impl Inner,
    ) -> impl Future<Output = Result<Response, BoxError>> + Send + 'static {
        // Outside of the future: a request that is dropped before it is polled has ended, too.
        let (ctx, method) = (request.ctx().clone(), request.method().to_owned());
        let (name, principal) = (request.name().map(str::to_owned), request.principal());
        let about = ctx.clone();
        let report = ReportOnce::new(move |end| {
            (self.report)(&AuditEntry {
                principal: principal.as_deref(),
                method: &method,
                name: name.as_deref(),
                request_id: about.request_id(),
                revision: about.revision(),
                outcome: end.outcome,
                latency: end.latency,
            });
        });
        async move {
            let answered = inner.send(request).await;
            report.finish(outcome(&ctx, &answered), 0);
            answered
        }
    }
}

fn outcome(ctx: &Ctx, answered: &Result<Response, BoxError>) -> RequestOutcome {
    if ctx.has_panicked() {
        return RequestOutcome::Panicked;
    }
    match answered {
        Ok(response) => RequestOutcome::of(Ok(response.result())),
        Err(error) => match find(&**error) {
            Some(error) => RequestOutcome::of(Err(error)),
            None if find::<ToolError>(&**error).is_some() => RequestOutcome::ToolError,
            None => RequestOutcome::Error(turnbuckle_types::code::INTERNAL_ERROR),
        },
    }
}

/// Logs every request that has ended as one `tracing` event with the target
/// `turnbuckle::middleware`: method, name, principal, outcome, code and duration.
///
/// Every request has a span without this middleware, too. This is for logs with one line per
/// request.
///
/// ```
/// use turnbuckle::{Server, middleware::server::RequestLog};
/// let server = Server::new("demo", "1.0").layer(RequestLog::info());
/// # let _ = server;
/// ```
#[derive(Clone, Debug)]
pub struct RequestLog(Audit);

/// Logs an entry at a level, which tracing has to know when it is compiled.
macro_rules! log_entries {
    ($level:ident) => {
        RequestLog(Audit::new(|entry| {
            tracing::$level!(
                target: "turnbuckle::middleware",
                method = entry.method,
                name = entry.name,
                principal = entry.principal,
                outcome = entry.outcome.as_str(),
                code = entry.outcome.code(),
                milliseconds = entry.latency.as_secs_f64() * 1_000.0,
                "a request has ended"
            );
        }))
    };
}

impl RequestLog {
    /// Logs at level `info`.
    pub fn info() -> RequestLog {
        log_entries!(info)
    }

    /// Logs at level `debug`.
    pub fn debug() -> RequestLog {
        log_entries!(debug)
    }
}

impl<S> Layer<S> for RequestLog {
    type Service = PolicyService<Audit, S>;

    fn layer(&self, inner: S) -> Self::Service {
        self.0.layer(inner)
    }
}
