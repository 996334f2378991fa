//! Calls of tools, and the decoding of their results.

use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_types::{CallToolResult, Method, Named, Raw, StructuredOutput};

use super::{
    super::{
        Call, Client,
        call::{DecodeContext, Params},
    },
    call_params, complete,
};
use crate::error::{Error, ErrorKind, Executed, Result};

impl Client {
    /// Calls a tool. `arguments` is anything that encodes to an object; `()` for none.
    ///
    /// A tool that fails returns a result with `is_error`, not an error: the model is meant
    /// to read it. If the tool was listed on this connection and promised structured output, output
    /// that breaks the promise is an error. A modern server that asks for input first is answered
    /// by this client's callbacks. Dropping the future cancels the call on the server, or what is
    /// being asked.
    #[doc(alias = "tools/call")]
    #[doc(alias = "callTool")]
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Call<CallToolResult> {
        self.tool(name, &arguments, result)
    }

    /// Calls a tool and decodes its structured output. Otherwise as
    /// [`call_tool`](Client::call_tool), except that a tool that fails is an error of the kind
    /// [`Tool`](ErrorKind::Tool).
    ///
    /// ```
    /// # use turnbuckle::{Args, Client, Json, Server, tool};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Add { a: i64, b: i64 }
    /// # #[derive(serde::Serialize, schemars::JsonSchema)]
    /// # struct Out { sum: i64 }
    /// # async fn add(Args(add): Args<Add>) -> Json<Out> { Json(Out { sum: add.a + add.b }) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> turnbuckle::Result<()> {
    /// # let server = Server::new("calc", "1.0").tool(tool("add", add));
    /// # let client = Client::in_process(&server).await?;
    /// #[derive(serde::Deserialize)]
    /// struct Sum { sum: i64 }
    /// let added: Sum = client.call_tool_as("add", serde_json::json!({"a": 1, "b": 2})).await?;
    /// assert_eq!(added.sum, 3);
    /// # Ok(()) }
    /// ```
    pub fn call_tool_as<T: DeserializeOwned>(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Call<T> {
        self.tool(name, &arguments, output)
    }

    fn tool<T>(
        &self,
        name: &str,
        arguments: &impl Serialize,
        decode: fn(&DecodeContext<'_>, &Raw) -> Result<T>,
    ) -> Call<T> {
        let params = Params::Text(call_params(name, arguments));
        let call = Call::new(&self.0, Method::CallTool.as_str(), params, decode);
        call.about_tool(name).needing(Method::CallTool).answering()
    }
}

impl Call<CallToolResult> {
    /// The same call, for its structured output alone: see
    /// [`call_tool_as`](Client::call_tool_as).
    pub fn typed<T: DeserializeOwned>(self) -> Call<T> {
        self.read_by(output)
    }
}

fn result(context: &DecodeContext<'_>, raw: &Raw) -> Result<CallToolResult> {
    let result =
        complete::<CallToolResult>(Method::CallTool, raw, |result| result.result_type.as_ref())?;
    match context.tool {
        Some((tool, compile)) => tool.checked(result, compile),
        None => Ok(result),
    }
}

fn output<T: DeserializeOwned>(context: &DecodeContext<'_>, raw: &Raw) -> Result<T> {
    let result = result(context, raw)?;
    if result.is_error == Some(true) {
        let message = format!("the tool failed: {}", result.to_text());
        let error = Error::new(ErrorKind::Tool, message).with_executed(Executed::Maybe);
        return Err(error.with_tool_result(result));
    }
    let Some(content) = &result.structured_content else {
        let message = "the tool gave no structured content that could be decoded";
        return Err(Error::protocol(message).with_tool_result(result));
    };
    let objects = context.link.revision().structured_output() == StructuredOutput::Objects;
    match content.decode() {
        Ok(output) => Ok(output),
        Err(error) => match wrapped(content).filter(|_| objects).map(|inner| inner.decode()) {
            Some(Ok(output)) => Ok(output),
            _ => {
                let message = format!("the tool's structured content can't be decoded: {error}");
                let error = Error::new(ErrorKind::Codec, message).with_source(error);
                Err(error.with_executed(Executed::Maybe).with_tool_result(result))
            }
        },
    }
}

/// Returns the value that a server has wrapped in an object, in revisions that allow only objects.
fn wrapped(content: &Raw) -> Option<Raw> {
    let members = content.decode::<Named<Raw>>().ok()?;
    let mut members = members.into_iter();
    match (members.next(), members.next()) {
        (Some((name, inner)), None) if name == "result" => Some(inner),
        _ => None,
    }
}
