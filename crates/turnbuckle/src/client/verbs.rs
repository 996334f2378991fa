//! Owns the verbs: which method, which params, which result. Does not own how they run.

use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_types::{
    CallToolResult, Complete, CompleteResult, CompletionArgument, CompletionReference, Discover,
    DiscoverResult, Encode, GetPromptResult, ListPrompts, ListPromptsResult, ListResourceTemplates,
    ListResourceTemplatesResult, ListResources, ListResourcesResult, ListTools, ListToolsResult,
    Method, Ping, Prompt, Raw, ReadResource, ReadResourceResult, Resource, ResourceTemplate,
    ResultType, Revision, jsonrpc, write_at,
};

use super::{
    Call, Client, Listed, Tools,
    call::{Decode, undecodable},
};
use crate::{
    dispatch::Note,
    error::{Error, ErrorKind, Result},
};

impl Client {
    /// Calls a tool. `arguments` is anything that encodes to an object; `()` for none.
    ///
    /// A tool that fails returns a result with `is_error`, not an error: the model is meant
    /// to read it. A modern server that asks for input first is answered by this client's
    /// callbacks. Dropping the future cancels the call on the server, or what is being asked.
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Call<CallToolResult> {
        let params = call_params(name, &arguments);
        let call = Call::new(&self.0, Method::CallTool.as_str(), params, |_, raw| {
            complete::<CallToolResult>(Method::CallTool, &raw, |result| result.result_type.as_ref())
        });
        #[cfg(feature = "http")]
        let call = call.about_tool(name);
        call.answering()
    }

    /// Asks for the first page of the server's tools. Dropping the future cancels it.
    pub fn list_tools(&self) -> Call<ListToolsResult> {
        self.list_tools_from(None)
    }

    pub(super) fn list_tools_from(&self, cursor: Option<String>) -> Call<ListToolsResult> {
        let mut params = ListTools::new();
        params.cursor = cursor;
        self.verb(Method::ListTools, &params, |client, raw| {
            let page = complete::<ListToolsResult>(Method::ListTools, &raw, |result| {
                result.result_type.as_ref()
            });
            #[cfg(feature = "http")]
            let page = page.map(|mut page| {
                if let Some(repeated) = &client.repeated {
                    repeated.learn(&mut page.tools);
                }
                page
            });
            #[cfg(not(feature = "http"))]
            let _ = client;
            page
        })
    }

    /// All tools of the server, page by page as they are asked for.
    pub fn tools(&self) -> Tools {
        Listed::tools(self)
    }

    /// Reads a resource. A modern server that asks for input first is answered by this client's
    /// callbacks. Dropping the future cancels it.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        self.verb(Method::ReadResource, &ReadResource::new(uri), |_, raw| {
            complete::<ReadResourceResult>(Method::ReadResource, &raw, |result| {
                result.result_type.as_ref()
            })
        })
    }

    /// Has a prompt rendered. `arguments` is anything that encodes to an object of strings; `()`
    /// for none. A modern server that asks for input first is answered by this client's
    /// callbacks. Dropping the future cancels it.
    pub fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Call<GetPromptResult> {
        let params = call_params(name, &arguments);
        let call = Call::new(&self.0, Method::GetPrompt.as_str(), params, |_, raw| {
            complete::<GetPromptResult>(Method::GetPrompt, &raw, |result| {
                result.result_type.as_ref()
            })
        });
        call.answering()
    }

    /// Asks how an argument of a prompt or of a resource template may go on, from what was typed
    /// so far. Dropping the future cancels it.
    ///
    /// ```no_run
    /// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
    /// use turnbuckle::types::PromptReference;
    /// let found = client.complete(PromptReference::new("review"), "language", "ru").await?;
    /// println!("{:?}", found.completion.values);
    /// # Ok(()) }
    /// ```
    pub fn complete(
        &self,
        reference: impl Into<CompletionReference>,
        argument: impl Into<String>,
        typed: impl Into<String>,
    ) -> Call<CompleteResult> {
        let params = Complete::new(reference, CompletionArgument::new(argument, typed));
        self.verb(Method::Complete, &params, |_, raw| {
            complete::<CompleteResult>(Method::Complete, &raw, |result| result.result_type.as_ref())
        })
    }

    /// Asks for the first page of the server's resources. Dropping the future cancels it.
    pub fn list_resources(&self) -> Call<ListResourcesResult> {
        self.list_resources_from(None)
    }

    pub(super) fn list_resources_from(&self, cursor: Option<String>) -> Call<ListResourcesResult> {
        let mut params = ListResources::new();
        params.cursor = cursor;
        self.verb(Method::ListResources, &params, |_, raw| {
            complete::<ListResourcesResult>(Method::ListResources, &raw, |result| {
                result.result_type.as_ref()
            })
        })
    }

    /// All resources of the server, page by page as they are asked for.
    pub fn resources(&self) -> Listed<Resource> {
        Listed::resources(self)
    }

    /// Asks for the first page of the server's resource templates. Dropping the future cancels it.
    pub fn list_resource_templates(&self) -> Call<ListResourceTemplatesResult> {
        self.list_templates_from(None)
    }

    pub(super) fn list_templates_from(
        &self,
        cursor: Option<String>,
    ) -> Call<ListResourceTemplatesResult> {
        let mut params = ListResourceTemplates::new();
        params.cursor = cursor;
        self.verb(Method::ListResourceTemplates, &params, |_, raw| {
            complete::<ListResourceTemplatesResult>(Method::ListResourceTemplates, &raw, |result| {
                result.result_type.as_ref()
            })
        })
    }

    /// All resource templates of the server, page by page as they are asked for.
    pub fn resource_templates(&self) -> Listed<ResourceTemplate> {
        Listed::templates(self)
    }

    /// Asks for the first page of the server's prompts. Dropping the future cancels it.
    pub fn list_prompts(&self) -> Call<ListPromptsResult> {
        self.list_prompts_from(None)
    }

    pub(super) fn list_prompts_from(&self, cursor: Option<String>) -> Call<ListPromptsResult> {
        let mut params = ListPrompts::new();
        params.cursor = cursor;
        self.verb(Method::ListPrompts, &params, |_, raw| {
            complete::<ListPromptsResult>(Method::ListPrompts, &raw, |result| {
                result.result_type.as_ref()
            })
        })
    }

    /// All prompts of the server, page by page as they are asked for.
    pub fn prompts(&self) -> Listed<Prompt> {
        Listed::prompts(self)
    }

    /// Asks whether the server is there. The modern era has no ping: there it fails at
    /// once and names [`discover`](Client::discover). Dropping the future cancels it.
    pub fn ping(&self) -> Call<()> {
        self.verb(Method::Ping, &Ping::new(), |_, _| Ok(()))
    }

    /// Asks a modern server what it speaks and offers. Dropping the future forgets the
    /// question; the server is not told.
    pub fn discover(&self) -> Call<DiscoverResult> {
        self.verb(Method::Discover, &Discover::new(), |_, raw| {
            complete::<DiscoverResult>(Method::Discover, &raw, |result| result.result_type.as_ref())
        })
    }

    /// Sends any request and returns its result as it came. `params` is anything that
    /// encodes to an object; `()` for none. Dropping the future cancels it.
    pub fn request(&self, method: impl Into<String>, params: impl Serialize) -> Call<Raw> {
        let (method, mut meta) = (method.into(), turnbuckle_types::Meta::new());
        let params = object(&params).and_then(|text| split_meta(text, &mut meta));
        #[cfg(feature = "http")]
        let tool = match (&self.0.repeated, &params) {
            (Some(_), Ok(params)) => called_tool(&method, params),
            _ => None,
        };
        let mut call = Call::new(&self.0, method, params, |_, raw| Ok(raw));
        #[cfg(feature = "http")]
        if let Some(tool) = tool {
            call = call.about_tool(&tool);
        }
        for (key, value) in meta.iter() {
            call = call.meta(key.to_owned(), value.clone());
        }
        call
    }

    /// Sends any notification. Waits only while the server does not read; after the
    /// connection has closed it is dropped. Dropping the future before that sends nothing.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let text = object(&params)?;
        let params = match text.as_str() {
            "" => jsonrpc::Params::default(),
            _ => jsonrpc::Params::of(Raw::from_json(text).map_err(encoding)?)?,
        };
        let note = Note { method: method.into(), params };
        self.0.transport.notify(note).await;
        Ok(())
    }

    /// A verb of the method table, refused here where the revision lacks it.
    pub(super) fn verb<T>(
        &self,
        method: Method,
        params: &impl Encode,
        decode: Decode<T>,
    ) -> Call<T> {
        let revision = self.revision();
        let params = if method.sent_by_client(revision) {
            let mut text = Vec::new();
            write_at(params, revision, &mut text);
            // The encoder writes text; an empty object says no more than none.
            let text = String::from_utf8(text).unwrap_or_default();
            Ok(if text == "{}" { String::new() } else { text })
        } else {
            Err(lacking(method, revision))
        };
        Call::new(&self.0, method.as_str(), params, decode).answering()
    }
}

/// A verb that a revision lacks, and what to use instead.
fn lacking(method: Method, revision: Revision) -> Error {
    let instead = match method {
        Method::Ping => "; call `discover()` to see whether the server is there",
        Method::Discover => {
            "; what the server said about itself is in `server_info()` and `server_capabilities()`"
        }
        Method::Listen => "; register `on_notification` on the client's builder",
        _ => "",
    };
    Error::refused(format!("`{method}` does not exist in revision {revision}{instead}"))
}

fn call_params(name: &str, arguments: &impl Serialize) -> Result<String> {
    let arguments = object(arguments)?;
    let mut text = String::with_capacity(name.len() + arguments.len() + 32);
    text.push_str(r#"{"name":"#);
    text.push_str(&serde_json::to_string(name).map_err(encoding)?);
    if !arguments.is_empty() {
        text.push_str(r#","arguments":"#);
        text.push_str(&arguments);
    }
    text.push('}');
    Ok(text)
}

/// The tool that a request written by hand calls: its arguments may have to be repeated too.
#[cfg(feature = "http")]
fn called_tool(method: &str, params: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let calls = Method::from_name(method) == Some(Method::CallTool);
    calls.then(|| serde_json::from_str::<Named>(params).ok()).flatten().map(|named| named.name)
}

/// The text of an object; empty for a value that encodes to null.
fn object(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value).map_err(encoding)?;
    if text.starts_with('{') {
        return Ok(one_line(text));
    }
    if text == "null" {
        return Ok(String::new());
    }
    Err(Error::new(ErrorKind::Codec, "params and arguments must encode to a JSON object"))
}

/// Only raw JSON inside the caller's own value can bring a line break, as white space.
fn one_line(text: String) -> String {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text }
}

fn encoding(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Codec, format!("the value can't be encoded: {error}")).with_source(error)
}

/// Moves a `_meta` that the caller wrote into raw params to where the stamp merges it.
fn split_meta(text: String, meta: &mut turnbuckle_types::Meta) -> Result<String> {
    if !text.contains("\"_meta\"") {
        return Ok(text);
    }
    let mut members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&text).map_err(encoding)?;
    if let Some(found) = members.remove("_meta") {
        *meta = serde_json::from_value(found).map_err(encoding)?;
    }
    serde_json::to_string(&members).map_err(encoding)
}

/// Decodes a result that must be complete: the kind is looked at before the content is
/// blamed.
fn complete<T: DeserializeOwned>(
    method: Method,
    raw: &Raw,
    kind: fn(&T) -> Option<&ResultType>,
) -> Result<T> {
    match raw.decode::<T>() {
        Ok(result) => match kind(&result) {
            None | Some(ResultType::Complete) => Ok(result),
            Some(other) => Err(unexpected_kind(method, other)),
        },
        Err(error) => {
            #[derive(serde::Deserialize)]
            struct Peek {
                #[serde(default, rename = "resultType")]
                kind: Option<ResultType>,
            }
            match raw.decode::<Peek>().ok().and_then(|peek| peek.kind) {
                Some(kind) if kind != ResultType::Complete => Err(unexpected_kind(method, &kind)),
                _ => Err(undecodable(method.as_str(), &error)),
            }
        }
    }
}

fn unexpected_kind(method: Method, kind: &ResultType) -> Error {
    let message = match kind {
        ResultType::InputRequired => {
            format!(
                "the server wants input before it answers {method}, and this client has no way to give any"
            )
        }
        _ => {
            format!("the server answered {method} with a kind of result this client does not know")
        }
    };
    Error::protocol(message)
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::RawValue};

    use super::*;

    #[test]
    fn arguments_must_be_an_object_or_nothing() {
        assert_eq!(call_params("a\"", &()).unwrap(), r#"{"name":"a\""}"#);
        assert_eq!(
            call_params("a", &json!({"x": 1})).unwrap(),
            r#"{"name":"a","arguments":{"x":1}}"#
        );
        assert_eq!(call_params("a", &[1]).unwrap_err().kind(), ErrorKind::Codec);
        let raw = RawValue::from_string("{\n\"x\":1}".into()).unwrap();
        assert!(!call_params("a", &raw).unwrap().contains('\n'));
    }

    #[test]
    fn a_result_that_wants_input_is_not_an_empty_success() {
        let raw: Raw = json!({"resultType": "input_required", "requestState": "s"}).into();
        let error = complete::<CallToolResult>(Method::CallTool, &raw, |r| r.result_type.as_ref())
            .unwrap_err();
        assert!(error.to_string().contains("wants input"), "{error}");
        let unknown: Raw = json!({"resultType": "task", "content": []}).into();
        assert!(
            complete::<CallToolResult>(Method::CallTool, &unknown, |r| r.result_type.as_ref())
                .is_err()
        );
        let absent: Raw = json!({"content": []}).into();
        assert!(
            complete::<CallToolResult>(Method::CallTool, &absent, |r| r.result_type.as_ref())
                .is_ok()
        );
    }
}
