//! Owns how what a handler returns becomes a result, and what its failures become on the wire.
//! Does not own when it is sent.

mod contents;
mod failure;
mod media;
mod messages;
mod tool;

use std::error::Error as StdError;

use turnbuckle_types::CallToolResult;

pub(crate) use failure::{Cause, Fails, not_found};
pub use failure::{Failure, NotFound, ToolError};
pub use media::{Audio, Image};
pub use tool::{Json, Streaming};

use super::{context::Ctx, extract::Description};

/// Something that a handler can return; `R` is what the wire wants of it.
///
/// - A **tool** (`R` is `CallToolResult`): text, numbers and `()` become text content; [`Json`]
///   becomes structured content with its schema; content blocks, [`Image`], [`Audio`], a
///   `ResourceLink` and a `CallToolResult` are taken as they are; [`Streaming`] sends its parts
///   as they come.
/// - A **prompt** (`GetPromptResult`): text is one message of the user; or a `PromptMessage`, a
///   list of them, a `GetPromptResult`.
/// - A **resource** (`ReadResourceResult`): text, bytes, [`Json`], `ResourceContents`, a list of
///   them, a `ReadResourceResult`.
/// - A **completer** (`Completion`): a list of texts, or a `Completion`.
///
/// A tool, a prompt and a resource may return an [`InputRequired`](crate::elicit::InputRequired) instead, to ask the client first.
///
/// In a `Result`, a [`ToolError`] or a plain text (`String`, `&'static str`) is told to the model, an
/// `RpcError` to the client, and [`NotFound`] says that there is no such resource. **Any other error goes
/// to the log only**, for it may say what nobody outside should know: the client hears of an internal
/// error, and `tracing` has the rest. What a caller should read is
/// `.map_err(|error| ToolError::new(error.to_string()))`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be returned here: it can't become a `{R}`",
    label = "not a reply",
    note = "a tool returns text, a number, `Json<T>` for structured output, a `CallToolResult`, or \
            a `Result` of one of these with `ToolError`, text or `RpcError`, which are told, or any other \
            error, which only the log is told",
    note = "a prompt returns text or `PromptMessage`s; a resource text, bytes or \
            `ResourceContents`; a completer a list of texts"
)]
pub trait IntoReply<R = CallToolResult>: Send {
    /// Makes the result. Dropping the future gives it up, with the request.
    #[doc(hidden)]
    fn into_reply(self, ctx: &Ctx) -> impl Future<Output = Result<R, Failure>> + Send;
    /// Says what the output looks like.
    #[doc(hidden)]
    fn describe(description: &mut Description)
    where
        Self: Sized,
    {
        let _ = description;
    }
}

impl<R, T, E> IntoReply<R> for Result<T, E>
where
    R: Send,
    T: IntoReply<R>,
    E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
{
    async fn into_reply(self, ctx: &Ctx) -> Result<R, Failure> {
        match self {
            Ok(reply) => reply.into_reply(ctx).await,
            Err(error) => Err(Failure::of(error)),
        }
    }

    fn describe(description: &mut Description) {
        T::describe(description);
    }
}
