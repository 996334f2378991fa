//! Owns the record of who asked for what and how it ended. Does not own where it is kept.

use std::{fmt, sync::Arc, time::Duration};

use turnbuckle_types::{RequestId, Revision};

use super::{
    apply::{Policy, tower_layer},
    next::BoxError,
    request::{Request, Response},
};
use crate::{
    error::find,
    observe::{Ended, Finish},
    server::{context::Ctx, reply::ToolError},
};

/// Tells of every request when it has ended, of cancelled ones too.
///
/// The function is called where the request is handled: it must be quick and must not block. If it
/// panics, that is logged.
///
/// ```
/// use turnbuckle::{Server, layer::Audit};
/// let server = Server::new("demo", "1.0").layer(Audit::new(|entry| {
///     eprintln!(
///         "{} asked for {} {}: {} in {:?}",
///         entry.principal.unwrap_or("someone"), entry.method, entry.name.unwrap_or(""), entry.ended, entry.latency,
///     );
/// }));
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct Audit {
    tell: Arc<dyn Fn(&AuditEntry<'_>) + Send + Sync>,
}

/// One request that has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AuditEntry<'a> {
    /// Who asked: the name of the [`Principal`](crate::Principal), if that is known.
    pub principal: Option<&'a str>,
    /// The method, as the client wrote it.
    pub method: &'a str,
    /// The tool, prompt or uri that was asked for, as the client wrote it.
    pub name: Option<&'a str>,
    /// The id of the request.
    pub request_id: &'a RequestId,
    /// The revision of the request.
    pub revision: Revision,
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub latency: Duration,
}

impl Audit {
    /// Tells `tell`.
    pub fn new(tell: impl Fn(&AuditEntry<'_>) + Send + Sync + 'static) -> Audit {
        Audit { tell: Arc::new(tell) }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

tower_layer!(Audit);

impl Policy for Audit {
    fn apply<F, Fut>(
        self,
        request: Request,
        inner: F,
    ) -> impl Future<Output = Result<Response, BoxError>> + Send + 'static
    where
        F: FnOnce(Request) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Response, BoxError>> + Send + 'static,
    {
        // Made here: a request that is dropped before it is polled has ended too.
        let (ctx, method) = (request.ctx().clone(), request.method().to_owned());
        let (name, principal) = (request.name().map(str::to_owned), request.principal());
        let about = ctx.clone();
        let finish = Finish::new(move |end| {
            (self.tell)(&AuditEntry {
                principal: principal.as_deref(),
                method: &method,
                name: name.as_deref(),
                request_id: about.request_id(),
                revision: about.revision(),
                ended: end.ended,
                latency: end.latency,
            });
        });
        async move {
            let answered = inner(request).await;
            let bytes = answered.as_ref().map_or(0, |response| response.result().as_str().len());
            finish.tell(ended(&ctx, &answered), bytes);
            answered
        }
    }
}

/// What an answer is, as a layer sees it.
pub(super) fn ended(ctx: &Ctx, answered: &Result<Response, BoxError>) -> Ended {
    if ctx.has_panicked() {
        return Ended::Panicked;
    }
    match answered {
        Ok(response) => Ended::of(Ok(response.result())),
        Err(error) => match find(&**error) {
            Some(error) => Ended::of(Err(error)),
            None if find::<ToolError>(&**error).is_some() => Ended::ToolError,
            None => Ended::Error(turnbuckle_types::code::INTERNAL_ERROR),
        },
    }
}
