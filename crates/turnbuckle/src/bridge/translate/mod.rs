//! Owns what a message becomes on the other side of the bridge: the `_meta` of a hop, results of the
//! other era, names of requests that only one side knows. Does not own who sends it. Pure.

mod errors;
mod sides;

use std::borrow::Cow;

use turnbuckle_types::{
    CallToolResult, DiscoverResult, Era, Implementation, Initialize, InitializeResult, LogLevel,
    Meta, Method, Raw, Request, RequestId, Revision, ServerCapabilities, StructuredOutput,
    jsonrpc::Params, methods,
};

pub(super) use errors::{Failed, Told, refused};
pub(super) use sides::{Asking, Changes, Course, Sharing, Sides, is_foreign};

use super::text;

/// What the server behind the bridge said about itself.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// What is spoken with it.
    pub(super) revision: Revision,
    pub(super) info: Implementation,
    pub(super) capabilities: ServerCapabilities,
    pub(super) instructions: Option<String>,
}

impl Facts {
    /// The answer to `initialize`, in the revision that was agreed on with the client.
    pub(super) fn initialize(&self, revision: Revision) -> Raw {
        let (mut capabilities, info) = (self.capabilities.clone(), self.info.clone());
        let sides = Sides { near: revision, far: self.revision };
        if sides.changes() == Changes::Relayed {
            // The bridge itself has something to say if it can't hear of changes any more.
            capabilities.logging.get_or_insert_with(Raw::empty_object);
        }
        let mut result = InitializeResult::new(revision.as_str(), capabilities, info);
        result.instructions.clone_from(&self.instructions);
        Raw::at(&result, revision)
    }

    /// The answer to `server/discover`. The bridge speaks every revision, whatever its server does.
    pub(super) fn discover(&self, revision: Revision) -> Raw {
        let all = Revision::ALL.iter().rev().map(|revision| revision.as_str().to_owned());
        let mut result = DiscoverResult::new(all.collect::<Vec<_>>(), self.capabilities.clone());
        result.instructions.clone_from(&self.instructions);
        result.meta.set_server_info(&self.info);
        Raw::at(&result, revision)
    }
}

/// Who sends a request, as far as it depends on that what the next hop is told.
#[derive(Clone, Copy)]
pub(super) struct Sender<'a> {
    pub(super) meta: &'a Meta,
    /// What it said in its handshake, in the legacy era.
    pub(super) handshake: Option<&'a Initialize>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) token: Option<&'a RequestId>,
}

/// Params for the next hop.
#[derive(Debug, PartialEq)]
pub(super) struct Written {
    /// The whole object, or empty.
    pub(super) text: String,
    /// Where the progress token goes.
    pub(super) token_at: Option<usize>,
}

impl Sides {
    /// Params as the server gets them: only those entries of `_meta` are replaced that belong to a hop.
    pub(super) fn params(self, params: &Params, sender: Sender<'_>) -> Written {
        let far = self.far;
        let mut meta = sender.meta.clone();
        let mut changed = meta.remove(Meta::PROGRESS_TOKEN).is_some();
        match far.era() {
            Era::Legacy => {
                let own = [
                    Meta::PROTOCOL_VERSION,
                    Meta::CLIENT_INFO,
                    Meta::CLIENT_CAPABILITIES,
                    Meta::LOG_LEVEL,
                ];
                for key in own {
                    changed |= meta.remove(key).is_some();
                }
            }
            Era::Modern => {
                if let Some(client) = sender.handshake {
                    meta.set_protocol_version(far.as_str());
                    meta.set_client_info(&client.client_info);
                    meta.set_client_capabilities(&client.capabilities);
                    if let Some(level) = sender.log_level {
                        meta.set_log_level(level);
                    }
                    changed = true;
                } else if meta.protocol_version().ok().flatten().as_deref() != Some(far.as_str()) {
                    meta.set_protocol_version(far.as_str());
                    changed = true;
                }
            }
        }
        let whole = params.raw.as_ref().map_or("", Raw::as_str);
        // One that is made again after its client was asked: a legacy server has no such members.
        let whole = match self.eras() {
            (Era::Modern, Era::Legacy) if params.retry.is_some() => {
                text::without(whole, &["inputResponses", "requestState"])
            }
            _ => Cow::Borrowed(whole),
        };
        let wants_token = sender.token.is_some();
        if !changed && !wants_token {
            return Written { text: whole.into_owned(), token_at: None };
        }
        let written = serde_json::to_string(&meta).unwrap_or_else(|_| "{}".to_owned());
        let object = if whole.is_empty() { "{}" } else { &*whole };
        let old = match &whole {
            Cow::Borrowed(_) => params.meta.as_ref().map(Raw::as_str),
            Cow::Owned(_) => text::member(object, "_meta"),
        };
        let in_place = old.and_then(|old| Some((text::place(object, old)?, old.len())));
        let (text, meta_at) = match in_place {
            Some((at, length)) => ([&object[..at], &written, &object[at + length..]].concat(), at),
            None => {
                let text = text::with(object, "_meta", &written);
                let at = text::member(&text, "_meta").and_then(|found| text::place(&text, found));
                let at = at.unwrap_or_default();
                (text, at)
            }
        };
        Written { token_at: wants_token.then_some(meta_at + 1), text }
    }

    /// A result as the client gets it. Within an era it stays what it is.
    pub(super) fn result(self, method: Option<Method>, result: Raw) -> Raw {
        match self.eras() {
            (Era::Modern, Era::Legacy) => match method {
                Some(method) => completed(method, result),
                None => result,
            },
            (Era::Legacy, Era::Modern) => at_legacy(method, result, self.near),
            _ => result,
        }
    }
}

/// 2026-07-28 basic §Results: each says what kind it is, and some for how long they hold.
fn completed(method: Method, result: Raw) -> Raw {
    let mut text = result.as_str().to_owned();
    if !result.is_object() || text::member(&text, "resultType").is_some() {
        return result;
    }
    text = text::with(&text, "resultType", r#""complete""#);
    if method.row().cacheable {
        for (name, value) in [("ttlMs", "0"), ("cacheScope", r#""private""#)] {
            if text::member(&text, name).is_none() {
                text = text::with(&text, name, value);
            }
        }
    }
    text::raw(text)
}

fn at_legacy(method: Option<Method>, result: Raw, near: Revision) -> Raw {
    fn again<R: Request>(result: &Raw, near: Revision) -> Option<Raw> {
        result.decode::<R::Result>().ok().map(|known| Raw::at(&known, near))
    }
    let known = match method {
        Some(Method::CallTool) => called(&result, near),
        Some(Method::ListTools) => again::<methods::ListTools>(&result, near),
        Some(Method::ListResources) => again::<methods::ListResources>(&result, near),
        Some(Method::ListResourceTemplates) => {
            again::<methods::ListResourceTemplates>(&result, near)
        }
        Some(Method::ReadResource) => again::<methods::ReadResource>(&result, near),
        Some(Method::ListPrompts) => again::<methods::ListPrompts>(&result, near),
        Some(Method::GetPrompt) => again::<methods::GetPrompt>(&result, near),
        Some(Method::Complete) => again::<methods::Complete>(&result, near),
        _ => None,
    };
    known.unwrap_or(result)
}

/// Where only objects are known, structured output that is none is a member of one, as it is where a
/// server speaks both eras itself.
fn called(result: &Raw, near: Revision) -> Option<Raw> {
    let mut called = result.decode::<CallToolResult>().ok()?;
    if near.structured_output() == StructuredOutput::Objects
        && let Some(content) = called.structured_content.take_if(|content| !content.is_object())
    {
        called.structured_content = Some(text::raw(format!(r#"{{"result":{content}}}"#)));
    }
    Some(Raw::at(&called, near))
}

/// The params of progress under the token that the client chose.
pub(super) fn progress(params: &Params, token: &RequestId) -> String {
    let mut written = Vec::new();
    token.write_to(&mut written);
    let token = String::from_utf8(written).unwrap_or_default();
    let whole = params.text();
    let in_place =
        params.subject.as_ref().and_then(|old| text::spliced(whole, old.as_str(), &token));
    in_place.unwrap_or_else(|| text::with(whole, "progressToken", &token))
}

/// Params or a result that name a subscription, under the id that the client chose; or under none.
pub(super) fn subscription(object: &str, id: Option<&RequestId>) -> String {
    let meta = text::member(object, "_meta").unwrap_or("{}");
    let Some(id) = id else {
        let rest = text::without(meta, &[Meta::SUBSCRIPTION_ID]);
        if rest == "{}" {
            return text::without(object, &["_meta"]).into_owned();
        }
        return text::with(object, "_meta", &rest);
    };
    let mut written = Vec::new();
    id.write_to(&mut written);
    let id = String::from_utf8(written).unwrap_or_default();
    text::with(object, "_meta", &text::with(meta, Meta::SUBSCRIPTION_ID, &id))
}

/// The subscription that a notification belongs to.
pub(super) fn subscription_of(params: &Params) -> Option<RequestId> {
    let meta = params.meta.as_ref()?.as_str();
    RequestId::from_token(text::member(meta, Meta::SUBSCRIPTION_ID)?)
}

#[cfg(test)]
mod tests;
