//! `_meta`: its entries, and the keys that the protocol gives a meaning to.

use std::{borrow::Cow, fmt};

use bytestring::ByteString;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    At, ClientCapabilities, Encode, Implementation, LogLevel, Raw, RelatedTask, RequestId,
    Revision,
    wire::{
        json,
        read::{self, Word},
    },
};

/// The `_meta` of a request, a result, a notification or a part of one.
///
/// An ordered list of keys and JSON text. An empty one is never written. Decoding
/// refuses a key that appears twice. Keys that a revision does not define are left
/// out when writing for it; anything that is not the protocol's own is always kept.
///
/// ```
/// use turnbuckle_types::{Meta, Revision};
/// let mut meta = Meta::new();
/// meta.set_protocol_version(Revision::LATEST.as_str());
/// meta.set_progress_token(7);
/// assert_eq!(meta.progress_token().unwrap(), Some(7.into()));
/// assert!(serde_json::from_str::<Meta>(r#"{"a":1,"a":2}"#).is_err());
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Meta(
    /// Invariant: the keys are distinct, and a reserved one is never an owned string.
    Vec<(Cow<'static, str>, Raw)>,
);

/// A reserved key of `_meta` whose value is not what the protocol says it is.
#[derive(Debug)]
pub struct InvalidMeta {
    /// The key.
    pub key: &'static str,
    cause: serde_json::Error,
}

/// A key of the protocol, and the revisions that define it.
struct Reserved {
    key: &'static str,
    since: Revision,
}

const fn always(key: &'static str) -> Reserved {
    Reserved { key, since: Revision::V2024_11_05 }
}

const fn since(since: Revision, key: &'static str) -> Reserved {
    Reserved { key, since }
}

/// Trace context has been in use longer than it has been written down.
const RESERVED: [Reserved; 11] = [
    since(Revision::V2026_07_28, Meta::PROTOCOL_VERSION),
    since(Revision::V2026_07_28, Meta::CLIENT_INFO),
    since(Revision::V2026_07_28, Meta::CLIENT_CAPABILITIES),
    since(Revision::V2026_07_28, Meta::LOG_LEVEL),
    since(Revision::V2026_07_28, Meta::SUBSCRIPTION_ID),
    since(Revision::V2026_07_28, Meta::SERVER_INFO),
    since(Revision::V2025_11_25, Meta::RELATED_TASK),
    always(Meta::PROGRESS_TOKEN),
    always(Meta::TRACEPARENT),
    always(Meta::TRACESTATE),
    always(Meta::BAGGAGE),
];

fn reserved(key: &str) -> Option<&'static Reserved> {
    RESERVED.iter().find(|reserved| reserved.key == key)
}

impl Meta {
    /// Asks for progress notifications.
    pub const PROGRESS_TOKEN: &'static str = "progressToken";
    /// The revision of a request.
    pub const PROTOCOL_VERSION: &'static str = "io.modelcontextprotocol/protocolVersion";
    /// Who sends a request.
    pub const CLIENT_INFO: &'static str = "io.modelcontextprotocol/clientInfo";
    /// What the sender of a request can do.
    pub const CLIENT_CAPABILITIES: &'static str = "io.modelcontextprotocol/clientCapabilities";
    /// Which log messages the sender of a request wants.
    pub const LOG_LEVEL: &'static str = "io.modelcontextprotocol/logLevel";
    /// Which subscription a notification or its end belongs to.
    pub const SUBSCRIPTION_ID: &'static str = "io.modelcontextprotocol/subscriptionId";
    /// Who answers.
    pub const SERVER_INFO: &'static str = "io.modelcontextprotocol/serverInfo";
    /// Which task a message belongs to.
    pub const RELATED_TASK: &'static str = "io.modelcontextprotocol/related-task";
    /// W3C trace context.
    pub const TRACEPARENT: &'static str = "traceparent";
    /// W3C trace context, vendors' part.
    pub const TRACESTATE: &'static str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &'static str = "baggage";

    /// No entries.
    pub const fn new() -> Meta {
        Meta(Vec::new())
    }

    /// Decodes the text of a `_meta`. The values share the text's buffer.
    ///
    /// ```
    /// use turnbuckle_types::{Meta, Raw};
    /// let raw = Raw::from_json(r#"{"progressToken":"a"}"#).unwrap();
    /// assert_eq!(Meta::from_raw(&raw).unwrap().progress_token().unwrap(), Some("a".into()));
    /// ```
    pub fn from_raw(raw: &Raw) -> serde_json::Result<Meta> {
        let base = ByteString::try_from(raw.clone().into_bytes()).ok();
        serde_json::Deserializer::from_str(raw.as_str()).deserialize_map(MetaVisitor { base })
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> + Clone {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// The value of any key.
    pub fn value(&self, key: &str) -> Option<&Raw> {
        self.iter().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    /// Sets the value of any key.
    pub fn insert(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Raw>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(found, _)| *found == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((reserved(&key).map_or(key, |known| known.key.into()), value)),
        }
    }

    /// Takes any key out.
    pub fn remove(&mut self, key: &str) -> Option<Raw> {
        let index = self.0.iter().position(|(found, _)| found == key)?;
        Some(self.0.remove(index).1)
    }

    /// The progress token of a request.
    pub fn progress_token(&self) -> Result<Option<RequestId>, InvalidMeta> {
        self.decode(Meta::PROGRESS_TOKEN)
    }

    /// Sets [`progress_token`](Meta::progress_token).
    pub fn set_progress_token(&mut self, token: impl Into<RequestId>) {
        self.set(Meta::PROGRESS_TOKEN, &token.into());
    }

    /// The revision of a request, or whatever string stands for one.
    pub fn protocol_version(&self) -> Result<Option<Cow<'_, str>>, InvalidMeta> {
        self.text(Meta::PROTOCOL_VERSION)
    }

    /// Sets [`protocol_version`](Meta::protocol_version).
    pub fn set_protocol_version(&mut self, version: &str) {
        self.set(Meta::PROTOCOL_VERSION, version);
    }

    /// Who sends a request.
    pub fn client_info(&self) -> Result<Option<Implementation>, InvalidMeta> {
        self.decode(Meta::CLIENT_INFO)
    }

    /// Sets [`client_info`](Meta::client_info).
    pub fn set_client_info(&mut self, info: &Implementation) {
        self.set(Meta::CLIENT_INFO, info);
    }

    /// What the sender of a request can do.
    pub fn client_capabilities(&self) -> Result<Option<ClientCapabilities>, InvalidMeta> {
        self.decode(Meta::CLIENT_CAPABILITIES)
    }

    /// Sets [`client_capabilities`](Meta::client_capabilities).
    pub fn set_client_capabilities(&mut self, capabilities: &ClientCapabilities) {
        self.set(Meta::CLIENT_CAPABILITIES, capabilities);
    }

    /// The least severe log messages that the sender of a request wants.
    pub fn log_level(&self) -> Result<Option<LogLevel>, InvalidMeta> {
        self.decode(Meta::LOG_LEVEL)
    }

    /// Sets [`log_level`](Meta::log_level).
    pub fn set_log_level(&mut self, level: LogLevel) {
        self.set(Meta::LOG_LEVEL, &level);
    }

    /// The id of the request that opened the subscription this belongs to.
    pub fn subscription_id(&self) -> Result<Option<RequestId>, InvalidMeta> {
        self.decode(Meta::SUBSCRIPTION_ID)
    }

    /// Sets [`subscription_id`](Meta::subscription_id).
    pub fn set_subscription_id(&mut self, id: impl Into<RequestId>) {
        self.set(Meta::SUBSCRIPTION_ID, &id.into());
    }

    /// Who answers.
    pub fn server_info(&self) -> Result<Option<Implementation>, InvalidMeta> {
        self.decode(Meta::SERVER_INFO)
    }

    /// Sets [`server_info`](Meta::server_info).
    pub fn set_server_info(&mut self, info: &Implementation) {
        self.set(Meta::SERVER_INFO, info);
    }

    /// The task that this belongs to.
    pub fn related_task(&self) -> Result<Option<RelatedTask>, InvalidMeta> {
        self.decode(Meta::RELATED_TASK)
    }

    /// Sets [`related_task`](Meta::related_task).
    pub fn set_related_task(&mut self, task: &RelatedTask) {
        self.set(Meta::RELATED_TASK, task);
    }

    /// W3C trace context.
    pub fn traceparent(&self) -> Result<Option<Cow<'_, str>>, InvalidMeta> {
        self.text(Meta::TRACEPARENT)
    }

    /// Sets [`traceparent`](Meta::traceparent).
    pub fn set_traceparent(&mut self, value: &str) {
        self.set(Meta::TRACEPARENT, value);
    }

    /// W3C trace context, vendors' part.
    pub fn tracestate(&self) -> Result<Option<Cow<'_, str>>, InvalidMeta> {
        self.text(Meta::TRACESTATE)
    }

    /// Sets [`tracestate`](Meta::tracestate).
    pub fn set_tracestate(&mut self, value: &str) {
        self.set(Meta::TRACESTATE, value);
    }

    /// W3C baggage.
    pub fn baggage(&self) -> Result<Option<Cow<'_, str>>, InvalidMeta> {
        self.text(Meta::BAGGAGE)
    }

    /// Sets [`baggage`](Meta::baggage).
    pub fn set_baggage(&mut self, value: &str) {
        self.set(Meta::BAGGAGE, value);
    }

    fn decode<T: DeserializeOwned>(&self, key: &'static str) -> Result<Option<T>, InvalidMeta> {
        let value = self.value(key).map(Raw::decode);
        value.transpose().map_err(|cause| InvalidMeta { key, cause })
    }

    fn text(&self, key: &'static str) -> Result<Option<Cow<'_, str>>, InvalidMeta> {
        let value = self.value(key).map(|raw| raw.decode_borrowed::<Word<'_>>());
        let word = value.transpose().map_err(|cause| InvalidMeta { key, cause })?;
        Ok(word.map(|word| word.0))
    }

    fn set<T: Encode + ?Sized>(&mut self, key: &'static str, value: &T) {
        // What the protocol puts under its own keys has the newest revision's shape.
        self.insert(key, Raw::at(value, Revision::LATEST));
    }

    fn at(&self, at: At) -> impl Iterator<Item = (&str, &Raw)> {
        self.iter().filter(move |(key, _)| reserved(key).is_none_or(|known| at.since(known.since)))
    }
}

impl Encode for Meta {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        json::write_object(self.at(at), at, out);
    }

    fn is_absent(&self, at: At) -> bool {
        self.at(at).next().is_none()
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.encode(At::Everything, serializer)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Meta, D::Error> {
        deserializer.deserialize_option(MetaVisitor { base: None })
    }
}

struct MetaVisitor {
    /// The text that the values are slices of, instead of copies.
    base: Option<ByteString>,
}

impl<'de> Visitor<'de> for MetaVisitor {
    type Value = Meta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object (`_meta`)")
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Meta, E> {
        Ok(Meta::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Meta, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Meta, A::Error> {
        let mut meta = Meta::new();
        while let Some(key) = access.next_key::<Word<'de>>()? {
            let key = match reserved(key.as_str()) {
                Some(known) => Cow::Borrowed(known.key),
                None => Cow::Owned(key.0.into_owned()),
            };
            let value = match &self.base {
                Some(base) => Raw::slice_of(base, access.next_value::<&RawValue>()?.get()),
                None => access.next_value()?,
            };
            meta.0.push((key, value));
        }
        match read::duplicate(meta.iter().map(|(key, _)| key)) {
            None => Ok(meta),
            Some(key) => Err(read::appears_twice(key)),
        }
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Display for InvalidMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`_meta` has an invalid `{}`: {}", self.key, self.cause)
    }
}

impl std::error::Error for InvalidMeta {}
