//! Owns servers and layers for tests. Does not own any expectation.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::mpsc;
use tower_service::Service;
use turnbuckle::{
    Args, Error, RpcError, Server,
    middleware::{
        Response,
        client::{Next, Request},
    },
    tool,
};

use crate::ways::Log;

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Said {
    pub(crate) text: String,
}

/// Says what it is told.
pub(crate) fn echoing() -> Server {
    async fn echo(Args(said): Args<Said>) -> String {
        said.text
    }
    Server::new("test", "1").tool(tool("echo", echo))
}

/// Has a tool that begins and never ends; tells when it begins and when it is dropped.
pub(crate) fn holding() -> (Server, mpsc::Receiver<&'static str>) {
    struct Dropped(mpsc::Sender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.try_send("dropped");
        }
    }
    let (tell, told) = mpsc::channel(8);
    let holds = move || {
        let tell = tell.clone();
        async move {
            let _dropped = Dropped(tell.clone());
            tell.send("begun").await.unwrap();
            std::future::pending::<()>().await;
        }
    };
    (Server::new("test", "1").tool(tool("holds", holds)), told)
}

/// A layer that does something with each call, or answers it.
#[derive(Clone)]
pub(crate) struct Doing(pub(crate) Arc<Do>);

pub(crate) type Do = dyn Fn(Request) -> Result<Request, Result<Response, RpcError>> + Send + Sync;

impl Doing {
    pub(crate) fn new(
        does: impl Fn(Request) -> Result<Request, Result<Response, RpcError>> + Send + Sync + 'static,
    ) -> Doing {
        Doing(Arc::new(does))
    }

    pub(crate) fn telling(name: &'static str, log: &Log) -> Doing {
        let log = log.clone();
        Doing::new(move |request| {
            log.add(format!("{name}: {} {}", request.method(), request.name().unwrap_or("-")));
            Ok(request)
        })
    }
}

impl tower_layer::Layer<Next> for Doing {
    type Service = Done;

    fn layer(&self, next: Next) -> Done {
        Done(self.clone(), next)
    }
}

#[derive(Clone)]
pub(crate) struct Done(Doing, Next);

impl Service<Request> for Done {
    type Response = Response;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = std::pin::Pin<
        Box<dyn Future<Output = Result<Response, Box<dyn std::error::Error + Send + Sync>>> + Send>,
    >;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.1.poll_ready(context).map_err(|error: Error| error.into())
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match (self.0.0)(request) {
            Ok(request) => {
                let next = self.1.call(request);
                Box::pin(async { next.await.map_err(Into::into) })
            }
            Err(answer) => Box::pin(async { answer.map_err(Into::into) }),
        }
    }
}
