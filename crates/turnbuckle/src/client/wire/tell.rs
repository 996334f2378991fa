//! Owns who is told, and in which order. Does not own what.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::line::WireLine;

/// How much of a message is shown unless told otherwise.
const LONGEST: usize = 4_096;

/// The most lines that wait for the request that brought them.
const HELD: usize = 1_024;

/// Shows what travels between a client and its server.
///
/// Every message is told once: what opens the connection, requests, notifications, answers, requests
/// that are given up, the end. Secrets are masked: members that are called like one (`token`,
/// `password`, `api_key`, …), and what looks like one anywhere (bearer tokens, passwords in URLs,
/// keys of well-known services). HTTP headers, in which credentials travel, are not shown at all. A
/// secret that neither is called nor looks like one is shown: it is a log for whoever may see what
/// the client sees.
///
/// ```
/// use turnbuckle::{Client, WireLog};
/// let builder = Client::builder().wire_log(WireLog::new(|line| eprintln!("{line}")));
/// # let _ = builder;
/// ```
#[derive(Clone)]
pub struct WireLog {
    tell: Arc<dyn Fn(&WireLine) + Send + Sync>,
    wanted: fn() -> bool,
    longest: usize,
    waiting: Arc<Mutex<Waiting>>,
}

/// Lines that came before the request that brought them was told.
#[derive(Default)]
struct Waiting {
    holders: usize,
    lines: Vec<WireLine>,
}

impl WireLog {
    /// Tells `tell`. It is called where messages are read and written: it must be quick and must not
    /// block. If it panics, that is logged.
    pub fn new(tell: impl Fn(&WireLine) + Send + Sync + 'static) -> WireLog {
        WireLog { tell: Arc::new(tell), wanted: || true, longest: LONGEST, waiting: Arc::default() }
    }

    /// Tells `tracing`, at level `trace` and with the target `turnbuckle::wire`.
    pub fn to_tracing() -> WireLog {
        let log = WireLog::new(|line| {
            tracing::trace!(target: "turnbuckle::wire", "{line}");
        });
        WireLog {
            wanted: || tracing::enabled!(target: "turnbuckle::wire", tracing::Level::TRACE),
            ..log
        }
    }

    /// How many bytes of a message are shown: 4,096 unless set.
    #[must_use]
    pub fn longest(mut self, bytes: usize) -> WireLog {
        self.longest = bytes;
        self
    }

    pub(super) fn is_wanted(&self) -> bool {
        (self.wanted)()
    }

    pub(super) fn tell(&self, line: impl FnOnce() -> WireLine) {
        if !self.is_wanted() {
            return;
        }
        let line = line();
        let mut waiting = self.waiting();
        if waiting.holders > 0 && waiting.lines.len() < HELD {
            return waiting.lines.push(line);
        }
        drop(waiting);
        self.say(&line);
    }

    /// Has what is told from now on wait for what `first` is given.
    pub(super) fn hold(&self) -> Held<'_> {
        self.waiting().holders += 1;
        Held(self)
    }

    pub(super) fn cut(&self, mut text: String) -> String {
        if text.len() > self.longest {
            let whole = text.len();
            text.truncate(crate::limits::prefix(&text, self.longest).len());
            text.push_str(&format!("… ({} bytes more)", whole - text.len()));
        }
        text
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Often in a destructor, where a second panic would end the process.
    fn say(&self, line: &WireLine) {
        if catch_unwind(AssertUnwindSafe(|| (self.tell)(line))).is_err() {
            tracing::error!("whoever reads the wire log panicked");
        }
    }
}

/// Lines wait for as long as this is held.
pub(super) struct Held<'a>(&'a WireLog);

impl Held<'_> {
    /// Tells this, and then what waited for it.
    pub(super) fn first(self, line: WireLine) {
        self.0.say(&line);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.holders -= 1;
        let lines =
            if waiting.holders == 0 { std::mem::take(&mut waiting.lines) } else { Vec::new() };
        drop(waiting);
        lines.iter().for_each(|line| self.0.say(line));
    }
}

impl fmt::Debug for WireLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireLog").field("longest", &self.longest).finish_non_exhaustive()
    }
}
