//! Owns how one HTTP request of the legacy era is made: its headers, its redirects.
//! Does not own what its answer means.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::{Call, Session, Wire};
use crate::{
    envelope::mirror,
    error::{Closed, Error, Executed, Result},
    transport::http::client::{
        PostBody, place,
        progress::Progress,
        redirect::{self, OwnHeaders},
        stack::{Body, Stack},
    },
};

/// The session, in requests and in the answer to `initialize`.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// How long a server may take to accept what is not answered.
const ACCEPTING: Duration = Duration::from_secs(30);
/// How much of a body that says nothing is read, and for how long, so that its connection can
/// be used again.
const REST: (usize, Duration) = (64 << 10, Duration::from_secs(1));

/// One request that is about to be made.
pub(crate) struct Shot {
    method: Method,
    headers: HeaderMap,
    message: Option<Bytes>,
}

impl Shot {
    /// A message.
    pub(super) fn post(session: &Session, message: Bytes) -> Shot {
        let mut shot = Shot { method: Method::POST, headers: under(session), message: None };
        shot.message = Some(message);
        shot.headers.insert(header::CONTENT_TYPE, JSON);
        shot.headers.insert(header::ACCEPT, BOTH);
        shot
    }

    /// A message on the wire of 2024-11-05, which has no sessions in its headers.
    pub(crate) fn bare_post(message: Bytes) -> Shot {
        Shot::post(&Session::default(), message)
    }

    /// A stream, from after this event on.
    pub(super) fn get(session: &Session, after: Option<&HeaderValue>) -> Shot {
        let mut shot = Shot { method: Method::GET, headers: under(session), message: None };
        shot.headers.insert(header::ACCEPT, EVENTS);
        if let Some(after) = after {
            shot.headers.insert(LAST_EVENT_ID, after.clone());
        }
        shot
    }

    /// The stream of 2024-11-05.
    pub(crate) fn bare_get() -> Shot {
        Shot::get(&Session::default(), None)
    }

    /// The end of the session.
    pub(super) fn delete(session: &Session) -> Shot {
        Shot { method: Method::DELETE, headers: under(session), message: None }
    }

    /// Adds headers of one call. None of them is the protocol's.
    pub(super) fn with(mut self, extra: &[(HeaderName, HeaderValue)]) -> Shot {
        for (name, value) in extra {
            self.headers.append(name, value.clone());
        }
        self
    }
}

fn under(session: &Session) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    if let Some(id) = &session.id {
        headers.insert(SESSION, id.clone());
    }
    if let Some(revision) = session.revision {
        let version = HeaderValue::from_static(revision.as_str());
        headers.insert(HeaderName::from_static(mirror::VERSION), version);
    }
    headers
}

/// Makes the request and follows redirects, up to the head of the answer. `call` is told how far
/// it is.
pub(crate) async fn send(
    wire: &Wire,
    stack: &Stack,
    shot: Shot,
    call: Option<&Call>,
) -> Result<http::Response<Body>> {
    send_to(wire, stack, wire.address.clone(), shot, call).await
}

/// [`send`] to another address than the server's main one.
pub(crate) async fn send_to(
    wire: &Wire,
    stack: &Stack,
    mut to: http::Uri,
    mut shot: Shot,
    call: Option<&Call>,
) -> Result<http::Response<Body>> {
    let (mut own, mut hops) = (OwnHeaders::Kept, 0);
    loop {
        let mut body = shot.message.clone().map_or_else(PostBody::empty, PostBody::new);
        if let Some(call) = call {
            let progress = Arc::new(Progress::default());
            call.sending(progress.clone());
            body = body.telling(progress);
        }
        let (method, headers) = (shot.method.clone(), shot.headers.clone());
        let sending = stack.send(wire.request(method, &to, headers, own, body));
        let response = sending.await.map_err(|failure| failure.into_error(&place(&to)))?;
        let status = response.status();
        if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
            return Ok(response);
        }
        if call.is_some_and(Call::is_given_up) {
            return Err(Closed::new("it was redirected after it was given up").error(Executed::No));
        }
        let location = response.headers().get(header::LOCATION).map(HeaderValue::as_bytes);
        let hop = redirect::judge(wire.redirects, &to, status, location, hops).map_err(|why| {
            Error::http(status.as_u16(), format!("{} did not answer: {why}", place(&to)))
        })?;
        if hop.own_headers == OwnHeaders::Dropped {
            own = OwnHeaders::Dropped;
            // Which event came last is no secret; the session is: whoever has it can speak in it.
            let last = shot.headers.remove(LAST_EVENT_ID);
            wire.drop_extra(&mut shot.headers);
            shot.headers.remove(SESSION);
            if let Some(last) = last {
                shot.headers.insert(LAST_EVENT_ID, last);
            }
        }
        to = hop.to;
        hops += 1;
    }
}

/// Posts what has no answer. A failure is logged.
pub(super) async fn say(wire: &Wire, stack: &Stack, shot: Shot, what: &str) {
    say_within(ACCEPTING, wire, stack, shot, what).await;
}

/// [`say`] with another bound on how long the server may take to accept it.
pub(super) async fn say_within(
    longest: Duration,
    wire: &Wire,
    stack: &Stack,
    shot: Shot,
    what: &str,
) {
    let said = tokio::time::timeout(longest, send(wire, stack, shot, None)).await;
    match said {
        Ok(Ok(response)) => {
            let status = response.status();
            if !status.is_success() {
                tracing::debug!(what, status = status.as_u16(), "a message was not accepted");
            }
            finish(response.into_body()).await;
        }
        Ok(Err(error)) => tracing::debug!(what, %error, "a message did not arrive"),
        Err(_) => tracing::debug!(what, "a message was not accepted in time"),
    }
}

/// Reads the rest of a body, within bounds.
pub(crate) async fn finish(mut body: Body) {
    let mut left = REST.0;
    let rest = async {
        while let Some(Ok(chunk)) = std::future::poll_fn(|context| body.poll_chunk(context)).await {
            match left.checked_sub(chunk.len()) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(REST.1, rest).await;
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

    fn names(shot: &Shot) -> Vec<String> {
        let mut names: Vec<_> = shot.headers.keys().map(|name| name.to_string()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn before_the_handshake_nothing_tells_a_version_or_a_session() {
        let none = Session::default();
        assert_eq!(names(&Shot::post(&none, Bytes::new())), ["accept", "content-type"]);
        assert_eq!(names(&Shot::get(&none, None)), ["accept"]);
    }

    #[test]
    fn after_it_everything_does() {
        let session = Session {
            id: Some(HeaderValue::from_static("s")),
            revision: Some(Revision::V2025_06_18),
            generation: 1,
        };
        let after = HeaderValue::from_static("7");
        for shot in [
            Shot::post(&session, Bytes::new()),
            Shot::get(&session, Some(&after)),
            Shot::delete(&session),
        ] {
            assert_eq!(shot.headers["mcp-session-id"], "s");
            assert_eq!(shot.headers["mcp-protocol-version"], "2025-06-18");
            assert!(!shot.headers.contains_key("mcp-method"));
        }
        assert_eq!(Shot::get(&session, Some(&after)).headers["last-event-id"], "7");
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
