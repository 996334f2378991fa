//! What the middleware of this crate has in common.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use tower_service::Service;

use super::request::Request;
use crate::{
    middleware::{BoxError, Response},
    rpc::BoxFuture,
};

/// Middleware of this crate, applied to a service.
#[derive(Clone, Debug)]
pub struct PolicyService<P, S> {
    pub(super) policy: P,
    pub(super) inner: S,
}

/// Middleware as a function of a request and the inner service.
#[doc(hidden)]
pub trait Policy: Clone + Send + Sync + 'static {
    fn apply(
        self,
        request: Request,
        inner: impl Inner,
    ) -> impl Future<Output = Result<Response, BoxError>> + Send + 'static;
}

/// An inner service that is ready to be called once.
#[doc(hidden)]
pub trait Inner: Send + 'static {
    fn send(
        self,
        request: Request,
    ) -> impl Future<Output = Result<Response, BoxError>> + Send + 'static;
}

impl<S> Inner for S
where
    S: Service<Request, Response = Response, Error: Into<BoxError>, Future: Send> + Send + 'static,
{
    async fn send(mut self, request: Request) -> Result<Response, BoxError> {
        self.call(request).await.map_err(Into::into)
    }
}

impl<P, S> Service<Request> for PolicyService<P, S>
where
    P: Policy,
    S: Service<Request, Response = Response, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
{
    type Response = Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The service that is ready is the one that is called.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(self.policy.clone().apply(request, inner))
    }
}

/// Makes a policy a tower layer.
macro_rules! policy_layer {
    ($policy:ty) => {
        impl<S> tower_layer::Layer<S> for $policy {
            type Service = $crate::middleware::server::PolicyService<$policy, S>;

            fn layer(&self, inner: S) -> Self::Service {
                $crate::middleware::server::PolicyService { policy: self.clone(), inner }
            }
        }
    };
}

pub(super) use policy_layer;

/// Assigns requests to the shares of a limit. By default all requests have one share.
#[derive(Clone, Default)]
pub(super) struct ShareKey(Option<Arc<KeyOfRequest>>);

type KeyOfRequest = dyn Fn(&Request) -> String + Send + Sync;

impl ShareKey {
    pub(super) fn new(key: impl Fn(&Request) -> String + Send + Sync + 'static) -> ShareKey {
        ShareKey(Some(Arc::new(key)))
    }

    /// One share for each principal. Requests without one have a share together.
    pub(super) fn principal() -> ShareKey {
        ShareKey::new(|request| request.principal().unwrap_or_default())
    }

    pub(super) fn of(&self, request: &Request) -> String {
        self.0.as_ref().map(|key| key(request)).unwrap_or_default()
    }
}

impl fmt::Debug for ShareKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Each" } else { "Everyone" })
    }
}
