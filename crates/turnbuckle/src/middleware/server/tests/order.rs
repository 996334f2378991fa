//! What layers see, in which order, and what becomes of what they do.

use tower_service::Service as _;
use turnbuckle_types::{CallToolResult, RpcError};

use super::*;
use crate::{
    ToolError,
    middleware::{
        RequestOutcome,
        server::{Audit, AuditEntry, Next},
    },
};

fn telling(log: &Log, name: &'static str) -> Stack {
    let mut stack = Stack::default();
    let log = log.clone();
    stack.push(layer(move |request, mut next| {
        let log = log.clone();
        async move {
            log.add(format!("{name} in"));
            let answered = next.call(request).await;
            log.add(format!("{name} out"));
            Ok(answered?)
        }
    }));
    stack
}

fn failing(error: impl Fn() -> BoxError + Clone + Send + Sync + 'static) -> Stack {
    let mut stack = Stack::default();
    stack.push(layer(move |_, _| {
        let error = error();
        async move { Err(error) }
    }));
    stack
}

fn auditing(log: &Log) -> Stack {
    let (mut stack, log) = (Stack::default(), log.clone());
    stack.push(Audit::new(move |entry: &AuditEntry<'_>| {
        log.add(format!("{} {:?}: {}", entry.method, entry.name, entry.outcome));
    }));
    stack
}

#[tokio::test]
async fn what_was_given_first_sees_a_request_first() {
    let log = Log::default();
    let mut stack = telling(&log, "tool");
    stack.wrap_in(&telling(&log, "group"));
    stack.wrap_in(&telling(&log, "server"));
    let handler = log.clone();
    let outcome = run(&stack, named("t"), async move {
        handler.add("handler");
        done().await
    });
    outcome.await.unwrap();
    assert_eq!(
        log.take(),
        ["server in", "group in", "tool in", "handler", "tool out", "group out", "server out"]
    );
}

#[tokio::test]
async fn a_handler_does_not_run_when_a_layer_refuses() {
    let log = Log::default();
    let mut stack = failing(|| RpcError::new(7, "no").into());
    stack.wrap_in(&auditing(&log));
    let handler = log.clone();
    let outcome = run(&stack, named("t"), async move {
        handler.add("handler");
        done().await
    });
    assert_eq!(outcome.await.unwrap_err().code, 7);
    assert_eq!(log.take(), ["tools/call Some(\"t\"): error 7"]);
}

#[tokio::test]
async fn an_error_goes_where_its_type_says() {
    #[derive(Debug)]
    struct Wrapped(RpcError);
    impl std::fmt::Display for Wrapped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("wrapped")
        }
    }
    impl std::error::Error for Wrapped {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    let told = failing(|| ToolError::new("slow down").into());
    let result = run(&told, named("t"), done()).await.unwrap();
    let result: CallToolResult = result.decode().unwrap();
    assert_eq!(result.is_error, Some(true));
    let elsewhere = run(&told, request("prompts/get"), done()).await.unwrap_err();
    assert_eq!((elsewhere.code, &*elsewhere.message), (-32603, "slow down"));

    let secret = failing(|| "the password is hunter2".into());
    let opaque = run(&secret, named("t"), done()).await.unwrap_err();
    assert_eq!((opaque.code, &*opaque.message), (-32603, "internal error"));

    let wrapped = failing(|| Box::new(Wrapped(RpcError::new(7, "seven"))));
    assert_eq!(run(&wrapped, named("t"), done()).await.unwrap_err().code, 7);
}

#[tokio::test]
async fn outer_layers_see_what_inner_ones_answered() {
    let log = Log::default();
    let mut stack = failing(|| ToolError::new("slow down").into());
    stack.wrap_in(&auditing(&log));
    run(&stack, named("t"), done()).await.unwrap();
    assert_eq!(log.take(), ["tools/call Some(\"t\"): tool_error"]);
}

#[tokio::test]
async fn a_panic_passes_layers_as_an_internal_error() {
    let log = Log::default();
    let mut stack = telling(&log, "inner");
    stack.wrap_in(&auditing(&log));
    let panics = async { panic!("on purpose") };
    let error = run(&stack, named("t"), panics).await.unwrap_err();
    assert_eq!((error.code, &*error.message), (-32603, "internal error"));
    assert_eq!(log.take(), ["inner in", "inner out", "tools/call Some(\"t\"): panicked"]);
    run(&stack, named("t"), done()).await.unwrap();
}

#[tokio::test]
async fn a_panic_before_the_first_await_does_so_too() {
    let log = Log::default();
    let stack = auditing(&log);
    let outcome = stack.reply(named("t"), || panic!("on purpose")).await;
    assert_eq!(outcome.unwrap_err().code, -32603);
    assert_eq!(log.take(), ["tools/call Some(\"t\"): panicked"]);
}

#[tokio::test]
async fn dropping_a_request_drops_through_layers() {
    struct Tell(Log);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.add("handler dropped");
        }
    }
    let log = Log::default();
    let mut stack = telling(&log, "inner");
    stack.wrap_in(&auditing(&log));
    let tell = Tell(log.clone());
    let mut running = Box::pin(run(&stack, named("t"), async move {
        let _tell = tell;
        std::future::pending().await
    }));
    assert!(
        std::future::poll_fn(|context| Poll::Ready(running.as_mut().poll(context).is_pending()))
            .await
    );
    drop(running);
    let mut told = log.take();
    told.sort();
    assert_eq!(told, ["handler dropped", "inner in", "tools/call Some(\"t\"): cancelled"]);
}

#[tokio::test]
async fn a_request_that_is_never_polled_comes_to_no_layer() {
    let log = Log::default();
    drop(auditing(&log).reply(named("t"), || Reply::Later(Box::pin(done()))));
    // It never came as far as the layer: nothing has happened.
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test]
async fn without_layers_what_runs_is_what_was_given() {
    let stack = Stack::default();
    assert!(stack.is_empty());
    let future: crate::rpc::BoxFuture<'static, Outcome> = Box::pin(done());
    let address = std::ptr::from_ref(&*future).cast::<u8>();
    let run = stack.reply(named("t"), move || Reply::Later(future));
    assert_eq!(std::ptr::from_ref(&*run).cast::<u8>(), address);
    assert_eq!(RequestOutcome::of(run.await.as_ref()), RequestOutcome::Ok);
}

/// A service that tells when it is cloned.
struct Telling(Log, Next);

impl Clone for Telling {
    fn clone(&self) -> Telling {
        self.0.add("cloned");
        Telling(self.0.clone(), self.1.clone())
    }
}

impl tower_service::Service<Request> for Telling {
    type Response = Response;
    type Error = turnbuckle_types::RpcError;
    type Future = <Next as tower_service::Service<Request>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.1.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.1.call(request)
    }
}

#[tokio::test]
async fn nothing_of_a_layer_runs_before_the_request_does() {
    let (log, mut stack) = (Log::default(), Stack::default());
    let tell = log.clone();
    stack.push(tower_layer::layer_fn(move |next| Telling(tell.clone(), next)));
    let running = stack.reply(named("t"), || Reply::Later(Box::pin(done())));
    assert_eq!(log.take(), [""; 0]);
    running.await.unwrap();
    assert_eq!(log.take(), ["cloned"]);
}
