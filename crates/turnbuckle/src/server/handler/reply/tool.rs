//! Owns what a tool's handler can return. Does not own what failures become.

use std::{borrow::Cow, future::poll_fn, pin::pin};

use futures_core::Stream;
use schemars::JsonSchema;
use serde::Serialize;
use turnbuckle_types::{CallToolResult, ContentBlock, Raw, ResourceLink, TextContent};

use super::{Failure, IntoReply};
use crate::server::{
    handler::{context::Ctx, extract::Description},
    schema::output_schema_of,
};

pub(super) fn text(text: impl Into<Cow<'static, str>>) -> CallToolResult {
    CallToolResult::new([ContentBlock::Text(TextContent::new(text.into().into_owned()))])
}

/// Structured output: the value, its schema in the tool's description, and its JSON as
/// text for clients that look only there.
///
/// It may be anything. Revisions before 2026-07-28 know only objects: for those, a list or a
/// number is the one member, `result`, of an object, and the schema says so. As a resource it is
/// text of the type `application/json`.
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
#[doc(alias = "structuredContent")]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema + Send> IntoReply for Json<T> {
    async fn into_reply(self, _: &Ctx) -> Result<CallToolResult, Failure> {
        let raw = Raw::new(&self.0).map_err(Failure::internal)?;
        let mut result = text(raw.as_str().to_owned());
        result.structured_content = Some(raw);
        Ok(result)
    }

    fn describe(description: &mut Description) {
        description.output = Some(output_schema_of::<T>());
    }
}

macro_rules! replies {
    ($($kind:ty: |$value:ident| $result:expr;)*) => {$(
        impl IntoReply for $kind {
            async fn into_reply(self, _: &Ctx) -> Result<CallToolResult, Failure> {
                let $value = self;
                Ok($result)
            }
        }
    )*};
}

replies! {
    CallToolResult: |result| result;
    ContentBlock: |block| CallToolResult::new([block]);
    Vec<ContentBlock>: |blocks| CallToolResult::new(blocks);
    ResourceLink: |link| CallToolResult::new([link.into()]);
    (): |_nothing| CallToolResult::new([]);
    String: |said| text(said);
    &'static str: |said| text(said);
    Cow<'static, str>: |said| text(said);
}

macro_rules! displayed {
    ($($kind:ty),*) => {
        replies! { $($kind: |value| text(value.to_string());)* }
    };
}

displayed!(bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

/// Output that comes in parts: each is sent as the message of a progress report as soon as it is
/// there, and all of them together are the result. A part is text or a content block, or a
/// `Result` of one; the first error ends it.
///
/// Dropping the call drops the stream.
///
/// ```
/// use turnbuckle::{Server, server::Streaming, tool};
/// async fn count() -> Streaming<impl futures_core::Stream<Item = String>> {
///     Streaming(tokio_stream::iter((1..=3).map(|step| format!("step {step}"))))
/// }
/// let server = Server::new("demo", "1.0").tool(tool("count", count));
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Streaming<S>(pub S);

/// A part of streamed output.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a part of streamed output",
    label = "not text, not content",
    note = "stream `String`, `&'static str`, `ContentBlock`, or a `Result` of one of these"
)]
pub trait IntoPart: Send {
    /// Makes the block.
    #[doc(hidden)]
    fn into_part(self) -> Result<ContentBlock, Failure>;
}

impl IntoPart for String {
    fn into_part(self) -> Result<ContentBlock, Failure> {
        Ok(ContentBlock::text(self))
    }
}

impl IntoPart for &'static str {
    fn into_part(self) -> Result<ContentBlock, Failure> {
        Ok(ContentBlock::text(self))
    }
}

impl IntoPart for ContentBlock {
    fn into_part(self) -> Result<ContentBlock, Failure> {
        Ok(self)
    }
}

impl<T, E> IntoPart for Result<T, E>
where
    T: IntoPart,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
{
    fn into_part(self) -> Result<ContentBlock, Failure> {
        self.map_err(Failure::of)?.into_part()
    }
}

impl<S> IntoReply for Streaming<S>
where
    S: Stream + Send,
    S::Item: IntoPart,
{
    async fn into_reply(self, ctx: &Ctx) -> Result<CallToolResult, Failure> {
        let mut parts = pin!(self.0);
        let mut content = Vec::new();
        while let Some(part) = poll_fn(|context| parts.as_mut().poll_next(context)).await {
            let part = part.into_part()?;
            let report = ctx.progress(content.len() + 1);
            match part.as_text() {
                Some(text) => report.message(text).await,
                None => report.await,
            }
            content.push(part);
        }
        Ok(CallToolResult::new(joined(content)))
    }
}

/// Texts that follow each other are one text: it was cut only to be sent early.
fn joined(parts: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let mut content: Vec<ContentBlock> = Vec::new();
    for part in parts {
        match (content.last_mut(), part) {
            (Some(ContentBlock::Text(before)), ContentBlock::Text(more)) if is_plain(&more) => {
                before.text.push_str(&more.text);
            }
            (_, part) => content.push(part),
        }
    }
    content
}

fn is_plain(text: &TextContent) -> bool {
    text.annotations.is_none() && text.meta.is_empty()
}
#[cfg(all(test, feature = "http", feature = "client"))]
mod tests {
    use std::error::Error as StdError;

    use turnbuckle_types::{Revision, RpcError};

    use super::*;
    use crate::server::handler::reply::{Fails, ToolError};

    async fn shaped(reply: impl IntoReply) -> Result<CallToolResult, RpcError> {
        let replied = reply.into_reply(&Ctx::unheard()).await;
        replied.or_else(|failure| CallToolResult::failed(failure, "t", Revision::LATEST))
    }

    // req: tools:call:is-error
    #[tokio::test]
    async fn an_error_goes_where_its_type_says() {
        let tool: Result<(), ToolError> = Err("no such city".into());
        let told = shaped(tool).await.unwrap();
        assert_eq!(told.is_error, Some(true));
        let rpc: Result<(), RpcError> = Err(RpcError::invalid_params("p"));
        assert_eq!(shaped(rpc).await.unwrap_err().code, -32602);
        let secret: Result<(), std::io::Error> = Err(std::io::Error::other("password is hunter2"));
        let opaque = shaped(secret).await.unwrap_err();
        assert_eq!((opaque.code, &*opaque.message), (-32603, "internal error"));
        let boxed: Result<(), Box<dyn StdError + Send + Sync>> = Err("hunter2".into());
        assert_eq!(shaped(boxed).await.unwrap_err().code, -32603);
        let texts: [Result<CallToolResult, RpcError>; 3] = [
            shaped(Err::<(), _>("no such city".to_owned())).await,
            shaped(Err::<(), _>("no such city")).await,
            shaped(Err::<(), _>(std::borrow::Cow::from("no such city"))).await,
        ];
        for told in texts.map(Result::unwrap) {
            assert_eq!((told.is_error, told.to_text()), (Some(true), "no such city".to_owned()));
        }
    }

    #[tokio::test]
    async fn a_boxed_error_is_still_what_it_was() {
        type Boxed = Box<dyn StdError + Send + Sync>;
        let tool: Result<(), Boxed> = Err(Box::new(ToolError::new("t")));
        assert_eq!(shaped(tool).await.unwrap().is_error, Some(true));
        let rpc: Result<(), Boxed> = Err(Box::new(RpcError::new(7, "seven")));
        assert_eq!(shaped(rpc).await.unwrap_err().code, 7);
    }

    // req: tools:call:structured-content:text-mirror
    #[tokio::test]
    async fn json_is_structured_and_mirrored_as_text() {
        #[derive(Serialize, JsonSchema)]
        struct Sum {
            sum: i64,
        }
        let result = shaped(Json(Sum { sum: 3 })).await.unwrap();
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"sum":3}"#);
        let [ContentBlock::Text(mirror)] = &result.content[..] else { panic!() };
        assert_eq!(mirror.text, r#"{"sum":3}"#);
    }
}
