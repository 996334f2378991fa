//! The parts that concurrency models share: the choice of schedules, and a peer that reads and answers.
//!
//! The models run the connection and the cache of `turnbuckle` itself. Before each lock of these,
//! `shuttle` chooses which thread goes on.

#![cfg(shuttle)]

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use serde_json::Value;
use shuttle::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};
use tokio::io::AsyncWrite;
use turnbuckle::__seam::models::{ModelLink, on_switch};

/// The schedules that are tried at random. A failing one is printed, for `shuttle::replay`.
const SCHEDULES: usize = 20_000;
/// The schedules that are tried in order, before the random ones: all of a small model.
const FIRST_SCHEDULES: usize = 20_000;

/// Runs a model under many schedules.
pub fn check(model: impl Fn() + Send + Sync + 'static) {
    on_switch(switch);
    // A writer that waits for its peer sets a timer, which never runs out here.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime without I/O");
    let _entered = runtime.enter();
    let model = Arc::new(model);
    let same = model.clone();
    shuttle::check_dfs(move || same(), Some(FIRST_SCHEDULES));
    shuttle::check_random(move || model(), SCHEDULES);
}

/// Lets any thread go on. `yield_now` would also wake the future that this thread waits for.
fn switch() {
    AtomicBool::new(false).load(Ordering::SeqCst);
}

/// The peer's end of a connection: it keeps the lines, and may answer each request.
#[derive(Clone)]
pub struct ModelPeer(Arc<Mutex<Received>>);

struct Received {
    link: ModelLink,
    answers: bool,
    text: Vec<u8>,
    /// The bytes up to the last whole line that was looked at.
    read: usize,
    /// The bytes that one write takes; the write after it has to wait.
    room: usize,
    is_full: bool,
    answering: Vec<JoinHandle<()>>,
}

impl ModelPeer {
    /// Creates a peer that answers each request from a thread of its own.
    pub fn answering(link: &ModelLink, room: usize) -> ModelPeer {
        ModelPeer::new(link, true, room)
    }

    /// Creates a peer that answers nothing.
    pub fn silent(link: &ModelLink, room: usize) -> ModelPeer {
        ModelPeer::new(link, false, room)
    }

    fn new(link: &ModelLink, answers: bool, room: usize) -> ModelPeer {
        let (text, answering) = (Vec::new(), Vec::new());
        let link = link.clone();
        let received = Received { link, answers, text, read: 0, room, is_full: false, answering };
        ModelPeer(Arc::new(Mutex::new(received)))
    }

    /// Waits for the answers that are under way, and returns how many there were.
    pub fn join(&self) -> usize {
        let answering = std::mem::take(&mut self.lock().answering);
        let count = answering.len();
        answering.into_iter().for_each(|thread| thread.join().expect("an answer is applied"));
        count
    }

    /// Returns the messages, each of which is a whole line.
    pub fn messages(&self) -> Vec<Value> {
        let text = String::from_utf8(self.lock().text.clone()).expect("text");
        assert!(text.is_empty() || text.ends_with('\n'), "a line breaks off: {text}");
        text.lines().map(|line| serde_json::from_str(line).expect("a message")).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Received> {
        self.0.lock().expect("no thread panics")
    }
}

impl Received {
    /// Answers the requests among the lines that are whole now.
    fn answer(&mut self) {
        while let Some(end) = self.text[self.read..].iter().position(|byte| *byte == b'\n') {
            let line = &self.text[self.read..self.read + end];
            let message: Value = serde_json::from_slice(line).expect("a message");
            self.read += end + 1;
            if let Some(id) = message.get("id").filter(|_| self.answers) {
                let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":{id}}}}}"#);
                let link = self.link.clone();
                self.answering.push(thread::spawn(move || link.receive(line)));
            }
        }
    }
}

impl AsyncWrite for ModelPeer {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut received = self.lock();
        if std::mem::take(&mut received.is_full) {
            // There is room again at once, but others may run before that is noticed.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = bytes.len().min(received.room);
        received.is_full = count < bytes.len();
        received.text.extend_from_slice(&bytes[..count]);
        received.answer();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
