//! Owns: how fast a client reads a list that it was allowed to keep, and whether it asks for it again.
//! Does not own: the client, nor what is too slow.

use std::time::Instant;

use serde_json::json;

use crate::statistics::statistics;
use crate::{Arguments, Caller, counter, percentile};

/// One read that fills whatever the client keeps, then so many more, each of them timed.
pub(crate) async fn reads(arguments: &Arguments, client: impl Caller) {
    let tools = client.list().await.unwrap_or_else(|error| {
        eprintln!("the list cannot be read: {error}");
        std::process::exit(1)
    });
    let before = counter(&statistics(arguments, &client).await, "lists");
    let (mut latencies, mut errors) = (Vec::with_capacity(arguments.calls), 0);
    for _ in 0..arguments.calls {
        let started = Instant::now();
        let read = client.list().await;
        latencies.push(started.elapsed().as_nanos() as u64);
        if read.as_ref() != Ok(&tools) {
            errors += 1;
        }
    }
    let after = counter(&statistics(arguments, &client).await, "lists");
    println!(
        "{}",
        json!({
            "tools": tools,
            "reads": arguments.calls,
            "read_p50_us": percentile(&mut latencies, 0.5) / 1e3,
            "read_p99_us": percentile(&mut latencies, 0.99) / 1e3,
            "asked": after.zip(before).map(|(after, before)| after - before),
            "errors": errors,
        })
    );
}
