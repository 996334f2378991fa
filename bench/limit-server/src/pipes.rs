//! The bare limits over stdin and stdout.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc;

use crate::counters::{BY_NOTIFICATION, CANCEL_NOTES, LISTENERS, RELEASED};
use crate::proto::{self, Params, Request, Rest};

const CHUNK: usize = 1 << 16;

/// Everything in one task: read, answer all whole lines, write once.
pub(crate) async fn one_task() {
    let (input, output) = pipes();
    serve(input, output).await;
}

/// The same over tokio's stdin and stdout, whose reads and writes hop to a blocking thread.
pub(crate) async fn tokio_stdio() {
    serve(tokio::io::stdin(), tokio::io::stdout()).await;
}

/// What an asynchronous SDK needs at least: a task for each request and one ordered writer.
pub(crate) async fn task_per_request() {
    let (mut input, output) = pipes();
    // Unbounded on purpose: a bare limit does less than an SDK has to.
    let (answers, queue) = mpsc::unbounded_channel::<Vec<u8>>();
    let writer = tokio::spawn(write(output, queue));
    let state = Arc::new(Mutex::new(State::default()));
    let (mut buffer, mut searched) = (bytes::BytesMut::with_capacity(CHUNK), 0);
    loop {
        buffer.reserve(CHUNK);
        if !matches!(input.read_buf(&mut buffer).await, Ok(count) if count > 0) {
            break;
        }
        while let Some(end) = memchr::memchr(b'\n', &buffer[searched..]) {
            let line = buffer.split_to(searched + end + 1).freeze();
            searched = 0;
            let (answers, state) = (answers.clone(), state.clone());
            tokio::spawn(async move {
                let mut out = Vec::with_capacity(256);
                let mut state = state.lock().expect("no panic under the lock");
                state.line(&line[..line.len() - 1], &mut out);
                drop(state);
                if !out.is_empty() {
                    let _ = answers.send(out);
                }
            });
        }
        searched = buffer.len();
    }
    drop(answers);
    let _ = writer.await;
}

/// Writes what is queued, all that is ready in one go.
async fn write(mut output: Sender, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    let (mut ready, mut bytes) = (Vec::with_capacity(256), Vec::<u8>::with_capacity(CHUNK));
    while queue.recv_many(&mut ready, 256).await > 0 {
        for answer in ready.drain(..) {
            bytes.extend_from_slice(&answer);
        }
        if output.write_all(&bytes).await.is_err() {
            break;
        }
        bytes.clear();
    }
}

async fn serve(mut input: impl AsyncRead + Unpin, mut output: impl AsyncWrite + Unpin) {
    let (mut state, mut out) = (State::default(), Vec::new());
    let (mut buffer, mut searched) = (Vec::with_capacity(CHUNK), 0);
    loop {
        buffer.reserve(CHUNK);
        if !matches!(input.read_buf(&mut buffer).await, Ok(count) if count > 0) {
            break;
        }
        let used = whole_lines(&buffer, &mut searched, |line| state.line(line, &mut out));
        buffer.drain(..used);
        if out.is_empty() {
            continue;
        }
        if output.write_all(&out).await.is_err() || output.flush().await.is_err() {
            break;
        }
        out.clear();
    }
}

/// Hands out the complete lines and returns how many bytes they take. `searched` remembers how
/// much of the rest is known to hold no end of line.
fn whole_lines(buffer: &[u8], searched: &mut usize, mut each: impl FnMut(&[u8])) -> usize {
    let mut start = 0;
    while let Some(end) = memchr::memchr(b'\n', &buffer[*searched..]) {
        each(&buffer[start..*searched + end]);
        start = *searched + end + 1;
        *searched = start;
    }
    *searched = buffer.len() - start;
    start
}

fn pipes() -> (Receiver, Sender) {
    let input = std::io::stdin().as_fd().try_clone_to_owned().expect("stdin is open");
    let output = std::io::stdout().as_fd().try_clone_to_owned().expect("stdout is open");
    (
        Receiver::from_owned_fd(input).expect("stdin is a pipe"),
        Sender::from_owned_fd(output).expect("stdout is a pipe"),
    )
}

/// What outlives one request: slow calls and listeners, by the text of their ids.
#[derive(Default)]
struct State {
    slow: HashSet<String>,
    listeners: Vec<String>,
}

impl State {
    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Ok(mut request) = serde_json::from_slice::<Request>(line) else {
            proto::error(out, None, -32700, "parse error");
            out.push(b'\n');
            return;
        };
        let params = request.params.take().unwrap_or_default();
        let Some(id) = request.id else {
            self.note(&request.method, &params);
            return;
        };
        match proto::handle(&request.method, id, &params, out) {
            Rest::Nothing => {}
            Rest::Slow => {
                self.slow.insert(id.get().to_owned());
                return;
            }
            Rest::Progress { token, count } => {
                for done in 1..=count {
                    proto::progress_note(out, &token, done, count);
                    out.push(b'\n');
                }
                proto::text(out, id, "done");
            }
            Rest::Listen => {
                LISTENERS.up();
                self.listeners.push(id.get().to_owned());
                proto::acknowledged(out, id.get());
            }
            Rest::Emit => {
                for listener in &self.listeners {
                    proto::list_changed(out, listener);
                    out.push(b'\n');
                }
                proto::text(out, id, "ok");
            }
        }
        out.push(b'\n');
    }

    fn note(&mut self, method: &str, params: &Params) {
        let Some(id) = params.request_id.filter(|_| method == "notifications/cancelled") else {
            return;
        };
        CANCEL_NOTES.up();
        if self.slow.remove(id.get()) {
            RELEASED.up();
            BY_NOTIFICATION.up();
        } else if let Some(index) = self.listeners.iter().position(|other| other == id.get()) {
            self.listeners.remove(index);
            LISTENERS.down();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_and_the_rest_is_searched_once() {
        let (mut searched, mut lines) = (0, Vec::new());
        let used = whole_lines(b"a\nbc\nd", &mut searched, |line| lines.push(line.to_vec()));
        assert_eq!((used, searched), (5, 1));
        assert_eq!(lines, [b"a".to_vec(), b"bc".to_vec()]);
    }

    #[test]
    fn a_cancelled_slow_call_is_released_once() {
        let (mut state, mut out) = (State::default(), Vec::new());
        let call = br#"{"id":7,"method":"tools/call","params":{"name":"slow"}}"#;
        let note = br#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
        state.line(call, &mut out);
        assert!(out.is_empty() && state.slow.contains("7"));
        state.line(note, &mut out);
        assert!(out.is_empty() && state.slow.is_empty());
    }
}
