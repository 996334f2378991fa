//! Owns the words for how a request ended, and that each end is told exactly once.
//! Does not own who is told.

use std::{
    borrow::Cow,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use serde::Deserialize;
use tokio::time::Instant;
use turnbuckle_types::{Raw, RpcError};

use crate::error::ErrorKind;

/// How a request ended.
///
/// ```
/// use turnbuckle::Ended;
/// assert_eq!(Ended::ToolError.as_str(), "tool_error");
/// assert_eq!(Ended::Error(-32602).to_string(), "error -32602");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ended {
    /// With a result.
    Ok,
    /// With a question to the client, which comes back with the answer.
    InputRequired,
    /// With a result that says that the tool failed.
    ToolError,
    /// With this error code.
    Error(i64),
    /// Whoever asked gave it up, or is gone: nothing was answered.
    Cancelled,
    /// With an internal error, because the handler panicked. On a client: what stands around its
    /// calls did.
    Panicked,
    /// Without an answer, on a client: the time ran out, the connection was lost, this side
    /// refused it.
    Failed(ErrorKind),
}

impl Ended {
    /// One word, for a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Ended::Ok => "ok",
            Ended::InputRequired => "input_required",
            Ended::ToolError => "tool_error",
            Ended::Error(_) => "error",
            Ended::Cancelled => "cancelled",
            Ended::Panicked => "panicked",
            Ended::Failed(kind) => kind.as_str(),
        }
    }

    /// The error code that was answered.
    pub fn code(self) -> Option<i64> {
        match self {
            Ended::Error(code) => Some(code),
            Ended::Panicked => Some(turnbuckle_types::code::INTERNAL_ERROR),
            Ended::Ok
            | Ended::InputRequired
            | Ended::ToolError
            | Ended::Cancelled
            | Ended::Failed(_) => None,
        }
    }

    /// What a call ended with, as its caller is told.
    #[cfg(feature = "client")]
    pub(crate) fn of_call(outcome: Result<&Raw, &crate::error::Error>) -> Ended {
        match outcome {
            Ok(result) => Ended::of(Ok(result)),
            Err(error) => match error.as_rpc().filter(|_| error.kind() == ErrorKind::Remote) {
                Some(rpc) => Ended::Error(rpc.code),
                None if error.kind() == ErrorKind::Tool => Ended::ToolError,
                None => Ended::Failed(error.kind()),
            },
        }
    }

    /// What an outcome is. Looks into the text of results: for whoever wants to know.
    pub(crate) fn of(outcome: Result<&Raw, &RpcError>) -> Ended {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Head<'a> {
            is_error: bool,
            #[serde(borrow)]
            result_type: Option<Cow<'a, str>>,
        }
        let result = match outcome {
            Err(error) => return Ended::Error(error.code),
            Ok(result) => result,
        };
        let head: Head<'_> = result.decode_borrowed().unwrap_or_default();
        match head.result_type.as_deref() {
            Some("input_required") => Ended::InputRequired,
            _ if head.is_error => Ended::ToolError,
            _ => Ended::Ok,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Error(code) => write!(f, "error {code}"),
            other => f.write_str(other.as_str()),
        }
    }
}

/// Tells once how something ended: told, or dropped.
pub(crate) struct Finish<F: FnOnce(End)> {
    tell: Option<F>,
    since: Instant,
}

/// The end of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) ended: Ended,
    pub(crate) latency: Duration,
    /// The length of the result.
    pub(crate) bytes: usize,
}

impl<F: FnOnce(End)> Finish<F> {
    pub(crate) fn new(tell: F) -> Finish<F> {
        Finish { tell: Some(tell), since: Instant::now() }
    }

    pub(crate) fn tell(mut self, ended: Ended, bytes: usize) {
        self.end(ended, bytes);
    }

    fn end(&mut self, ended: Ended, bytes: usize) {
        if let Some(tell) = self.tell.take() {
            let end = End { ended, latency: self.since.elapsed(), bytes };
            // Often in a destructor, where a second panic would end the process.
            guarded(|| tell(end));
        }
    }
}

impl<F: FnOnce(End)> Drop for Finish<F> {
    fn drop(&mut self) {
        // A handler's panic unwinds through whatever watches it.
        self.end(if std::thread::panicking() { Ended::Panicked } else { Ended::Cancelled }, 0);
    }
}

/// Calls whoever looks on. What goes wrong there is no matter of the request.
pub(crate) fn guarded(tell: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(tell)).is_err() {
        tracing::error!("what looks on at requests panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_outcome_is_known_by_its_text() {
        let of = |text: &str| Ended::of(Ok(&Raw::from_json(text).unwrap()));
        assert_eq!(of(r#"{"content":[],"isError":true}"#), Ended::ToolError);
        assert_eq!(of(r#"{"content":[{"isError":true}],"isError":false}"#), Ended::Ok);
        assert_eq!(of(r#"{"resultType":"input_required"}"#), Ended::InputRequired);
        assert_eq!(of(r#"{"resultType":"complete","tools":[]}"#), Ended::Ok);
        assert_eq!(of("7"), Ended::Ok);
        assert_eq!(Ended::of(Err(&RpcError::new(7, "seven"))), Ended::Error(7));
    }

    #[test]
    fn an_end_is_told_once_however_it_comes() {
        let told = Cell::new(Vec::new());
        let tell = |end: End| {
            let mut all = told.take();
            all.push(end.ended);
            told.set(all);
        };
        Finish::new(tell).tell(Ended::Ok, 2);
        drop(Finish::new(tell));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _finish = Finish::new(tell);
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        assert_eq!(told.take(), [Ended::Ok, Ended::Cancelled, Ended::Panicked]);
    }

    #[test]
    fn whoever_is_told_may_panic() {
        let odd = |_: End| std::panic::resume_unwind(Box::new("on purpose"));
        Finish::new(odd).tell(Ended::Ok, 2);
        drop(Finish::new(odd));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _finish = Finish::new(odd);
            std::panic::resume_unwind(Box::new("the handler's"));
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"the handler's"));
    }
}
