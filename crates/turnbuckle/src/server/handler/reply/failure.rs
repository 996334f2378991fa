//! Owns why a handler did not return a result, and what that becomes for each kind of handler.
//! Does not own the results.

use std::{any::Any, borrow::Cow, error::Error as StdError, fmt};

use turnbuckle_types::{
    CallToolResult, Completion, ContentBlock, GetPromptResult, ReadResourceResult, Revision,
    RpcError,
};

use crate::server::{
    elicit::{AskError, InputRequired},
    schema::ArgumentError,
};

/// An error that the model reads, so that it can do better: "no city of that name".
///
/// ```
/// use turnbuckle::ToolError;
/// fn divide(a: i64, b: i64) -> Result<i64, ToolError> {
///     if b == 0 {
///         return Err(ToolError::new("`b` must not be zero"));
///     }
///     Ok(a / b)
/// }
/// assert_eq!(divide(1, 0).unwrap_err().to_string(), "`b` must not be zero");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "isError")]
pub struct ToolError {
    content: Vec<ContentBlock>,
    message: Cow<'static, str>,
    /// What the client is told instead if it lacks a capability, and this was made from the error
    /// that says so.
    lack: Option<Box<RpcError>>,
}

impl ToolError {
    /// An error of one sentence.
    pub fn new(message: impl Into<Cow<'static, str>>) -> ToolError {
        ToolError { content: Vec::new(), message: message.into(), lack: None }
    }

    /// Adds content after the sentence.
    #[must_use]
    pub fn with_content(mut self, content: impl Into<ContentBlock>) -> ToolError {
        self.content.push(content.into());
        self
    }

    pub(crate) fn because_of(mut self, lack: Option<RpcError>) -> ToolError {
        self.lack = lack.map(Box::new);
        self
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::new([ContentBlock::text(self.message)]);
        result.content.extend(self.content);
        result.is_error = Some(true);
        result
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for ToolError {}

impl From<String> for ToolError {
    fn from(message: String) -> ToolError {
        ToolError::new(message)
    }
}

impl From<&'static str> for ToolError {
    fn from(message: &'static str) -> ToolError {
        ToolError::new(message)
    }
}

/// There is no such resource: what a handler returns for a URI that it does not know.
///
/// ```
/// use turnbuckle::{Args, NotFound, Server, template};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Note { id: u32 }
/// async fn note(Args(note): Args<Note>) -> Result<&'static str, NotFound> {
///     if note.id == 7 { Ok("buy milk") } else { Err(NotFound) }
/// }
/// let server = Server::new("notes", "1.0").template(template("note://{id}", note));
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFound;

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no such resource")
    }
}

impl StdError for NotFound {}

/// Why a handler, or the making of its arguments, did not come to a result.
///
/// Made from a [`ToolError`], which the model reads, from an `RpcError`, which the client reads,
/// from [`NotFound`], or from anything else, which only the log reads.
#[derive(Debug)]
pub struct Failure(pub(crate) Cause);

#[derive(Debug)]
pub(crate) enum Cause {
    /// For the model.
    Tool(ToolError),
    /// The caller's arguments do not fit.
    Arguments(ArgumentError),
    /// For the client.
    Rpc(RpcError),
    /// There is nothing of that name.
    NotFound,
    /// The client is to be asked something first.
    Ask(InputRequired),
    /// For the log.
    Internal(Box<dyn StdError + Send + Sync>),
}

impl Failure {
    /// Something that only the log is told; the client learns that there was an error.
    pub fn internal(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Failure {
        Failure(Cause::Internal(error.into()))
    }

    pub(crate) fn arguments(error: ArgumentError) -> Failure {
        Failure(Cause::Arguments(error))
    }

    /// Whether the client is to be asked something first.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.0, Cause::Ask(_))
    }

    /// The error that says what the client lacks, if this was made from that.
    pub(crate) fn lack(&self) -> Option<RpcError> {
        match &self.0 {
            Cause::Tool(error) => error.lack.as_deref().cloned(),
            Cause::Rpc(error)
                if error.code == turnbuckle_types::code::MISSING_CLIENT_CAPABILITY =>
            {
                Some(error.clone())
            }
            Cause::Internal(error) => {
                let mut cause: &(dyn StdError + 'static) = &**error;
                loop {
                    if let Some(error) = cause.downcast_ref::<AskError>() {
                        return error.lack().map(|(lack, _)| lack);
                    }
                    cause = cause.source()?;
                }
            }
            _ => None,
        }
    }

    /// What a handler failed with. Text was written to be read.
    pub(super) fn of<E: Into<Box<dyn StdError + Send + Sync>> + 'static>(error: E) -> Failure {
        fn text<T: Into<Cow<'static, str>> + 'static>(any: &mut dyn Any) -> Option<ToolError> {
            any.downcast_mut::<Option<T>>()?.take().map(ToolError::new)
        }
        let mut error = Some(error);
        let told = text::<String>(&mut error)
            .or_else(|| text::<&'static str>(&mut error))
            .or_else(|| text::<Cow<'static, str>>(&mut error));
        match (told, error) {
            (Some(told), _) => told.into(),
            (None, Some(error)) => Failure::from_boxed(error.into()),
            (None, None) => Failure::internal("no error"),
        }
    }

    /// A boxed error is still what it was.
    fn from_boxed(error: Box<dyn StdError + Send + Sync>) -> Failure {
        fn known<E: StdError + 'static>(
            error: Box<dyn StdError + Send + Sync>,
            cause: fn(E) -> Cause,
        ) -> Result<Failure, Box<dyn StdError + Send + Sync>> {
            error.downcast().map(|error| Failure(cause(*error)))
        }
        let found = known(error, Cause::Tool)
            .or_else(|error| known(error, Cause::Rpc))
            .or_else(|error| known(error, |NotFound| Cause::NotFound));
        let found = found
            .or_else(|error| known(error, |error: AskError| Failure::from(error).0))
            .or_else(|error| known(error, Cause::Ask));
        found.unwrap_or_else(|error| Failure(Cause::Internal(error)))
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Failure {
        Failure(Cause::Tool(error))
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Failure {
        Failure(Cause::Rpc(error))
    }
}

impl From<NotFound> for Failure {
    fn from(_: NotFound) -> Failure {
        Failure(Cause::NotFound)
    }
}

/// A result that knows what stands in for it when its handler fails.
pub(crate) trait Fails: Sized {
    /// What is answered. `name` is that of the tool or prompt, or the URI.
    fn failed(failure: Failure, name: &str, revision: Revision) -> Result<Self, RpcError>;
}

impl Fails for CallToolResult {
    fn failed(failure: Failure, name: &str, _: Revision) -> Result<Self, RpcError> {
        match failure.0 {
            Cause::Tool(error) => Ok(error.into_result()),
            Cause::Arguments(error) => Ok(ToolError::new(error.to_string()).into_result()),
            Cause::NotFound => Ok(ToolError::new(NotFound.to_string()).into_result()),
            Cause::Rpc(error) => Err(error),
            Cause::Ask(asks) => Err(hidden(name, &asks)),
            Cause::Internal(error) => Err(hidden(name, &*error)),
        }
    }
}

macro_rules! fails {
    ($($result:ty),*) => {$(
        impl Fails for $result {
            fn failed(failure: Failure, name: &str, revision: Revision) -> Result<Self, RpcError> {
                Err(as_error(failure, name, revision))
            }
        }
    )*};
}

fails!(GetPromptResult, ReadResourceResult, Completion);

fn as_error(failure: Failure, name: &str, revision: Revision) -> RpcError {
    match failure.0 {
        // No model reads it, but its author wrote it to be read.
        Cause::Tool(error) => RpcError::internal(error.message),
        Cause::Arguments(error) => RpcError::invalid_params(error.to_string()),
        Cause::Rpc(error) => error,
        Cause::NotFound => not_found(name, revision),
        // Of a kind of handler that can't ask.
        Cause::Ask(asks) => hidden(name, &asks),
        Cause::Internal(error) => hidden(name, &*error),
    }
}

/// 2026-07-28 server/resources §Error Handling: no such resource is a wrong parameter; before, it
/// had a code of its own.
pub(crate) fn not_found(uri: &str, revision: Revision) -> RpcError {
    RpcError::new(revision.resource_not_found(), "there is no such resource")
        .with_data(&serde_json::json!({ "uri": uri }))
}

fn hidden(name: &str, error: &(dyn StdError + 'static)) -> RpcError {
    tracing::error!(name, error, "a handler failed");
    RpcError::internal("internal error")
}
