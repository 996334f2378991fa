//! Owns how each method that runs a handler goes: which offer, which arguments, what its result
//! becomes. Does not own the run itself.

use std::sync::Arc;

use turnbuckle_types::{
    CallToolResult, Complete, CompleteResult, Completion, CompletionReference, ContentBlock,
    Encode, GetPrompt, GetPromptResult, Meta, Method, Raw, ReadResource, ReadResourceResult,
    ResourceContents, RpcError, jsonrpc::Params,
};

use super::{
    app::App,
    ask::{self, Ended, Subject},
    catalogue::Found,
    context::Ctx,
    extract::{Arguments, Invocation},
    layer::{Request, Stack},
    offer::{Check, Completer, Completers, Offer, Prompt, Tool},
    reply::{Fails, Failure, not_found},
    run::run,
    uri::TextValue,
};
use crate::{
    dispatch::{Outcome, Reply, duplex::Permit},
    envelope::params::decode,
};

/// The most suggestions that a completion may have.
// 2026-07-28 server/utilities/completion §Completion Results.
const SUGGESTIONS: usize = 100;

/// A request that a handler will answer.
pub(super) struct Visit {
    pub(super) app: Arc<App>,
    pub(super) ctx: Ctx,
    pub(super) params: Params,
    pub(super) permit: Permit,
}

impl Visit {
    fn call(&self, arguments: Arguments) -> Invocation {
        Invocation {
            ctx: self.ctx.clone(),
            arguments,
            checks: None,
            states: self.app.states.clone(),
            typed: None,
        }
    }
}

pub(super) fn call_tool(visit: Visit) -> Result<Reply, RpcError> {
    let name = match &visit.params.name {
        Some(name) => {
            text(name).ok_or_else(|| RpcError::invalid_params("`params.name` must be a string"))?
        }
        None => return Err(RpcError::invalid_params("`params.name` is missing")),
    };
    let tool = visit
        .app
        .catalogue
        .tool(&name)
        .cloned()
        .ok_or_else(|| RpcError::invalid_params(format!("there is no tool named `{name}`")))?;
    drop(name);
    let arguments = visit.params.arguments.clone().unwrap_or_else(Raw::empty_object);
    if !arguments.is_object() {
        return Err(RpcError::invalid_params("`params.arguments` must be an object"));
    }
    #[cfg(feature = "http")]
    if let crate::dispatch::Came::ByPost(head) = &visit.ctx.0.came {
        // 2026-07-28 transports/streamable-http §Server Behavior for Custom Headers.
        tool.repeated.check(arguments.as_str(), &head.headers)?;
    }
    if tool.offer.layers.is_empty() {
        return Ok(Reply::Later(Box::pin(run_tool(visit, tool, arguments))));
    }
    let (layers, name) = (tool.offer.layers.clone(), tool.name().to_owned());
    let run = move |visit| Reply::Later(Box::pin(run_tool(visit, tool, arguments)));
    Ok(through(&layers, (Method::CallTool, name), visit, run))
}

/// Takes a request through the layers that stand around an offer, and then to what answers it.
fn through(
    layers: &Stack,
    (method, name): (Method, String),
    visit: Visit,
    answer: impl FnOnce(Visit) -> Reply + Send + 'static,
) -> Reply {
    if layers.is_empty() {
        return answer(visit);
    }
    let request = Request::of(&visit, method.as_str().into(), Some(name));
    Reply::Later(layers.run(request, move |_| answer(visit).into_outcome()))
}

async fn run_tool(visit: Visit, tool: Arc<Tool>, arguments: Raw) -> Outcome {
    let call = checked(&tool, visit.call(Arguments::Json(arguments)));
    let Visit { app, ctx, params, permit } = visit;
    let replied = match call {
        Ok(call) => {
            let subject = Subject { method: Method::CallTool, name: tool.name(), params: &params };
            match ask::run(&app, &tool.offer, call, permit, subject).await {
                Ended::Replied(replied) => replied,
                Ended::Instead(outcome) => return outcome,
            }
        }
        Err(failure) => Err(failure),
    };
    #[cfg(feature = "validate")]
    let replied = keeps_promise(&tool, replied);
    let mut result = settled(replied, &ctx, tool.name())?;
    tool.structured.fit(&mut result, ctx.revision());
    let size = size_hint(&result);
    Ok(encode(&app, &ctx, result, size, |result| &mut result.meta))
}

/// A call whose arguments fit a hand-written schema, and are still to be checked otherwise.
fn checked(tool: &Tool, mut call: Invocation) -> Result<Invocation, Failure> {
    match &tool.check {
        Check::Decoding(checks) => call.checks.clone_from(checks),
        #[cfg(feature = "validate")]
        Check::Schema(schema) => {
            if let Arguments::Json(text) = &call.arguments {
                schema.validate(text.as_str()).map_err(Failure::arguments)?;
            }
        }
    }
    Ok(call)
}

/// Output that does not fit the schema that was written for it is the server's mistake.
#[cfg(feature = "validate")]
fn keeps_promise(
    tool: &Tool,
    replied: Result<CallToolResult, Failure>,
) -> Result<CallToolResult, Failure> {
    let (Some(output), Ok(result)) = (&tool.output, &replied) else { return replied };
    output.check(result).map_err(Failure::internal).and(replied)
}

pub(super) fn get_prompt(visit: Visit) -> Result<Reply, RpcError> {
    let asked: GetPrompt = decode(&visit.params)?;
    let prompt = visit.app.catalogue.prompt(&asked.name).cloned().ok_or_else(|| {
        RpcError::invalid_params(format!("there is no prompt named `{}`", asked.name))
    })?;
    let call = visit.call(as_text(asked.arguments.unwrap_or_default()));
    let layers = prompt.offer.layers.clone();
    let answer = move |visit| Reply::Later(Box::pin(run_prompt(visit, prompt, call)));
    Ok(through(&layers, (Method::GetPrompt, asked.name), visit, answer))
}

async fn run_prompt(visit: Visit, prompt: Arc<Prompt>, call: Invocation) -> Outcome {
    let Visit { app, ctx, params, permit } = visit;
    let subject = Subject { method: Method::GetPrompt, name: prompt.name(), params: &params };
    let replied = match ask::run(&app, &prompt.offer, call, permit, subject).await {
        Ended::Replied(replied) => replied,
        Ended::Instead(outcome) => return outcome,
    };
    let mut result: GetPromptResult = settled(replied, &ctx, prompt.name())?;
    if result.description.is_none() {
        result.description.clone_from(&prompt.spec.description);
    }
    Ok(encode(&app, &ctx, result, 0, |result| &mut result.meta))
}

pub(super) fn read_resource(visit: Visit) -> Result<Reply, RpcError> {
    let ReadResource { uri, .. } = decode(&visit.params)?;
    let found =
        visit.app.catalogue.find(&uri).ok_or_else(|| not_found(&uri, visit.ctx.revision()))?;
    let variables = match &found {
        Found::Resource(_) => Vec::new(),
        Found::Template(_, variables) => variables.clone().into_texts(),
    };
    let call = visit.call(Arguments::Text(variables));
    let layers = match &found {
        Found::Resource(resource) => resource.offer.layers.clone(),
        Found::Template(template, _) => template.offer.layers.clone(),
    };
    let name = uri.clone();
    let answer = move |visit| Reply::Later(Box::pin(run_resource(visit, found, uri, call)));
    Ok(through(&layers, (Method::ReadResource, name), visit, answer))
}

async fn run_resource(visit: Visit, found: Found, uri: String, call: Invocation) -> Outcome {
    let Visit { app, ctx, params, permit } = visit;
    let (offer, mime_type) = match &found {
        Found::Resource(resource) => (&resource.offer, &resource.spec.mime_type),
        Found::Template(template, _) => (&template.offer, &template.spec.mime_type),
    };
    let subject = Subject { method: Method::ReadResource, name: &uri, params: &params };
    let replied = match ask::run(&app, offer, call, permit, subject).await {
        Ended::Replied(replied) => replied,
        Ended::Instead(outcome) => return outcome,
    };
    let mut result: ReadResourceResult = settled(replied, &ctx, &uri)?;
    result.contents.iter_mut().for_each(|contents| complete(contents, &uri, mime_type));
    Ok(encode(&app, &ctx, result, 0, |result| &mut result.meta))
}

/// Fills in what the handler left to the request and the registration.
fn complete(contents: &mut ResourceContents, uri: &str, mime_type: &Option<String>) {
    let (own_uri, own_type) = match contents {
        ResourceContents::Text(contents) => (&mut contents.uri, &mut contents.mime_type),
        ResourceContents::Blob(contents) => (&mut contents.uri, &mut contents.mime_type),
        _ => return,
    };
    if own_uri.is_empty() {
        uri.clone_into(own_uri);
    }
    if own_type.is_none() {
        own_type.clone_from(mime_type);
    }
}

pub(super) fn complete_argument(visit: Visit) -> Result<Reply, RpcError> {
    let asked: Complete = decode(&visit.params)?;
    let catalogue = &visit.app.catalogue;
    let found: Option<(&Completers, &Stack)> = match &asked.reference {
        CompletionReference::Prompt(prompt) => {
            catalogue.prompt(&prompt.name).map(|found| (&found.completers, &found.offer.layers))
        }
        CompletionReference::Resource(template) => {
            catalogue.template(&template.uri).map(|found| (&found.completers, &found.offer.layers))
        }
        _ => None,
    };
    let unknown = || RpcError::invalid_params("`params.ref` is nothing that this server offers");
    let (completers, layers) = found.ok_or_else(unknown)?;
    if !completers.knows(&asked.argument.name) {
        let message = format!("there is no argument named `{}`", asked.argument.name);
        return Err(RpcError::invalid_params(message));
    }
    let (completer, layers) = (completers.find(&asked.argument.name).cloned(), layers.clone());
    let about = (Method::Complete, completed(&asked.reference).to_owned());
    Ok(through(&layers, about, visit, move |visit| suggest(visit, completer, asked)))
}

/// What it is whose argument is completed.
pub(super) fn completed(reference: &CompletionReference) -> &str {
    match reference {
        CompletionReference::Prompt(prompt) => &prompt.name,
        CompletionReference::Resource(template) => &template.uri,
        _ => "",
    }
}

fn suggest(visit: Visit, completer: Option<Completer>, asked: Complete) -> Reply {
    let typed = asked.argument.value;
    match completer {
        None => Reply::Now(Ok(suggested(&visit.app, &visit.ctx, Completion::new([])))),
        Some(Completer::Values(values)) => {
            let matching = values.iter().filter(|value| begins(value, &typed)).cloned();
            let completion = Completion::new(matching.collect::<Vec<_>>());
            Reply::Now(Ok(suggested(&visit.app, &visit.ctx, completion)))
        }
        Some(Completer::Handler(offer)) => {
            let known = asked.context.and_then(|context| context.arguments).unwrap_or_default();
            let call = Invocation { typed: Some(typed), ..visit.call(as_text(known)) };
            Reply::Later(Box::pin(run_completer(visit, offer, call)))
        }
    }
}

async fn run_completer(visit: Visit, offer: Arc<Offer<Completion>>, call: Invocation) -> Outcome {
    let Visit { app, ctx, permit, .. } = visit;
    let replied = run(&offer, call, permit).await;
    Ok(suggested(&app, &ctx, settled(replied, &ctx, "completion")?))
}

fn suggested(app: &App, ctx: &Ctx, mut completion: Completion) -> Raw {
    let count = completion.values.len();
    if count > SUGGESTIONS {
        completion.values.truncate(SUGGESTIONS);
        completion.has_more = Some(true);
    }
    completion.total.get_or_insert(count as u64);
    completion.has_more.get_or_insert(false);
    app.finish(&CompleteResult::new(completion), ctx.revision())
}

fn begins(value: &str, typed: &str) -> bool {
    let mut letters = value.chars().flat_map(char::to_lowercase);
    typed.chars().flat_map(char::to_lowercase).all(|letter| letters.next() == Some(letter))
}

fn as_text(values: impl IntoIterator<Item = (String, String)>) -> Arguments {
    let one = |(name, value)| (name, TextValue::One(value));
    Arguments::Text(values.into_iter().map(one).collect())
}

/// What goes on the wire for whatever a handler returned.
fn settled<R: Fails>(replied: Result<R, Failure>, ctx: &Ctx, name: &str) -> Result<R, RpcError> {
    replied.or_else(|failure| R::failed(failure, name, ctx.revision()))
}

/// The result as text, with what the handler added to its `_meta`.
pub(super) fn encode<R: Encode>(
    app: &App,
    ctx: &Ctx,
    mut result: R,
    size: usize,
    meta: fn(&mut R) -> &mut Meta,
) -> Raw {
    let said = std::mem::take(&mut ctx.said().meta);
    let own = meta(&mut result);
    if said.is_empty() && own.is_empty() {
        return app.finish_sized(&result, ctx.revision(), size);
    }
    for (key, value) in said.iter() {
        own.insert(key.to_owned(), value.clone());
    }
    app.name_in(own, ctx.revision());
    Raw::at(&result, ctx.revision())
}

/// Roughly how long the result's text will be, so that a large one is written in one piece.
fn size_hint(result: &CallToolResult) -> usize {
    let block = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        _ => 0,
    };
    let content: usize = result.content.iter().map(block).sum();
    content + content / 64 + result.structured_content.as_ref().map_or(0, |raw| raw.as_str().len())
}

/// The text of a JSON string.
pub(super) fn text(raw: &Raw) -> Option<std::borrow::Cow<'_, str>> {
    let inner = raw.as_str().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return raw.decode::<String>().ok().map(Into::into);
    }
    Some(inner.into())
}
