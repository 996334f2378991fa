//! Owns an answer that is one body: JSON, or a refusal that is not even a message.
//! Does not own streams.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use turnbuckle_types::{
    Raw, RequestId, RpcError,
    jsonrpc::{self, Frame, Message, Response},
};

use super::{
    HttpClientShared,
    events::out_of_memory,
    stack::{Body, ConnectError, SendFailure},
    timing::{QUOTED_CHARS, REFUSAL_BYTES},
};
use crate::{
    error::{AuthorizationRequired, Error, ErrorKind, Executed, Result},
    rpc::memory::HeldBytes,
    transport::http::media_type,
};

/// What a body says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Events,
    Other(Option<String>),
}

impl Kind {
    pub(crate) fn of(headers: &HeaderMap) -> Kind {
        let Some(value) = headers.get(header::CONTENT_TYPE) else { return Kind::Other(None) };
        if media_type::is(value.as_bytes(), media_type::JSON) {
            Kind::Json
        } else if media_type::is(value.as_bytes(), media_type::EVENTS) {
            Kind::Events
        } else {
            let text = String::from_utf8_lossy(value.as_bytes());
            Kind::Other(Some(text.split(';').next().unwrap_or_default().trim().to_owned()))
        }
    }
}

/// A body on its way.
pub(crate) struct CollectedBody {
    body: Body,
    status: StatusCode,
    kind: Kind,
    first: Option<Bytes>,
    rest: BytesMut,
    limit: usize,
    held: HeldBytes,
    /// How long the server wants to be left alone.
    retry_after: Option<Duration>,
    /// What the server asks for instead of answering.
    wanted: Option<AuthorizationRequired>,
}

impl CollectedBody {
    pub(crate) fn new(
        body: Body,
        status: StatusCode,
        headers: &HeaderMap,
        wire: &HttpClientShared,
    ) -> CollectedBody {
        let limit = wire.limits.line_bytes;
        let (kind, retry_after) = (Kind::of(headers), retry_after(headers));
        let limit = if status.is_success() { limit } else { limit.min(REFUSAL_BYTES) };
        let wanted = AuthorizationRequired::read(status, headers);
        CollectedBody {
            body,
            status,
            kind,
            first: None,
            rest: BytesMut::new(),
            limit,
            held: HeldBytes::new(wire.memory.clone()),
            retry_after,
            wanted,
        }
    }

    pub(super) fn poll(
        &mut self,
        wire: &HttpClientShared,
        id: Option<&RequestId>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Raw>> {
        let text = ready!(self.poll_text(wire, context));
        Poll::Ready(text.and_then(|text| self.judge(wire, id, text)))
    }

    /// Reads the body to its end.
    pub(crate) fn poll_text(
        &mut self,
        wire: &HttpClientShared,
        context: &mut Context<'_>,
    ) -> Poll<Result<Bytes>> {
        loop {
            match ready!(self.body.poll_chunk(context)) {
                Some(Ok(chunk)) => {
                    if self.length() + chunk.len() > self.limit {
                        return Poll::Ready(Err(self.too_long(wire)));
                    }
                    self.push(chunk);
                    self.held.set(self.length());
                    if let Err(refused) = self.held.check() {
                        return Poll::Ready(Err(out_of_memory(wire, &refused)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err(self.lost(wire, error))),
                None => break,
            }
        }
        Poll::Ready(Ok(self.take()))
    }

    fn length(&self) -> usize {
        self.first.as_ref().map_or(0, Bytes::len) + self.rest.len()
    }

    /// Most answers come in one piece, which is then used as it is.
    fn push(&mut self, chunk: Bytes) {
        match self.first.take() {
            None if self.rest.is_empty() => self.first = Some(chunk),
            first => {
                self.rest.extend_from_slice(&first.unwrap_or_default());
                self.rest.extend_from_slice(&chunk);
            }
        }
    }

    fn take(&mut self) -> Bytes {
        self.first.take().unwrap_or_else(|| std::mem::take(&mut self.rest).freeze())
    }

    fn too_long(&mut self, wire: &HttpClientShared) -> Error {
        if !self.status.is_success() {
            let text = self.take();
            return self.refused(wire, &text);
        }
        let message = format!(
            "the answer of {} is longer than {} bytes (line_bytes)",
            wire.place(),
            self.limit
        );
        Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe)
    }

    fn lost(&mut self, wire: &HttpClientShared, error: ConnectError) -> Error {
        if !self.status.is_success() {
            let text = self.take();
            return self.refused(wire, &text);
        }
        SendFailure::in_body(error).into_error(&wire.place())
    }

    /// What the whole text says to the request `id`.
    pub(crate) fn judge(
        &self,
        wire: &HttpClientShared,
        id: Option<&RequestId>,
        text: Bytes,
    ) -> Result<Raw> {
        let depth = wire.limits.json_depth;
        let response = match self.kind {
            Kind::Json => match jsonrpc::parse(text.clone(), depth) {
                Ok(Message::Single(Frame::Response(response))) => Some(response),
                _ => None,
            },
            _ => None,
        };
        let Some(Response { id: answered, outcome }) = response else {
            return Err(self.no_message(wire, &text));
        };
        let ours = match (&answered, id) {
            (Some(answered), Some(id)) => answered.key() == id.key(),
            // The only request that this body can be about.
            (None, _) => true,
            (Some(_), None) => false,
        };
        if !ours {
            return Err(Error::protocol("the server answered with the id of another request"));
        }
        outcome.map_err(|error| {
            if answered.is_none() {
                wire.stray(error.clone());
            }
            self.refused_by(error)
        })
    }

    fn refused_by(&self, error: RpcError) -> Error {
        let error = Error::from(error);
        if self.status.is_success() {
            return error;
        }
        let error = error.with_status(self.status.as_u16()).with_retry_after(self.retry_after);
        error.wanting(self.wanted.clone())
    }

    fn no_message(&self, wire: &HttpClientShared, text: &[u8]) -> Error {
        if !self.status.is_success() {
            return self.refused(wire, text);
        }
        let place = wire.place();
        Error::protocol(match &self.kind {
            Kind::Json => format!("the answer of {place} is not a JSON-RPC response"),
            _ if text.is_empty() => {
                format!(
                    "{place} took the request (status {}) and answered nothing",
                    self.status.as_u16()
                )
            }
            Kind::Other(Some(media)) => {
                format!("{place} answered with `{media}` instead of JSON or an event stream")
            }
            Kind::Other(None) | Kind::Events => {
                format!("{place} answered with something that is neither JSON nor an event stream")
            }
        })
        .with_status(self.status.as_u16())
    }

    fn refused(&self, wire: &HttpClientShared, text: &[u8]) -> Error {
        let quote = quote(text);
        // Whoever reads this has a client that can't: one that can would have tried.
        let hint = match self.wanted {
            Some(_) => " (it wants a login: see `ClientBuilder::auth`, with the feature `auth`)",
            None => "",
        };
        let message = format!("{} answered HTTP {}{quote}{hint}", wire.place(), self.status);
        let error = Error::http(self.status.as_u16(), message).with_retry_after(self.retry_after);
        error.wanting(self.wanted.clone())
    }
}

/// RFC 9110 §10.2.3, as far as it is told in seconds: dates depend on somebody else's clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The beginning of a text, if it is one that a person could read.
fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * QUOTED_CHARS)]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() || text.starts_with('<') {
        return String::new();
    }
    let short: String = text.chars().filter(|char| !char.is_control()).take(QUOTED_CHARS).collect();
    format!(": {short}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_to_be_left_alone_is_heard_in_seconds() {
        let after = |value: &'static str| {
            let value = http::HeaderValue::from_static(value);
            retry_after(&HeaderMap::from_iter([(header::RETRY_AFTER, value)]))
        };
        assert_eq!(after(" 7 "), Some(Duration::from_secs(7)));
        for other in ["-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "99999999999999999999"] {
            assert_eq!(after(other), None, "{other}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn a_media_type_is_read_without_its_parameters_and_not_by_its_parts() {
        let kind = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, text.parse().unwrap());
            Kind::of(&headers)
        };
        assert_eq!(kind("application/json"), Kind::Json);
        assert_eq!(kind("Application/JSON; charset=utf-8"), Kind::Json);
        assert_eq!(kind("text/event-stream;x=y"), Kind::Events);
        assert_eq!(kind("text/html; a=application/json"), Kind::Other(Some("text/html".into())));
        assert_eq!(kind("application/jsonx"), Kind::Other(Some("application/jsonx".into())));
        assert_eq!(Kind::of(&HeaderMap::new()), Kind::Other(None));
    }

    #[test]
    fn a_refusal_is_quoted_if_people_can_read_it() {
        assert_eq!(quote(b"no such\n place"), ": no such place");
        assert_eq!(quote(b"<html>"), "");
        assert_eq!(quote(b""), "");
        assert!(quote(&[b'x'; 5000]).len() < 2 * QUOTED_CHARS);
    }
}
