//! The one pass over a line that finds the envelope and checks it.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    Fault, Frame, FrameRole, Message, Notification, Params, Request, Response, Retry, Text,
};
use crate::{Raw, RequestId, RpcError};

/// The length of the longest `method` that is read, in bytes of its JSON text.
const LONGEST_METHOD: usize = 1024;

/// Reads one message. `max_depth` bounds the nesting of arrays and objects.
///
/// The bytes must be one JSON value; white space around it is tolerated.
///
/// ```
/// use turnbuckle_types::jsonrpc::{Frame, Message, parse};
/// let line = br#"{"jsonrpc":"2.0","id":"7","method":"ping"}"#;
/// let Ok(Message::Single(Frame::Request(request))) = parse(line.to_vec().into(), 64) else { panic!() };
/// assert_eq!(request.id.to_string(), "\"7\"");
///
/// // Whatever is wrong, the id comes back with the error if it can be read.
/// let fault = parse((&br#"{"params":[1],"method":"ping","id":3,"jsonrpc":"2.0"}"#[..]).into(), 64).unwrap_err();
/// assert_eq!(fault.id, Some(3.into()));
/// assert_eq!(fault.error.code, -32600);
/// ```
pub fn parse(text: Bytes, max_depth: usize) -> Result<Message, Fault> {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return parse_line(text, max_depth);
    }
    // Outside strings a line break is white space, and inside it is an error.
    let mut spaced = text.to_vec();
    let mut at = 0;
    while let Some(byte) = spaced.get_mut(at) {
        match byte {
            b'\n' | b'\r' => *byte = b' ',
            b'"' => at = string_end(&spaced, at + 1),
            _ => {}
        }
        at += 1;
    }
    parse_line(spaced.into(), max_depth)
}

/// [`parse`] for text that is known to have no line break in it, as a line has none.
pub fn parse_line(line: Bytes, max_depth: usize) -> Result<Message, Fault> {
    let line = ByteString::try_from(line)
        .map_err(|_| nameless(RpcError::parse("the message is not valid UTF-8")))?;
    if too_deep(line.as_bytes(), max_depth) {
        let message = format!("the message nests deeper than the limit of {max_depth} levels");
        // Reading the envelope costs no stack, however deep its members are.
        let (id, role) = match frame(&line, &line) {
            Ok(Frame::Request(request)) => (Some(request.id), FrameRole::Request),
            Ok(Frame::Response(response)) => (response.id, FrameRole::Response),
            Ok(Frame::Notification(_)) => (None, FrameRole::Request),
            Err(fault) => (fault.id, fault.role),
        };
        return Err(Fault { id, role, error: RpcError::invalid_request(message) });
    }
    if line.trim_start().starts_with('[') {
        return batch(&line);
    }
    frame(&line, &line).map(Message::Single)
}

fn nameless(error: RpcError) -> Fault {
    Fault { id: None, role: FrameRole::Request, error }
}

fn batch(line: &ByteString) -> Result<Message, Fault> {
    let items: Vec<&RawValue> =
        serde_json::from_str(line).map_err(|error| nameless(syntax(&error)))?;
    if items.is_empty() {
        return Err(nameless(RpcError::invalid_request("a batch must not be empty")));
    }
    Ok(Message::Batch(items.into_iter().map(|item| frame(line, item.get())).collect()))
}

fn syntax(error: &serde_json::Error) -> RpcError {
    RpcError::parse(format!("the message is not valid JSON: {error}"))
}

/// Reads one frame from `text`, which is a slice of `line`.
fn frame(line: &ByteString, text: &str) -> Result<Frame, Fault> {
    let mut envelope = Envelope { text, ..Envelope::default() };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = EnvelopeSeed(&mut envelope)
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    let id = envelope.id.and_then(|token| RequestId::from_token(token.get()));
    let role =
        if envelope.method.is_none() && (envelope.result.is_some() || envelope.error.is_some()) {
            FrameRole::Response
        } else {
            FrameRole::Request
        };
    let judged = match read {
        Err(error) => Err(syntax(&error)),
        Ok(()) => envelope.judge(line, id.clone()),
    };
    judged.map_err(|error| Fault { id, role, error })
}

/// The members of the envelope, as they are found.
#[derive(Default)]
struct Envelope<'a> {
    text: &'a str,
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<ParamsFound<'a>>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// The first thing that was wrong. Reading goes on, because the id may come later.
    wrong: Option<&'static str>,
}

impl<'a> Envelope<'a> {
    fn judge(self, line: &ByteString, id: Option<RequestId>) -> Result<Frame, RpcError> {
        if let Some(wrong) = self.wrong {
            return Err(RpcError::invalid_request(wrong));
        }
        if self.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return Err(RpcError::invalid_request("`jsonrpc` must be \"2.0\""));
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => {
                let short = Some(method.get()).filter(|method| method.len() <= LONGEST_METHOD);
                let Some(method) = short.and_then(|method| string(line, method)) else {
                    return Err(RpcError::invalid_request(format!(
                        "`method` must be a string of at most {LONGEST_METHOD} bytes"
                    )));
                };
                let params = self.params.unwrap_or_default().resolve(line, self.text)?;
                match (self.id, id) {
                    (None, _) => Ok(Frame::Notification(Notification { method, params })),
                    (Some(_), Some(id)) => Ok(Frame::Request(Request { id, method, params })),
                    (Some(_), None) => Err(RpcError::invalid_request(format!(
                        "the id of a request must be a string of at most {} bytes or an integer",
                        RequestId::LONGEST
                    ))),
                }
            }
            (None, Some(result), None) => match id {
                Some(id) => {
                    let result = Raw::slice_of(line, result.get());
                    Ok(Frame::Response(Response { id: Some(id), outcome: Ok(result) }))
                }
                None => Err(RpcError::invalid_request("a result must carry the id it answers")),
            },
            (None, None, Some(error)) => {
                if id.is_none() && self.id.is_some_and(|token| token.get() != "null") {
                    return Err(RpcError::invalid_request(format!(
                        "the id of a response must be a string of at most {} bytes or an integer",
                        RequestId::LONGEST
                    )));
                }
                let error: RpcError = serde_json::from_str(error.get()).map_err(|error| {
                    RpcError::invalid_request(format!("`error` is not an error object: {error}"))
                })?;
                Ok(Frame::Response(Response { id, outcome: Err(error) }))
            }
            (None, Some(_), Some(_)) => {
                Err(RpcError::invalid_request("a response has a `result` or an `error`, not both"))
            }
            (Some(_), _, _) => Err(RpcError::invalid_request(
                "a message with a `method` can't have a `result` or an `error`",
            )),
            (None, None, None) => Err(RpcError::invalid_request(
                "a message needs a `method`, a `result` or an `error`",
            )),
        }
    }

    fn put(&mut self, slot: fn(&mut Self) -> &mut Option<&'a RawValue>, value: &'a RawValue) {
        if slot(self).replace(value).is_some() {
            self.wrong.get_or_insert("a member of the message appears twice");
        }
    }
}

/// The text of a JSON string token, as a slice wherever it has no escapes.
fn string(line: &ByteString, token: &str) -> Option<Text> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str::<String>(token).ok().map(Text::from);
    }
    Some(Text(line.slice_ref(inner)))
}

struct EnvelopeSeed<'e, 'a>(&'e mut Envelope<'a>);

impl<'de> DeserializeSeed<'de> for EnvelopeSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EnvelopeSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let envelope = self.0;
        while let Some(key) = map.next_key_seed(KeySeed)? {
            match &*key.text {
                "jsonrpc" => envelope.put(|e| &mut e.jsonrpc, map.next_value()?),
                "id" => envelope.put(|e| &mut e.id, map.next_value()?),
                "method" => envelope.put(|e| &mut e.method, map.next_value()?),
                "result" => envelope.put(|e| &mut e.result, map.next_value()?),
                "error" => envelope.put(|e| &mut e.error, map.next_value()?),
                "params" => {
                    if envelope.params.replace(map.next_value_seed(ParamsSeed)?).is_some() {
                        envelope.wrong.get_or_insert("`params` appears twice");
                    }
                }
                // JSON-RPC names every member; what else a peer adds is ignored.
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.not_an_object()
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.not_an_object()
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.not_an_object()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.not_an_object()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.not_an_object()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.not_an_object()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.not_an_object()
    }
}

impl EnvelopeSeed<'_, '_> {
    fn not_an_object<E>(self) -> Result<(), E> {
        self.0.wrong.get_or_insert("a JSON-RPC message must be an object");
        Ok(())
    }
}

impl Params {
    /// Looks at an object that did not come in a frame.
    pub fn of(raw: Raw) -> Result<Params, RpcError> {
        let line = raw.to_text();
        let found = ParamsSeed
            .deserialize(&mut serde_json::Deserializer::from_str(&line))
            .map_err(|error| syntax(&error))?;
        match found.kind {
            Kind::Object => found.resolve(&line, &line),
            _ => Err(RpcError::invalid_request("`params` must be an object")),
        }
    }
}

/// What one pass over `params` found.
#[derive(Default)]
struct ParamsFound<'a> {
    kind: Kind,
    meta: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    subject: Option<&'a RawValue>,
    input_responses: Option<&'a RawValue>,
    request_state: Option<&'a RawValue>,
    /// Where the object's first key and last value stand: they give its extent, which
    /// the parser does not tell, without a second pass.
    first_key: Option<&'a str>,
    last_value: Option<&'a str>,
    repeated: bool,
}

#[derive(Default, PartialEq)]
enum Kind {
    #[default]
    Absent,
    Object,
    Positional,
    Scalar,
}

impl<'a> ParamsFound<'a> {
    fn resolve(self, line: &ByteString, text: &'a str) -> Result<Params, RpcError> {
        match self.kind {
            Kind::Absent => return Ok(Params::default()),
            Kind::Positional => {
                return Err(RpcError::invalid_request(
                    "`params` must be an object, not positional",
                ));
            }
            Kind::Scalar => return Err(RpcError::invalid_request("`params` must be an object")),
            Kind::Object if self.repeated => {
                return Err(RpcError::invalid_request("a member of `params` appears twice"));
            }
            Kind::Object => {}
        }
        let object = match (self.first_key, self.last_value) {
            (Some(key), Some(value)) => {
                extent(text, key, value).map_or_else(|| again(text), Cow::Borrowed)
            }
            (None, None) => Cow::Borrowed("{}"),
            _ => again(text),
        };
        let raw = match object {
            Cow::Borrowed("{}") => Raw::empty_object(),
            Cow::Borrowed(object) => Raw::slice_of(line, object),
            Cow::Owned(object) => Raw::from_json(object).map_err(|error| syntax(&error))?,
        };
        let slice = |value: &RawValue| Raw::slice_of(line, value.get());
        Ok(Params {
            raw: Some(raw),
            meta: self.meta.map(slice),
            name: self.name.map(slice),
            arguments: self.arguments.map(slice),
            subject: self.subject.map(slice),
            retry: match (self.input_responses, self.request_state) {
                (None, None) => None,
                (responses, state) => Some(Box::new(Retry {
                    input_responses: responses.map(slice),
                    request_state: state.map(slice),
                })),
            },
        })
    }
}

/// The object in `text` whose first key and last value are these slices of it.
fn extent<'a>(text: &'a str, first_key: &str, last_value: &str) -> Option<&'a str> {
    let at = |part: &str| (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    let start = text.get(..at(first_key)?)?.strip_suffix('"')?.trim_end().strip_suffix('{')?.len();
    let rest = text.get(at(last_value)? + last_value.len()..)?;
    let end = text.len() - rest.trim_start().strip_prefix('}')?.len();
    text.get(start..end)
}

/// The rare way to the same object: its first key has escapes, so it is not a slice.
fn again(text: &str) -> Cow<'_, str> {
    #[derive(serde::Deserialize)]
    struct Only<'a> {
        #[serde(borrow)]
        params: &'a RawValue,
    }
    serde_json::from_str::<Only<'_>>(text)
        .map_or(Cow::Borrowed("{}"), |only| Cow::Owned(only.params.get().to_owned()))
}

struct ParamsSeed;

impl<'de> DeserializeSeed<'de> for ParamsSeed {
    type Value = ParamsFound<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ParamsSeed {
    type Value = ParamsFound<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = ParamsFound { kind: Kind::Object, ..ParamsFound::default() };
        let mut first = true;
        while let Some(key) = map.next_key_seed(KeySeed)? {
            if std::mem::take(&mut first) {
                found.first_key = key.slice;
            }
            let value: &RawValue = map.next_value()?;
            found.last_value = Some(value.get());
            let slot = match &*key.text {
                "_meta" => &mut found.meta,
                "name" => &mut found.name,
                "arguments" => &mut found.arguments,
                "requestId" | "progressToken" => &mut found.subject,
                "inputResponses" => &mut found.input_responses,
                "requestState" => &mut found.request_state,
                _ => continue,
            };
            found.repeated |= slot.replace(value).is_some();
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ParamsFound { kind: Kind::Positional, ..ParamsFound::default() })
    }

    // Some clients write `"params": null` where they mean none.
    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(ParamsFound::default())
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(ParamsFound { kind: Kind::Scalar, ..ParamsFound::default() })
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Self::Value, E> {
        self.visit_str("")
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Self::Value, E> {
        self.visit_str("")
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Self::Value, E> {
        self.visit_str("")
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
        self.visit_str("")
    }
}

/// A member's name, and where it stands if it has no escapes.
struct KeyFound<'a> {
    text: Cow<'a, str>,
    slice: Option<&'a str>,
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = KeyFound<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = KeyFound<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(KeyFound { text: Cow::Borrowed(text), slice: Some(text) })
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(KeyFound { text: Cow::Owned(text.to_owned()), slice: None })
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Self::Value, E> {
        Err(E::custom("a member name must be text"))
    }
}

/// Whether arrays and objects nest deeper than `max_depth`.
fn too_deep(text: &[u8], max_depth: usize) -> bool {
    // Fewer brackets than the limit can't nest past it: most messages end here.
    if memchr::memchr2_iter(b'{', b'[', text).nth(max_depth).is_none() {
        return false;
    }
    let (mut depth, mut at) = (0usize, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > max_depth {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = string_end(text, at + 1),
            _ => {}
        }
        at += 1;
    }
    false
}

/// The index of the quote that ends the string whose text begins at `at`.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}
