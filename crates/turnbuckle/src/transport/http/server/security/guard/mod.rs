//! Owns who may speak to an endpoint, and in which form: host, origin, method, media types, size.
//! Does not own what is said in the body, nor the answers to preflights: `cors` gives those first.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::cors::Cors;
use crate::transport::http::{
    authority::{Authority, AuthorityError, Origin},
    media_type,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header, request};

/// How long a body may be unless someone says otherwise.
const BODY_LIMIT: u64 = 4 * 1024 * 1024;

/// What is allowed. Everything in it is read and brought into one form when it is built.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    hosts: Hosts,
    /// Besides those that every loopback host has.
    named: Vec<Authority<String>>,
    origins: Vec<Origin<String>>,
    body_limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Hosts {
    /// Loopback, and those that are named.
    Known,
    /// Any, even none: the wire itself says who can reach it.
    Any,
}

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// The value of the `Allow` header, which goes with 405.
    pub(crate) allow: Option<&'static str>,
    pub(crate) message: Cow<'static, str>,
}

impl Guard {
    /// Serves this machine: `localhost`, names below it, 127.0.0.0/8 and `[::1]`, on any port.
    pub(crate) fn loopback() -> Guard {
        Guard {
            hosts: Hosts::Known,
            named: Vec::new(),
            origins: Vec::new(),
            body_limit: BODY_LIMIT,
        }
    }

    /// Serves any host, for wires on which a host means nothing, such as Unix sockets. A page
    /// does not become trusted by that: its own host is only believed if it is known.
    pub(crate) fn any_host() -> Guard {
        Guard { hosts: Hosts::Any, ..Guard::loopback() }
    }

    /// Serves a host too: `example.com`, on any port, or `example.com:8443`.
    pub(crate) fn allow_host(&mut self, host: &str) -> Result<(), String> {
        let say = |fault: AuthorityError| {
            format!("`{host}` is not a host: {fault}; write `example.com` or `example.com:8443`")
        };
        if host.contains("://") {
            return Err(say("it has a scheme"));
        }
        self.named.push(Authority::read(host).map_err(say)?.to_owned());
        Ok(())
    }

    /// Lets pages of an origin call: exactly this one, such as `https://app.example.com`.
    pub(crate) fn allow_origin(&mut self, origin: &str) -> Result<(), String> {
        self.origins.push(read_origin(origin)?);
        Ok(())
    }

    /// Lets pages of all origins call that may read the answers.
    pub(crate) fn allow_origins_of(&mut self, cors: &Cors) {
        self.origins.extend(cors.origins().iter().cloned());
    }

    /// Sets how long a body may be that says its length beforehand.
    pub(crate) fn limit_body(&mut self, bytes: u64) {
        self.body_limit = bytes;
    }

    /// Judges the head of a request. A preflight that [`Cors::preflight`] answers does not come
    /// here.
    pub(crate) fn judge(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        self.judge_caller(uri, headers)?;
        judge_method(method)?;
        judge_content_type(headers)?;
        judge_accept(headers)?;
        self.judge_length(headers)
    }

    /// Judges the head of a POST that is answered elsewhere: what it accepts does not matter.
    #[cfg(feature = "sse-2024")]
    pub(crate) fn judge_posted(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        self.judge_caller(uri, headers)?;
        judge_content_type(headers)?;
        self.judge_length(headers)
    }

    /// Judges who asks, and for whom; not what.
    pub(crate) fn judge_caller(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = self.judge_host(uri, headers)?;
        self.judge_origin(host, headers)
    }

    /// The host that was asked for, if it is one that is known.
    fn judge_host<'r>(
        &self,
        uri: &'r Uri,
        headers: &'r HeaderMap,
    ) -> Result<Option<Authority<&'r str>>, Refusal> {
        let host = match asked_host(uri, headers) {
            Ok(host) => host,
            Err(_) if self.hosts == Hosts::Any => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        if host.host.is_loopback() || self.named.iter().any(|named| covers(named, &host)) {
            return Ok(Some(host));
        }
        if self.hosts == Hosts::Any {
            return Ok(None);
        }
        let shown = host.port.map_or(host.host.to_string(), |port| format!("{}:{port}", host.host));
        Err(refuse(
            StatusCode::FORBIDDEN,
            format!(
                "`{shown}` is not a host of this server; call .public_host(\"{}\") to serve it",
                host.host
            ),
        ))
    }

    // 2026-07-28 transports/streamable-http §Security & Endpoint: present and invalid MUST be 403.
    fn judge_origin(
        &self,
        host: Option<Authority<&str>>,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let origin = match only(headers, header::ORIGIN) {
            Ok(None) => return Ok(()),
            Ok(Some(value)) => value,
            Err(Repeated) => {
                return Err(refuse(StatusCode::FORBIDDEN, "the Origin header came more than once"));
            }
        };
        let read = std::str::from_utf8(origin).map_err(|_| "it is not text").and_then(Origin::read);
        let origin = read.map_err(|fault| {
            refuse(StatusCode::FORBIDDEN, format!("the Origin header names no origin: {fault}"))
        })?;
        let is_home = host.is_some_and(|host| {
            origin.is_at(&host) || (origin.is_loopback() && host.host.is_loopback())
        });
        if is_home || self.origins.iter().any(|listed| listed.is(&origin)) {
            return Ok(());
        }
        Err(refuse(
            StatusCode::FORBIDDEN,
            format!(
                "pages of {origin} may not call this server; call .allow_origin(\"{origin}\") to \
                 let them"
            ),
        ))
    }

    fn judge_length(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for value in headers.get_all(header::CONTENT_LENGTH) {
            let value = value.as_bytes();
            if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
                let message = "the Content-Length header is not a number";
                return Err(refuse(StatusCode::BAD_REQUEST, message));
            }
            // A number with too many digits to be read is too large as well.
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
            if length.is_none_or(|length| length > self.body_limit) {
                return Err(refuse(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("the body is longer than {} bytes", self.body_limit),
                ));
            }
        }
        Ok(())
    }
}

/// Reads an origin that someone wrote into their program.
pub(crate) fn read_origin(origin: &str) -> Result<Origin<String>, String> {
    let read = Origin::read(origin).map_err(|fault| {
        format!("`{origin}` is not an origin: {fault}; write one like `https://app.example.com`")
    })?;
    Ok(read.to_owned())
}

/// More than one of what may be there once.
pub(crate) struct Repeated;

/// The value of a header that may be there once.
pub(crate) fn only(
    headers: &HeaderMap,
    name: header::HeaderName,
) -> Result<Option<&[u8]>, Repeated> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(|value| value.as_bytes())),
        _ => Err(Repeated),
    }
}

/// Judges whether a request of HTTP/2 names two hosts. Over HTTP/1.1 the request target goes before the
/// Host header, as RFC 9112 §3.2.2 says.
pub(crate) fn judge_authority(head: &request::Parts) -> Result<(), Refusal> {
    let Some(authority) = head.uri.authority().filter(|_| head.version == Version::HTTP_2) else {
        return Ok(());
    };
    let agrees =
        |host: &HeaderValue| host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes());
    if head.headers.get_all(header::HOST).iter().all(agrees) {
        return Ok(());
    }
    let message = format!("the Host header contradicts the authority `{authority}`");
    Err(refuse(StatusCode::BAD_REQUEST, message))
}

/// Returns the host that a request is for. If the request target names one, the Host header does not
/// count.
fn asked_host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Result<Authority<&'r str>, Refusal> {
    let bad = |message| refuse(StatusCode::BAD_REQUEST, message);
    let text = match uri.authority() {
        Some(authority) => authority.as_str(),
        None => match only(headers, header::HOST) {
            Ok(Some(value)) => std::str::from_utf8(value)
                .map_err(|_| bad(Cow::Borrowed("the Host header is not text")))?,
            Ok(None) => return Err(bad("the Host header is missing".into())),
            Err(Repeated) => return Err(bad("the Host header came more than once".into())),
        },
    };
    let text = text.trim_matches([' ', '\t']);
    Authority::read(text)
        .map_err(|fault| bad(format!("the request's host is none: {fault}").into()))
}

/// Whether a host that is served is the one that was asked for. One without a port stands for
/// all; the ports of `http` and `https` go without saying, so one may be missing in the request.
fn covers(named: &Authority<String>, asked: &Authority<&str>) -> bool {
    let port = match (named.port, asked.port) {
        (None, _) => true,
        (Some(named), Some(asked)) => named == asked,
        (Some(named), None) => matches!(named, 80 | 443),
    };
    port && named.host.is(&asked.host)
}

fn judge_method(method: &Method) -> Result<(), Refusal> {
    if method == Method::POST {
        return Ok(());
    }
    let message = "this endpoint only takes POST: every message is a request of its own";
    let refusal = refuse(StatusCode::METHOD_NOT_ALLOWED, message);
    Err(Refusal { allow: Some("POST"), ..refusal })
}

fn judge_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.get_all(header::CONTENT_ENCODING).iter().any(|value| value != "identity") {
        let message = "the Content-Encoding header is not supported: send the body as it is";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let message = match only(headers, header::CONTENT_TYPE) {
        // Nearly every client spells it like this.
        Ok(Some(value)) if value == media_type::JSON.as_bytes() => return Ok(()),
        Ok(Some(value)) if media_type::is(value, media_type::JSON) => {
            if media_type::is_utf8(value) {
                return Ok(());
            }
            "the charset of the Content-Type header has to be utf-8"
        }
        Ok(Some(_)) => "the Content-Type header has to be application/json",
        Ok(None) => "the Content-Type header is missing; it has to be application/json",
        Err(Repeated) => "the Content-Type header came more than once",
    };
    Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
}

fn judge_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    match only(headers, header::ACCEPT) {
        Ok(None) => return Ok(()),
        // Nearly every client spells it like this.
        Ok(Some(b"application/json, text/event-stream")) => return Ok(()),
        _ => {}
    }
    let values = || headers.get_all(header::ACCEPT).iter().map(|value| value.as_bytes());
    let message = match (
        media_type::admits(values(), media_type::JSON),
        media_type::admits(values(), media_type::EVENTS),
    ) {
        (Some(true), Some(true)) => return Ok(()),
        (None, _) | (_, None) => "the Accept header can't be read",
        _ => "the Accept header has to list application/json and text/event-stream",
    };
    Err(refuse(StatusCode::NOT_ACCEPTABLE, message))
}

fn refuse(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal { status, allow: None, message: message.into() }
}
