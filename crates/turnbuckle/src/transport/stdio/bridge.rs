//! Blocking files as async halves.
//!
//! Owns: a thread for each half, and at most one bounded buffer between them. Does not
//! own: the choice of who needs that.
//!
//! The threads are plain ones and detached. Those of Tokio's blocking pool would not
//! do: a runtime that shuts down waits for them, and a read from a terminal may never
//! return.

use std::{
    fs::File,
    io::{self, Read, Write},
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    thread,
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most that is read ahead, or waits to be written.
const CAPACITY: usize = 64 * 1024;

/// Reads a file on a thread.
#[derive(Debug)]
pub(super) struct BridgeReader(Arc<Channel>);

impl BridgeReader {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let channel = Arc::new(Channel::default());
        let theirs = Arc::clone(&channel);
        thread::Builder::new()
            .name("turnbuckle-in".to_owned())
            .spawn(move || theirs.pump_in(file))?;
        Ok(Self(channel))
    }
}

impl AsyncRead for BridgeReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        if state.bytes.is_empty() {
            if let Some(error) = state.error.take() {
                return Poll::Ready(Err(error));
            }
            if state.is_ended {
                return Poll::Ready(Ok(()));
            }
            return state.wait(cx);
        }
        let count = state.bytes.len().min(buffer.remaining());
        buffer.put_slice(&state.bytes[..count]);
        state.bytes.drain(..count);
        if state.bytes.is_empty() {
            self.0.bell.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for BridgeReader {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Writes a file on a thread.
#[derive(Debug)]
pub(super) struct BridgeWriter(Arc<Channel>);

impl BridgeWriter {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let channel = Arc::new(Channel::default());
        let theirs = Arc::clone(&channel);
        thread::Builder::new()
            .name("turnbuckle-out".to_owned())
            .spawn(move || theirs.pump_out(file))?;
        Ok(Self(channel))
    }
}

impl AsyncWrite for BridgeWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        state.check_writable()?;
        let room = CAPACITY - state.bytes.len();
        if room == 0 {
            return state.wait(cx);
        }
        let count = bytes.len().min(room);
        state.bytes.extend_from_slice(&bytes[..count]);
        self.0.bell.notify_one();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        if let Some(error) = state.error.take() {
            return Poll::Ready(Err(error));
        }
        if (state.bytes.is_empty() && !state.is_busy) || state.is_ended {
            return Poll::Ready(Ok(()));
        }
        state.wait(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = std::task::ready!(self.as_mut().poll_flush(cx));
        // The thread then drops the file.
        self.0.close();
        Poll::Ready(flushed)
    }
}

impl Drop for BridgeWriter {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What a half and its thread share.
#[derive(Debug, Default)]
struct Channel {
    state: Mutex<State>,
    /// Rings for the thread.
    bell: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Read and not yet taken, or taken and not yet written. Invariant: at most `CAPACITY`.
    bytes: Vec<u8>,
    /// The thread is writing bytes that are no longer in `bytes`.
    is_busy: bool,
    /// The thread has left: end of file, or an error.
    is_ended: bool,
    error: Option<io::Error>,
    /// The half was closed or dropped.
    is_closed: bool,
    waker: Option<Waker>,
}

impl State {
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn check_writable(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.is_ended || self.is_closed {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the output is closed"));
        }
        Ok(())
    }

    /// The thread's last word.
    fn end(&mut self, outcome: io::Result<()>) {
        self.is_ended = true;
        self.error = outcome.err();
    }
}

impl Channel {
    fn pump_in(&self, mut file: File) {
        let mut chunk = vec![0; CAPACITY];
        loop {
            let read = file.read(&mut chunk);
            let mut state = self.lock();
            match read {
                Ok(0) => state.end(Ok(())),
                Ok(count) => state.bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => state.end(Err(error)),
            }
            let is_ended = state.is_ended;
            self.wake(state);
            // The next read waits until these bytes are taken.
            let state = self.wait_while(|state| !state.is_closed && !state.bytes.is_empty());
            if is_ended || state.is_closed {
                return;
            }
        }
    }

    fn pump_out(&self, mut file: File) {
        let mut chunk = Vec::new();
        loop {
            let mut state = self.wait_while(|state| !state.is_closed && state.bytes.is_empty());
            if state.bytes.is_empty() {
                return;
            }
            chunk.clear();
            std::mem::swap(&mut chunk, &mut state.bytes);
            state.is_busy = true;
            self.wake(state);

            let written = file.write_all(&chunk);
            let mut state = self.lock();
            state.is_busy = false;
            if written.is_err() {
                state.end(written);
                return self.wake(state);
            }
            self.wake(state);
        }
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.bell.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.bell
            .wait_while(self.lock(), |state| condition(state))
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the half with the lock released, as a waker is foreign code.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{os::fd::OwnedFd, sync::mpsc};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn pipe() -> (File, File) {
        let (reader, writer) = io::pipe().unwrap();
        (OwnedFd::from(reader).into(), OwnedFd::from(writer).into())
    }

    #[tokio::test]
    async fn what_is_read_arrives_as_it_comes_and_then_ends() {
        let (file, mut writer) = pipe();
        let mut reader = BridgeReader::new(file).unwrap();
        let mut buffer = [0; 3];
        writer.write_all(b"one").unwrap();
        reader.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"one");
        writer.write_all(b"two").unwrap();
        reader.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"two");
        drop(writer);
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 0);
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_read_error_is_told() {
        // A directory can be opened and not read.
        let mut reader = BridgeReader::new(File::open("/").unwrap()).unwrap();
        let error = reader.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }

    #[tokio::test]
    async fn a_slow_reader_slows_the_writer_and_loses_nothing() {
        let (mut reader, file) = pipe();
        let mut writer = BridgeWriter::new(file).unwrap();
        let all: Vec<u8> = (0..1024 * 1024_u32).map(|i| (i % 251) as u8).collect();
        let (started, gate) = mpsc::channel::<()>();
        let reading = thread::spawn(move || {
            gate.recv().unwrap();
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        {
            // More than fits anywhere: the pipe, the buffer, and the thread's own.
            let mut writing = std::pin::pin!(writer.write_all(&all));
            let first = tokio::time::timeout(std::time::Duration::ZERO, writing.as_mut()).await;
            assert!(first.is_err());
            started.send(()).unwrap();
            writing.await.unwrap();
        }
        writer.shutdown().await.unwrap();
        let error = writer.write_all(b"more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        // Comes to its end, so the file is closed.
        assert!(reading.join().unwrap() == all);
    }

    #[tokio::test]
    async fn a_flush_waits_for_the_thread_and_tells_its_error() {
        let (reader, file) = pipe();
        drop(reader);
        let mut writer = BridgeWriter::new(file).unwrap();
        writer.write_all(b"one").await.unwrap();
        assert_eq!(writer.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(writer.write(b"two").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn what_was_written_before_a_drop_is_still_written() {
        let (reader, file) = pipe();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut writer = BridgeWriter::new(file).unwrap();
        runtime.block_on(writer.write_all(b"one")).unwrap();
        drop((writer, runtime));
        assert_eq!(io::read_to_string(reader).unwrap(), "one");
    }
}
