//! Decides the era of a message that arrives.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use turnbuckle_types::{Initialize, Meta, Method, Revision, RpcError, code, jsonrpc::Params};

/// How a request is to be served.
#[derive(Debug)]
pub(crate) enum RequestRoute {
    /// It declares a modern revision: everything it needs is in it.
    Modern(Envelope),
    /// It belongs to a connection that was opened by a handshake, or opens one.
    Legacy(Meta),
}

/// The handshake with which a legacy client opened a connection or a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientHello {
    /// The revision that was chosen.
    pub(crate) revision: Revision,
    /// The params of `initialize`.
    pub(crate) client: Initialize,
}

/// Proof that a request declared a modern revision that is served here.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) revision: Revision,
    pub(crate) meta: Meta,
}

/// Routes a request by what its `_meta` declares, whatever its method.
pub(crate) fn classify(
    method: &str,
    params: &Params,
    served: &[Revision],
) -> Result<RequestRoute, RpcError> {
    route(method, meta_of(params)?, served)
}

/// The `_meta` of a request.
pub(super) fn meta_of(params: &Params) -> Result<Meta, RpcError> {
    match &params.meta {
        Some(raw) => Meta::from_raw(raw)
            .map_err(|error| RpcError::invalid_params(format!("`_meta`: {error}"))),
        None => Ok(Meta::new()),
    }
}

/// [`classify`] for a request whose `_meta` has been read.
pub(super) fn route(
    method: &str,
    meta: Meta,
    served: &[Revision],
) -> Result<RequestRoute, RpcError> {
    let declared = meta.protocol_version().map_err(|error| invalid(&error))?;
    let Some(version) = declared else {
        return undeclared(method, meta);
    };
    let revision = match version.parse::<Revision>() {
        Ok(revision) if revision.has_request_metadata() && served.contains(&revision) => revision,
        _ => return Err(unsupported(&version, served)),
    };
    // 2026-07-28 basic/index §_meta: the capabilities are required on every request.
    match meta.value(Meta::CLIENT_CAPABILITIES) {
        Some(capabilities) if capabilities.is_object() => {}
        Some(_) => return Err(missing_key(Meta::CLIENT_CAPABILITIES, "must be an object")),
        None => return Err(missing_key(Meta::CLIENT_CAPABILITIES, "is missing")),
    }
    if let Some(info) = meta.value(Meta::CLIENT_INFO) {
        // The least that an `Implementation` has.
        #[derive(Deserialize)]
        struct Info<'a> {
            #[serde(borrow, rename = "name")]
            _name: Cow<'a, str>,
            #[serde(borrow, rename = "version")]
            _version: Cow<'a, str>,
        }
        info.decode_borrowed::<Info<'_>>().map_err(|error| {
            let message = format!("is not an object with `name` and `version`: {error}");
            missing_key(Meta::CLIENT_INFO, &message)
        })?;
    }
    drop(version);
    Ok(RequestRoute::Modern(Envelope { revision, meta }))
}

/// A method that only the modern era has can't be meant otherwise: it lacks its envelope.
/// Routes a request of a connection that a handshake has opened: unless it declares a revision of
/// its own, it is in the one that was agreed on, even if only the other era knows its method.
pub(crate) fn classify_opened(
    method: &str,
    params: &Params,
    served: &[Revision],
) -> Result<RequestRoute, RpcError> {
    let meta = meta_of(params)?;
    match meta.protocol_version() {
        Ok(None) => Ok(RequestRoute::Legacy(meta)),
        _ => route(method, meta, served),
    }
}

fn undeclared(method: &str, meta: Meta) -> Result<RequestRoute, RpcError> {
    if Method::from_name(method).is_some_and(Method::is_modern_only) {
        return Err(missing_key(Meta::PROTOCOL_VERSION, "is missing"));
    }
    Ok(RequestRoute::Legacy(meta))
}

fn missing_key(key: &str, what: &str) -> RpcError {
    RpcError::invalid_params(format!("`params._meta[\"{key}\"]` {what}"))
}

pub(crate) fn invalid(error: &turnbuckle_types::InvalidMeta) -> RpcError {
    RpcError::invalid_params(format!("`params._meta[\"{}\"]` is not valid: {error}", error.key))
}

/// −32022, with what is served here.
pub(crate) fn unsupported(requested: &str, served: &[Revision]) -> RpcError {
    #[derive(Serialize)]
    struct UnsupportedVersionData<'a> {
        supported: Vec<&'static str>,
        requested: &'a str,
    }
    let supported: Vec<_> = served.iter().rev().map(|revision| revision.as_str()).collect();
    let message = format!(
        "protocol version `{requested}` is not supported; use one of {}",
        supported.join(", ")
    );
    RpcError::new(code::UNSUPPORTED_VERSION, message)
        .with_data(&UnsupportedVersionData { supported, requested })
}

#[cfg(test)]
mod tests {
    use turnbuckle_types::Raw;

    use super::*;

    const VERSION: &str = Meta::PROTOCOL_VERSION;
    const CAPABILITIES: &str = Meta::CLIENT_CAPABILITIES;

    fn route(method: &str, meta: &str) -> Result<RequestRoute, RpcError> {
        let params = format!(r#"{{"_meta":{meta}}}"#);
        let params = Params::of(Raw::from_json(params).unwrap()).unwrap();
        classify(method, &params, &Revision::ALL)
    }

    #[test]
    fn a_declared_modern_revision_routes_any_method() {
        for method in ["tools/call", "initialize", "ping", "x/y"] {
            let meta = format!(r#"{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{{}}}}"#);
            let Ok(RequestRoute::Modern(envelope)) = route(method, &meta) else {
                panic!("{method}")
            };
            assert_eq!(envelope.revision, Revision::V2026_07_28);
        }
    }

    #[test]
    fn what_declares_nothing_is_legacy_unless_only_the_modern_era_has_it() {
        assert!(matches!(route("initialize", "{}"), Ok(RequestRoute::Legacy(_))));
        assert!(matches!(route("unheard/of", "{}"), Ok(RequestRoute::Legacy(_))));
        for method in ["server/discover", "subscriptions/listen"] {
            let error = route(method, "{}").unwrap_err();
            assert_eq!(error.code, code::INVALID_PARAMS);
            assert!(error.message.contains(VERSION), "{}", error.message);
        }
    }

    #[test]
    fn after_a_handshake_only_a_declaration_is_modern() {
        let classify = |method: &str, params: &str| {
            let params = Params::of(Raw::from_json(params.to_owned()).unwrap()).unwrap();
            classify_opened(method, &params, &Revision::ALL)
        };
        assert!(matches!(classify("server/discover", "{}"), Ok(RequestRoute::Legacy(_))));
        assert!(matches!(classify("tools/list", "{}"), Ok(RequestRoute::Legacy(_))));
        let meta = format!(r#"{{"_meta":{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{{}}}}}}"#);
        assert!(matches!(classify("tools/list", &meta), Ok(RequestRoute::Modern(_))));
    }

    #[test]
    fn an_unknown_or_legacy_version_is_refused_with_the_ones_served() {
        for version in ["1900-01-01", "2025-11-25", ""] {
            let meta = format!(r#"{{"{VERSION}":"{version}","{CAPABILITIES}":{{}}}}"#);
            let error = route("tools/list", &meta).unwrap_err();
            assert_eq!(error.code, code::UNSUPPORTED_VERSION);
            let data = error.data.unwrap().decode::<serde_json::Value>().unwrap();
            assert_eq!(data["requested"], version);
            assert_eq!(data["supported"][0], "2026-07-28");
        }
    }

    #[test]
    fn a_broken_envelope_is_invalid_params_that_name_the_key() {
        for (meta, named) in [
            (format!(r#"{{"{VERSION}":"2026-07-28"}}"#), CAPABILITIES),
            (format!(r#"{{"{VERSION}":"2026-07-28","{CAPABILITIES}":[]}}"#), CAPABILITIES),
            (format!(r#"{{"{VERSION}":5,"{CAPABILITIES}":{{}}}}"#), VERSION),
            (r#"{"a":1,"a":2}"#.to_owned(), "a"),
        ] {
            let error = route("tools/list", &meta).unwrap_err();
            assert_eq!(error.code, code::INVALID_PARAMS);
            assert!(error.message.contains(named), "{}", error.message);
        }
    }
}
