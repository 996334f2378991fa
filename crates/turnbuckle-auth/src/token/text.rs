//! Owns how texts are put into addresses and bodies, and how the texts of servers are put into
//! errors. Does not own what they say.

use std::ops::Deref;

use bytes::Bytes;
use http::{
    HeaderValue, Request,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde_json::{Map, Value};
use url::Url;
use zeroize::{Zeroize as _, Zeroizing};

use super::authenticate::Form;
use crate::{AuthError, AuthErrorKind, Secret, jose::strict_object};

/// The largest document that is read.
const LONGEST_DOCUMENT: usize = 1024 * 1024;
/// As much of a server's text as an error repeats.
const LONGEST_QUOTE: usize = 200;

/// Names and values as `application/x-www-form-urlencoded`. Spaces become `%20`, which those who
/// expect `+` understand too.
#[cfg(any(test, feature = "client"))]
pub(crate) fn form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    push_form(&mut text, pairs);
    text
}

/// A form with secrets in it, as a request. The body is zeroed when it is dropped.
pub(crate) fn post_form(url: &str, pairs: &Form) -> Result<Request<Bytes>, AuthError> {
    let body = Bytes::from_owner(Body(secret_form(pairs)));
    post(url, "application/x-www-form-urlencoded", body)
}

struct Body(Zeroizing<String>);

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn secret_form(pairs: &Form) -> Zeroizing<String> {
    // A text that grows leaves copies behind. Nothing becomes longer than three times itself.
    let longest = pairs.iter().map(|(name, value)| 3 * (name.len() + value.expose().len()) + 2);
    let mut text = Zeroizing::new(String::with_capacity(longest.sum()));
    push_form(&mut text, pairs.iter().map(|(name, value)| (*name, value.expose())));
    text
}

fn push_form<'a>(text: &mut String, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        push_encoded(text, name);
        text.push('=');
        push_encoded(text, value);
    }
}

/// With all but unreserved letters escaped.
pub(crate) fn push_encoded(text: &mut String, value: &str) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// What a server said, fit for an error: short, on one line, and without what was shown to it.
pub(crate) fn quote(said: &str, hidden: &[Secret]) -> String {
    let mut said = said.to_owned();
    for secret in hidden {
        // A server may repeat what it refuses. What is this short could be anything.
        if secret.expose().len() > 3 {
            said = said.replace(secret.expose(), "…");
        }
    }
    said.chars().filter(|char| !char.is_control()).take(LONGEST_QUOTE).collect()
}

/// What a server answered. Its texts are zeroed when it is dropped: there may be tokens among them.
pub(crate) struct Object(Map<String, Value>);

impl Deref for Object {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

fn wipe(object: &mut Map<String, Value>) {
    for value in object.values_mut() {
        if let Value::String(text) = value {
            text.zeroize();
        }
    }
}

/// Reads a body that is a JSON object of bearable size and has no member twice.
pub(crate) fn object(body: &[u8]) -> Option<Object> {
    if body.len() > LONGEST_DOCUMENT {
        return None;
    }
    strict_object(body).map(Object)
}

/// A member that is a text and not empty.
pub(crate) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(feature = "client")]
pub(crate) fn get(url: &str) -> Result<Request<Bytes>, AuthError> {
    build(Request::get(url), url, Bytes::new())
}

pub(crate) fn post(
    url: &str,
    kind: &'static str,
    body: Bytes,
) -> Result<Request<Bytes>, AuthError> {
    let builder = Request::post(url).header(CONTENT_TYPE, HeaderValue::from_static(kind));
    build(builder, url, body)
}

/// An address that may be asked for tokens, or opened in a browser: `https`, or `http` on this
/// machine; nothing in it that RFC 6749 §3 forbids or that hides where it leads.
pub(crate) fn check_address(url: &str) -> Result<(), AuthError> {
    let refused = |why: &str| {
        let message = format!("`{}` {why}", without_secrets(url));
        Err(AuthError::new(AuthErrorKind::Forbidden, message))
    };
    let Ok(parsed) = Url::parse(url) else { return refused("is no address") };
    match parsed.scheme() {
        "https" => {}
        "http" if is_loopback(&parsed) => {}
        _ => return refused("is neither https nor on this machine"),
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return refused("has a name or a password in it");
    }
    if parsed.fragment().is_some() {
        return refused("has a fragment");
    }
    // What one reader of addresses quietly repairs, another reads differently: `https:/h`,
    // `https://h\@other`, `http://2130706433`.
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let authority = url.get(parsed.scheme().len()..).and_then(|rest| rest.strip_prefix("://"));
    let host = parsed.host_str().unwrap_or_default();
    let named = authority.and_then(|authority| authority.get(..host.len()));
    if !plain || !named.is_some_and(|named| named.eq_ignore_ascii_case(host)) {
        return refused("is not written as addresses are");
    }
    Ok(())
}

/// An address, fit for an error: without a query or a name and password, which may be secret.
pub(crate) fn without_secrets(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return "…".to_owned() };
    let (scheme, path) = (url.scheme(), url.path());
    let Some(host) = url.host_str() else { return quote(&format!("{scheme}:…"), &[]) };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    quote(&format!("{scheme}://{host}{port}{path}"), &[])
}

/// Whether an address is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

fn build(
    builder: http::request::Builder,
    url: &str,
    body: Bytes,
) -> Result<Request<Bytes>, AuthError> {
    builder.header(ACCEPT, HeaderValue::from_static("application/json")).body(body).map_err(|_| {
        let message = format!("`{}` can't be asked", without_secrets(url));
        AuthError::new(AuthErrorKind::Metadata, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_written_once_and_wiped() {
        let pairs = vec![("grant type", Secret::new("=".repeat(1000))), ("b", Secret::new(""))];
        let text = secret_form(&pairs);
        let reserved: usize = pairs.iter().map(|(a, b)| 3 * (a.len() + b.expose().len()) + 2).sum();
        assert_eq!(text.capacity(), reserved, "it grew, and left a copy behind");
        assert_eq!(*text, form(pairs.iter().map(|(name, value)| (*name, value.expose()))));
        let request = post_form("https://auth.example/token", &pairs).unwrap();
        assert_eq!(request.body(), text.as_bytes());

        let mut answer = serde_json::json!({ "access_token": "hide", "expires_in": 3 });
        wipe(answer.as_object_mut().unwrap());
        assert_eq!(answer, serde_json::json!({ "access_token": "", "expires_in": 3 }));
    }

    #[test]
    fn pairs_are_encoded() {
        let pairs = [("scope", "a b"), ("x&", "ä=+~"), ("e", "")];
        assert_eq!(form(pairs), "scope=a%20b&x%26=%C3%A4%3D%2B~&e=");
        let read: Vec<_> = url::form_urlencoded::parse(form(pairs).as_bytes())
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        let given: Vec<_> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(read, given);
    }

    #[test]
    fn quotes_are_short_plain_and_without_secrets() {
        assert_eq!(quote("a\r\n\u{1b}[1mb", &[]), "a[1mb");
        assert_eq!(quote(&"x".repeat(300), &[]).len(), 200);
        let hidden = [Secret::new("token-1"), Secret::new("ab")];
        assert_eq!(quote("no token-1, ab token-1!", &hidden), "no …, ab …!");
        // Not cut in two by the limit.
        let said = format!("{}token-1", "x".repeat(196));
        assert!(!quote(&said, &hidden).contains("tok"));
    }

    // req: client-auth:token-endpoint:https-guard
    #[test]
    fn addresses_are_checked() {
        for good in [
            "https://h/token",
            "https://h/token?tenant=1",
            "HTTPS://H:443/token",
            "http://localhost:1/token",
            "http://127.0.0.1:1/token",
            "http://[::1]/token",
        ] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in [
            "http://h/token",
            "http://127.0.0.1.evil.example/token",
            "http://localhost.evil.example/token",
            "ftp://h/token",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "/token",
            "",
            "https://h/token#x",
            "https://user@h/token",
            "https://:word@h/token",
            "https://h\\@evil.example/token",
            "https:/h/token",
            "https:h/token",
            "https:///h/token",
            "https://%68/token",
            "http://2130706433/token",
            "http://127.1/token",
            "https://\u{e9}.example/token",
            "https://h/to ken",
            " https://h/token",
            "https://h/\ntoken",
        ] {
            let error = check_address(bad).unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{bad}");
        }
    }

    #[test]
    fn addresses_in_errors_have_no_secrets() {
        for (url, said) in [
            ("http://h:1/a?token=hush#hush", "http://h:1/a"),
            ("https://hush:hush@h/a?x=hush", "https://h/a"),
            ("data:text/plain,hush", "data:…"),
            ("hush?hush", "…"),
        ] {
            assert_eq!(without_secrets(url), said);
            let error = check_address(url).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert!(!format!("{error:?}").contains("hush"), "{error:?}");
        }
        let error = post("https://h/\n?hush", "a/b", Bytes::new()).unwrap_err();
        assert!(!format!("{error:?}").contains("hush"), "{error:?}");
    }
}
