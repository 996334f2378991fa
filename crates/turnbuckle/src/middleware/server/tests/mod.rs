//! Layers on their own, function a handler that a test holds in its hand.

mod limits;
mod order;
mod tower;

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use turnbuckle_types::{Raw, jsonrpc::Params};

use super::{IncomingRequest, Request};
use crate::{
    Server,
    middleware::{BoxError, Response, Stack as Middlewares},
    rpc::{Outcome, Permit, Reply},
    server::{Ctx, HandlerRequest},
};

type Stack = Middlewares<IncomingRequest>;

fn about(method: &str, name: Option<&str>) -> Request {
    let app = Server::new("test", "1").app().unwrap();
    let ctx = Ctx::unheard();
    let permit = Permit::take(&Arc::default(), 1).unwrap();
    let visit = HandlerRequest { app, ctx, params: Params::default(), permit };
    Request::of(&visit, method.into(), name.map(str::to_owned))
}

fn named(name: &str) -> Request {
    about("tools/call", Some(name))
}

fn request(method: &str) -> Request {
    about(method, None)
}

/// Runs a request through layers to a handler.
async fn run<Fut>(stack: &Stack, request: Request, handler: Fut) -> Outcome
where
    Fut: Future<Output = Outcome> + Send + 'static,
{
    stack.reply(request, move || Reply::Later(Box::pin(handler))).await
}

async fn done() -> Outcome {
    Ok(Raw::empty_object())
}

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A layer made from a function of what comes and the rest of the way.
fn layer<F, Fut>(function: F) -> impl tower_layer::Layer<super::Next, Service = FnService<F>>
where
    F: Fn(Request, super::Next) -> Fut + Clone + Send + Sync + 'static,
{
    tower_layer::layer_fn(move |next| FnService { function: function.clone(), next })
}

#[derive(Clone)]
struct FnService<F> {
    function: F,
    next: super::Next,
}

impl<F, Fut> tower_service::Service<Request> for FnService<F>
where
    F: Fn(Request, super::Next) -> Fut,
    Fut: Future<Output = Result<Response, BoxError>> + Send + 'static,
{
    type Response = Response;
    type Error = BoxError;
    type Future = Fut;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Fut {
        (self.function)(request, self.next.clone())
    }
}
