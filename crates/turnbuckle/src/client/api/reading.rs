//! Owns the verbs that read: resources, prompts, completion. Does not own their lists.

use serde::Serialize;
use turnbuckle_types::{
    Complete, CompleteResult, CompletionArgument, CompletionReference, GetPromptResult, Method,
    ReadResource, ReadResourceResult,
};

use super::{
    super::{Call, Client, call::Params},
    call_params, complete,
};

impl Client {
    /// Reads a resource. A modern server that asks for input first is answered by this client's
    /// callbacks. Dropping the future cancels it.
    #[doc(alias = "resources/read")]
    #[doc(alias = "readResource")]
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        self.verb(Method::ReadResource, ReadResource::new(uri), |_, raw| {
            complete::<ReadResourceResult>(Method::ReadResource, raw, |result| {
                result.result_type.as_ref()
            })
        })
        .cached()
    }

    /// Has a prompt rendered. `arguments` is anything that encodes to an object of strings; `()`
    /// for none. A modern server that asks for input first is answered by this client's
    /// callbacks. Dropping the future cancels it.
    #[doc(alias = "prompts/get")]
    #[doc(alias = "getPrompt")]
    pub fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Call<GetPromptResult> {
        let params = call_params(name, &arguments);
        let call =
            Call::new(&self.0, Method::GetPrompt.as_str(), Params::Text(params), |_, raw| {
                complete::<GetPromptResult>(Method::GetPrompt, raw, |result| {
                    result.result_type.as_ref()
                })
            });
        call.needing(Method::GetPrompt).answering()
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
    #[doc(alias = "completion/complete")]
    pub fn complete(
        &self,
        reference: impl Into<CompletionReference>,
        argument: impl Into<String>,
        typed: impl Into<String>,
    ) -> Call<CompleteResult> {
        let params = Complete::new(reference, CompletionArgument::new(argument, typed));
        self.verb(Method::Complete, params, |_, raw| {
            complete::<CompleteResult>(Method::Complete, raw, |result| result.result_type.as_ref())
        })
    }
}
