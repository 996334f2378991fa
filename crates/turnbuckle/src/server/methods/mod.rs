//! How each method that runs a handler goes.
//!
//! Owns: which offer a request is for, who may reach it, what its result becomes. Does not own: the
//! run of a handler, nor what a request asks its client meanwhile.

pub(crate) mod cache_hints;
mod completion;
mod prompt;
mod resource;
mod subject;
mod tool;

use std::{borrow::Cow, sync::Arc};

use turnbuckle_types::{Encode, Meta, Method, Raw, RpcError, jsonrpc::Params};

use super::uri::TextValue;
use crate::{
    middleware::{
        Stack,
        server::{IncomingRequest, Request},
    },
    rpc::{Permit, Reply},
    server::{
        handler::{
            context::Ctx,
            extract::{Arguments, Invocation},
            reply::{Fails, Failure},
        },
        shared::App,
    },
};
pub(super) use completion::complete_argument;
pub(super) use prompt::get_prompt;
pub(super) use resource::{is_guarded, reach_found, read_resource};
pub(super) use subject::{FOREIGN_STATE, RunEnd, RunSubject};
pub(super) use tool::call_tool;

/// A request that a handler will answer.
pub(crate) struct HandlerRequest {
    pub(crate) app: Arc<App>,
    pub(crate) ctx: Ctx,
    pub(crate) params: Params,
    pub(crate) permit: Permit,
}

impl HandlerRequest {
    pub(super) fn call(&self, arguments: Arguments) -> Invocation {
        Invocation {
            ctx: self.ctx.clone(),
            arguments,
            checks: None,
            states: self.app.states.clone(),
            typed: None,
        }
    }
}

/// What a request leads to.
struct RequestTarget {
    method: Method,
    /// The tool or the prompt, or the URI.
    name: String,
    layers: Stack<IncomingRequest>,
}

/// Whether someone may know of what they ask for.
enum VisibilityCheck<F> {
    /// Everyone may.
    Open,
    /// A rule says so: it gives the error for those who may not. Rules are an author's code, so
    /// that they don't run in the reader.
    Rule(F),
}

/// Takes a request to its target: past the rules that may hide that, through the layers that stand
/// around it, to what answers. Whoever may not know of it sees nothing of the rest.
fn reach<F>(
    visit: HandlerRequest,
    gate: VisibilityCheck<F>,
    target: impl FnOnce() -> RequestTarget + Send + 'static,
    answer: impl FnOnce(HandlerRequest) -> Reply + Send + 'static,
) -> Reply
where
    F: FnOnce(&HandlerRequest) -> Result<(), RpcError> + Send + 'static,
{
    match gate {
        VisibilityCheck::Open => through(visit, target, answer),
        VisibilityCheck::Rule(rule) => Reply::Later(Box::pin(async move {
            rule(&visit)?;
            through(visit, target, answer).into_outcome().await
        })),
    }
}

fn through(
    visit: HandlerRequest,
    target: impl FnOnce() -> RequestTarget,
    answer: impl FnOnce(HandlerRequest) -> Reply + Send + 'static,
) -> Reply {
    let RequestTarget { method, name, layers } = target();
    if layers.is_empty() {
        return answer(visit);
    }
    let request = Request::of(&visit, method.as_str().into(), Some(name));
    Reply::Later(layers.reply(request, move || answer(visit)))
}

/// What goes on the wire for whatever a handler returned.
fn settled<R: Fails>(replied: Result<R, Failure>, ctx: &Ctx, name: &str) -> Result<R, RpcError> {
    replied.or_else(|failure| R::failed(failure, name, ctx.revision()))
}

/// The result as text, with what the handler added to its `_meta`. It is about `size` bytes long,
/// if that is known.
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

fn as_text(values: impl IntoIterator<Item = (String, String)>) -> Arguments {
    let one = |(name, value)| (name, TextValue::One(value));
    Arguments::Text(values.into_iter().map(one).collect())
}

/// The text of a JSON string.
pub(super) fn text(raw: &Raw) -> Option<Cow<'_, str>> {
    let inner = raw.as_str().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return raw.decode::<String>().ok().map(Into::into);
    }
    Some(inner.into())
}
