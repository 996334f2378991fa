//! Owns how answers look. Does not own what they say.

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};

/// An error of OAuth (RFC 6749 §5.2, RFC 7591 §3.2.2).
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) text: String,
    status: u16,
    nonce: Option<String>,
}

impl Problem {
    pub(super) fn new(code: &'static str, text: impl Into<String>) -> Problem {
        Problem { code, text: text.into(), status: 400, nonce: None }
    }

    pub(super) fn with_status(mut self, status: u16) -> Problem {
        self.status = status;
        self
    }

    pub(super) fn with_nonce(mut self, nonce: String) -> Problem {
        self.nonce = Some(nonce);
        self
    }

    pub(super) fn into_response(self) -> Response<Bytes> {
        let body = json!({"error": self.code, "error_description": self.text});
        let mut response = json(self.status, &body);
        if self.status == 401 {
            let basic = HeaderValue::from_static("Basic realm=\"clients\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, basic);
        }
        if let Some(nonce) = self.nonce.and_then(|nonce| HeaderValue::try_from(nonce).ok()) {
            response.headers_mut().insert(HeaderName::from_static("dpop-nonce"), nonce);
        }
        response
    }
}

pub(super) fn json(status: u16, body: &Value) -> Response<Bytes> {
    let mut response = empty(status);
    *response.body_mut() = Bytes::from(body.to_string());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// RFC 6749 §5.1: what has a token in it is kept nowhere; here nothing is.
pub(super) fn empty(status: u16) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(super) fn html() -> Response<Bytes> {
    let mut response = empty(200);
    *response.body_mut() = Bytes::from_static(b"<!doctype html><title>Sorry</title>");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    response
}

pub(super) fn oversized(bytes: usize) -> Response<Bytes> {
    let mut response = json(200, &Value::Null);
    *response.body_mut() = Bytes::from(vec![b' '; bytes]);
    response
}

/// RFC 6749 §5.2: whoever is not known as a client is told by 401.
pub(super) fn error(code: &str) -> Response<Bytes> {
    let status = if code == "invalid_client" { 401 } else { 400 };
    json(status, &json!({"error": code}))
}

/// For whatever was sent, unlike [`redirect`].
pub(super) fn moved(to: &str) -> Response<Bytes> {
    let mut response = redirect(to);
    if response.status() == StatusCode::FOUND {
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    }
    response
}

pub(super) fn redirect(to: &str) -> Response<Bytes> {
    let mut response = empty(302);
    match HeaderValue::try_from(to) {
        Ok(to) => {
            response.headers_mut().insert(LOCATION, to);
            response
        }
        Err(_) => empty(400),
    }
}
