//! Owns the `_meta` of a request that leaves. Does not own the choice of the era: the
//! negotiation makes it, once, and hands over a stamp.

use turnbuckle_types::{ClientCapabilities, Implementation, Meta, Revision};

/// What a connection writes into every request.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    revision: Revision,
    /// The members of `_meta` that never change, as JSON text without braces.
    fixed: String,
}

/// Params with their `_meta`.
#[derive(Debug, PartialEq)]
pub(crate) struct Stamped {
    pub(crate) params: String,
    /// Where the progress token goes.
    pub(crate) token_at: Option<usize>,
}

/// Whether a call wants progress notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantsProgress {
    Yes,
    No,
}

impl Stamp {
    pub(crate) fn new(
        revision: Revision,
        info: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> Stamp {
        let mut fixed = String::new();
        if revision.has_request_metadata() {
            let mut meta = Meta::new();
            meta.set_protocol_version(revision.as_str());
            meta.set_client_info(info);
            meta.set_client_capabilities(capabilities);
            fixed = members(&meta);
        }
        Stamp { revision, fixed }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Adds `_meta` to `params`, which is the text of an object without one, or empty.
    /// The caller's own entries survive, except those that the protocol writes itself.
    pub(crate) fn apply(&self, params: &str, own: &Meta, progress: WantsProgress) -> Stamped {
        let own = self.allowed(own);
        if self.fixed.is_empty() && own.is_empty() && progress == WantsProgress::No {
            return Stamped { params: params.to_owned(), token_at: None };
        }
        let body = params.strip_suffix('}').unwrap_or("{").trim_end();
        let mut text = String::with_capacity(body.len() + self.fixed.len() + own.len() + 48);
        text.push_str(body);
        if !body.ends_with('{') {
            text.push(',');
        }
        text.push_str(r#""_meta":{"#);
        let token_at = (progress == WantsProgress::Yes).then_some(text.len());
        text.push_str(&self.fixed);
        if !self.fixed.is_empty() && !own.is_empty() {
            text.push(',');
        }
        text.push_str(&own);
        text.push_str("}}");
        Stamped { params: text, token_at }
    }

    fn allowed(&self, own: &Meta) -> String {
        if own.is_empty() {
            return String::new();
        }
        let mut own = own.clone();
        own.remove(Meta::PROGRESS_TOKEN);
        for key in [Meta::PROTOCOL_VERSION, Meta::CLIENT_INFO, Meta::CLIENT_CAPABILITIES] {
            own.remove(key);
        }
        members(&own)
    }
}

/// The text of an object without its braces.
fn members(meta: &Meta) -> String {
    let text = serde_json::to_string(meta).unwrap_or_default();
    text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(revision: Revision) -> Stamp {
        Stamp::new(revision, &Implementation::new("c", "1"), &ClientCapabilities::default())
    }

    #[test]
    fn a_modern_request_carries_its_envelope() {
        let stamped =
            stamp(Revision::LATEST).apply(r#"{"name":"a"}"#, &Meta::new(), WantsProgress::Yes);
        let value: serde_json::Value = serde_json::from_str(&stamped.params).unwrap();
        assert_eq!(value["name"], "a");
        assert_eq!(value["_meta"][Meta::PROTOCOL_VERSION], Revision::LATEST.as_str());
        assert_eq!(value["_meta"][Meta::CLIENT_INFO]["name"], "c");
        assert_eq!(value["_meta"][Meta::CLIENT_CAPABILITIES], serde_json::json!({}));
        assert!(stamped.params[..stamped.token_at.unwrap()].ends_with(r#""_meta":{"#));
    }

    #[test]
    fn a_legacy_request_carries_no_modern_word_and_no_empty_meta() {
        let stamp = stamp(Revision::V2025_11_25);
        let plain = stamp.apply(r#"{"name":"a"}"#, &Meta::new(), WantsProgress::No);
        assert_eq!(plain, Stamped { params: r#"{"name":"a"}"#.into(), token_at: None });
        assert_eq!(stamp.apply("", &Meta::new(), WantsProgress::No).params, "");
        let progress = stamp.apply("", &Meta::new(), WantsProgress::Yes);
        assert_eq!(progress, Stamped { params: r#"{"_meta":{}}"#.into(), token_at: Some(10) });
    }

    // req: lifecycle:stateless:caller-meta-preserved
    #[test]
    fn the_callers_own_meta_survives_except_what_the_protocol_writes() {
        let mut own = Meta::new();
        own.insert("example.com/trace", serde_json::json!("t"));
        own.set_protocol_version("1900-01-01");
        let stamped = stamp(Revision::LATEST).apply("{}", &own, WantsProgress::No);
        let value: serde_json::Value = serde_json::from_str(&stamped.params).unwrap();
        assert_eq!(value["_meta"]["example.com/trace"], "t");
        assert_eq!(value["_meta"][Meta::PROTOCOL_VERSION], Revision::LATEST.as_str());
        let legacy = stamp_text(Revision::V2025_06_18, &own);
        assert_eq!(legacy, r#"{"_meta":{"example.com/trace":"t"}}"#);
    }

    fn stamp_text(revision: Revision, own: &Meta) -> String {
        stamp(revision).apply("", own, WantsProgress::No).params
    }
}
