//! Owns a pair of byte streams in memory, each the other's end, with faults on the way between
//! them. Does not own which faults, nor what a recording looks like.

use std::{
    collections::VecDeque,
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

use super::{
    Faults, Transcript, TranscriptSide,
    fault::{FaultPlan, FaultStep},
};

/// How much waits in one direction before its writer has to.
const CAPACITY: usize = 64 << 10;

/// Two streams, each the other's end. The first is the client's, as the faults see it.
///
/// A message is a line. Delays follow tokio's clock, so that they take no time while that is
/// paused; everything else happens at the same place in every run.
///
/// ```
/// use turnbuckle::{
///     Client, Server,
///     testing::{Fault, Faults, link},
///     tool,
/// };
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> turnbuckle::Result<()> {
/// let server = Server::new("demo", "1.0").tool(tool("hello", async || "Hello!"));
/// let (ours, theirs) = link(Faults::none().every_server_message(Fault::Split(1)));
/// tokio::spawn(server.serve(theirs).into_future());
/// let client = Client::over(ours).await?;
/// assert_eq!(client.call_tool("hello", ()).await?.to_text(), "Hello!");
/// # Ok(()) }
/// ```
pub fn link(faults: Faults) -> (LinkEnd, LinkEnd) {
    let (client, server, _) = taped(faults);
    (client, server)
}

/// The same, and a recording of what crosses.
pub(super) fn taped(faults: Faults) -> (LinkEnd, LinkEnd, Tape) {
    let wires = Wires {
        client: Direction::new(faults.client),
        server: Direction::new(faults.server),
        transcript: Transcript::default(),
    };
    let tape = Tape(Arc::new(Mutex::new(wires)));
    let end = |side| LinkEnd { wires: tape.clone(), side, sleep: None };
    (end(TranscriptSide::Client), end(TranscriptSide::Server), tape.clone())
}

/// One end of a [`link`]. Dropping it ends the stream for the other.
pub struct LinkEnd {
    wires: Tape,
    side: TranscriptSide,
    /// Until the next piece is there.
    sleep: Option<Pin<Box<Sleep>>>,
}

/// Both directions, and what has crossed.
#[derive(Clone)]
pub(super) struct Tape(Arc<Mutex<Wires>>);

struct Wires {
    /// What the client says.
    client: Direction,
    server: Direction,
    transcript: Transcript,
}

struct Direction {
    plan: FaultPlan,
    pieces: VecDeque<FaultyChunk>,
    /// The bytes in `pieces`.
    queued: usize,
    /// Nothing follows what is queued.
    ended: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

struct FaultyChunk {
    bytes: Vec<u8>,
    /// How much of it has been read.
    read: usize,
    due: Option<Instant>,
    /// Whether others run before it is read.
    yields: bool,
}

impl Tape {
    fn lock(&self) -> MutexGuard<'_, Wires> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn transcript(&self) -> Transcript {
        self.lock().transcript.clone()
    }
}

impl Wires {
    /// What this side says.
    fn of(&mut self, side: TranscriptSide) -> &mut Direction {
        match side {
            TranscriptSide::Client => &mut self.client,
            TranscriptSide::Server => &mut self.server,
        }
    }

    fn write(&mut self, by: TranscriptSide, bytes: &[u8]) {
        for step in self.of(by).plan.feed(bytes) {
            match step {
                FaultStep::Deliver { bytes, delay, split } => {
                    self.transcript.record(by, &bytes);
                    let due = delay.and_then(|delay| Instant::now().checked_add(delay));
                    self.of(by).push(bytes, due, split);
                }
                FaultStep::Cut => {
                    self.transcript.cut(by);
                    self.client.ended = true;
                    self.server.ended = true;
                }
            }
        }
    }

    /// Everyone who may have something to do now.
    fn wakers(&mut self) -> [Option<Waker>; 4] {
        let Wires { client, server, .. } = self;
        [client.reader.take(), client.writer.take(), server.reader.take(), server.writer.take()]
    }
}

/// To be called without the lock: it runs code that nobody here knows.
fn wake(wakers: [Option<Waker>; 4]) {
    for waker in wakers.into_iter().flatten() {
        waker.wake();
    }
}

impl Direction {
    fn new(faults: Vec<(super::fault::At, super::Fault)>) -> Direction {
        Direction {
            plan: FaultPlan::new(faults),
            pieces: VecDeque::new(),
            queued: 0,
            ended: false,
            reader: None,
            writer: None,
        }
    }

    fn push(&mut self, bytes: Vec<u8>, mut due: Option<Instant>, split: Option<usize>) {
        self.queued += bytes.len();
        let Some(size) = split else {
            return self.pieces.push_back(FaultyChunk { bytes, read: 0, due, yields: false });
        };
        for chunk in bytes.chunks(size) {
            let piece =
                FaultyChunk { bytes: chunk.to_vec(), read: 0, due: due.take(), yields: true };
            self.pieces.push_back(piece);
        }
    }

    /// Reads from the first piece; `None` where there is nothing to read yet.
    fn read(&mut self, out: &mut ReadBuf<'_>) -> Option<ReadResult> {
        let Some(piece) = self.pieces.front_mut() else {
            return self.ended.then_some(ReadResult::Done);
        };
        if let Some(due) = piece.due.take_if(|due| *due > Instant::now()) {
            piece.due = Some(due);
            return Some(ReadResult::Later(due));
        }
        if std::mem::take(&mut piece.yields) {
            return Some(ReadResult::Yield);
        }
        let count = out.remaining().min(piece.bytes.len() - piece.read);
        out.put_slice(&piece.bytes[piece.read..piece.read + count]);
        piece.read += count;
        self.queued -= count;
        if piece.read == piece.bytes.len() {
            self.pieces.pop_front();
        }
        Some(ReadResult::Done)
    }
}

/// What reading came to.
enum ReadResult {
    /// Something was read, or there is no more.
    Done,
    /// Not before this.
    Later(Instant),
    /// Others first.
    Yield,
}

impl AsyncRead for LinkEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                std::task::ready!(sleep.as_mut().poll(context));
                self.sleep = None;
            }
            let mut wires = self.wires.lock();
            let heard = wires.of(self.side.other());
            let Some(next) = heard.read(out) else {
                heard.reader = Some(context.waker().clone());
                return Poll::Pending;
            };
            let writer = heard.writer.take();
            drop(wires);
            wake([writer, None, None, None]);
            match next {
                ReadResult::Done => return Poll::Ready(Ok(())),
                ReadResult::Later(due) => {
                    self.sleep = Some(Box::pin(tokio::time::sleep_until(due)))
                }
                ReadResult::Yield => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }
}

impl AsyncWrite for LinkEnd {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut wires = self.wires.lock();
        let said = wires.of(self.side);
        if said.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if said.queued >= CAPACITY {
            said.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let count = bytes.len().min(CAPACITY - said.queued);
        wires.write(self.side, &bytes[..count]);
        let wakers = wires.wakers();
        drop(wires);
        wake(wakers);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wires = self.wires.lock();
        wires.of(self.side).ended = true;
        let wakers = wires.wakers();
        drop(wires);
        wake(wakers);
        Poll::Ready(Ok(()))
    }
}

impl Drop for LinkEnd {
    fn drop(&mut self) {
        let mut wires = self.wires.lock();
        wires.of(self.side).ended = true;
        // Nobody will read what the other side has said, or says now.
        let unread = wires.of(self.side.other());
        unread.ended = true;
        unread.queued = 0;
        unread.pieces.clear();
        let wakers = wires.wakers();
        drop(wires);
        wake(wakers);
    }
}

impl fmt::Debug for LinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkEnd").field("side", &self.side).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::testing::Fault;

    #[tokio::test(start_paused = true)]
    async fn a_delay_holds_what_follows_and_takes_no_real_time() {
        let minute = Duration::from_secs(60);
        let (mut client, mut server) = link(Faults::none().client_message(2, Fault::Delay(minute)));
        let start = Instant::now();
        client.write_all(b"a\nb\nc\n").await.unwrap();
        let mut out = [0; 2];
        server.read_exact(&mut out).await.unwrap();
        assert_eq!((&out, start.elapsed()), (b"a\n", Duration::ZERO));
        for expected in [b"b\n", b"c\n"] {
            server.read_exact(&mut out).await.unwrap();
            assert_eq!(&out, expected);
            assert!(start.elapsed() >= minute && start.elapsed() < 2 * minute);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_split_message_is_read_piece_by_piece() {
        let (mut client, mut server) = link(Faults::none().server_message(1, Fault::Split(2)));
        server.write_all(b"abcde\nrest\n").await.unwrap();
        let mut sizes = Vec::new();
        let mut out = [0; 64];
        while sizes.iter().sum::<usize>() < 11 {
            sizes.push(client.read(&mut out).await.unwrap());
        }
        assert_eq!(sizes, [2, 2, 2, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_ends_both_directions_and_keeps_what_was_sent() {
        let (mut client, mut server) = link(Faults::none().client_message(2, Fault::Cut(1)));
        server.write_all(b"before\n").await.unwrap();
        client.write_all(b"one\ntwo\n").await.unwrap();
        let mut heard = String::new();
        server.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "one\nt");
        heard.clear();
        client.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "before\n");
        for end in [&mut client, &mut server] {
            let error = end.write_all(b"after\n").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_waits_for_a_slow_reader_and_hears_of_one_that_left() {
        let (mut client, mut server) = link(Faults::none());
        let much = vec![b'x'; 3 * CAPACITY];
        let writing = tokio::spawn(async move {
            client.write_all(&much).await?;
            client.shutdown().await
        });
        tokio::task::yield_now().await;
        assert!(!writing.is_finished());
        let mut heard = Vec::new();
        server.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard.len(), 3 * CAPACITY);
        writing.await.unwrap().unwrap();

        let (mut client, server) = link(Faults::none());
        let much = vec![b'x'; 3 * CAPACITY];
        let writing = tokio::spawn(async move { client.write_all(&much).await });
        tokio::task::yield_now().await;
        drop(server);
        let error = writing.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
