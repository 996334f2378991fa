//! The same contract with more than one thread, and with no runtime at all.

use std::{future::IntoFuture, sync::Arc};

use serde_json::json;
use tokio::runtime::Builder;
use turnbuckle::{Client, Limits, types::Era};

use turnbuckle_contract::{Fixture, server};

use crate::rig::{Rig, Wire, eventually, pinned, poll_once, within};

macro_rules! on_every_wire {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use super::{Era::{Legacy, Modern}, Wire::{Direct, Http, Memory, Stdio, Unix}, $test};

            #[test]
            fn memory() { [Legacy, Modern].into_iter().for_each(|era| $test(Memory, era)); }
            #[test]
            fn stdio() { [Legacy, Modern].into_iter().for_each(|era| $test(Stdio, era)); }
            #[test]
            fn unix() { [Legacy, Modern].into_iter().for_each(|era| $test(Unix, era)); }
            #[test]
            fn direct() { [Legacy, Modern].into_iter().for_each(|era| $test(Direct, era)); }
            #[test]
            fn http() { [Legacy, Modern].into_iter().for_each(|era| $test(Http, era)); }
        }
    )+};
}

on_every_wire! {
    b16_dropping_works_after_the_runtime_is_gone,
    b16_dropping_works_on_a_thread_without_a_runtime,
    // req: tools:call:concurrent
    law01_many_tasks_on_many_threads_lose_nothing,
}

fn b16_dropping_works_after_the_runtime_is_gone(wire: Wire, era: Era) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (rig, call, unpolled) = runtime.block_on(within(async {
        let rig = Rig::new(wire, era).await;
        let mut call = rig.tool("hold", json!({"key": "k"})).into_future();
        assert!(poll_once(&mut call).await.is_none());
        let unpolled = rig.tool("hold", json!({"key": "k"})).into_future();
        (rig, call, unpolled)
    }));
    drop(runtime);
    drop(call);
    drop(unpolled);
    drop(rig);
}

fn b16_dropping_works_on_a_thread_without_a_runtime(wire: Wire, era: Era) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(within(async {
        let rig = Rig::new(wire, era).await;
        let mut call = rig.tool("hold", json!({"key": "k"})).into_future();
        // Over HTTP a call gets no further than whoever polls it.
        while rig.report().await.of("k").started == 0 {
            assert!(poll_once(&mut call).await.is_none());
        }
        std::thread::spawn(move || drop(call)).join().unwrap();
        let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
        assert_eq!(ledger.of("k").dropped, 1);
    }));
}

fn law01_many_tasks_on_many_threads_lose_nothing(wire: Wire, era: Era) {
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(within(async {
        let rig = Arc::new(Rig::new(wire, era).await);
        let tasks: Vec<_> = (0..8).map(|task| tokio::spawn(hundred(rig.clone(), task))).collect();
        let mut abandoned = 0;
        for task in tasks {
            abandoned += task.await.unwrap();
        }
        let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
        let count = ledger.of("k");
        assert_eq!((count.finished, count.started), (0, count.dropped));
        assert!(count.started <= abandoned && abandoned > 100, "{count:?} of {abandoned}");
        assert_eq!(rig.report().await.in_flight, 0);
    }));
}

/// Whether a client closes before its runtime ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    InOrder,
    WithItsRuntime,
}

/// A modern call is cancelled by the end of its connection. A legacy call is cancelled by a message, which
/// nothing sends after the runtime.
#[test]
fn b16_the_end_of_a_runtime_cancels_a_call_over_http_in_the_modern_era() {
    let runtime = || Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let theirs = runtime();
    for (era, leaves, expected) in [
        (Era::Modern, Leaves::WithItsRuntime, (0, 1)),
        (Era::Legacy, Leaves::WithItsRuntime, (1, 0)),
        (Era::Legacy, Leaves::InOrder, (0, 1)),
    ] {
        let fixture = Fixture::default();
        let url = theirs.block_on(async {
            let server = server(&fixture, Limits::default());
            let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
            let url = bound.url();
            tokio::spawn(bound.into_future());
            url
        });
        let ours = runtime();
        ours.block_on(within(async {
            let builder = Client::builder().revision(pinned(era)).no_proxy();
            let client = builder.connect(url).await.unwrap();
            let call = client.call_tool("hold", json!({"key": "k"})).no_timeouts();
            tokio::spawn(call.into_future());
            eventually(|| fixture.ledger().of("k").started == 1).await;
            if leaves == Leaves::InOrder {
                client.close().await;
            }
        }));
        drop(ours);
        if expected == (1, 0) {
            fixture.release("k");
        }
        theirs.block_on(within(eventually(|| fixture.ledger().in_flight == 0)));
        let count = fixture.ledger().of("k");
        assert_eq!((count.finished, count.dropped), expected, "{era:?}, {leaves:?}");
    }
}

/// A hundred calls in a row, some of them given up at once, some a little later.
async fn hundred(rig: Arc<Rig>, task: u64) -> u64 {
    let mut abandoned = 0;
    for round in 0..100 {
        let text = format!("{task}.{round}");
        match (task + round) % 4 {
            0 => assert_eq!(rig.text("echo", json!({"text": text})).await, text),
            1 => assert!(rig.tool("refuse", json!({})).await.is_err()),
            late => {
                let flight = rig.enter(rig.tool("hold", json!({"key": "k"}))).await;
                if late == 3 {
                    tokio::task::yield_now().await;
                }
                flight.abandon().await;
                abandoned += 1;
            }
        }
    }
    abandoned
}
