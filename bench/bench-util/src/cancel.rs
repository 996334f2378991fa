//! Owns: how a client abandons calls: many in flight at once, and before they were written.
//! Does not own: the client, nor what is too slow.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::process::{cpu_ms, resident_kib};
use crate::statistics::statistics;
use crate::{Arguments, Caller, counter, percentile};

/// How often all calls are started and abandoned.
const CYCLES: i64 = 5;
/// How long all `slow` calls may take to arrive at the server.
const START_LIMIT: Duration = Duration::from_secs(5);
/// How long the server may take to let all of them go.
const RELEASE_LIMIT: Duration = Duration::from_secs(8);
/// How long we look out for what comes late, or twice.
const LATE: Duration = Duration::from_millis(1500);

/// Many calls in flight, all of them abandoned at once, some times over. Ends after the first
/// time if not all of the calls arrived.
pub(crate) async fn in_flight(arguments: &Arguments, client: impl Caller) {
    let wanted = arguments.calls as i64;
    let (mut cycles, mut started) = (0, 0);
    let (mut returned, mut released, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    let mut memory = 0.0;
    while cycles < CYCLES && started == cycles * wanted {
        let cycle = cycle(arguments, &client, started).await;
        if cycles == 0 {
            memory = cycle.kib / arguments.calls as f64;
        }
        cycles += 1;
        started = cycle.started;
        returned.push(cycle.returned.as_nanos() as u64);
        released.push(cycle.released.as_nanos() as u64);
        cpu.push((cycle.cpu_ms * 1e6) as u64);
    }
    tokio::time::sleep(LATE).await;
    let text = statistics(arguments, &client).await;
    let each = |count: i64| count as f64 / cycles as f64;
    let counted = |key| counter(&text, key).map(each);
    println!(
        "{}",
        json!({
            "n": arguments.calls,
            "cycles": cycles,
            "started": each(started),
            "arrived": counted("started"),
            "return_ms": percentile(&mut returned, 0.5) / 1e6,
            "server_released_ms": percentile(&mut released, 0.5) / 1e6,
            "cancel_cpu_ms": percentile(&mut cpu, 0.5) / 1e6,
            "released": counted("released"),
            "by_close": counted("by_close"),
            "by_notification": counted("by_notification"),
            "cancel_notes": counted("cancel_notes"),
            "usable_after": is_usable(&client).await,
            "kib_per_inflight": memory,
        })
    );
}

struct Cycle {
    /// What the server had counted, in all, when the calls were abandoned.
    started: i64,
    /// Memory that the calls took.
    kib: f64,
    /// Until every call had returned to its caller.
    returned: Duration,
    /// Until the server had let all of them go.
    released: Duration,
    cpu_ms: f64,
}

async fn cycle(arguments: &Arguments, client: &impl Caller, before: i64) -> Cycle {
    let own = std::process::id();
    let kib = resident_kib(own);
    let running: Vec<_> = (0..arguments.calls)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.slow().await })
        })
        .collect();
    let (waiting, wanted) = (Instant::now(), before + arguments.calls as i64);
    let mut started = before;
    while started < wanted && waiting.elapsed() < START_LIMIT {
        tokio::time::sleep(Duration::from_millis(5)).await;
        started = counter(&statistics(arguments, client).await, "started").unwrap_or(before);
    }
    let kib = resident_kib(own) - kib;
    let (abandoned, cpu) = (Instant::now(), cpu_ms(own));
    for call in &running {
        call.abort();
    }
    for call in running {
        // Cancelled is what it should be.
        let _ = call.await;
    }
    let returned = abandoned.elapsed();
    while abandoned.elapsed() < RELEASE_LIMIT {
        let text = statistics(arguments, client).await;
        if counter(&text, "released").is_some_and(|released| released >= started) {
            break;
        }
    }
    Cycle { started, kib, returned, released: abandoned.elapsed(), cpu_ms: cpu_ms(own) - cpu }
}

/// Calls that are begun and abandoned in one step of one task. On a runtime with one worker no
/// other task runs in between, so nothing can have been written, and none of them may arrive.
pub(crate) async fn unwritten(arguments: &Arguments, client: impl Caller) {
    let before = counter(&statistics(arguments, &client).await, "started").unwrap_or(0);
    let (own, count) = (client.clone(), arguments.calls);
    let begun = tokio::spawn(tokio::task::unconstrained(async move {
        let mut calls: Vec<_> = (0..count).map(|_| Box::pin(own.slow())).collect();
        poll_fn(|context| {
            let ended = calls.iter_mut().filter_map(|call| match call.as_mut().poll(context) {
                Poll::Ready(()) => Some(()),
                Poll::Pending => None,
            });
            Poll::Ready(ended.count())
        })
        .await
    }));
    let ended = begun.await.expect("a call does not panic");
    tokio::time::sleep(LATE).await;
    let text = statistics(arguments, &client).await;
    println!(
        "{}",
        json!({
            "n": count,
            "errors": ended,
            "arrived": counter(&text, "started").map(|started| started - before),
            "cancel_notes": counter(&text, "cancel_notes"),
            "usable_after": is_usable(&client).await,
        })
    );
}

async fn is_usable(client: &impl Caller) -> bool {
    let echo = client.echo("still here".into());
    let answer = tokio::time::timeout(Duration::from_secs(3), echo).await;
    answer == Ok(Ok("still here".to_owned()))
}
