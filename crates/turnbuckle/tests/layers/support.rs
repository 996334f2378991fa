//! Owns the ways from a client to a server, and layers for tests. Does not own any expectation.

use std::{
    future::IntoFuture as _,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use tower_service::Service;
use turnbuckle::{
    Client, ClientBuilder, Revision, RpcError, Server,
    layer::{Next, Request, Response},
};

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    Memory,
    Direct,
    Http,
    Sse,
}

pub(crate) const MODERN: Revision = Revision::V2026_07_28;
pub(crate) const LEGACY: Revision = Revision::V2025_11_25;

/// Every wire with a revision of each era that it carries.
pub(crate) const WAYS: [(Wire, Revision); 7] = [
    (Wire::Memory, MODERN),
    (Wire::Memory, LEGACY),
    (Wire::Direct, MODERN),
    (Wire::Direct, LEGACY),
    (Wire::Http, MODERN),
    (Wire::Http, LEGACY),
    (Wire::Sse, LEGACY),
];

pub(crate) async fn connect(server: &Server, wire: Wire, revision: Revision) -> Client {
    connect_as(Client::builder(), server, wire, revision).await
}

pub(crate) async fn connect_as(
    builder: ClientBuilder,
    server: &Server,
    wire: Wire,
    revision: Revision,
) -> Client {
    let builder = builder.revision(revision).no_proxy();
    let client = match wire {
        Wire::Memory => {
            let (ours, theirs) = tokio::io::duplex(4096);
            tokio::spawn(server.serve(theirs).into_future());
            builder.over(ours).await
        }
        Wire::Direct => builder.in_process(server).await,
        Wire::Http | Wire::Sse => {
            let bound = server.serve_http("127.0.0.1:0").with_sse("/sse").bind().await.unwrap();
            let url = match wire {
                Wire::Sse => bound.url().replace("/mcp", "/sse"),
                _ => bound.url(),
            };
            tokio::spawn(bound.into_future());
            builder.connect(url).await
        }
    };
    client.unwrap()
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Lets everyone else run until `wish` holds.
pub(crate) async fn eventually(wish: impl Fn() -> bool) {
    let waiting = async {
        while !wish() {
            tokio::task::yield_now().await;
        }
    };
    let bound = std::time::Duration::from_secs(20);
    tokio::time::timeout(bound, waiting).await.expect("it never came true");
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
