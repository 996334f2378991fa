//! Owns how facts of a request are repeated in HTTP headers: their names, the codec of their
//! values, and whether they agree with the body. Does not own which arguments of a tool are
//! repeated: `annotations` does.

use std::borrow::Cow;

use http::HeaderName;
#[cfg(feature = "server")]
use http::{HeaderMap, HeaderValue, header::AsHeaderName};
#[cfg(feature = "server")]
use turnbuckle_types::{RpcError, code};

/// The revision.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What the method is about: a tool's or prompt's name, a resource's address.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// What the header of an argument begins with.
pub(crate) const PARAM: &str = "mcp-param-";

const SENTINEL: (&str, &str) = ("=?base64?", "?=");

/// What is there under one name.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum HeaderLookup<'a> {
    Absent,
    Once(&'a HeaderValue),
    /// Two components on the way may each believe another of them.
    Several,
}

/// Looks for a header.
#[cfg(feature = "server")]
pub(crate) fn find(headers: &HeaderMap, name: impl AsHeaderName) -> HeaderLookup<'_> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => HeaderLookup::Absent,
        (Some(value), None) => HeaderLookup::Once(value),
        (Some(_), Some(_)) => HeaderLookup::Several,
    }
}

/// A value as a header carries it.
#[cfg(feature = "client")]
pub(crate) fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !value.starts_with(' ')
        && !value.ends_with(' ')
        && !is_sentinel(value);
    if plain {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{}{}{}", SENTINEL.0, base64_of(value), SENTINEL.1))
}

/// The value that a header carries; `None` if it is not one that `encode` could have made.
#[cfg(feature = "server")]
pub(crate) fn decode(header: &HeaderValue) -> Option<Cow<'_, str>> {
    let text = plain(header)?;
    if !is_sentinel(text) {
        return Some(Cow::Borrowed(text));
    }
    let inner = &text[SENTINEL.0.len()..text.len() - SENTINEL.1.len()];
    text_of(inner).map(Cow::Owned)
}

/// The text of a header that is never encoded.
#[cfg(feature = "server")]
pub(crate) fn plain(header: &HeaderValue) -> Option<&str> {
    header.to_str().ok().map(str::trim_ascii)
}

fn is_sentinel(value: &str) -> bool {
    value.len() >= SENTINEL.0.len() + SENTINEL.1.len()
        && value.starts_with(SENTINEL.0)
        && value.ends_with(SENTINEL.1)
}

#[cfg(feature = "client")]
fn base64_of(value: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(value)
}

#[cfg(feature = "server")]
fn text_of(base64: &str) -> Option<String> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

/// Checks that a required header is there once and says what the body says. Only a name may be
/// encoded: whoever routes by version or method reads them as they are.
#[cfg(feature = "server")]
pub(crate) fn agrees(
    headers: &HeaderMap,
    header: &HeaderName,
    body: Option<&str>,
) -> Result<(), RpcError> {
    let found = required(headers, header)?;
    let value = if *header == NAME { decode(found) } else { plain(found).map(Cow::Borrowed) };
    let Some(value) = value else {
        return Err(mismatch(format!(
            "the {} header is not validly encoded",
            spelt(header.as_str())
        )));
    };
    match body {
        Some(body) if body == value => Ok(()),
        Some(body) => Err(mismatch(format!(
            "the {} header says `{value}`, the body says `{body}`",
            spelt(header.as_str())
        ))),
        None => Err(mismatch(format!(
            "the {} header says `{value}`, the body says nothing",
            spelt(header.as_str())
        ))),
    }
}

/// A header that must be there, once.
#[cfg(feature = "server")]
pub(crate) fn required<'a>(
    headers: &'a HeaderMap,
    header: &HeaderName,
) -> Result<&'a HeaderValue, RpcError> {
    match find(headers, header) {
        HeaderLookup::Once(value) => Ok(value),
        HeaderLookup::Absent => {
            Err(mismatch(format!("the {} header is missing", spelt(header.as_str()))))
        }
        HeaderLookup::Several => Err(repeated(header.as_str())),
    }
}

/// −32020 for a header that came more than once.
#[cfg(feature = "server")]
pub(crate) fn repeated(header: &str) -> RpcError {
    mismatch(format!("the {} header came more than once", spelt(header)))
}

/// −32020.
#[cfg(feature = "server")]
pub(crate) fn mismatch(message: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}

/// A header's name as people write it.
#[cfg(feature = "server")]
pub(crate) fn spelt(header: &str) -> String {
    match header {
        "mcp-protocol-version" => "MCP-Protocol-Version".to_owned(),
        "mcp-method" => "Mcp-Method".to_owned(),
        "mcp-name" => "Mcp-Name".to_owned(),
        other => match other.strip_prefix(PARAM) {
            Some(argument) => format!("Mcp-Param-{argument}"),
            None => other.to_owned(),
        },
    }
}

#[cfg(all(test, feature = "client", feature = "server"))]
mod tests {
    use super::*;

    fn decoded(header: &[u8]) -> Option<String> {
        decode(&HeaderValue::from_bytes(header).unwrap()).map(Cow::into_owned)
    }

    #[test]
    fn values_are_spelt_as_the_specification_shows() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("a b", "a b"),
            ("", ""),
            ("a\tb", "=?base64?YQli?="),
        ] {
            assert_eq!(encode(value), header);
            assert_eq!(decoded(header.as_bytes()).unwrap(), value);
        }
    }

    #[test]
    fn what_only_looks_encoded_is_itself_and_what_is_broken_is_refused() {
        assert_eq!(decoded(b"SGVsbG8=").unwrap(), "SGVsbG8=");
        assert_eq!(decoded(b"=?base64?SGVsbG8=").unwrap(), "=?base64?SGVsbG8=");
        assert_eq!(decoded(b"=?BASE64?SGVsbG8=?=").unwrap(), "=?BASE64?SGVsbG8=?=");
        assert_eq!(decoded(b"  padded  ").unwrap(), "padded");
        for broken in [
            &b"=?base64?SGVsbG8?="[..],
            b"=?base64?SGVs!!!bG8=?=",
            b"=?base64?/w==?=",
            b"caf\xc3\xa9",
        ] {
            assert_eq!(decoded(broken), None, "{}", String::from_utf8_lossy(broken));
        }
        assert_eq!(decoded(b"=?base64?=").unwrap(), "=?base64?=");
    }

    #[test]
    fn a_header_must_be_there_once_and_say_what_the_body_says() {
        let said = |values: &[&'static str], body| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(NAME, HeaderValue::from_static(value));
            }
            agrees(&headers, &NAME, body)
        };
        assert!(said(&["add"], Some("add")).is_ok());
        for (values, body, names) in [
            (&[][..], Some("add"), "missing"),
            (&["add", "add"], Some("add"), "more than once"),
            (&["Add"], Some("add"), "says `Add`"),
            (&["add"], None, "says nothing"),
            (&["=?base64?x?="], Some("x"), "encoded"),
        ] {
            let error = said(values, body).unwrap_err();
            assert_eq!(error.code, code::HEADER_MISMATCH);
            assert!(error.message.contains(names), "{}", error.message);
        }
    }
}
