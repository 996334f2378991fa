//! Owns the one error type that callers see.
//! Does not own the wire's error object (`RpcError`) nor what a model reads (`ToolError`).

mod stderr;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use turnbuckle_types::{CallToolResult, Raw, RequestId, RpcError};

/// The result of anything that can fail with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

type ErrorSource = Box<dyn std::error::Error + Send + Sync>;

/// Why a call, a connection or a server did not do what was asked.
///
/// One pointer wide. [`kind`](Error::kind) is for deciding, `Display` is one plain sentence
/// for people, [`source`](std::error::Error::source) has the rest.
///
/// ```
/// # use turnbuckle::{Error, ErrorKind};
/// fn retry(error: &Error) -> bool {
///     error.is_retryable() && !error.maybe_executed()
/// }
/// # let _ = (retry, ErrorKind::Timeout);
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    rpc: Option<RpcError>,
    executed: Executed,
    status: Option<u16>,
    last_stderr: Vec<String>,
    /// How long the peer wants to be left alone.
    retry_after: Option<Duration>,
    /// Whether it is a call that failed: then it is told whether that may have run.
    of_call: bool,
    came: Option<Box<FailedResult>>,
    #[cfg(feature = "auth")]
    challenge: Option<Box<turnbuckle_auth::Challenge>>,
    source: Option<ErrorSource>,
}

/// The result that a call failed for, though it is one.
#[derive(Clone)]
enum FailedResult {
    Tool(CallToolResult),
    InputRequired(Raw),
}

/// Whether the other side may have begun the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executed {
    No,
    Maybe,
    /// Maybe, and whoever asked for it has asked for its end since.
    #[cfg(all(feature = "client", feature = "http"))]
    Withdrawn,
}

/// What sort of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The time given to the call ran out; the peer was told to stop.
    Timeout,
    /// The connection ended, or was closed before the call was made.
    Closed,
    /// The peer answered with an error: see [`Error::as_rpc`].
    Remote,
    /// The peer broke the protocol.
    Protocol,
    /// Refused on this side: before anything was sent, by middleware, or by a callback
    /// that was to answer.
    Refused,
    /// A configured limit was reached.
    Limit,
    /// No connection could be made: the program did not start, no revision in common.
    Connect,
    /// A value could not be encoded or decoded.
    Codec,
    /// The tool failed, and says why: see [`Error::tool_result`]. Only calls that are to give a
    /// type of one's own fail so.
    Tool,
    /// The server answered with an HTTP status and no message: see [`Error::status`].
    Http,
    /// The server wants to know who asks, or wants someone to allow more: HTTP 401, or 403 with a
    /// challenge. With feature `auth`, `Error::challenge` has what it asked for.
    AuthorizationRequired,
    /// Authorization was tried and failed; the source says why.
    Authorization,
    /// The operating system failed.
    Io,
}

impl ErrorKind {
    /// One word, for a label.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Timeout => "timeout",
            ErrorKind::Closed => "closed",
            ErrorKind::Remote => "remote",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Refused => "refused",
            ErrorKind::Limit => "limit",
            ErrorKind::Connect => "connect",
            ErrorKind::Codec => "codec",
            ErrorKind::Tool => "tool",
            ErrorKind::Http => "http",
            ErrorKind::AuthorizationRequired => "authorization_required",
            ErrorKind::Authorization => "authorization",
            ErrorKind::Io => "io",
        }
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            rpc: None,
            executed: Executed::No,
            status: None,
            last_stderr: Vec::new(),
            retry_after: None,
            of_call: false,
            came: None,
            #[cfg(feature = "auth")]
            challenge: None,
            source: None,
        }))
    }

    pub(crate) fn with_source(mut self, source: impl Into<ErrorSource>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    pub(crate) fn with_executed(mut self, executed: Executed) -> Error {
        self.0.executed = executed;
        self
    }

    pub(crate) fn with_stderr(mut self, lines: Vec<String>) -> Error {
        self.0.last_stderr = lines;
        self
    }

    pub(crate) fn with_tool_result(mut self, result: CallToolResult) -> Error {
        self.0.came = Some(Box::new(FailedResult::Tool(result)));
        self
    }

    pub(crate) fn with_input_required(mut self, result: Raw) -> Error {
        self.0.came = Some(Box::new(FailedResult::InputRequired(result)));
        self
    }

    #[cfg(feature = "http")]
    pub(crate) fn with_retry_after(mut self, after: Option<Duration>) -> Error {
        self.0.retry_after = after;
        self
    }

    #[cfg(feature = "http")]
    pub(crate) fn with_status(mut self, status: u16) -> Error {
        self.0.status = Some(status);
        self
    }

    /// A status that is no answer. What the server refused it did not run.
    #[cfg(feature = "http")]
    pub(crate) fn http(status: u16, message: String) -> Error {
        // These redirects may come after the work; the others ask for it elsewhere.
        let executed = match status {
            300..=306 | 500.. => Executed::Maybe,
            _ => Executed::No,
        };
        Error::new(ErrorKind::Http, message).with_executed(executed).with_status(status)
    }

    /// What the server wants before it does anything, where that is what it said. It ran nothing.
    #[cfg(all(feature = "client", feature = "http"))]
    pub(crate) fn wanting(mut self, wanted: Option<AuthorizationRequired>) -> Error {
        let Some(wanted) = wanted else { return self };
        self.0.kind = ErrorKind::AuthorizationRequired;
        self.0.executed = Executed::No;
        #[cfg(feature = "auth")]
        {
            self.0.challenge = wanted.challenge;
        }
        #[cfg(not(feature = "auth"))]
        let AuthorizationRequired {} = wanted;
        self
    }

    #[cfg(all(feature = "auth", feature = "client"))]
    pub(crate) fn with_challenge(mut self, asked: Option<turnbuckle_auth::Challenge>) -> Error {
        self.0.challenge = asked.map(Box::new);
        self
    }

    /// Why a request was not authorized: it was not sent, or the server refused it.
    #[cfg(all(feature = "auth", feature = "client", feature = "http"))]
    pub(crate) fn authorization(error: turnbuckle_auth::AuthError) -> Error {
        let (kind, what) = match error.kind() {
            turnbuckle_auth::AuthErrorKind::Required => {
                (ErrorKind::AuthorizationRequired, "authorization is required")
            }
            _ => (ErrorKind::Authorization, "authorization failed"),
        };
        let told = Error::new(kind, format!("{what}: {error}"));
        told.with_challenge(error.challenge().cloned()).with_source(error)
    }

    /// Whether authorization failed for a reason that may pass: whoever grants it can't be reached now.
    pub(crate) fn may_be_authorized_later(&self) -> bool {
        #[cfg(all(feature = "auth", feature = "client", feature = "http"))]
        if let Some(error) = find::<turnbuckle_auth::AuthError>(self) {
            return error.kind() == turnbuckle_auth::AuthErrorKind::Unreachable;
        }
        false
    }

    pub(crate) fn refused(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Refused, message)
    }

    pub(crate) fn protocol(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Protocol, message).with_executed(Executed::Maybe)
    }

    /// What a callback of this side said instead of answering the peer's question.
    pub(crate) fn unanswered(method: &str, rpc: RpcError) -> Error {
        let message = format!("this client does not answer `{method}`: {rpc}");
        let mut error = Error::refused(message).with_executed(Executed::Maybe);
        error.0.source = Some(Box::new(rpc.clone()));
        error.0.rpc = Some(rpc);
        error
    }

    /// The error of a call whose middleware failed with an error of another type.
    #[cfg(feature = "client")]
    pub(crate) fn of_middleware(method: &str, source: ErrorSource, executed: Executed) -> Error {
        let rpc = crate::error::find::<RpcError>(&*source).cloned();
        let message = format!("client middleware rejected `{method}`: {source}");
        let mut error = Error::refused(message).with_executed(executed).with_source(source);
        error.0.rpc = rpc;
        error
    }

    pub(crate) fn id_in_flight(id: &RequestId) -> Error {
        Error::refused(format!("the request id {id} is already in flight; choose another or wait"))
    }

    pub(crate) fn timeout(method: &str, reason: &str) -> Error {
        Error::new(ErrorKind::Timeout, format!("{method} {reason}")).with_executed(Executed::Maybe)
    }

    pub(crate) fn io(doing: &str, source: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, format!("{doing}: {source}")).with_source(source)
    }

    /// The same once more, for someone else who has to be told: all but the source.
    #[cfg(feature = "client")]
    pub(crate) fn again(&self) -> Error {
        let inner = &*self.0;
        Error(Box::new(Inner {
            kind: inner.kind,
            message: inner.message.clone(),
            rpc: inner.rpc.clone(),
            executed: inner.executed,
            status: inner.status,
            last_stderr: inner.last_stderr.clone(),
            retry_after: inner.retry_after,
            of_call: inner.of_call,
            came: inner.came.clone(),
            #[cfg(feature = "auth")]
            challenge: inner.challenge.clone(),
            source: None,
        }))
    }

    /// This is what a call failed with.
    #[cfg(feature = "client")]
    pub(crate) fn of_call(mut self) -> Error {
        self.0.of_call = true;
        self
    }

    /// The sentence alone, without what is known beside it.
    #[cfg(feature = "client")]
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether whoever made the call took it back.
    #[cfg(all(feature = "client", feature = "http"))]
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.0.executed == Executed::Withdrawn
    }

    /// What sort of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The error that the peer answered with, or that a callback gave for the peer's question.
    pub fn as_rpc(&self) -> Option<&RpcError> {
        self.0.rpc.as_ref()
    }

    /// What the tool gave, where that is what is wrong: the tool failed, or its output does not fit.
    pub fn tool_result(&self) -> Option<&CallToolResult> {
        match self.0.came.as_deref() {
            Some(FailedResult::Tool(result)) => Some(result),
            _ => None,
        }
    }

    /// What the server asked last, where it asked more often than the call allows: the whole
    /// result.
    pub fn input_required(&self) -> Option<&Raw> {
        match self.0.came.as_deref() {
            Some(FailedResult::InputRequired(result)) => Some(result),
            _ => None,
        }
    }

    /// Whether the time given to the call ran out.
    pub fn is_timeout(&self) -> bool {
        self.0.kind == ErrorKind::Timeout
    }

    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        self.0.kind == ErrorKind::Closed
    }

    /// Whether the same call could succeed later, on this or on a new connection.
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Timeout | ErrorKind::Closed | ErrorKind::Limit)
            || matches!(self.0.status, Some(408 | 425 | 429 | 500..))
    }

    /// Whether the other side may have done some or all of the work. Only a call that
    /// was never written, or that the peer refused outright, certainly did nothing.
    pub fn maybe_executed(&self) -> bool {
        self.0.executed != Executed::No
    }

    /// What the server asked for, where it wants to know who asks or wants more to be allowed.
    #[cfg(feature = "auth")]
    pub fn challenge(&self) -> Option<&turnbuckle_auth::Challenge> {
        self.0.challenge.as_deref()
    }

    /// Whether there is nothing to be done about it here but to log in, or to let somebody do so.
    pub fn is_authorization(&self) -> bool {
        matches!(self.0.kind, ErrorKind::AuthorizationRequired | ErrorKind::Authorization)
    }

    /// The HTTP status that the failure came with, where there was one.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// How long the server asked to be left alone, where it did (`Retry-After`).
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The last lines that a server process wrote to its stderr, where that helps.
    pub fn last_stderr(&self) -> &[String] {
        &self.0.last_stderr
    }
}

/// What a server that lets not everyone in asks for.
#[cfg(all(feature = "client", feature = "http"))]
#[derive(Clone)]
pub(crate) struct AuthorizationRequired {
    #[cfg(feature = "auth")]
    challenge: Option<Box<turnbuckle_auth::Challenge>>,
}

#[cfg(all(feature = "client", feature = "http"))]
impl AuthorizationRequired {
    /// 401 always asks who one is. 403 may be final; one that is not says what is missing.
    pub(crate) fn read(
        status: http::StatusCode,
        headers: &http::HeaderMap,
    ) -> Option<AuthorizationRequired> {
        #[cfg(feature = "auth")]
        let challenge = turnbuckle_auth::Challenge::read(headers).map(Box::new);
        #[cfg(feature = "auth")]
        let asks = challenge.is_some();
        #[cfg(not(feature = "auth"))]
        let asks = headers.contains_key(http::header::WWW_AUTHENTICATE);
        let wanted = status == http::StatusCode::UNAUTHORIZED
            || (status == http::StatusCode::FORBIDDEN && asks);
        wanted.then_some(AuthorizationRequired {
            #[cfg(feature = "auth")]
            challenge,
        })
    }
}

/// Some errors wrap others: the first of a kind.
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) fn find<'a, E: std::error::Error + 'static>(
    mut error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    loop {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        error = error.source()?;
    }
}

/// "timed out after 30s", as it is told to the peer and to the caller.
pub(crate) fn timed_out(after: Duration) -> String {
    format!("timed out after {after:?}")
}

impl From<RpcError> for Error {
    fn from(rpc: RpcError) -> Error {
        // The peer judged these before it ran anything.
        let before = matches!(rpc.code, -32700 | -32600 | -32601 | -32602 | -32022..=-32020);
        let mut error = Error::new(ErrorKind::Remote, format!("the peer answered: {rpc}"));
        error.0.executed = if before { Executed::No } else { Executed::Maybe };
        error.0.source = Some(Box::new(rpc.clone()));
        error.0.rpc = Some(rpc);
        error
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if self.0.of_call && matches!(self.0.kind, ErrorKind::Closed | ErrorKind::Timeout) {
            f.write_str(match self.0.executed {
                Executed::No => "; the call was not sent",
                _ => "; the call may have run",
            })?;
        }
        if let Some(line) = stderr::reason(&self.0.last_stderr) {
            write!(f, "; its stderr says: {line}")?;
        }
        Ok(())
    }
}

/// Sentences, because this is what a `main` that returns the error shows, and `unwrap`; the parts with
/// `{:#?}`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return self.fmt_with_sources(f);
        }
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.0.kind).field("message", &self.0.message);
        if let Some(rpc) = &self.0.rpc {
            debug.field("rpc", rpc);
        }
        if !self.0.last_stderr.is_empty() {
            debug.field("last_stderr", &self.0.last_stderr);
        }
        debug.finish_non_exhaustive()
    }
}

impl Error {
    fn fmt_with_sources(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.to_string();
        f.write_str(&said)?;
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let text = error.to_string();
            // Most messages have the words of their source in them.
            if !said.contains(&text) {
                write!(f, "\n  because: {text}")?;
                said = text;
            }
            source = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// Why a connection ended: kept once, told to everyone who waits or comes later.
#[derive(Clone, Debug)]
pub(crate) struct Closed(Arc<ClosedInner>);

#[derive(Debug)]
struct ClosedInner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    last_stderr: Vec<String>,
}

impl Closed {
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Closed {
        Closed::of(ErrorKind::Closed, message, Vec::new())
    }

    pub(crate) fn of(
        kind: ErrorKind,
        message: impl Into<Cow<'static, str>>,
        last_stderr: Vec<String>,
    ) -> Closed {
        Closed(Arc::new(ClosedInner { kind, message: message.into(), last_stderr }))
    }

    pub(crate) fn error(&self, executed: Executed) -> Error {
        Error::new(self.0.kind, self.0.message.clone())
            .with_executed(executed)
            .with_stderr(self.0.last_stderr.clone())
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_pointer_wide_and_one_sentence_long() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        let error = Error::from(RpcError::invalid_params("`a` is missing"));
        assert_eq!(error.to_string(), "the peer answered: `a` is missing (code -32602)");
        assert!(!error.maybe_executed());
        assert!(Error::from(RpcError::internal("x")).maybe_executed());
        assert_eq!(error.as_rpc().unwrap().code, -32602);
    }

    #[test]
    fn what_main_shows_is_a_sentence_and_why() {
        let error = Error::from(RpcError::invalid_params("`a` is missing"));
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(format!("{error:#?}").contains("kind: "), "{error:#?}");
        let cause = std::io::Error::other("the disk is full");
        let error = Error::refused("nothing was written").with_source(cause);
        assert_eq!(format!("{error:?}"), "nothing was written\n  because: the disk is full");
    }

    #[test]
    fn everyone_who_waits_at_a_close_is_told_the_same() {
        let closed =
            Closed::of(ErrorKind::Closed, "the server exited with status 3", vec!["boom".into()]);
        let error = closed.error(Executed::Maybe);
        assert!(error.is_closed() && error.maybe_executed() && error.is_retryable());
        assert_eq!(error.to_string(), "the server exited with status 3; its stderr says: boom");
        assert_eq!(error.last_stderr(), ["boom"]);
    }

    #[cfg(feature = "client")]
    #[test]
    fn a_call_that_was_cut_off_says_whether_it_may_have_run() {
        let closed = Closed::of(ErrorKind::Closed, "the server left", vec!["boom".into()]);
        let told = |executed| closed.error(executed).of_call().to_string();
        let may = "the server left; the call may have run; its stderr says: boom";
        assert_eq!(told(Executed::Maybe), may);
        assert!(told(Executed::No).starts_with("the server left; the call was not sent"));
        let refused = Error::refused("no such thing").of_call();
        assert_eq!(refused.to_string(), "no such thing");
    }
}
