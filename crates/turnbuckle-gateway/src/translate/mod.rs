//! Translation of messages between the two sides of a gateway: the `_meta` of a connection, results
//! of the other era, ids of requests and subscriptions. Without I/O.

mod errors;
mod revisions;

use std::borrow::Cow;

use turnbuckle::types::{
    CallToolResult, DiscoverResult, Era, Implementation, Initialize, InitializeResult, LogLevel,
    Meta, Method, Raw, Request, RequestId, Revision, ServerCapabilities, StructuredOutput,
    jsonrpc::Params, methods,
};

pub(crate) use errors::{FailedRequest, TranslatedError, declined};
pub(crate) use revisions::{Changes, Handling, QuestionRoute, Revisions, Sharing, is_foreign};

use crate::json;

/// The server's description of itself.
#[derive(Clone, Debug)]
pub(crate) struct ServerDescription {
    /// The revision that is spoken with it.
    pub(crate) revision: Revision,
    pub(crate) info: Implementation,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) instructions: Option<String>,
}

impl ServerDescription {
    /// Returns the answer to `initialize`, in the revision that was negotiated with the client.
    pub(crate) fn initialize(&self, revision: Revision) -> Raw {
        let (mut capabilities, info) = (self.capabilities.clone(), self.info.clone());
        let revisions = Revisions { downstream: revision, upstream: self.revision };
        if revisions.changes() == Changes::Relayed {
            // The gateway logs if it loses its listen stream.
            capabilities.logging.get_or_insert_with(Raw::empty_object);
        }
        let mut result = InitializeResult::new(revision.as_str(), capabilities, info);
        result.instructions.clone_from(&self.instructions);
        Raw::at(&result, revision)
    }

    /// Returns the answer to `server/discover`. The gateway speaks every revision.
    pub(crate) fn discover(&self, revision: Revision) -> Raw {
        let all = Revision::ALL.iter().rev().map(|revision| revision.as_str().to_owned());
        let mut result = DiscoverResult::new(all.collect::<Vec<_>>(), self.capabilities.clone());
        result.instructions.clone_from(&self.instructions);
        result.meta.set_server_info(&self.info);
        Raw::at(&result, revision)
    }
}

/// The client that sends a request, as far as the server is told about it.
#[derive(Clone, Copy)]
pub(crate) struct RequestSender<'a> {
    pub(crate) meta: &'a Meta,
    /// The params of `initialize`, in the legacy era.
    pub(crate) handshake: Option<&'a Initialize>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) progress_token: Option<&'a RequestId>,
}

/// Params for the server.
#[derive(Debug, PartialEq)]
pub(crate) struct EncodedParams {
    /// The whole object, or empty.
    pub(crate) text: String,
    /// Where the progress token is inserted.
    pub(crate) token_at: Option<usize>,
}

impl Revisions {
    /// Translates the params of a request. Only the entries of `_meta` that belong to a connection are
    /// replaced.
    pub(crate) fn translate_params(
        self,
        params: &Params,
        sender: RequestSender<'_>,
    ) -> EncodedParams {
        let (meta, changed) = self.translate_meta(sender);
        let whole = params.raw.as_ref().map_or("", Raw::as_str);
        // A legacy server does not know the members of a retried request.
        let whole = match self.eras() {
            (Era::Modern, Era::Legacy) if params.retry.is_some() => {
                json::without(whole, &["inputResponses", "requestState"])
            }
            _ => Cow::Borrowed(whole),
        };
        let wants_token = sender.progress_token.is_some();
        if !changed && !wants_token {
            return EncodedParams { text: whole.into_owned(), token_at: None };
        }
        let encoded = serde_json::to_string(&meta).unwrap_or_else(|_| "{}".to_owned());
        let object = if whole.is_empty() { "{}" } else { &*whole };
        let old = match &whole {
            Cow::Borrowed(_) => params.meta.as_ref().map(Raw::as_str),
            Cow::Owned(_) => json::member(object, "_meta"),
        };
        let in_place = old.and_then(|old| Some((json::offset(object, old)?, old.len())));
        let (text, meta_at) = match in_place {
            Some((at, length)) => ([&object[..at], &encoded, &object[at + length..]].concat(), at),
            None => {
                let text = json::with(object, "_meta", &encoded);
                let at = json::member(&text, "_meta").and_then(|found| json::offset(&text, found));
                let at = at.unwrap_or_default();
                (text, at)
            }
        };
        EncodedParams { token_at: wants_token.then_some(meta_at + 1), text }
    }

    /// Returns the `_meta` for the server, and whether it differs from the client's.
    fn translate_meta(self, sender: RequestSender<'_>) -> (Meta, bool) {
        let upstream = self.upstream;
        let mut meta = sender.meta.clone();
        let mut changed = meta.remove(Meta::PROGRESS_TOKEN).is_some();
        match (upstream.era(), sender.handshake) {
            (Era::Legacy, _) => {
                let modern = [
                    Meta::PROTOCOL_VERSION,
                    Meta::CLIENT_INFO,
                    Meta::CLIENT_CAPABILITIES,
                    Meta::LOG_LEVEL,
                ];
                for key in modern {
                    changed |= meta.remove(key).is_some();
                }
            }
            (Era::Modern, Some(client)) => {
                meta.set_protocol_version(upstream.as_str());
                meta.set_client_info(&client.client_info);
                meta.set_client_capabilities(&client.capabilities);
                if let Some(level) = sender.log_level {
                    meta.set_log_level(level);
                }
                changed = true;
            }
            (Era::Modern, None) => {
                let declared = meta.protocol_version().ok().flatten();
                if declared.as_deref() != Some(upstream.as_str()) {
                    meta.set_protocol_version(upstream.as_str());
                    changed = true;
                }
            }
        }
        (meta, changed)
    }

    /// Translates a result. Within one era it stays the same.
    pub(crate) fn translate_result(self, method: Option<Method>, result: Raw) -> Raw {
        match self.eras() {
            (Era::Modern, Era::Legacy) => match method {
                Some(method) => to_modern(method, result),
                None => result,
            },
            (Era::Legacy, Era::Modern) => to_legacy(method, result, self.downstream),
            _ => result,
        }
    }
}

/// 2026-07-28 basic §Results: each has a type, and some say how long they may be cached.
fn to_modern(method: Method, result: Raw) -> Raw {
    let mut text = result.as_str().to_owned();
    if !result.is_object() || json::member(&text, "resultType").is_some() {
        return result;
    }
    text = json::with(&text, "resultType", r#""complete""#);
    if method.row().cacheable {
        for (name, value) in [("ttlMs", "0"), ("cacheScope", r#""private""#)] {
            if json::member(&text, name).is_none() {
                text = json::with(&text, name, value);
            }
        }
    }
    json::raw(text)
}

fn to_legacy(method: Option<Method>, result: Raw, downstream: Revision) -> Raw {
    fn encode<R: Request>(result: &Raw, downstream: Revision) -> Option<Raw> {
        result.decode::<R::Result>().ok().map(|known| Raw::at(&known, downstream))
    }
    let known = match method {
        Some(Method::CallTool) => call_result_to_legacy(&result, downstream),
        Some(Method::ListTools) => encode::<methods::ListTools>(&result, downstream),
        Some(Method::ListResources) => encode::<methods::ListResources>(&result, downstream),
        Some(Method::ListResourceTemplates) => {
            encode::<methods::ListResourceTemplates>(&result, downstream)
        }
        Some(Method::ReadResource) => encode::<methods::ReadResource>(&result, downstream),
        Some(Method::ListPrompts) => encode::<methods::ListPrompts>(&result, downstream),
        Some(Method::GetPrompt) => encode::<methods::GetPrompt>(&result, downstream),
        Some(Method::Complete) => encode::<methods::Complete>(&result, downstream),
        _ => None,
    };
    known.unwrap_or(result)
}

/// Wraps structured output that is no object, as a [`Server`](turnbuckle::Server) does for revisions
/// that only allow objects.
fn call_result_to_legacy(result: &Raw, downstream: Revision) -> Option<Raw> {
    let mut result = result.decode::<CallToolResult>().ok()?;
    if downstream.structured_output() == StructuredOutput::Objects
        && let Some(content) = result.structured_content.take_if(|content| !content.is_object())
    {
        result.structured_content = Some(json::raw(format!(r#"{{"result":{content}}}"#)));
    }
    Some(Raw::at(&result, downstream))
}

/// Returns the params of a progress notification with the client's token.
pub(crate) fn with_progress_token(params: &Params, token: &RequestId) -> String {
    let token = encode_id(token);
    let whole = params.text();
    let in_place =
        params.subject.as_ref().and_then(|old| json::splice(whole, old.as_str(), &token));
    in_place.unwrap_or_else(|| json::with(whole, "progressToken", &token))
}

/// Returns params or a result with the client's subscription id, or without any.
pub(crate) fn with_subscription_id(object: &str, id: Option<&RequestId>) -> String {
    let meta = json::member(object, "_meta").unwrap_or("{}");
    let Some(id) = id else {
        let rest = json::without(meta, &[Meta::SUBSCRIPTION_ID]);
        if rest == "{}" {
            return json::without(object, &["_meta"]).into_owned();
        }
        return json::with(object, "_meta", &rest);
    };
    json::with(object, "_meta", &json::with(meta, Meta::SUBSCRIPTION_ID, &encode_id(id)))
}

fn encode_id(id: &RequestId) -> String {
    let mut encoded = Vec::new();
    id.write_to(&mut encoded);
    String::from_utf8(encoded).unwrap_or_default()
}

/// Returns the id of the subscription that a notification belongs to.
pub(crate) fn subscription_id(params: &Params) -> Option<RequestId> {
    let meta = params.meta.as_ref()?.as_str();
    RequestId::from_token(json::member(meta, Meta::SUBSCRIPTION_ID)?)
}

#[cfg(test)]
mod tests;
