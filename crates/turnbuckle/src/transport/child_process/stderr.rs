//! What a child writes to its standard error.
//!
//! Owns: draining it for as long as the child lives, and the ring of its last
//! lines. Does not own: how a pipe is read without blocking (the platform module).
//!
//! Each child has a draining thread, because a full pipe would block the child, and
//! neither a runtime that is busy or gone nor a slow callback of another child may
//! cause that.

use std::{
    collections::VecDeque,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ChildStderr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tracing::Dispatch;

use super::{
    platform::{self, CatchUp},
    reaper,
};

/// What a caller wants to be told about each line.
pub(super) type OnLine = Arc<dyn Fn(&str) + Send + Sync>;

/// The bounds on what is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct TailLimits {
    pub(super) lines: usize,
    pub(super) line_bytes: usize,
}

impl Default for TailLimits {
    fn default() -> Self {
        Self { lines: 32, line_bytes: 4096 }
    }
}

/// The last lines of a child's standard error.
pub(super) struct Tail {
    limits: TailLimits,
    lines: Mutex<VecDeque<String>>,
    /// Set when everything that the leader wrote before its end has been read.
    is_caught_up: AtomicBool,
}

impl Tail {
    pub(super) fn new(limits: TailLimits) -> Self {
        let lines = Mutex::new(VecDeque::new());
        Self { limits, lines, is_caught_up: AtomicBool::new(false) }
    }

    /// The lines kept, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    pub(super) fn is_caught_up(&self) -> bool {
        self.is_caught_up.load(Ordering::Acquire)
    }

    fn push(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() >= self.limits.lines {
            lines.pop_front();
        }
        if self.limits.lines > 0 {
            lines.push_back(line);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Starts to drain. Dropping the returned value ends it.
pub(super) fn drain(
    stderr: ChildStderr,
    tail: Arc<Tail>,
    on_line: Option<OnLine>,
    process: u32,
) -> io::Result<CatchUp> {
    let (catch_up, requests) = platform::catch_up_pair()?;
    let drain =
        StderrDrain { splitter: Splitter::new(tail.limits.line_bytes), tail, on_line, process };
    // A subscriber that holds for the spawning thread only is meant for its children, too.
    let dispatch = tracing::dispatcher::get_default(Dispatch::clone);
    reaper::named("turnbuckle-err").spawn(move || {
        tracing::dispatcher::with_default(&dispatch, || {
            platform::drain(stderr, requests, drain);
        });
    })?;
    Ok(catch_up)
}

/// Where the drained bytes go.
pub(super) struct StderrDrain {
    splitter: Splitter,
    tail: Arc<Tail>,
    on_line: Option<OnLine>,
    process: u32,
}

impl StderrDrain {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let Self { splitter, tail, on_line, process } = self;
        splitter.feed(bytes, |line| keep(tail, on_line, *process, line));
    }

    /// All that there was has been fed.
    pub(super) fn caught_up(&mut self) {
        if let Some(line) = self.splitter.finish() {
            keep(&self.tail, &mut self.on_line, self.process, line);
        }
        self.tail.is_caught_up.store(true, Ordering::Release);
        reaper::ring();
    }
}

impl Drop for StderrDrain {
    // However the draining ends, nobody may wait for it in vain.
    fn drop(&mut self) {
        self.caught_up();
    }
}

fn keep(tail: &Tail, on_line: &mut Option<OnLine>, process: u32, line: String) {
    // Kept first: a callback or subscriber that takes its time, or panics, is then
    // no reason for a report without the line.
    tail.push(line.clone());
    let told = catch_unwind(AssertUnwindSafe(|| {
        tracing::debug!(target: "turnbuckle::child", process, line, "stderr");
        if let Some(on_line) = on_line {
            on_line(&line);
        }
    }));
    if told.is_err() {
        *on_line = None;
    }
}

/// Cuts a stream of bytes into lines of bounded length.
#[derive(Debug)]
struct Splitter {
    line: Vec<u8>,
    limit: usize,
    /// Set while the rest of an over-long line is skipped.
    is_cut: bool,
}

impl Splitter {
    fn new(limit: usize) -> Self {
        Self { line: Vec::new(), limit, is_cut: false }
    }

    fn feed(&mut self, bytes: &[u8], mut on_line: impl FnMut(String)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (content, is_end) = match piece.strip_suffix(b"\n") {
                Some(content) => (content, true),
                None => (piece, false),
            };
            let room = self.limit - self.line.len();
            self.is_cut |= content.len() > room;
            self.line.extend_from_slice(&content[..content.len().min(room)]);
            if is_end {
                on_line(self.take());
            }
        }
    }

    /// The line that has begun and not ended.
    fn finish(&mut self) -> Option<String> {
        (!self.line.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> String {
        let bytes = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let mut line = String::from_utf8_lossy(bytes).into_owned();
        if self.is_cut {
            // The cut may have split a character.
            line.truncate(line.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
            line.push_str(" …");
        }
        self.line.clear();
        self.is_cut = false;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(limit: usize, pieces: &[&[u8]]) -> Vec<String> {
        let mut splitter = Splitter::new(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.feed(piece, |line| lines.push(line));
        }
        lines.extend(splitter.finish());
        lines
    }

    #[test]
    fn lines_are_found_across_reads() {
        assert_eq!(split(80, &[b"on", b"e\ntwo\r\n\nth", b"ree"]), ["one", "two", "", "three"]);
        assert_eq!(split(80, &[b"one\n"]), ["one"]);
    }

    #[test]
    fn long_lines_are_cut_and_the_next_one_is_whole() {
        assert_eq!(split(4, &[b"abcdef", b"ghi\nxy\n"]), ["abcd …", "xy"]);
        assert_eq!(split(4, &[b"abcd\nefgh\n"]), ["abcd", "efgh"]);
        assert_eq!(split(4, &["abcä\n".as_bytes()]), ["abc …"]);
    }

    #[test]
    fn bytes_that_are_no_text_cost_only_themselves() {
        assert_eq!(split(80, &[b"a\xffb\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn the_tail_keeps_the_last_lines() {
        let tail = Tail::new(TailLimits { lines: 2, line_bytes: 80 });
        for line in ["1", "2", "3"] {
            tail.push(line.to_owned());
        }
        assert_eq!(tail.lines(), ["2", "3"]);
        let nothing = Tail::new(TailLimits { lines: 0, line_bytes: 80 });
        nothing.push("1".to_owned());
        assert!(nothing.lines().is_empty());
    }

    #[test]
    fn a_callback_that_panics_is_not_called_again_and_loses_no_line() {
        let tail = Arc::new(Tail::new(TailLimits::default()));
        let calls = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&calls);
        let on_line: OnLine = Arc::new(move |_: &str| {
            *counter.lock().unwrap() += 1;
            panic!("the callback's own fault");
        });
        let mut drain = StderrDrain {
            splitter: Splitter::new(80),
            tail: Arc::clone(&tail),
            on_line: Some(on_line),
            process: 0,
        };
        drain.feed(b"one\ntwo\n");
        drain.caught_up();
        assert_eq!(tail.lines(), ["one", "two"]);
        assert!(tail.is_caught_up());
        assert!(drain.on_line.is_none());
        assert_eq!(*calls.lock().unwrap_or_else(PoisonError::into_inner), 1);
    }
}
