//! Clients that make a server keep bytes.

use std::{io, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{
    attack::Trial,
    wire::{
        endpoint::Stream,
        http1::Http1,
        http2::{Http2, INITIAL_WINDOW_SIZE},
        message::{Message, legacy, legacy_call, modern_call, padded},
    },
    witness::Session,
};

/// Nearly the longest body that a server accepts.
const LONG: usize = (4 << 20) - 1024;
/// How long the answer to one request is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
const HOUR: u64 = 3_600_000;
/// How many peer addresses the attackers have.
const PEERS: u8 = 4;

/// Sends the same request on many connections, some at a time, and keeps them open.
async fn on_many(trial: &Arc<Trial>, count: usize, bytes: Vec<u8>) -> Vec<Stream> {
    let bytes: Arc<[u8]> = bytes.into();
    let mut open = Vec::new();
    for first in (0..count).step_by(16) {
        let mut tasks = tokio::task::JoinSet::new();
        for number in first..count.min(first + 16) {
            let (trial, bytes) = (trial.clone(), bytes.clone());
            tasks.spawn(async move {
                let peer = (number % usize::from(PEERS)) as u8 + 1;
                let mut stream = trial.endpoint.connect_narrow(peer).await?;
                // A server that refuses may close before it has read everything.
                let _ = timeout(PATIENCE, stream.write_all(&bytes)).await;
                io::Result::Ok(stream)
            });
        }
        open.extend(tasks.join_all().await.into_iter().filter_map(Result::ok));
    }
    open
}

/// Counts the statuses that wait on connections, without reading further.
async fn statuses(streams: &mut [Stream]) -> String {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for stream in streams {
        let mut start = [0; 12];
        let status = match timeout(Duration::from_millis(20), stream.read_exact(&mut start)).await {
            Err(_) => "silent".to_owned(),
            Ok(Err(_)) => "closed".to_owned(),
            Ok(Ok(_)) => String::from_utf8_lossy(&start[9..]).into_owned(),
        };
        *counts.entry(status).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(status, count)| format!("{count} {status}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// Calls that run for an hour with arguments of 4 MiB, each on a connection of its own.
pub(crate) async fn calls_in_flight(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "sleep", padded(json!({"ms": HOUR}), LONG));
    let mut open = on_many(&trial, trial.scale(72, 320), call.bytes()).await;
    trial.note(statuses(&mut open).await);
    Ok(())
}

/// The same in legacy sessions.
pub(crate) async fn legacy_calls_in_flight(trial: Arc<Trial>) -> Result<(), String> {
    let session = open_session(&trial).await?;
    let call = legacy_call("ID", "sleep", padded(json!({"ms": HOUR}), LONG));
    let call = legacy(&session.id, &call);
    let mut calls = Vec::new();
    for number in 0..trial.scale(72, 128) {
        let text = call.text.replacen("ID", &number.to_string(), 1);
        let call = Message { text, headers: call.headers.clone() };
        calls.extend(on_many(&trial, 1, call.bytes()).await);
    }
    trial.note(statuses(&mut calls).await);
    end_session(&trial, session).await
}

/// Answers of 4 MiB that are not read, each on a connection of its own.
pub(crate) async fn unread_answers(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "echo", json!({"text": "x".repeat(LONG)}));
    let mut open = on_many(&trial, trial.scale(72, 320), call.bytes()).await;
    trial.note(statuses(&mut open).await);
    Ok(())
}

/// The same in a legacy session.
pub(crate) async fn legacy_unread_answers(trial: Arc<Trial>) -> Result<(), String> {
    let session = open_session(&trial).await?;
    let call = legacy_call(1, "echo", json!({"text": "x".repeat(LONG)}));
    let bytes = legacy(&session.id, &call).bytes();
    let mut open = on_many(&trial, trial.scale(72, 256), bytes).await;
    trial.note(statuses(&mut open).await);
    end_session(&trial, session).await
}

/// Bodies that stop before their last byte.
pub(crate) async fn unfinished_bodies(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "echo", json!({"text": "x".repeat(LONG)}));
    let mut bytes = call.bytes();
    bytes.pop();
    let mut open = on_many(&trial, trial.scale(72, 320), bytes).await;
    trial.note(statuses(&mut open).await);
    Ok(())
}

/// One HTTP/2 connection that does not let the server send anything.
pub(crate) async fn window_of_zero(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "echo", json!({"text": "x".repeat(LONG)}));
    streams(&trial, &call, &[(INITIAL_WINDOW_SIZE, 0)], trial.scale(40, 256)).await
}

/// One HTTP/2 connection with as many long calls as it may have.
pub(crate) async fn http2_calls_in_flight(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "sleep", padded(json!({"ms": HOUR}), LONG));
    streams(&trial, &call, &[], trial.scale(40, 256)).await
}

async fn streams(
    trial: &Trial,
    call: &Message,
    settings: &[(u16, u32)],
    count: u32,
) -> Result<(), String> {
    let stream = trial.endpoint.connect(1).await.map_err(said)?;
    let mut connection = Http2::start(stream, settings).await.map_err(said)?;
    for number in 0..count {
        let sent = timeout(PATIENCE, connection.request(number * 2 + 1, call)).await;
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                trial.note(format!("ended after {number} requests: {error}"));
                break;
            }
            Err(_) => {
                trial.note(format!("stopped after {number} requests"));
                break;
            }
        }
    }
    let refused = connection.waiting.iter().filter(|frame| frame.kind == 1).count();
    trial.note(format!("{refused} heads of responses"));
    Ok(())
}

/// Ids of 4 MiB in cancellations of requests that do not exist.
pub(crate) async fn long_ids(trial: Arc<Trial>) -> Result<(), String> {
    let session = open_session(&trial).await?;
    let mut connection = Http1::new(trial.endpoint.connect(1).await.map_err(said)?);
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    let id = format!("ID{}", "i".repeat(LONG - 4096));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {
        "requestId": id,
    }});
    let cancel = legacy(&session.id, &cancel);
    for number in 0..trial.scale(8, 1024) {
        let text = cancel.text.replacen("ID", &number.to_string(), 1);
        let cancel = Message { text, headers: cancel.headers.clone() };
        let asked = connection.ask(&cancel).await;
        match asked {
            Ok(answer) => *statuses.entry(answer.status).or_default() += 1,
            Err(_) => {
                *statuses.entry(0).or_default() += 1;
                connection = Http1::new(trial.endpoint.connect(1).await.map_err(said)?);
            }
        }
    }
    trial.note(format!("{statuses:?}"));
    end_session(&trial, session).await
}

pub(super) async fn open_session(trial: &Trial) -> Result<Session, String> {
    let opened = Session::open(&trial.endpoint, 1).await.map_err(said)?;
    opened.map_err(|status| format!("no session: status {status}"))
}

/// Ends a session, and the calls in it. Its own connection may have been closed as unused.
pub(super) async fn end_session(trial: &Trial, session: Session) -> Result<(), String> {
    let id = session.id;
    let mut connection = Http1::new(trial.endpoint.connect(1).await.map_err(said)?);
    let head = format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {id}\r\n\r\n");
    connection.send(head.as_bytes()).await.map_err(said)?;
    let answer = connection.answer().await.map_err(said)?;
    match answer.status {
        200..300 => Ok(()),
        status => Err(format!("a session could not be ended: status {status}: {}", answer.body)),
    }
}

pub(super) fn said(error: io::Error) -> String {
    format!("an attack broke off: {error}")
}

/// Returns a message of a stdio client.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut bytes = message.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}
