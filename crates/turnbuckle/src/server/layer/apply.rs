//! Owns what the layers of this crate have in common: how each is a tower layer.
//! Does not own what any of them does.

use std::task::{Context, Poll};

use tower_service::Service;

use super::{
    next::BoxError,
    request::{Request, Response},
};
use crate::dispatch::BoxFuture;

/// A layer of this crate, put around something.
#[derive(Clone, Debug)]
pub struct Applied<P, S> {
    policy: P,
    inner: S,
}

/// What a layer of this crate does.
#[doc(hidden)]
pub trait Policy: Clone + Send + Sync + 'static {
    /// Handles a request; `inner` is the rest of the way.
    fn apply<F, Fut>(
        self,
        request: Request,
        inner: F,
    ) -> impl Future<Output = Result<Response, BoxError>> + Send + 'static
    where
        F: FnOnce(Request) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Response, BoxError>> + Send + 'static;
}

impl<P, S> Applied<P, S> {
    pub(super) fn new(policy: P, inner: S) -> Applied<P, S> {
        Applied { policy, inner }
    }
}

impl<P, S> Service<Request> for Applied<P, S>
where
    P: Policy,
    S: Service<Request, Response = Response> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The clone that was made ready is the one that is called.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let run = move |request| {
            let running = inner.call(request);
            async move { running.await.map_err(Into::into) }
        };
        Box::pin(self.policy.clone().apply(request, run))
    }
}

/// Makes `$policy` a tower layer.
macro_rules! tower_layer {
    ($policy:ty) => {
        impl<S> tower_layer::Layer<S> for $policy {
            type Service = $crate::server::layer::Applied<$policy, S>;

            fn layer(&self, inner: S) -> Self::Service {
                $crate::server::layer::Applied::new(self.clone(), inner)
            }
        }
    };
}

pub(super) use tower_layer;
