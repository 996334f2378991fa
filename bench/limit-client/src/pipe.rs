//! The bare limit over a child's pipes: one writer, one reader, a map from ids to waiters.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

type Waiters = Arc<Mutex<HashMap<u64, oneshot::Sender<Bytes>>>>;

pub(crate) struct Connection {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    waiters: Waiters,
    /// Killed when dropped.
    _child: Child,
}

impl Connection {
    pub(crate) fn spawn(command: &[String]) -> std::io::Result<Self> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let gone = || std::io::Error::other("the child has no pipes");
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = child.stdout.take().ok_or_else(gone)?;
        // Unbounded on purpose: a bare limit does less than an SDK has to.
        let (lines, queue) = mpsc::unbounded_channel();
        let waiters = Waiters::default();
        tokio::spawn(write(input, queue));
        tokio::spawn(read(output, waiters.clone()));
        Ok(Self { lines, waiters, _child: child })
    }

    pub(crate) async fn exchange(&self, id: u64, request: String) -> Option<Bytes> {
        let mut line = request.into_bytes();
        line.push(b'\n');
        let (waiter, answer) = oneshot::channel();
        self.waiters.lock().expect("no panic under the lock").insert(id, waiter);
        let abandon = Abandon { connection: self, id };
        self.lines.send(line).ok()?;
        let answer = answer.await.ok()?;
        std::mem::forget(abandon);
        Some(answer)
    }
}

/// Cancels the call when it is dropped before the answer.
struct Abandon<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        let Self { connection, id } = self;
        connection.waiters.lock().expect("no panic under the lock").remove(id);
        let note = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        let _ = connection.lines.send(format!("{note}\n").into_bytes());
    }
}

/// Writes what is queued, all that is ready in one go.
async fn write(mut input: ChildStdin, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    let (mut ready, mut bytes) = (Vec::new(), Vec::<u8>::new());
    while queue.recv_many(&mut ready, 256).await > 0 {
        for line in ready.drain(..) {
            bytes.extend_from_slice(&line);
        }
        if input.write_all(&bytes).await.is_err() {
            break;
        }
        bytes.clear();
    }
}

#[derive(Deserialize)]
struct Identified {
    id: Option<u64>,
}

async fn read(mut output: ChildStdout, waiters: Waiters) {
    let (mut buffer, mut searched) = (BytesMut::with_capacity(1 << 16), 0);
    loop {
        buffer.reserve(1 << 16);
        if !matches!(output.read_buf(&mut buffer).await, Ok(count) if count > 0) {
            break;
        }
        while let Some(end) = memchr::memchr(b'\n', &buffer[searched..]) {
            let line = buffer.split_to(searched + end + 1).freeze();
            searched = 0;
            let Ok(Identified { id: Some(id) }) = serde_json::from_slice(&line) else { continue };
            let waiter = waiters.lock().expect("no panic under the lock").remove(&id);
            if let Some(waiter) = waiter {
                let _ = waiter.send(line);
            }
        }
        searched = buffer.len();
    }
    // Whoever still waits learns that nothing will come.
    waiters.lock().expect("no panic under the lock").clear();
}
