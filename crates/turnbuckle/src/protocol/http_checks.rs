//! Owns the order in which a request over HTTP is checked: headers against body, then what the
//! body declares. Does not own the checks themselves: `mirror` and `classify` do.

use super::classify::{EnvelopeCache, RequestMeta, RequestRoute, meta_of, unsupported};
use crate::protocol::headers::{
    HeaderLookup, {self},
};
use http::HeaderMap;
use std::borrow::Cow;
use turnbuckle_types::{Meta, Method, Revision, RpcError, jsonrpc::Params};

/// Routes a request that came over HTTP.
///
/// A request that fails in several ways is answered for the first: a header that is missing,
/// comes twice or contradicts the body; then an envelope that lacks something; then a version
/// that is not served. Whether there is such a method, and whether its params are right, is
/// checked after this, when the request is dispatched.
pub(crate) fn route_http_request(
    known: &EnvelopeCache,
    method: &str,
    params: &Params,
    headers: &HeaderMap,
    served: &[Revision],
) -> Result<RequestRoute, RpcError> {
    // What is wrong with it is said after the headers.
    let meta = known.read(params);
    let declared = meta.as_ref().ok().and_then(|meta| meta.protocol_version().unwrap_or_default());
    let header = match headers::find(headers, headers::VERSION) {
        HeaderLookup::Once(value) => headers::plain(value),
        HeaderLookup::Absent => None,
        HeaderLookup::Several => return Err(headers::repeated(headers::VERSION.as_str())),
    };
    if declared.is_none() && header.is_none_or(is_legacy) {
        return legacy(known, (method, params), meta, header, served);
    }
    if declared.is_some() {
        // They mostly agree. Otherwise this says why not.
        if declared.as_deref() != header {
            headers::agrees(headers, &headers::VERSION, declared.as_deref())?;
        }
    } else if let Some(version) = header
        && version.parse::<Revision>().is_err()
        && headers::find(headers, headers::METHOD) == HeaderLookup::Absent
    {
        // Nothing about it is modern but a version that nobody knows: that is what is wrong with it,
        // and clients of other makes look for these words.
        let mut error = unsupported(version, served);
        error.message = format!("Unsupported protocol version: {}", error.message).into();
        return Err(error);
    }
    headers::agrees(headers, &headers::METHOD, Some(method))?;
    if let Some(member) = Method::from_name(method).and_then(|method| method.row().mirrored) {
        let value = text_member(params, member);
        // A name that is none can't be repeated; the check of the params has a better message.
        if value.is_some() || headers::find(headers, headers::NAME) != HeaderLookup::Absent {
            headers::agrees(headers, &headers::NAME, value.as_deref())?;
        }
    }
    match (declared, header) {
        // The header alone says that it is modern: then the envelope is what lacks.
        (None, Some(version)) => match version.parse::<Revision>() {
            Ok(revision) if served.contains(&revision) => {
                known.route(method, meta?, served).and_then(|_| Err(undeclared()))
            }
            _ => Err(unsupported(version, served)),
        },
        _ => known.route(method, meta?, served),
    }
}

/// Whether a message over HTTP belongs to the legacy era: neither its header nor its body declares
/// a revision of its own, or the header one that opens with a handshake.
pub(crate) fn is_legacy_message(params: Option<&Params>, headers: &HeaderMap) -> bool {
    let header = match headers::find(headers, headers::VERSION) {
        HeaderLookup::Once(value) => headers::plain(value),
        HeaderLookup::Absent => None,
        HeaderLookup::Several => return false,
    };
    let declares = |params: &Params| {
        meta_of(params).is_ok_and(|meta| !matches!(meta.protocol_version(), Ok(None)))
    };
    header.is_none_or(is_legacy) && !params.is_some_and(declares)
}

/// Whether the header of a request without a message declares a modern revision.
pub(crate) fn is_modern_visit(headers: &HeaderMap) -> bool {
    let HeaderLookup::Once(value) = headers::find(headers, headers::VERSION) else { return false };
    let revision = headers::plain(value).and_then(|text| text.parse::<Revision>().ok());
    revision.is_some_and(|revision| revision.has_request_metadata())
}

fn is_legacy(version: &str) -> bool {
    version.parse::<Revision>().is_ok_and(|revision| revision.has_handshake())
}

fn undeclared() -> RpcError {
    RpcError::invalid_params(format!("`params._meta[\"{}\"]` is missing", Meta::PROTOCOL_VERSION))
}

/// A request that belongs to the other era, where that era is not served: the answer names
/// what is, because a legacy client has nothing else to show its user.
fn legacy(
    known: &EnvelopeCache,
    (method, params): (&str, &Params),
    meta: Result<RequestMeta, RpcError>,
    header: Option<&str>,
    served: &[Revision],
) -> Result<RequestRoute, RpcError> {
    if served.iter().any(|revision| revision.has_handshake()) {
        return known.route(method, meta?, served);
    }
    if Method::from_name(method) == Some(Method::Initialize) {
        let requested = text_member(params, "protocolVersion").unwrap_or_default();
        return Err(unsupported(&requested, served));
    }
    match header {
        Some(version) => Err(unsupported(version, served)),
        None => {
            let names: Vec<_> = served.iter().map(|revision| revision.as_str()).collect();
            Err(headers::mismatch(format!(
                "the MCP-Protocol-Version header is missing; this server speaks {}",
                names.join(", ")
            )))
        }
    }
}

/// The text of a member of the params, if it is a string.
fn text_member<'a>(params: &'a Params, member: &str) -> Option<Cow<'a, str>> {
    if member == "name" {
        return params.name.as_ref()?.text().ok();
    }
    let members: std::collections::HashMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(params.text()).ok()?;
    serde_json::from_str(members.get(member)?.get()).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use turnbuckle_types::{Raw, code};

    use super::*;

    const MODERN: &[Revision] = &[Revision::V2026_07_28];
    const VERSION: &str = Meta::PROTOCOL_VERSION;
    const CAPABILITIES: &str = Meta::CLIENT_CAPABILITIES;

    fn walk(
        method: &str,
        params: &str,
        headers: &[(HeaderName, &str)],
    ) -> Result<RequestRoute, i64> {
        let mut map = http::HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value.parse().unwrap());
        }
        let params = Params::of(Raw::from_json(params.to_owned()).unwrap()).unwrap();
        route_http_request(&EnvelopeCache::default(), method, &params, &map, MODERN)
            .map_err(|error| error.code)
    }

    fn sound(version: &str) -> String {
        format!(r#"{{"name":"a","_meta":{{"{VERSION}":"{version}","{CAPABILITIES}":{{}}}}}}"#)
    }

    const V: (HeaderName, &str) = (headers::VERSION, "2026-07-28");
    const CALL: (HeaderName, &str) = (headers::METHOD, "tools/call");
    const A: (HeaderName, &str) = (headers::NAME, "a");

    #[test]
    fn a_sound_request_is_modern_whatever_its_method() {
        let params = sound("2026-07-28");
        assert!(matches!(walk("tools/call", &params, &[V, CALL, A]), Ok(RequestRoute::Modern(_))));
        for method in ["initialize", "ping", "x/y"] {
            let headers = [V, (headers::METHOD, method)];
            assert!(
                matches!(walk(method, &params, &headers), Ok(RequestRoute::Modern(_))),
                "{method}"
            );
        }
    }

    // req: hosting:http:modern:envelope-missing-key-status-400
    #[test]
    fn the_first_thing_that_is_wrong_is_the_answer() {
        const V999: (HeaderName, &str) = (headers::VERSION, "v999.0.0");
        for (params, headers, expected) in [
            // Headers come before everything that the body lacks.
            (sound("2026-07-28"), &[CALL, A][..], code::HEADER_MISMATCH),
            (sound("2026-07-28"), &[V, A], code::HEADER_MISMATCH),
            (sound("2026-07-28"), &[V, CALL], code::HEADER_MISMATCH),
            (sound("2026-07-28"), &[V, V, CALL, A], code::HEADER_MISMATCH),
            (sound("2026-07-28"), &[V, CALL, CALL, A], code::HEADER_MISMATCH),
            (sound("2026-07-28"), &[V, CALL, A, A], code::HEADER_MISMATCH),
            (sound("2026-07-28"), &[V, (headers::METHOD, "TOOLS/CALL"), A], code::HEADER_MISMATCH),
            // Only a name may be encoded.
            (
                sound("2026-07-28"),
                &[V, (headers::METHOD, "=?base64?dG9vbHMvY2FsbA==?="), A],
                code::HEADER_MISMATCH,
            ),
            (sound("2026-07-28"), &[V, CALL, (headers::NAME, "b")], code::HEADER_MISMATCH),
            (sound("v999.0.0"), &[V, CALL, A], code::HEADER_MISMATCH),
            (r#"{"name":"a"}"#.into(), &[V, A], code::HEADER_MISMATCH),
            // Then the envelope.
            (r#"{"name":"a"}"#.into(), &[V, CALL, A], code::INVALID_PARAMS),
            (r#"{"name":"a","_meta":{}}"#.into(), &[V, CALL, A], code::INVALID_PARAMS),
            (
                format!(r#"{{"name":"a","_meta":{{"{VERSION}":"2026-07-28"}}}}"#),
                &[V, CALL, A],
                code::INVALID_PARAMS,
            ),
            (
                format!(r#"{{"name":"a","_meta":{{"{VERSION}":7}}}}"#),
                &[V, CALL, A],
                code::INVALID_PARAMS,
            ),
            // Then the version.
            (sound("v999.0.0"), &[V999, CALL, A], code::UNSUPPORTED_VERSION),
            (r#"{"name":"a"}"#.into(), &[V999, CALL, A], code::UNSUPPORTED_VERSION),
            (r#"{"name":"a"}"#.into(), &[V999], code::UNSUPPORTED_VERSION),
            (sound("v999.0.0"), &[V999], code::HEADER_MISMATCH),
            (
                r#"{"name":"a"}"#.into(),
                &[(headers::VERSION, "2025-11-25")],
                code::UNSUPPORTED_VERSION,
            ),
            (r#"{"name":"a"}"#.into(), &[], code::HEADER_MISMATCH),
        ] {
            assert_eq!(
                walk("tools/call", &params, headers).unwrap_err(),
                expected,
                "{params} {headers:?}"
            );
        }
    }

    #[test]
    fn a_name_that_is_not_text_is_refused_with_the_params() {
        let params = sound("2026-07-28").replace(r#""a""#, "5");
        assert!(walk("tools/call", &params, &[V, CALL]).is_ok());
        assert_eq!(walk("tools/call", &params, &[V, CALL, A]).unwrap_err(), code::HEADER_MISMATCH);
    }

    #[test]
    fn a_legacy_client_is_told_what_is_spoken_here() {
        let params = r#"{"protocolVersion":"2025-11-25"}"#;
        let params = Params::of(Raw::from_json(params.to_owned()).unwrap()).unwrap();
        let known = EnvelopeCache::default();
        let error = route_http_request(&known, "initialize", &params, &HeaderMap::new(), MODERN)
            .unwrap_err();
        assert_eq!(error.code, code::UNSUPPORTED_VERSION);
        assert!(error.message.contains("2026-07-28"), "{}", error.message);
        let data: serde_json::Value = error.data.unwrap().decode().unwrap();
        assert_eq!(data["requested"], "2025-11-25");
    }

    #[test]
    fn what_a_resource_is_called_is_its_address() {
        const READ: (HeaderName, &str) = (headers::METHOD, "resources/read");
        let params = format!(
            r#"{{"uri":"file:///a%20b?c","_meta":{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{{}}}}}}"#
        );
        let said = |name| walk("resources/read", &params, &[V, READ, (headers::NAME, name)]);
        assert!(said("file:///a%20b?c").is_ok());
        assert_eq!(said("file:///a b?c").unwrap_err(), code::HEADER_MISMATCH);
    }
}
