//! A client in good faith that uses the server during an attack.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};

use crate::wire::{
    endpoint::Endpoint,
    http1::{Answer, Http1},
    message::{initialize, legacy, legacy_call, modern_call},
};

/// The peer address of the witness.
pub(crate) const WITNESS: u8 = 200;
/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(50);

/// What became of the requests of a witness.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testimony {
    /// Answered with the right result.
    pub(crate) served: u32,
    /// Refused with status 503 and a JSON-RPC error.
    pub(crate) refused: u32,
    /// Not answered, or wrongly.
    pub(crate) failed: u32,
    /// The longest time that a served request took.
    pub(crate) slowest: Duration,
    /// The longest time without a served request.
    pub(crate) gap: Duration,
    /// The first failure.
    pub(crate) failure: Option<String>,
}

/// A witness at work.
pub(crate) struct Witness {
    testimony: Arc<Mutex<Testimony>>,
    task: JoinHandle<()>,
}

impl Witness {
    /// Starts to use the server, in both eras by turns, on a new connection each time.
    pub(crate) fn start(endpoint: Endpoint) -> Witness {
        let testimony = Arc::new(Mutex::new(Testimony::default()));
        let shared = testimony.clone();
        let task = tokio::spawn(async move {
            let mut last = Instant::now();
            for turn in 0_u32.. {
                let start = Instant::now();
                let asked = timeout(PATIENCE, ask(&endpoint, turn)).await;
                let asked = asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                let since = last.elapsed();
                if matches!(asked, Ok(200)) {
                    last = Instant::now();
                }
                let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
                lock().count(asked, start.elapsed(), since);
                tokio::time::sleep(PAUSE).await;
            }
        });
        Witness { testimony, task }
    }

    /// Returns what became of the requests so far.
    pub(crate) fn so_far(&self) -> Testimony {
        self.testimony.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until one more request was served.
    pub(crate) async fn served_again(&self, patience: Duration) -> Result<Duration, String> {
        let (before, start) = (self.so_far().served, Instant::now());
        while self.so_far().served == before {
            if start.elapsed() > patience {
                return Err(format!("others are not served {patience:?} after the attack"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(start.elapsed())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Testimony {
    fn count(&mut self, asked: io::Result<u16>, took: Duration, since: Duration) {
        self.gap = self.gap.max(since);
        match asked {
            Ok(200) => {
                self.served += 1;
                self.slowest = self.slowest.max(took);
            }
            Ok(503) => self.refused += 1,
            Ok(status) => self.fail(format!("status {status}")),
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn fail(&mut self, sentence: String) {
        self.failed += 1;
        self.failure.get_or_insert(sentence);
    }
}

async fn ask(endpoint: &Endpoint, turn: u32) -> io::Result<u16> {
    let text = format!("witness {turn}");
    let arguments = json!({"text": text});
    let answer = if turn.is_multiple_of(2) {
        let mut connection = Http1::new(endpoint.connect(WITNESS).await?);
        connection.ask(&modern_call(turn, "echo", arguments)).await?
    } else {
        let opened = Session::open(endpoint, WITNESS).await?;
        let Ok(mut session) = opened else { return Ok(503) };
        session.ask(&legacy_call(turn, "echo", arguments)).await?
    };
    if answer.status == 200 && answer.message()["result"]["content"][0]["text"] != text {
        return Err(io::Error::other(format!("a wrong answer: {}", answer.body)));
    }
    Ok(answer.status)
}

/// A legacy session on a connection.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) connection: Http1,
}

impl Session {
    /// Opens a session. The inner error is the status of a refusal.
    pub(crate) async fn open(endpoint: &Endpoint, peer: u8) -> io::Result<Result<Session, u16>> {
        let mut connection = Http1::new(endpoint.connect(peer).await?);
        let answer = connection.ask(&initialize()).await?;
        match answer.header("mcp-session-id") {
            Some(id) if answer.status == 200 => Ok(Ok(Session { id: id.to_owned(), connection })),
            _ => Ok(Err(answer.status)),
        }
    }

    /// Sends a message and reads the response.
    pub(crate) async fn ask(&mut self, body: &Value) -> io::Result<Answer> {
        self.connection.ask(&legacy(&self.id, body)).await
    }
}
