//! Owns `prompts/get`. Does not own the prompts.

use std::sync::Arc;

use turnbuckle_types::{GetPrompt, GetPromptResult, Method, RpcError};

use super::{
    HandlerRequest, RequestTarget, RunEnd, RunSubject, VisibilityCheck, as_text, encode, reach,
    settled,
};
use crate::{
    protocol::params::decode,
    rpc::{Outcome, Reply},
    server::{
        elicit::{
            ElicitingRun, {self},
        },
        handler::extract::Invocation,
        items::PromptDef,
        registry::Entry,
    },
};

pub(crate) fn get_prompt(visit: HandlerRequest) -> Result<Reply, RpcError> {
    let asked: GetPrompt = decode(&visit.params)?;
    let prompt = visit.app.snapshot().prompt(&asked.name).cloned();
    let prompt = prompt.ok_or_else(|| unknown(&asked.name))?;
    let gate = if visit.app.rules.concern(&**prompt) {
        let prompt = prompt.clone();
        VisibilityCheck::Rule(move |visit: &HandlerRequest| {
            let is_shown = visit.app.rules.show(&**prompt, &visit.ctx);
            is_shown.then_some(()).ok_or_else(|| unknown(prompt.name()))
        })
    } else {
        VisibilityCheck::Open
    };
    let layers = prompt.registration.layers.clone();
    let target = move || RequestTarget { method: Method::GetPrompt, name: asked.name, layers };
    let mut call = visit.call(as_text(asked.arguments.unwrap_or_default()));
    call.checks.clone_from(&prompt.checks);
    let answer = move |visit| Reply::Later(Box::pin(render(visit, prompt, call)));
    Ok(reach(visit, gate, target, answer))
}

fn unknown(name: &str) -> RpcError {
    RpcError::invalid_params(format!("there is no prompt named `{name}`"))
}

/// Not an `async fn`, which would keep room for its arguments twice.
fn render(
    visit: HandlerRequest,
    prompt: Arc<Entry<PromptDef>>,
    call: Invocation,
) -> impl Future<Output = Outcome> + Send {
    let HandlerRequest { app, ctx, params, permit } = visit;
    let mut course = ElicitingRun::new(&prompt.registration, call, permit);
    async move {
        let subject = RunSubject::of(Method::GetPrompt, prompt.name(), &params);
        let replied =
            match elicit::run(&app, &prompt.registration, &ctx, &mut course, subject).await {
                RunEnd::Replied(replied) => replied,
                RunEnd::Instead(outcome) => return outcome,
            };
        let mut result: GetPromptResult = settled(replied, &ctx, prompt.name())?;
        if result.description.is_none() {
            result.description.clone_from(&prompt.spec.description);
        }
        Ok(encode(&app, &ctx, result, 0, |result| &mut result.meta))
    }
}
