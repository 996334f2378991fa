//! The HTTP requests of the legacy era and their headers.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::{ClientSession, HttpClientShared};
use crate::{
    error::{Error, Result},
    protocol::headers,
    transport::http::client::request::HttpRequest,
};

/// The session, in requests and in the answer to `initialize`.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Creates the POST of a message.
pub(crate) fn post(
    wire: &HttpClientShared,
    session: &ClientSession,
    message: Bytes,
) -> HttpRequest {
    let mut headers = under(session);
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::ACCEPT, BOTH);
    HttpRequest::new(wire, Method::POST, headers, Some(message))
}

/// Creates the GET of a stream, from after this event on.
pub(crate) fn get(
    wire: &HttpClientShared,
    session: &ClientSession,
    after: Option<&HeaderValue>,
) -> HttpRequest {
    let mut headers = under(session);
    headers.insert(header::ACCEPT, EVENTS);
    if let Some(after) = after {
        headers.insert(LAST_EVENT_ID, after.clone());
    }
    HttpRequest::new(wire, Method::GET, headers, None)
}

/// Creates the DELETE of a session.
pub(super) fn delete(wire: &HttpClientShared, session: &ClientSession) -> HttpRequest {
    HttpRequest::new(wire, Method::DELETE, under(session), None)
}

fn under(session: &ClientSession) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    if let Some(id) = &session.id {
        headers.insert(SESSION, id.clone());
    }
    if let Some(revision) = session.revision {
        let version = HeaderValue::from_static(revision.as_str());
        headers.insert(headers::VERSION, version);
    }
    headers
}

/// Reads the session that an answer to `initialize` opens.
pub(super) fn session_of(headers: &HeaderMap) -> Result<Option<HeaderValue>> {
    let Some(id) = headers.get(SESSION).filter(|id| !id.is_empty()) else { return Ok(None) };
    // 2025-11-25 transports §Session Management: MUST only contain visible ASCII.
    if id.as_bytes().iter().all(u8::is_ascii_graphic) {
        let mut id = id.clone();
        id.set_sensitive(true);
        return Ok(Some(id));
    }
    Err(Error::protocol("the server's Mcp-Session-Id has characters that it must not have"))
}

#[cfg(test)]
mod tests {
    use turnbuckle_types::Revision;

    use super::*;

    fn names(session: &ClientSession) -> Vec<String> {
        let mut names: Vec<_> = under(session).keys().map(|name| name.to_string()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_headers_name_the_session_and_the_version_after_the_handshake() {
        assert!(names(&ClientSession::default()).is_empty());
        let session = ClientSession {
            id: Some(HeaderValue::from_static("s")),
            revision: Some(Revision::V2025_06_18),
            generation: 1,
        };
        assert_eq!(names(&session), ["mcp-protocol-version", "mcp-session-id"]);
        assert_eq!(under(&session)["mcp-session-id"], "s");
        assert_eq!(under(&session)["mcp-protocol-version"], "2025-06-18");
    }

    #[test]
    fn a_session_is_visible_ascii() {
        let of = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(SESSION, HeaderValue::from_bytes(value).unwrap());
            session_of(&headers)
        };
        assert_eq!(of(b"!abc~").unwrap().unwrap(), "!abc~");
        assert!(of(b"").unwrap().is_none());
        assert!(session_of(&HeaderMap::new()).unwrap().is_none());
        for wrong in [&b"a b"[..], b"a\tb", b"\xe4"] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
