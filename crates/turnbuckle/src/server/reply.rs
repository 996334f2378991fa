//! Owns how what a handler returns becomes a result or an error of the wire.
//! Does not own when it is sent.

use std::{borrow::Cow, error::Error as StdError, fmt};

use schemars::JsonSchema;
use serde::Serialize;
use turnbuckle_types::{CallToolResult, ContentBlock, Raw, RpcError, TextContent};

use super::{
    extract::Description,
    schema::{ArgumentError, output_schema_of},
};

/// Something that a tool can return.
///
/// Text, numbers and `()` become text content; [`Json`] becomes structured content with
/// its schema; content blocks and [`CallToolResult`] are taken as they are. In a `Result`,
/// a [`ToolError`] is told to the model, an [`RpcError`] to the client, and any other
/// error to the log only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be returned by a tool",
    label = "not a tool's reply",
    note = "return text, a number, `Json<T>` for structured output, a `CallToolResult`, or a \
            `Result` of one of these with `ToolError`, `RpcError` or a boxed error"
)]
pub trait IntoReply: Send {
    /// Makes the result.
    #[doc(hidden)]
    fn into_reply(self) -> Result<CallToolResult, Failure>;
    /// Says what the tool's output looks like.
    #[doc(hidden)]
    fn describe(description: &mut Description)
    where
        Self: Sized,
    {
        let _ = description;
    }
}

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
pub struct ToolError {
    content: Vec<ContentBlock>,
    message: Cow<'static, str>,
}

impl ToolError {
    /// An error of one sentence.
    pub fn new(message: impl Into<Cow<'static, str>>) -> ToolError {
        ToolError { content: Vec::new(), message: message.into() }
    }

    /// Adds content after the sentence.
    #[must_use]
    pub fn with_content(mut self, content: impl Into<ContentBlock>) -> ToolError {
        self.content.push(content.into());
        self
    }

    fn into_result(self) -> CallToolResult {
        let mut result = text(self.message);
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

/// Why a handler did not return a result.
#[doc(hidden)]
#[derive(Debug)]
pub enum Failure {
    /// For the model.
    Tool(ToolError),
    /// For the client.
    Rpc(RpcError),
    /// For the log.
    Internal(Box<dyn StdError + Send + Sync>),
}

impl Failure {
    pub(super) fn arguments(error: ArgumentError) -> Failure {
        Failure::Tool(ToolError::new(error.to_string()))
    }

    fn from_boxed(error: Box<dyn StdError + Send + Sync>) -> Failure {
        let error = match error.downcast::<ToolError>() {
            Ok(error) => return Failure::Tool(*error),
            Err(error) => error,
        };
        match error.downcast::<RpcError>() {
            Ok(error) => Failure::Rpc(*error),
            Err(error) => Failure::Internal(error),
        }
    }
}

/// What goes on the wire for whatever the handler of `tool` returned.
pub(super) fn shape(
    tool: &str,
    replied: Result<CallToolResult, Failure>,
) -> Result<CallToolResult, RpcError> {
    match replied {
        Ok(result) => Ok(result),
        Err(Failure::Tool(error)) => Ok(error.into_result()),
        Err(Failure::Rpc(error)) => Err(error),
        Err(Failure::Internal(error)) => {
            tracing::error!(tool, error = &*error as &dyn StdError, "a tool failed");
            Err(RpcError::internal("internal error"))
        }
    }
}

fn text(text: impl Into<Cow<'static, str>>) -> CallToolResult {
    CallToolResult::new([ContentBlock::Text(TextContent::new(text.into().into_owned()))])
}

/// Structured output: the value, its schema in the tool's description, and its JSON as
/// text for clients that look only there.
///
/// It may be anything. Revisions before 2026-07-28 know only objects: for those, a list or a
/// number is the one member, `result`, of an object, and the schema says so.
///
/// ```
/// use turnbuckle::{Json, Server, tool};
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Sum { sum: i64 }
/// async fn one() -> Json<Sum> { Json(Sum { sum: 1 }) }
/// let server = Server::new("calc", "1.0").tool(tool("one", one));
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema + Send> IntoReply for Json<T> {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        let raw = Raw::new(&self.0).map_err(|error| Failure::Internal(error.into()))?;
        let mut result = text(raw.as_str().to_owned());
        result.structured_content = Some(raw);
        Ok(result)
    }

    fn describe(description: &mut Description) {
        description.output = Some(output_schema_of::<T>().map(|schema| schema.schema));
    }
}

impl IntoReply for CallToolResult {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        Ok(self)
    }
}

impl IntoReply for ContentBlock {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        Ok(CallToolResult::new([self]))
    }
}

impl IntoReply for Vec<ContentBlock> {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        Ok(CallToolResult::new(self))
    }
}

impl IntoReply for () {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        Ok(CallToolResult::new([]))
    }
}

impl IntoReply for String {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        Ok(text(self))
    }
}

impl IntoReply for &'static str {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        Ok(text(self))
    }
}

impl IntoReply for Cow<'static, str> {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        Ok(text(self))
    }
}

macro_rules! displayed {
    ($($kind:ty),*) => {$(
        impl IntoReply for $kind {
            fn into_reply(self) -> Result<CallToolResult, Failure> {
                Ok(text(self.to_string()))
            }
        }
    )*};
}

displayed!(bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

impl<T: IntoReply, E: Into<Box<dyn StdError + Send + Sync>> + Send> IntoReply for Result<T, E> {
    fn into_reply(self) -> Result<CallToolResult, Failure> {
        self.map_err(|error| Failure::from_boxed(error.into()))?.into_reply()
    }

    fn describe(description: &mut Description) {
        T::describe(description);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(reply: impl IntoReply) -> Result<CallToolResult, RpcError> {
        shape("t", reply.into_reply())
    }

    #[test]
    fn an_error_goes_where_its_type_says() {
        let tool: Result<(), ToolError> = Err("no such city".into());
        let told = shaped(tool).unwrap();
        assert_eq!(told.is_error, Some(true));
        let rpc: Result<(), RpcError> = Err(RpcError::invalid_params("p"));
        assert_eq!(shaped(rpc).unwrap_err().code, -32602);
        let secret: Result<(), std::io::Error> = Err(std::io::Error::other("password is hunter2"));
        let opaque = shaped(secret).unwrap_err();
        assert_eq!((opaque.code, &*opaque.message), (-32603, "internal error"));
    }

    #[test]
    fn a_boxed_error_is_still_what_it_was() {
        type Boxed = Box<dyn StdError + Send + Sync>;
        let tool: Result<(), Boxed> = Err(Box::new(ToolError::new("t")));
        assert_eq!(shaped(tool).unwrap().is_error, Some(true));
        let rpc: Result<(), Boxed> = Err(Box::new(RpcError::new(7, "seven")));
        assert_eq!(shaped(rpc).unwrap_err().code, 7);
    }

    #[test]
    fn json_is_structured_and_mirrored_as_text() {
        #[derive(Serialize, JsonSchema)]
        struct Sum {
            sum: i64,
        }
        let result = shaped(Json(Sum { sum: 3 })).unwrap();
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"sum":3}"#);
        let [ContentBlock::Text(mirror)] = &result.content[..] else { panic!() };
        assert_eq!(mirror.text, r#"{"sum":3}"#);
    }
}
