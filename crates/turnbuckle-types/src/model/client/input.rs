//! Multi round-trip requests, of 2026-07-28: a result that asks for input first.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, MapAccess, Visitor},
};

use crate::{
    At, CallToolResult, CreateMessage, Elicit, Encode, Extra, GetPromptResult, ListRoots, Meta,
    Method, Named, Raw, ReadResourceResult, ResultType,
    wire::{
        json,
        read::{Word, member},
    },
};

model! {
    /// A result that asks for input before the request can go on.
    ///
    /// ```
    /// use turnbuckle_types::{InputRequiredResult, ListRoots, Named};
    /// let mut result = InputRequiredResult::new();
    /// result.input_requests = Some(Named::from_iter([("where", ListRoots::new().into())]));
    /// result.request_state = Some("sealed".into());
    /// ```
    pub struct InputRequiredResult {
        tag("resultType") = "input_required";
        optional {
            /// What is asked for, by names that the answers repeat.
            input_requests("inputRequests"): Option<Named<InputRequest>>,
            /// What the client sends back unread.
            request_state("requestState"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

/// One thing that a server asks for: a request without an id.
///
/// Its answer has no tag: whoever asked knows the type, and decodes the answer of the
/// same name from the retry's `inputResponses`.
///
/// ```
/// use turnbuckle_types::{InputKind, InputRequest};
/// let text = r#"{"method":"roots/list"}"#;
/// let request: InputRequest = serde_json::from_str(text).unwrap();
/// assert!(matches!(request.kind, InputKind::ListRoots(_)));
/// assert_eq!(serde_json::to_string(&request).unwrap(), text);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InputRequest {
    /// The method and its params.
    pub kind: InputKind,
    /// Members that the model has no field for.
    pub extra: Extra,
}

/// The method and the params of an [`InputRequest`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InputKind {
    /// `sampling/createMessage`
    CreateMessage(Box<CreateMessage>),
    /// `roots/list`
    ListRoots(ListRoots),
    /// `elicitation/create`
    Elicit(Box<Elicit>),
    /// A method that the model does not know, as it came.
    Other {
        /// The method's name.
        method: String,
        /// Its params.
        params: Option<Raw>,
    },
}

impl InputRequest {
    /// The method's name.
    pub fn method(&self) -> &str {
        match &self.kind {
            InputKind::CreateMessage(_) => Method::CreateMessage.as_str(),
            InputKind::ListRoots(_) => Method::ListRoots.as_str(),
            InputKind::Elicit(_) => Method::Elicit.as_str(),
            InputKind::Other { method, .. } => method,
        }
    }
}

impl From<InputKind> for InputRequest {
    fn from(kind: InputKind) -> InputRequest {
        InputRequest { kind, extra: Extra::new() }
    }
}

impl From<CreateMessage> for InputRequest {
    fn from(params: CreateMessage) -> InputRequest {
        InputKind::CreateMessage(Box::new(params)).into()
    }
}

impl From<ListRoots> for InputRequest {
    fn from(params: ListRoots) -> InputRequest {
        InputKind::ListRoots(params).into()
    }
}

impl<T: Into<Elicit>> From<T> for InputRequest {
    fn from(params: T) -> InputRequest {
        InputKind::Elicit(Box::new(params.into())).into()
    }
}

impl Encode for InputRequest {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        out.push(b'{');
        json::write_member("\"method\":", self.method(), at, out);
        let params = "\"params\":";
        match &self.kind {
            InputKind::CreateMessage(ask) => json::write_member(params, ask, at, out),
            InputKind::Elicit(ask) => json::write_member(params, ask, at, out),
            InputKind::ListRoots(ask) if ask.meta.is_absent(at) && ask.extra.is_empty() => {}
            InputKind::ListRoots(ask) => json::write_member(params, ask, at, out),
            InputKind::Other { params: None, .. } => {}
            InputKind::Other { params: Some(raw), .. } => json::write_member(params, raw, at, out),
        }
        self.extra.write_members(out);
        out.push(b'}');
    }
}

serialize!(InputRequest);

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<InputRequest, D::Error> {
        deserializer.deserialize_map(InputRequestVisitor)
    }
}

struct InputRequestVisitor;

impl<'de> Visitor<'de> for InputRequestVisitor {
    type Value = InputRequest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object (InputRequest) with a `method`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<InputRequest, A::Error> {
        let mut method: Option<String> = None;
        let mut params: Option<Option<Raw>> = None;
        let mut extra = Extra::new();
        while let Some(name) = access.next_key::<Word<'de>>()? {
            match name.as_str() {
                "method" => member(&mut method, &mut access, "method")?,
                "params" => member(&mut params, &mut access, "params")?,
                _ => extra.read(name, &mut access)?,
            }
        }
        let method = method.ok_or_else(|| A::Error::missing_field("method"))?;
        let kind = InputKind::decode(method, params.flatten()).map_err(A::Error::custom)?;
        Ok(InputRequest { kind, extra })
    }
}

impl InputKind {
    fn decode(method: String, params: Option<Raw>) -> serde_json::Result<InputKind> {
        let text = params.as_ref().map_or("{}", Raw::as_str);
        Ok(match Method::from_name(&method) {
            Some(Method::CreateMessage) => InputKind::CreateMessage(serde_json::from_str(text)?),
            Some(Method::ListRoots) => InputKind::ListRoots(serde_json::from_str(text)?),
            Some(Method::Elicit) => InputKind::Elicit(serde_json::from_str(text)?),
            _ => InputKind::Other { method, params },
        })
    }
}

/// What a request came back with that may ask for input.
///
/// ```
/// use turnbuckle_types::{Answer, CallToolResult, Raw};
/// let done = Raw::from_json(r#"{"content":[]}"#).unwrap();
/// assert!(matches!(Answer::<CallToolResult>::decode(&done), Ok(Answer::Complete(_))));
/// let asks = Raw::from_json(r#"{"resultType":"input_required"}"#).unwrap();
/// assert!(matches!(Answer::<CallToolResult>::decode(&asks), Ok(Answer::InputRequired(_))));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T> {
    /// It is done.
    Complete(T),
    /// It wants to know something first.
    InputRequired(InputRequiredResult),
}

impl<T: MayAsk> Answer<T> {
    /// Decodes a result, in one pass where it is complete. A kind of result that the
    /// core protocol does not define is an error.
    pub fn decode(result: &Raw) -> serde_json::Result<Answer<T>> {
        #[derive(Deserialize)]
        struct InputProbe {
            #[serde(rename = "resultType")]
            result_type: Option<ResultType>,
        }
        let complete = result.decode::<T>();
        let kind = match &complete {
            Ok(value) => value.result_type().cloned(),
            Err(_) => result.decode::<InputProbe>().ok().and_then(|probe| probe.result_type),
        };
        match kind {
            None | Some(ResultType::Complete) => complete.map(Answer::Complete),
            Some(ResultType::InputRequired) => result.decode().map(Answer::InputRequired),
            Some(ResultType::Other(kind)) => Err(serde_json::Error::custom(format_args!(
                "`{kind}` is not a kind of result that this method has"
            ))),
        }
    }
}

/// A result in whose place an [`InputRequiredResult`] may come.
pub trait MayAsk: DeserializeOwned {
    /// What kind of result it says it is.
    fn result_type(&self) -> Option<&ResultType>;
}

macro_rules! may_ask {
    ($($name:ident),+) => {
        $(
            impl MayAsk for $name {
                fn result_type(&self) -> Option<&ResultType> {
                    self.result_type.as_ref()
                }
            }
        )+
    };
}

may_ask!(CallToolResult, GetPromptResult, ReadResourceResult);
