//! Decides the era of a message that arrives.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard},
};

use serde::{Deserialize, Serialize};
use turnbuckle_types::{
    Initialize, InvalidMeta, Meta, Method, Raw, Revision, RpcError, code, jsonrpc::Params,
};

/// How a request is to be served.
#[derive(Debug)]
pub(crate) enum RequestRoute {
    /// It declares a modern revision: everything it needs is in it.
    Modern(Envelope),
    /// It belongs to a connection that was opened by a handshake, or opens one.
    Legacy(Arc<Meta>),
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
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) revision: Revision,
    pub(crate) meta: Arc<Meta>,
}

/// Classifies requests, and recognizes a modern `_meta` that was checked before.
///
/// A client sends the same `_meta` with nearly all of its requests, so that most of them need neither
/// parsing nor checks. A text has one place, which follows from its length; a later text of that place
/// replaces it.
#[derive(Default)]
pub(crate) struct EnvelopeCache {
    places: [Mutex<Option<KnownEnvelope>>; 8],
    /// The `_meta` of requests without one.
    empty: Arc<Meta>,
}

/// A `_meta` that was checked, with a buffer of its own.
struct KnownEnvelope {
    text: Raw,
    envelope: Envelope,
}

/// The `_meta` of a request.
pub(super) struct RequestMeta {
    meta: Arc<Meta>,
    /// The text that `meta` was read from, if it can be kept.
    text: Option<Raw>,
    /// The revision that it declares, if the same text was checked before.
    known: Option<Revision>,
}

impl RequestMeta {
    /// Returns the declared revision, or the text in its place.
    pub(super) fn protocol_version(&self) -> Result<Option<Cow<'_, str>>, InvalidMeta> {
        match self.known {
            Some(revision) => Ok(Some(Cow::Borrowed(revision.as_str()))),
            None => self.meta.protocol_version(),
        }
    }
}

impl EnvelopeCache {
    /// The length of the longest text that is kept.
    const LONGEST: usize = 1024;

    /// Routes a request by what its `_meta` declares, whatever its method.
    pub(crate) fn classify(
        &self,
        method: &str,
        params: &Params,
        served: &[Revision],
    ) -> Result<RequestRoute, RpcError> {
        self.route(method, self.read(params)?, served)
    }

    /// Routes a request of a connection that a handshake has opened: unless it declares a revision of
    /// its own, it is in the one that was agreed on, even if only the other era knows its method.
    pub(crate) fn classify_opened(
        &self,
        method: &str,
        params: &Params,
        served: &[Revision],
    ) -> Result<RequestRoute, RpcError> {
        let meta = self.read(params)?;
        match meta.protocol_version() {
            Ok(None) => Ok(RequestRoute::Legacy(meta.meta)),
            _ => self.route(method, meta, served),
        }
    }

    /// Reads the `_meta` of a request.
    pub(super) fn read(&self, params: &Params) -> Result<RequestMeta, RpcError> {
        let Some(raw) = &params.meta else {
            return Ok(RequestMeta { meta: self.empty.clone(), text: None, known: None });
        };
        if let Some(place) = self.place(raw)
            && let Some(known) = &*place
            && known.text == *raw
        {
            let Envelope { revision, meta } = &known.envelope;
            return Ok(RequestMeta { meta: meta.clone(), text: None, known: Some(*revision) });
        }
        // A copy, because a text that is kept must not keep the receive buffer.
        let is_short = raw.as_str().len() <= EnvelopeCache::LONGEST;
        let text = is_short.then(|| Raw::from_encoded(raw.as_str().into())).flatten();
        let meta = read_meta(text.as_ref().unwrap_or(raw))?.into();
        Ok(RequestMeta { meta, text, known: None })
    }

    /// [`classify`](EnvelopeCache::classify) for a request whose `_meta` has been read.
    pub(super) fn route(
        &self,
        method: &str,
        request: RequestMeta,
        served: &[Revision],
    ) -> Result<RequestRoute, RpcError> {
        let declared = request.protocol_version().map_err(|error| invalid(&error))?;
        let Some(version) = declared else {
            return undeclared(method, request.meta);
        };
        let revision = match request.known.or_else(|| version.parse().ok()) {
            Some(revision) if revision.has_request_metadata() && served.contains(&revision) => {
                revision
            }
            _ => return Err(unsupported(&version, served)),
        };
        drop(version);
        let RequestMeta { meta, text, known } = request;
        let envelope = Envelope { revision, meta };
        if known.is_none() {
            check(&envelope.meta)?;
            self.keep(text, &envelope);
        }
        Ok(RequestRoute::Modern(envelope))
    }

    /// Keeps a `_meta` that was checked, unless it has entries that differ with each request.
    fn keep(&self, text: Option<Raw>, envelope: &Envelope) {
        let is_fixed = |key| {
            let keys = [Meta::PROTOCOL_VERSION, Meta::CLIENT_CAPABILITIES, Meta::CLIENT_INFO];
            keys.contains(&key)
        };
        if let Some(text) = text.filter(|_| envelope.meta.iter().all(|(key, _)| is_fixed(key)))
            && let Some(mut place) = self.place(&text)
        {
            *place = Some(KnownEnvelope { text, envelope: envelope.clone() });
        }
    }

    /// Returns the place of a text; `None` if it is in use.
    fn place(&self, text: &Raw) -> Option<MutexGuard<'_, Option<KnownEnvelope>>> {
        self.places[text.as_str().len() % self.places.len()].try_lock().ok()
    }
}

/// Reads the `_meta` of a request that is not modern, or has not been classified yet.
#[cfg(any(test, feature = "http"))]
pub(super) fn meta_of(params: &Params) -> Result<Meta, RpcError> {
    params.meta.as_ref().map_or_else(|| Ok(Meta::new()), read_meta)
}

fn read_meta(raw: &Raw) -> Result<Meta, RpcError> {
    Meta::from_raw(raw).map_err(|error| RpcError::invalid_params(format!("`_meta`: {error}")))
}

/// Checks the entries that a modern request has besides its revision.
fn check(meta: &Meta) -> Result<(), RpcError> {
    // 2026-07-28 basic/index §_meta: the capabilities are required on every request.
    match meta.value(Meta::CLIENT_CAPABILITIES) {
        Some(capabilities) if capabilities.is_object() => {}
        Some(_) => return Err(missing_key(Meta::CLIENT_CAPABILITIES, "must be an object")),
        None => return Err(missing_key(Meta::CLIENT_CAPABILITIES, "is missing")),
    }
    let Some(info) = meta.value(Meta::CLIENT_INFO) else { return Ok(()) };
    // The least that an `Implementation` has.
    #[derive(Deserialize)]
    struct Info<'a> {
        #[serde(borrow, rename = "name")]
        _name: Cow<'a, str>,
        #[serde(borrow, rename = "version")]
        _version: Cow<'a, str>,
    }
    match info.decode_borrowed::<Info<'_>>() {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!("is not an object with `name` and `version`: {error}");
            Err(missing_key(Meta::CLIENT_INFO, &message))
        }
    }
}

/// A method that only the modern era has can't be meant otherwise: it lacks its envelope.
fn undeclared(method: &str, meta: Arc<Meta>) -> Result<RequestRoute, RpcError> {
    if Method::from_name(method).is_some_and(Method::is_modern_only) {
        return Err(missing_key(Meta::PROTOCOL_VERSION, "is missing"));
    }
    Ok(RequestRoute::Legacy(meta))
}

fn missing_key(key: &str, what: &str) -> RpcError {
    RpcError::invalid_params(format!("`params._meta[\"{key}\"]` {what}"))
}

pub(crate) fn invalid(error: &InvalidMeta) -> RpcError {
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
    use super::*;

    const VERSION: &str = Meta::PROTOCOL_VERSION;
    const CAPABILITIES: &str = Meta::CLIENT_CAPABILITIES;

    fn route(method: &str, meta: &str) -> Result<RequestRoute, RpcError> {
        let params = format!(r#"{{"_meta":{meta}}}"#);
        let params = Params::of(Raw::from_json(params).unwrap()).unwrap();
        EnvelopeCache::default().classify(method, &params, &Revision::ALL)
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
            EnvelopeCache::default().classify_opened(method, &params, &Revision::ALL)
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
    fn a_text_that_was_checked_before_is_classified_in_the_same_way() {
        let known = EnvelopeCache::default();
        let params = |info: &str| {
            let client_info = Meta::CLIENT_INFO;
            let text = format!(
                r#"{{"_meta":{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{{}},"{client_info}":{info}}}}}"#
            );
            Params::of(Raw::from_json(text).unwrap()).unwrap()
        };
        let good = params(r#"{"name":"a","version":"1"}"#);
        for is_known in [false, true] {
            assert_eq!(known.read(&good).unwrap().known.is_some(), is_known);
            let Ok(RequestRoute::Modern(envelope)) =
                known.classify("tools/list", &good, &Revision::ALL)
            else {
                panic!("{is_known}")
            };
            assert_eq!(envelope.revision, Revision::V2026_07_28);
            assert_eq!(*envelope.meta, meta_of(&good).unwrap());
        }
        let legacy_only = known.classify("tools/list", &good, &[Revision::V2025_11_25]);
        assert_eq!(legacy_only.unwrap_err().code, code::UNSUPPORTED_VERSION);
        // One of the same length, and so of the same place.
        let bad = params(r#"{"name":"a","Version":"1"}"#);
        let error = known.classify("tools/list", &bad, &Revision::ALL).unwrap_err();
        assert!(error.message.contains("`version`"), "{}", error.message);
        let other = params(r#"{"name":"b","version":"1"}"#);
        assert!(known.classify("tools/list", &other, &Revision::ALL).is_ok());
        assert_eq!(known.read(&good).unwrap().known, None, "the later one has its place");
    }

    #[test]
    fn long_texts_and_entries_of_one_request_are_not_kept() {
        let known = EnvelopeCache::default();
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(EnvelopeCache::LONGEST));
        for (capabilities, rest) in [("{}", r#","progressToken":1"#), (&long, "")] {
            let text = format!(
                r#"{{"_meta":{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{capabilities}{rest}}}}}"#
            );
            let params = Params::of(Raw::from_json(text).unwrap()).unwrap();
            assert!(known.classify("tools/list", &params, &Revision::ALL).is_ok());
            assert_eq!(known.read(&params).unwrap().known, None);
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
