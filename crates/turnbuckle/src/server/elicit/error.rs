//! Owns why a question has no answer, and what becomes of a handler that passes that on.
//! Does not own what a client is sent when a handler waits for its answers.

use std::{
    error::Error as StdError,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use turnbuckle_types::{Questions, Revision, RpcError, code};

use super::question::AnswerMismatch;
use crate::{ToolError, error::Error, server::Failure};

/// Why [`Ctx::ask`](crate::Ctx::ask) gave no answer. Pass it on with `?`, whatever it is: then a
/// question that has yet to be answered is asked, and anything else is told to whoever can do
/// something about it.
///
/// ```
/// use turnbuckle::{Ctx, ToolError, elicit::elicit};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name { name: String }
/// async fn greet(ctx: Ctx) -> Result<String, ToolError> {
///     match ctx.ask("name", elicit::<Name>("Who are you?")).await {
///         Ok(Name { name }) => Ok(format!("Hello, {name}!")),
///         Err(error) if error.is_declined() => Ok("Hello!".to_owned()),
///         Err(error) => Err(error.into()),
///     }
/// }
/// # let _ = greet;
/// ```
#[derive(Debug)]
pub struct AskError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    key: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// It is asked when the handler ends.
    Suspended,
    Declined,
    Cancelled,
    /// The client did not declare what the question needs.
    Unsupported {
        capability: &'static str,
        revision: Revision,
        /// The handler has looked at it, so that it knows what to do without.
        seen: Arc<AtomicBool>,
    },
    /// What came is not what was asked for.
    Unfit {
        why: String,
        revision: Revision,
    },
    /// The question itself, or what is kept beside it, is wrong.
    Own(String),
    /// The client could not be asked, or answered with an error.
    Failed(Error),
}

impl AskError {
    pub(super) fn suspended(key: &str) -> AskError {
        AskError::new(key, Kind::Suspended)
    }

    pub(super) fn unanswered(key: &str, why: AnswerMismatch, revision: Revision) -> AskError {
        let kind = match why {
            AnswerMismatch::Declined => Kind::Declined,
            AnswerMismatch::Cancelled => Kind::Cancelled,
            AnswerMismatch::Unfit(why) => Kind::Unfit { why, revision },
        };
        AskError::new(key, kind)
    }

    pub(super) fn unsupported(key: &str, capability: &'static str, revision: Revision) -> AskError {
        AskError::new(key, Kind::Unsupported { capability, revision, seen: Arc::default() })
    }

    pub(super) fn own(key: &str, why: impl Into<String>) -> AskError {
        AskError::new(key, Kind::Own(why.into()))
    }

    pub(super) fn failed(key: &str, error: Error) -> AskError {
        AskError::new(key, Kind::Failed(error))
    }

    fn new(key: &str, kind: Kind) -> AskError {
        AskError(Box::new(Inner { key: key.to_owned(), kind }))
    }

    /// The key of the question.
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// The user said no.
    pub fn is_declined(&self) -> bool {
        matches!(self.0.kind, Kind::Declined)
    }

    /// The user said nothing: closed the form, walked away.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0.kind, Kind::Cancelled)
    }

    /// The question has yet to be asked: pass the error on, and the handler runs again when there
    /// is an answer.
    pub fn is_suspended(&self) -> bool {
        matches!(self.0.kind, Kind::Suspended)
    }

    /// The capability that the client lacks for this question, such as `elicitation.form`.
    ///
    /// A handler that looks at this can do without the answer: it may ask something else, or fail
    /// with an error of its own, and a client of the modern era is told of what it lacks only if
    /// this error is passed on after all. Of one that does not look, the client is told in any
    /// case, if the handler fails.
    pub fn missing_capability(&self) -> Option<&'static str> {
        match &self.0.kind {
            Kind::Unsupported { capability, seen, .. } => {
                seen.store(true, Ordering::Relaxed);
                Some(capability)
            }
            _ => None,
        }
    }

    /// What the client is told that it lacks, in the modern era, and whether the handler has looked.
    pub(crate) fn lack(&self) -> Option<(RpcError, Arc<AtomicBool>)> {
        match &self.0.kind {
            Kind::Unsupported { seen, .. } => Some((self.refusal()?, seen.clone())),
            _ => None,
        }
    }

    /// The error that the client answered with.
    pub fn as_rpc(&self) -> Option<&RpcError> {
        match &self.0.kind {
            Kind::Failed(error) => error.as_rpc(),
            _ => None,
        }
    }

    /// What a client of the modern era is told, whatever the handler makes of this error.
    pub(crate) fn refusal(&self) -> Option<RpcError> {
        match &self.0.kind {
            Kind::Unsupported { capability, revision, .. }
                if revision.questions() == Questions::InResults =>
            {
                Some(missing(capability, self.to_string()))
            }
            Kind::Unfit { why, revision } if revision.questions() == Questions::InResults => {
                let key = &self.0.key;
                let message = format!("`params.inputResponses[\"{key}\"]` is no answer: {why}");
                Some(RpcError::invalid_params(message))
            }
            _ => None,
        }
    }
}

/// −32021, with the capability in the place where a client declares it.
fn missing(capability: &str, message: String) -> RpcError {
    let required = capability
        .rsplit('.')
        .fold(serde_json::json!({}), |inner, part| serde_json::json!({ part: inner }));
    let data = serde_json::json!({ "requiredCapabilities": required });
    RpcError::new(code::MISSING_CLIENT_CAPABILITY, message).with_data(&data)
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.0.key;
        match &self.0.kind {
            Kind::Suspended => f.write_str(&waiting(key)),
            Kind::Declined => write!(f, "the user declined to answer `{key}`"),
            Kind::Cancelled => write!(f, "the user did not answer `{key}`"),
            Kind::Unsupported { capability, .. } => {
                write!(
                    f,
                    "`{key}` can't be asked: the client did not declare the capability `{capability}`"
                )
            }
            Kind::Unfit { why, .. } => write!(f, "the answer to `{key}` does not fit: {why}"),
            Kind::Own(why) => write!(f, "`{key}` can't be asked: {why}"),
            Kind::Failed(_) => write!(f, "`{key}` got no answer"),
        }
    }
}

/// Every question that is asked comes to this, so that it is made in one piece.
fn waiting(key: &str) -> String {
    ["`", key, "` has yet to be answered"].concat()
}

impl StdError for AskError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.kind {
            Kind::Failed(error) => Some(error),
            _ => None,
        }
    }
}

/// For the model, which reads why there is no answer.
impl From<AskError> for ToolError {
    fn from(error: AskError) -> ToolError {
        match &error.0.kind {
            Kind::Own(_) => {
                tracing::error!(error = &error as &dyn StdError, "a handler asked wrongly");
                ToolError::new("internal error")
            }
            Kind::Failed(failed) => ToolError::new(format!("{error}: {failed}")),
            Kind::Suspended => ToolError::new(waiting(&error.0.key)),
            _ => ToolError::new(error.to_string()).because_of(error.lack().map(|(lack, _)| lack)),
        }
    }
}

/// What the client got wrong it is told, the rest is for the model.
impl From<AskError> for Failure {
    fn from(error: AskError) -> Failure {
        match error.refusal() {
            Some(refusal) => refusal.into(),
            None => ToolError::from(error).into(),
        }
    }
}

/// For the client, where there is no model to read it.
impl From<AskError> for RpcError {
    fn from(error: AskError) -> RpcError {
        if let Some(refusal) = error.refusal() {
            return refusal;
        }
        match &error.0.kind {
            Kind::Own(_) => {
                tracing::error!(error = &error as &dyn StdError, "a handler asked wrongly");
                RpcError::internal("internal error")
            }
            Kind::Failed(failed) => RpcError::internal(format!("{error}: {failed}")),
            _ => RpcError::internal(error.to_string()),
        }
    }
}
