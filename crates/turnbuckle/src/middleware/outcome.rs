//! How a request ended.

use std::{borrow::Cow, fmt};

use serde::Deserialize;
use turnbuckle_types::{Raw, RpcError};

use crate::error::ErrorKind;

/// How a request ended.
///
/// ```
/// use turnbuckle::middleware::RequestOutcome;
/// assert_eq!(RequestOutcome::ToolError.as_str(), "tool_error");
/// assert_eq!(RequestOutcome::Error(-32602).to_string(), "error -32602");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestOutcome {
    /// A result.
    Ok,
    /// A result that asks the client for input. The client sends the request again with the
    /// answers.
    InputRequired,
    /// A result that says that the tool failed.
    ToolError,
    /// An error with this code.
    Error(i64),
    /// The caller cancelled the request or is gone. Nothing was answered.
    Cancelled,
    /// An internal error, because the handler panicked. On a client: its middleware panicked.
    Panicked,
    /// No answer, on a client: the time ran out, the connection was lost, or this side refused the
    /// call.
    Failed(ErrorKind),
}

impl RequestOutcome {
    /// Returns one word, for a label.
    pub fn as_str(self) -> &'static str {
        match self {
            RequestOutcome::Ok => "ok",
            RequestOutcome::InputRequired => "input_required",
            RequestOutcome::ToolError => "tool_error",
            RequestOutcome::Error(_) => "error",
            RequestOutcome::Cancelled => "cancelled",
            RequestOutcome::Panicked => "panicked",
            RequestOutcome::Failed(kind) => kind.as_str(),
        }
    }

    /// Returns the error code of the answer.
    pub fn code(self) -> Option<i64> {
        match self {
            RequestOutcome::Error(code) => Some(code),
            RequestOutcome::Panicked => Some(turnbuckle_types::code::INTERNAL_ERROR),
            _ => None,
        }
    }

    /// The outcome of a call, from its caller's result.
    #[cfg(feature = "client")]
    pub(crate) fn of_call(result: Result<&Raw, &crate::error::Error>) -> RequestOutcome {
        match result {
            Ok(result) => RequestOutcome::of(Ok(result)),
            Err(error) => match error.as_rpc().filter(|_| error.kind() == ErrorKind::Remote) {
                Some(rpc) => RequestOutcome::Error(rpc.code),
                None if error.kind() == ErrorKind::Tool => RequestOutcome::ToolError,
                None => RequestOutcome::Failed(error.kind()),
            },
        }
    }

    /// The outcome of an answer. This reads the text of results, so it is called only if something
    /// observes the request.
    pub(crate) fn of(answer: Result<&Raw, &RpcError>) -> RequestOutcome {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Head<'a> {
            is_error: bool,
            #[serde(borrow)]
            result_type: Option<Cow<'a, str>>,
        }
        let result = match answer {
            Err(error) => return RequestOutcome::Error(error.code),
            Ok(result) => result,
        };
        let head: Head<'_> = result.decode_borrowed().unwrap_or_default();
        match head.result_type.as_deref() {
            Some("input_required") => RequestOutcome::InputRequired,
            _ if head.is_error => RequestOutcome::ToolError,
            _ => RequestOutcome::Ok,
        }
    }
}

impl fmt::Display for RequestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestOutcome::Error(code) => write!(f, "error {code}"),
            other => f.write_str(other.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_answer_tells_its_outcome() {
        let of = |text: &str| RequestOutcome::of(Ok(&Raw::from_json(text).unwrap()));
        assert_eq!(of(r#"{"content":[],"isError":true}"#), RequestOutcome::ToolError);
        assert_eq!(of(r#"{"content":[{"isError":true}],"isError":false}"#), RequestOutcome::Ok);
        assert_eq!(of(r#"{"resultType":"input_required"}"#), RequestOutcome::InputRequired);
        assert_eq!(of(r#"{"resultType":"complete","tools":[]}"#), RequestOutcome::Ok);
        assert_eq!(of("7"), RequestOutcome::Ok);
        let error = RpcError::new(7, "seven");
        assert_eq!(RequestOutcome::of(Err(&error)), RequestOutcome::Error(7));
    }
}
