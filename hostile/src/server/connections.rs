//! Clients that only hold connections.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use super::memory::said;
use crate::{attack::Trial, process::Figures, wire::http2::Http2};

/// Opens HTTP/2 connections from several addresses, some at a time.
async fn open(trial: &Arc<Trial>, count: usize, peers: u8) -> Vec<Http2> {
    let mut open = Vec::new();
    for first in (0..count).step_by(250) {
        let mut tasks = tokio::task::JoinSet::new();
        for number in first..count.min(first + 250) {
            let trial = trial.clone();
            let peer = (number % usize::from(peers)) as u8 + 1;
            tasks.spawn(async move {
                let start = async { Http2::start(trial.endpoint.connect(peer).await?, &[]).await };
                timeout(Duration::from_secs(5), start)
                    .await
                    .unwrap_or_else(|_| io::Result::Err(io::ErrorKind::TimedOut.into()))
            });
        }
        open.extend(tasks.join_all().await.into_iter().filter_map(Result::ok));
    }
    open
}

/// Answers PINGs on all connections until the server has closed each.
async fn until_closed(open: Vec<Http2>, patience: Duration) -> (usize, Duration) {
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for mut connection in open {
        tasks.spawn(async move {
            let closed =
                timeout(patience, async { while connection.next().await.is_ok() {} }).await;
            closed.is_ok()
        });
    }
    let closed = tasks.join_all().await.into_iter().filter(|closed| *closed).count();
    (closed, start.elapsed())
}

/// 10,000 HTTP/2 connections of one address: the limit per address leaves others their own.
pub(crate) async fn one_address(trial: Arc<Trial>) -> Result<(), String> {
    let count = trial.scale(3_000, 10_000);
    let open = open(&trial, count, 1).await;
    let mut kept = Vec::new();
    let mut closed = 0;
    for mut connection in open {
        // A connection beyond the limit is closed at once; the others get the server's settings.
        match timeout(Duration::from_secs(5), connection.next()).await {
            Ok(Ok(_)) => kept.push(connection),
            _ => closed += 1,
        }
    }
    trial.note(format!("{} open, {closed} closed at once", kept.len()));
    if kept.len() > 1_024 {
        return Err(format!("{} connections of one address are open", kept.len()));
    }
    let (mut next, endpoint) = (0, &trial.endpoint);
    while next < 20 {
        endpoint.connect(2).await.map_err(said)?;
        next += 1;
    }
    Ok(())
}

/// 10,000 HTTP/2 connections of ten addresses, which answer PINGs and ask nothing, and then as many
/// again: memory that the allocator keeps is used a second time.
pub(crate) async fn ten_addresses(trial: Arc<Trial>) -> Result<(), String> {
    for _ in 0..2 {
        let start = Instant::now();
        let open = open(&trial, 10_000, 10).await;
        trial.note(format!("{} open in {:.1} s", open.len(), start.elapsed().as_secs_f32()));
        let count = open.len();
        let (closed, took) = until_closed(open, Duration::from_secs(90)).await;
        let rss = Figures::of(trial.pid).unwrap_or_default().rss >> 10;
        trial.note(format!("closed by the server after {:.0} s, {rss} MiB", took.as_secs_f32()));
        if closed < count {
            return Err(format!("{} connections are open after 90 s", count - closed));
        }
    }
    Ok(())
}
