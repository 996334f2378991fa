//! Clients that misuse legacy sessions.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{io::AsyncWriteExt, time::timeout};

use super::memory::{end_session, open_session, said};
use crate::{
    attack::Trial,
    wire::message::{legacy, legacy_call},
    witness::Session,
};

/// How many sessions the attacker has.
const SESSIONS: usize = 5;
/// The calls of one session that may be without a client.
const UNATTENDED: u64 = 256;

/// Calls that run for an hour whose client leaves at once.
pub(crate) async fn abandoned_calls(trial: Arc<Trial>) -> Result<(), String> {
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(open_session(&trial).await?);
    }
    let count = trial.scale(3_000, 17_000);
    let mut most = 0;
    for first in (0..count).step_by(100) {
        let mut tasks = tokio::task::JoinSet::new();
        for number in first..first + 100 {
            let session = &sessions[number % SESSIONS].id;
            let call = legacy(session, &legacy_call(number, "sleep", json!({"ms": 3_600_000})));
            let trial = trial.clone();
            tasks.spawn(async move {
                let mut stream = trial.endpoint.connect(1).await?;
                stream.write_all(&call.bytes()).await?;
                // The head of the response shows that the call has begun.
                let mut connection = crate::wire::http1::Http1::new(stream);
                let _ = timeout(Duration::from_secs(5), connection.head()).await;
                std::io::Result::Ok(())
            });
        }
        tasks.join_all().await;
        if first % 1_000 == 0 {
            most = most.max(trial.stats().await?["in_flight"].as_u64().unwrap_or(0));
        }
    }
    let bound = SESSIONS as u64 * UNATTENDED;
    let bounded = |stats: &serde_json::Value| stats["in_flight"].as_u64() <= Some(bound);
    let waited = trial.until("bounded", Duration::from_secs(10), bounded).await?;
    let stats = trial.stats().await?;
    trial.note(format!(
        "{} begun, {most} at most and {} at the end in flight, bounded after {} ms",
        stats["started"],
        stats["in_flight"],
        waited.as_millis()
    ));
    for session in sessions {
        end_session(&trial, session).await?;
    }
    Ok(())
}

/// A session that was ended, and many others after it.
pub(crate) async fn ended_session(trial: Arc<Trial>) -> Result<(), String> {
    let ended = open_session(&trial).await?;
    let id = ended.id.clone();
    end_session(&trial, ended).await?;
    let count = trial.scale(200, 10_001);
    let mut refused = 0;
    for _ in 0..count {
        match Session::open(&trial.endpoint, 1).await.map_err(said)? {
            Ok(session) => end_session(&trial, session).await?,
            Err(_) => refused += 1,
        }
    }
    let mut again = open_session(&trial).await?;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let answer = again.connection.ask(&legacy(&id, &ping)).await.map_err(said)?;
    trial.note(format!("{count} others, {refused} refused; status {}", answer.status));
    end_session(&trial, again).await?;
    if answer.status != 404 {
        return Err(format!("a session that was ended gets status {}", answer.status));
    }
    Ok(())
}
