//! Ordered middleware, and how a request passes it.

use std::{
    fmt,
    future::{poll_fn, ready},
    sync::{Arc, Mutex, PoisonError},
};

use tower_service::Service as _;

use super::{Middleware, Next, Request, RequestKind, Response};
use crate::rpc::BoxFuture;

type MiddlewareResult<K> = Result<Response, <K as RequestKind>::Error>;
/// A service whose type is erased.
pub(crate) type NextFn<K> =
    Arc<dyn Fn(Request<K>) -> BoxFuture<'static, MiddlewareResult<K>> + Send + Sync>;

/// Middleware, outermost first. `None` is the usual case and costs one comparison.
///
/// Each layer is applied once, to a [`Next`] that continues with whatever the request carries.
/// State that a layer creates, such as a semaphore, is therefore shared by all requests that pass
/// it.
pub(crate) struct Stack<K: RequestKind>(Option<Arc<[NextFn<K>]>>);

impl<K: RequestKind> Stack<K> {
    /// Adds middleware inside of the present one.
    pub(crate) fn push(&mut self, middleware: impl Middleware<K>) {
        let service = Arc::new(middleware.layer(Next(Default::default())));
        // Nothing of the middleware runs before the future is polled: a server calls this in the
        // reader.
        let call: NextFn<K> = Arc::new(move |request| {
            let service = service.clone();
            Box::pin(async move {
                let mut service = (*service).clone();
                let on_error = K::on_error(&request);
                let answer = async {
                    poll_fn(|context| service.poll_ready(context)).await?;
                    service.call(request).await
                };
                answer.await.or_else(|error| on_error(error.into()))
            })
        });
        self.0 = Some(self.services().iter().cloned().chain([call]).collect());
    }

    /// Adds other middleware outside of the present one.
    #[cfg(feature = "server")]
    pub(crate) fn wrap_in(&mut self, outer: &Stack<K>) {
        let all: Arc<[_]> = outer.services().iter().chain(self.services()).cloned().collect();
        self.0 = (!all.is_empty()).then_some(all);
    }

    /// Adds other middleware inside of the present one.
    #[cfg(feature = "server")]
    pub(crate) fn extend(&mut self, inner: &Stack<K>) {
        let outer = std::mem::replace(self, inner.clone());
        self.wrap_in(&outer);
    }

    fn services(&self) -> &[NextFn<K>] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Passes a request through the middleware to `end`, which can be reached once.
    pub(crate) fn run(
        &self,
        request: Request<K>,
        end: impl FnOnce(Request<K>) -> BoxFuture<'static, MiddlewareResult<K>> + Send + 'static,
    ) -> BoxFuture<'static, MiddlewareResult<K>> {
        if self.is_empty() {
            return end(request);
        }
        let end = Mutex::new(Some(end));
        self.run_repeatable(request, move |request| {
            let end = end.lock().unwrap_or_else(PoisonError::into_inner).take();
            match end {
                Some(end) => end(request),
                None => already_sent(&request),
            }
        })
    }

    /// Passes a request through the middleware to `end`, which can be reached several times.
    pub(crate) fn run_repeatable(
        &self,
        request: Request<K>,
        end: impl Fn(Request<K>) -> BoxFuture<'static, MiddlewareResult<K>> + Send + Sync + 'static,
    ) -> BoxFuture<'static, MiddlewareResult<K>> {
        match &self.0 {
            None => end(request),
            Some(services) => run_from(services.clone(), 0, request, Arc::new(end)),
        }
    }
}

fn run_from<K: RequestKind>(
    services: Arc<[NextFn<K>]>,
    index: usize,
    mut request: Request<K>,
    end: NextFn<K>,
) -> BoxFuture<'static, MiddlewareResult<K>> {
    let Some(service) = services.get(index).cloned() else { return end(request) };
    let rest = move |request| run_from(services.clone(), index + 1, request, end.clone());
    request.rest = Some(Arc::new(rest));
    service(request)
}

/// The answer to a request that cannot be passed on again.
pub(super) fn already_sent<K: RequestKind>(
    request: &Request<K>,
) -> BoxFuture<'static, MiddlewareResult<K>> {
    let error = "middleware has passed this request on already".into();
    Box::pin(ready(K::on_error(request)(error)))
}

impl<K: RequestKind> Clone for Stack<K> {
    fn clone(&self) -> Self {
        Stack(self.0.clone())
    }
}

impl<K: RequestKind> Default for Stack<K> {
    fn default() -> Self {
        Stack(None)
    }
}

impl<K: RequestKind> fmt::Debug for Stack<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} layers", self.services().len())
    }
}
