//! The entries of the wire log, and the function that receives them.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use turnbuckle_types::{RequestId, RpcError};

use super::redact;
use crate::rpc::Note;

/// The default of [`WireLog::longest`].
const LONGEST: usize = 4_096;

/// How many lines may wait for the request that caused them.
const MAX_HELD: usize = 1_024;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireDirection {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

/// The kind of an entry in the wire log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireKind {
    /// The connection was opened.
    Opened,
    /// A request of either side.
    Request,
    /// A notification.
    Notification,
    /// The result of a request.
    Result,
    /// An error response, with or without a request.
    Error,
    /// A request was cancelled: by a message on some wires, by the end of a POST on others.
    Cancelled,
    /// A request ended without a response.
    Failed,
    /// The connection was lost.
    Lost,
    /// This client closed the connection.
    Closed,
}

impl WireKind {
    /// Returns the kind as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            WireKind::Opened => "opened",
            WireKind::Request => "request",
            WireKind::Notification => "notification",
            WireKind::Result => "result",
            WireKind::Error => "error",
            WireKind::Cancelled => "cancelled",
            WireKind::Failed => "failed",
            WireKind::Lost => "lost",
            WireKind::Closed => "closed",
        }
    }
}

/// One entry of the wire log, without secrets. `Display` formats it as one line.
///
/// ```
/// use turnbuckle::client::{WireKind, WireLine};
/// fn is_failure(line: &WireLine) -> bool {
///     matches!(line.kind, WireKind::Error | WireKind::Lost)
/// }
/// # let _ = is_failure;
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WireLine {
    /// The direction.
    pub direction: WireDirection,
    /// The kind.
    pub kind: WireKind,
    /// The id of the request, also of its response. On some wires a request gets its id with the
    /// response.
    pub id: Option<RequestId>,
    /// The method of the request, also of its response.
    pub method: Option<String>,
    /// Params, result, error or reason, with secrets redacted and long text truncated.
    pub text: String,
}

impl fmt::Display for WireLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.direction {
            WireDirection::Sent => "->",
            WireDirection::Received => "<-",
        };
        write!(f, "{arrow} {}", self.kind.as_str())?;
        if let Some(id) = &self.id {
            write!(f, " #{id}")?;
        }
        if let Some(method) = &self.method {
            // The other side chooses the name.
            write!(f, " {}", method.escape_debug())?;
        }
        if !self.text.is_empty() {
            write!(f, " {}", self.text)?;
        }
        Ok(())
    }
}

/// The content of a line before redaction.
#[derive(Clone, Copy)]
pub(super) enum Content<'a> {
    Empty,
    Json(&'a str),
    Plain(&'a str),
    Error(&'a RpcError),
}

/// Reports the messages between a client and its server.
///
/// Every message is reported once: the opening of the connection, requests, notifications, responses,
/// cancelled requests, the end. Secrets are redacted: members with a name such as `token`, `password`
/// or `api_key`, and text that looks like a secret (bearer tokens, passwords in URLs, keys of
/// well-known services). HTTP headers, which carry credentials, are not reported at all. A secret that
/// has neither such a name nor such a form is shown: treat the log as confidential.
///
/// ```
/// use turnbuckle::{Client, client::WireLog};
/// let builder = Client::builder().wire_log(WireLog::new(|line| eprintln!("{line}")));
/// # let _ = builder;
/// ```
#[derive(Clone)]
pub struct WireLog {
    report: Arc<dyn Fn(&WireLine) + Send + Sync>,
    is_enabled: fn() -> bool,
    longest: usize,
    held: Arc<Mutex<HeldLines>>,
}

/// Lines that wait for the request that caused them.
#[derive(Default)]
struct HeldLines {
    holders: usize,
    lines: Vec<WireLine>,
}

impl WireLog {
    /// Creates a log that calls `report` for each line. It is called where messages are read and
    /// written and must not block. If it panics, the panic is logged.
    pub fn new(report: impl Fn(&WireLine) + Send + Sync + 'static) -> WireLog {
        let report = Arc::new(report);
        WireLog { report, is_enabled: || true, longest: LONGEST, held: Arc::default() }
    }

    /// Creates a log that writes `tracing` events with the target `turnbuckle::wire` at level
    /// `TRACE`.
    pub fn to_tracing() -> WireLog {
        WireLog {
            is_enabled: || tracing::enabled!(target: "turnbuckle::wire", tracing::Level::TRACE),
            ..WireLog::new(|line| tracing::trace!(target: "turnbuckle::wire", "{line}"))
        }
    }

    /// Sets how many bytes of a message are shown. Defaults to 4,096.
    #[must_use]
    pub fn longest(mut self, bytes: usize) -> WireLog {
        self.longest = bytes;
        self
    }

    pub(super) fn is_enabled(&self) -> bool {
        (self.is_enabled)()
    }

    pub(super) fn write(
        &self,
        direction: WireDirection,
        kind: WireKind,
        id: Option<&RequestId>,
        method: Option<&str>,
        content: Content<'_>,
    ) {
        if !self.is_enabled() {
            return;
        }
        let line = self.line(direction, kind, id, method, content);
        let mut held = self.held();
        if held.holders > 0 && held.lines.len() < MAX_HELD {
            return held.lines.push(line);
        }
        drop(held);
        self.call(&line);
    }

    pub(crate) fn write_note(&self, direction: WireDirection, note: &Note) {
        let content = Content::Json(note.params.text());
        self.write(direction, WireKind::Notification, None, Some(&note.method), content);
    }

    /// Reports an error response without a request.
    pub(crate) fn write_stray(&self, error: &RpcError) {
        let direction = WireDirection::Received;
        self.write(direction, WireKind::Error, None, None, Content::Error(error));
    }

    /// Holds back the lines that are written from now on.
    pub(super) fn hold(&self) -> Held<'_> {
        self.held().holders += 1;
        Held(self)
    }

    fn line(
        &self,
        direction: WireDirection,
        kind: WireKind,
        id: Option<&RequestId>,
        method: Option<&str>,
        content: Content<'_>,
    ) -> WireLine {
        let mut text = match content {
            Content::Empty => String::new(),
            Content::Json(text) => redact::json(text),
            // The line stays one line.
            Content::Plain(text) => redact::text(text).replace(['\n', '\r'], " "),
            Content::Error(error) => {
                redact::json(&serde_json::to_string(error).unwrap_or_default())
            }
        };
        redact::truncate(&mut text, self.longest);
        WireLine { direction, kind, id: id.cloned(), method: method.map(str::to_owned), text }
    }

    fn held(&self) -> MutexGuard<'_, HeldLines> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Catches a panic, because lines are also written in destructors.
    fn call(&self, line: &WireLine) {
        if catch_unwind(AssertUnwindSafe(|| (self.report)(line))).is_err() {
            tracing::error!("the function that receives the wire log panicked");
        }
    }
}

impl fmt::Debug for WireLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireLog").field("longest", &self.longest).finish_non_exhaustive()
    }
}

/// Holds back lines until it is dropped.
pub(super) struct Held<'a>(&'a WireLog);

impl Held<'_> {
    /// Writes a request, and then the lines that were held back.
    pub(super) fn release(self, id: Option<&RequestId>, method: &str, params: &str) {
        let (direction, content) = (WireDirection::Sent, Content::Json(params));
        self.0.call(&self.0.line(direction, WireKind::Request, id, Some(method), content));
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.holders -= 1;
        let lines = if held.holders == 0 { std::mem::take(&mut held.lines) } else { Vec::new() };
        drop(held);
        lines.iter().for_each(|line| self.0.call(line));
    }
}

#[cfg(test)]
mod tests {
    use super::{WireDirection::Received, *};

    fn log() -> (WireLog, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let reported = lines.clone();
        (WireLog::new(move |line| reported.lock().unwrap().push(line.to_string())), lines)
    }

    fn write(text: &str, log: &WireLog) {
        log.write(Received, WireKind::Notification, None, None, Content::Json(text));
    }

    #[test]
    fn a_line_is_one_line() {
        let (log, lines) = log();
        let (id, content) = (RequestId::from(7), Content::Plain("two\nlines"));
        log.write(
            WireDirection::Sent,
            WireKind::Cancelled,
            Some(&id),
            Some("odd\nmethod"),
            content,
        );
        let long = format!("[{}1]", "1,".repeat(5_000));
        write(&long, &log.longest(10));
        let lines = lines.lock().unwrap();
        assert_eq!(lines[0], r"-> cancelled #7 odd\nmethod two lines");
        assert_eq!(lines[1], "<- notification [1,1,1,1,1… (9993 bytes more)");
    }

    #[test]
    fn what_a_request_causes_is_reported_after_it() {
        let (log, lines) = log();
        let outer = log.hold();
        write("1", &log);
        let inner = log.hold();
        write("2", &log);
        inner.release(None, "m", "3");
        outer.release(None, "m", "4");
        write("5", &log);
        let reported = lines.lock().unwrap().join(" ");
        let reported = reported.replace("<- notification ", "").replace("-> request m ", "");
        assert_eq!(reported, "3 4 1 2 5");
    }

    #[test]
    fn the_receiver_may_panic() {
        let log = WireLog::new(|_| std::panic::resume_unwind(Box::new("on purpose")));
        write("1", &log);
        log.hold().release(None, "m", "2");
    }
}
