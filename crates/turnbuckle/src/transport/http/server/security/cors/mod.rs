//! Owns what browsers are told about pages of other origins: which may call, with which headers,
//! and which headers of the answer they may read. Does not own refusing the others: `guard` does.

#[cfg(test)]
mod tests;

use super::guard::{only, read_origin};
use crate::{protocol::headers, transport::http::authority::Origin};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

/// The headers of a request that pages may set; those of arguments come on top.
const REQUEST_HEADERS: &[&str] = &[
    "accept",
    "authorization",
    "content-type",
    "dpop",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];
/// The headers of an answer that pages may read, besides those that they always may.
const RESPONSE_HEADERS: HeaderValue =
    HeaderValue::from_static("dpop-nonce, mcp-session-id, retry-after, www-authenticate");
/// The methods that pages may use: the last two are for sessions.
const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");
/// For how many seconds a browser need not ask again. Chromium remembers no longer than this.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The origins whose pages may call and read the answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cors {
    origins: Vec<Origin<String>>,
}

impl Cors {
    /// Adds an origin: exactly this one, such as `https://app.example.com`.
    pub(crate) fn allow_origin(&mut self, origin: &str) -> Result<(), String> {
        self.origins.push(read_origin(origin)?);
        Ok(())
    }

    /// Those that were added.
    pub(crate) fn origins(&self) -> &[Origin<String>] {
        &self.origins
    }

    /// The headers of the answer (204) to a browser that asks before it sends; `None` for every
    /// other request, and for pages that may not call, both of which are for the guard to judge.
    pub(crate) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<HeaderMap> {
        if method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        let origin = self.listed(headers)?.clone();
        let mut answer = HeaderMap::new();
        answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        if let Some(allowed) = allowed_among(headers) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        answer.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        answer.insert(
            header::VARY,
            HeaderValue::from_static(
                "origin, access-control-request-method, access-control-request-headers",
            ),
        );
        Some(answer)
    }

    /// The headers that every other answer gets, given those of its request.
    pub(crate) fn headers(&self, request: &HeaderMap) -> HeaderMap {
        let mut answer = HeaderMap::new();
        // Also for who may not: else a cache gives the answer without permission to who may.
        answer.insert(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = self.listed(request) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
        }
        answer
    }

    /// The origin of a request as it was sent, if it is one of ours.
    fn listed<'r>(&self, headers: &'r HeaderMap) -> Option<&'r HeaderValue> {
        let text = only(headers, header::ORIGIN).ok()??;
        let origin = Origin::read(std::str::from_utf8(text).ok()?).ok()?;
        let is_listed = self.origins.iter().any(|listed| listed.is(&origin));
        headers.get(header::ORIGIN).filter(|_| is_listed)
    }
}

/// What is asked for and may be sent. The rest is left out, at which the browser stops.
fn allowed_among(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let names = asked.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let allowed: Vec<HeaderName> = names
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| may_be_sent(name.as_str()))
        .collect();
    let list: Vec<&str> = allowed.iter().map(HeaderName::as_str).collect();
    (!list.is_empty()).then(|| HeaderValue::from_str(&list.join(", ")).ok())?
}

fn may_be_sent(name: &str) -> bool {
    REQUEST_HEADERS.contains(&name)
        || name.strip_prefix(headers::PARAM).is_some_and(|argument| !argument.is_empty())
}
