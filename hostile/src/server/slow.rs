//! Clients that send slowly, leave early, or do not read events.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::memory::said;
use crate::{
    attack::{Extent, Trial},
    wire::{endpoint::Stream, message::modern, message::modern_call},
};

/// How long a connection that does not send may live.
const CLOSED: Duration = Duration::from_secs(75);

/// Requests that stop after some bytes. In a full run each gets a byte a second, until it is closed.
async fn unfinished(trial: Arc<Trial>, bytes: Vec<u8>) -> Result<(), String> {
    let bytes: Arc<[u8]> = bytes.into();
    let mut tasks = tokio::task::JoinSet::new();
    let start = Instant::now();
    for _ in 0..1_000 {
        let (trial, bytes) = (trial.clone(), bytes.clone());
        let mut stream = trial.endpoint.connect(1).await.map_err(said)?;
        tasks.spawn(async move {
            stream.write_all(&bytes).await?;
            if trial.world.extent == Extent::Full {
                drip(&mut stream).await?;
            }
            io::Result::Ok(stream)
        });
    }
    let ended = tasks.join_all().await;
    let errors = ended.iter().filter(|ended| ended.is_err()).count();
    trial.note(format!("{} connections, {errors} broken", ended.len()));
    if trial.world.extent == Extent::Full {
        trial.note(format!("closed after {:.0} s", start.elapsed().as_secs_f32()));
    }
    // In a quick run they are open until here; the witness was served beside them.
    crate::attack::served(&trial).await
}

/// Sends a byte a second until the server has closed.
async fn drip(stream: &mut Stream) -> io::Result<()> {
    let start = Instant::now();
    let mut buffer = [0; 1024];
    while start.elapsed() < CLOSED {
        match timeout(Duration::from_secs(1), stream.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => return Ok(()),
            Ok(Ok(_)) => {}
            // It may be closed by now.
            Err(_) if stream.write_all(b"x").await.is_err() => return Ok(()),
            Err(_) => {}
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Heads without an end.
pub(crate) async fn heads(trial: Arc<Trial>) -> Result<(), String> {
    unfinished(trial, b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-slow: ".to_vec()).await
}

/// Heads of 60 KiB without an end.
pub(crate) async fn long_heads(trial: Arc<Trial>) -> Result<(), String> {
    let head = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-slow: {}", "x".repeat(60_000));
    unfinished(trial, head.into_bytes()).await
}

/// Bodies without an end that do not even drip.
pub(crate) async fn bodies(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "echo", json!({"text": "x"}));
    let mut bytes = call.head(100_000).into_bytes();
    bytes.extend(&call.text.as_bytes()[..20]);
    let mut streams = Vec::new();
    for _ in 0..1_000 {
        let mut stream = trial.endpoint.connect(1).await.map_err(said)?;
        stream.write_all(&bytes).await.map_err(said)?;
        streams.push(stream);
    }
    crate::attack::served(&trial).await?;
    if trial.world.extent == Extent::Full {
        let start = Instant::now();
        for stream in &mut streams {
            let mut rest = Vec::new();
            let closed = timeout(CLOSED, stream.read_to_end(&mut rest)).await;
            closed.map_err(|_| "a body that paused is not given up".to_owned())?.map_err(said)?;
        }
        trial.note(format!("closed after {:.0} s", start.elapsed().as_secs_f32()));
    }
    Ok(())
}

/// Event streams of calls that report progress without end, which are not read.
pub(crate) async fn unread_events(trial: Arc<Trial>) -> Result<(), String> {
    let params = json!({
        "name": "countdown",
        "arguments": {"from": 4_000_000_000_u32, "delay_ms": 0},
        "_meta": {"progressToken": "t".repeat(1_000)},
    });
    let bytes = modern(1, "tools/call", params).bytes();
    let mut streams = Vec::new();
    for _ in 0..trial.scale(200, 1_000) {
        let mut stream = trial.endpoint.connect_narrow(1).await.map_err(said)?;
        stream.write_all(&bytes).await.map_err(said)?;
        streams.push(stream);
    }
    // Until their queues are full.
    for _ in 0..5 {
        crate::attack::served(&trial).await?;
    }
    trial.note(format!("{} streams", streams.len()));
    Ok(())
}

/// Listen streams: more than a server may have, of one address and of several.
pub(crate) async fn listeners(trial: Arc<Trial>) -> Result<(), String> {
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let bytes = modern(1, "subscriptions/listen", listen).bytes();
    let mut streams = Vec::new();
    for _ in 0..1_000 {
        let mut stream = trial.endpoint.connect(1).await.map_err(said)?;
        stream.write_all(&bytes).await.map_err(said)?;
        streams.push(stream);
    }
    // Each of them hears of every change and reads none.
    for _ in 0..trial.scale(10, 1_000) {
        let mut connection =
            crate::wire::http1::Http1::new(trial.endpoint.connect(2).await.map_err(said)?);
        let announce = modern_call(1, "announce", json!({}));
        connection.ask(&announce).await.map_err(said)?;
    }
    trial.note(format!("{} streams", streams.len()));
    Ok(())
}

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Fin,
    Reset,
}

/// Clients that leave during a call, with bytes behind their request. The handler is dropped at once.
pub(crate) async fn departures(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "sleep", json!({"ms": 3_600_000}));
    let mut slow = Vec::new();
    for (behind, leave) in [
        (0, Leave::Fin),
        (0, Leave::Reset),
        (2, Leave::Fin),
        (2, Leave::Reset),
        (20_000, Leave::Fin),
        (20_000, Leave::Reset),
    ] {
        let mut bytes = call.bytes();
        bytes.extend(b"\r\n".repeat(behind / 2));
        let begun = |stats: &serde_json::Value| stats["in_flight"] == 1;
        let patience = Duration::from_secs(5);
        match leave {
            Leave::Fin => {
                let mut stream = trial.endpoint.connect(1).await.map_err(said)?;
                stream.write_all(&bytes).await.map_err(said)?;
                trial.until("begun", patience, begun).await?;
            }
            Leave::Reset => {
                // Only TCP has resets.
                let Ok(mut stream) = trial.endpoint.connect_tcp(1).await else { continue };
                stream.write_all(&bytes).await.map_err(said)?;
                trial.until("begun", patience, begun).await?;
                stream.set_zero_linger().map_err(said)?;
            }
        }
        let ended = |stats: &serde_json::Value| stats["in_flight"] == 0;
        let took = trial.until("ended", Duration::from_secs(35), ended).await?;
        trial.note(format!("{behind} {leave:?}: {} ms", took.as_millis()));
        if took > Duration::from_secs(1) {
            slow.push(format!("{behind} bytes, then {leave:?}: noticed after {took:?}"));
        }
    }
    if slow.is_empty() { Ok(()) } else { Err(slow.join("\n")) }
}
