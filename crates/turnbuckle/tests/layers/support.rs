//! Owns the ways from a client to a server, and layers for tests. Does not own any expectation.

use std::task::{Context, Poll};

use tower_service::Service;
use turnbuckle::{
    Client, ClientBuilder, Revision, RpcError, Server,
    middleware::{
        Response,
        server::{Next, Request},
    },
};

pub(crate) use crate::ways::{LEGACY, Log, MODERN, WAYS, Wire, eventually};

pub(crate) async fn connect(server: &Server, wire: Wire, revision: Revision) -> Client {
    connect_as(Client::builder(), server, wire, revision).await
}

pub(crate) async fn connect_as(
    builder: ClientBuilder,
    server: &Server,
    wire: Wire,
    revision: Revision,
) -> Client {
    crate::ways::connect(builder, server, (wire, revision)).await
}

/// A layer that writes down what passes it, or lets nothing pass.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) refuses: Option<i64>,
}

impl Guard {
    pub(crate) fn telling(name: &'static str, log: &Log) -> Guard {
        Guard { name, log: log.clone(), refuses: None }
    }

    pub(crate) fn refusing(code: i64, log: &Log) -> Guard {
        Guard { name: "", log: log.clone(), refuses: Some(code) }
    }
}

impl tower_layer::Layer<Next> for Guard {
    type Service = Guarded;

    fn layer(&self, next: Next) -> Guarded {
        Guarded { guard: self.clone(), next }
    }
}

#[derive(Clone)]
pub(crate) struct Guarded {
    guard: Guard,
    next: Next,
}

impl Service<Request> for Guarded {
    type Response = Response;
    type Error = RpcError;
    type Future = <Next as Service<Request>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RpcError>> {
        self.next.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Guard { name, log, refuses } = &self.guard;
        if let Some(code) = *refuses {
            log.add(request.method());
            return Box::pin(async move { Err(RpcError::new(code, "nothing passes")) });
        }
        log.add(format!("{name}: {} {}", request.method(), request.name().unwrap_or("-")));
        self.next.call(request)
    }
}
