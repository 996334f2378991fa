//! A layer that makes a call again: tower's own.

use std::{
    future::{IntoFuture as _, Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::sync::Semaphore;
use tower::{
    limit::ConcurrencyLimitLayer,
    retry::{Policy, RetryLayer},
    timeout::TimeoutLayer,
};
use turnbuckle::{
    Client, Ctx, ErrorKind, RpcError, Server,
    client::CallEvent,
    middleware::{Response, client::Request},
    server::Cache,
    tool,
};

use crate::ways::{Log, MODERN, WAYS, Wire, connect};

/// Has a call that failed made again, so many times.
#[derive(Clone)]
struct Again(usize);

impl<E> Policy<Request, Response, E> for Again {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Request, result: &mut Result<Response, E>) -> Option<Ready<()>> {
        self.0 = self.0.checked_sub(usize::from(result.is_err()))?;
        result.is_err().then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Request) -> Option<Request> {
        Some(request.clone())
    }
}

/// Has a tool that fails in these ways, one after the other, and then does not.
fn failing(with: &'static [i64]) -> (Server, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let tries = move |ctx: Ctx| {
        let at = count.fetch_add(1, SeqCst);
        async move {
            ctx.progress(at as u64).await;
            match with.get(at) {
                Some(code) => Err(RpcError::new(*code, "not yet")),
                None => Ok("ok"),
            }
        }
    };
    (Server::new("test", "1").tool(tool("tries", tries)), calls)
}

#[tokio::test]
async fn a_call_that_failed_is_made_again() {
    for way in WAYS {
        let (server, calls) = failing(&[-32603, -32603]);
        let server = server.cache(Cache::new(Duration::from_secs(600)));
        let log = Log::default();
        let seen = log.clone();
        let builder = Client::builder()
            .layer(RetryLayer::new(Again(3)))
            .layer(crate::support::Doing::telling("inner", &log));
        let client = connect(builder, &server, way).await;
        let call = client.call_tool("tries", ()).request_id("mine");
        let mut events = call.events();
        let mut reported = Vec::new();
        let result = loop {
            match events.next().await.expect("it ends with its result") {
                CallEvent::Progress(progress) => reported.push(progress.progress.to_string()),
                CallEvent::Done(result) => break result.unwrap(),
                _ => {}
            }
        };
        assert_eq!(result.to_text(), "ok", "{way:?}");
        assert!(events.next().await.is_none());
        assert_eq!(reported, ["0", "1", "2"], "{way:?}");
        assert_eq!(calls.load(SeqCst), 3, "{way:?}");
        assert_eq!(seen.take(), ["inner: tools/call tries"; 3], "each passes what is further in");
        // The next one has all its attempts; a list is read as ever.
        assert_eq!(client.call_tool("tries", ()).await.unwrap().to_text(), "ok");
        assert_eq!(client.list_tools().await.unwrap().tools.len(), 1, "{way:?}");
    }
}

#[tokio::test]
async fn what_any_attempt_may_have_done_the_last_error_says() {
    for way in WAYS {
        // The first may have run, the second certainly has not.
        let (server, calls) = failing(&[-32603, -32602, -32602]);
        let builder = Client::builder().layer(RetryLayer::new(Again(1)));
        let client = connect(builder, &server, way).await;
        let error = client.call_tool("tries", ()).await.unwrap_err();
        assert_eq!(error.as_rpc().map(|rpc| rpc.code), Some(-32602), "{way:?}");
        assert!(error.maybe_executed(), "{way:?}: {error}");
        assert_eq!(calls.load(SeqCst), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_given_up_is_cancelled_and_the_next_one_is_made() {
    struct Dropped(Log);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.add("dropped");
        }
    }
    let (log, calls) = (Log::default(), Arc::new(AtomicUsize::new(0)));
    let told = log.clone();
    let slow = move || {
        let (told, first) = (told.clone(), calls.fetch_add(1, SeqCst) == 0);
        async move {
            let dropped = Dropped(told);
            if first {
                std::future::pending::<()>().await;
            }
            std::mem::forget(dropped);
            "ok"
        }
    };
    let server = Server::new("test", "1").tool(tool("slow", slow));
    let builder = Client::builder()
        .layer(RetryLayer::new(Again(1)))
        .layer(TimeoutLayer::new(Duration::from_secs(5)));
    let client = connect(builder, &server, (Wire::Memory, MODERN)).await;
    assert_eq!(client.call_tool("slow", ()).await.unwrap().to_text(), "ok");
    assert_eq!(log.take(), ["dropped"]);
}

#[tokio::test]
async fn an_orderly_end_waits_for_what_a_layer_holds_back() {
    let gate = Arc::new(Semaphore::new(0));
    let let_in = gate.clone();
    let waits = move || {
        let gate = let_in.clone();
        async move { gate.acquire().await.map(drop).map_err(|_| RpcError::internal("closed")) }
    };
    let server = Server::new("test", "1").tool(tool("waits", waits));
    let builder = Client::builder().layer(ConcurrencyLimitLayer::new(1));
    let client = connect(builder, &server, (Wire::Memory, MODERN)).await;
    let calls = [(); 2].map(|()| tokio::spawn(client.call_tool("waits", ()).into_future()));
    tokio::task::yield_now().await;
    let ending = tokio::spawn(client.clone().shutdown(Duration::from_secs(600)));
    tokio::task::yield_now().await;
    assert_eq!(client.call_tool("waits", ()).await.unwrap_err().kind(), ErrorKind::Closed);
    gate.add_permits(2);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let report = ending.await.unwrap();
    assert_eq!((report.finished, report.abandoned), (2, 0));
}
