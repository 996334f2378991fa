//! The methods of `Client` that send requests.

mod any;
mod lists;
pub(crate) mod pager;
mod reading;
mod session;
mod tools;

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_types::{Encode, Method, Raw, ResultType, Revision, write_at};

pub use any::CustomMethod;
pub(super) use session::LogSetting;

use super::{
    Call, Client,
    cache::without_negative_ttl,
    call::{DecodeBy, Params, undecodable},
};
use crate::error::{Error, ErrorKind, Result};

impl Client {
    /// Creates the call of a method, which is refused in revisions without the method.
    pub(super) fn verb<T>(
        &self,
        method: Method,
        params: impl Encode + Send + Sync + 'static,
        decode: DecodeBy<T>,
    ) -> Call<T> {
        let call = Call::new(&self.0, method.as_str(), written(method, params), decode);
        call.needing(method).answering()
    }
}

/// Encodes params for the revision of the connection.
fn written(method: Method, params: impl Encode + Send + Sync + 'static) -> Params {
    Params::At(Arc::new(move |revision| {
        if !method.sent_by_client(revision) {
            return Err(lacking(method, revision));
        }
        let mut text = Vec::new();
        write_at(&params, revision, &mut text);
        // An empty object is left out.
        Ok(if text == b"{}" { String::new() } else { encoded(text) })
    }))
}

/// Returns the error for a method that the revision lacks, with the alternative.
fn lacking(method: Method, revision: Revision) -> Error {
    let instead = match method {
        Method::Ping => "; call `discover()` to see whether the server is there",
        Method::Discover => {
            "; what the server said about itself is in `server_info()` and `server_capabilities()`"
        }
        _ => "",
    };
    Error::refused(format!("`{method}` does not exist in revision {revision}{instead}"))
}

/// Returns the text of an object; empty for a value that encodes to null.
fn object(value: &impl Serialize) -> Result<String> {
    let mut text = Vec::with_capacity(128);
    match write_object(&mut text, value)? {
        EncodedParams::Object => Ok(encoded(text)),
        EncodedParams::Nothing => Ok(String::new()),
    }
}

/// The kind of an encoded value.
#[derive(PartialEq, Eq)]
enum EncodedParams {
    Object,
    /// Null.
    Nothing,
}

/// Appends the text of an object. After a null the caller has to truncate the text.
fn write_object(text: &mut Vec<u8>, value: &impl Serialize) -> Result<EncodedParams> {
    let begin = text.len();
    serde_json::to_writer(&mut *text, value).map_err(encoding)?;
    match &text[begin..] {
        b"null" => Ok(EncodedParams::Nothing),
        [b'{', ..] => {
            one_line(&mut text[begin..]);
            Ok(EncodedParams::Object)
        }
        _ => Err(Error::new(ErrorKind::Codec, "params and arguments must encode to a JSON object")),
    }
}

/// Replaces line breaks, which only raw JSON in the caller's value contains, as white space.
fn one_line(text: &mut [u8]) {
    if memchr::memchr2(b'\n', b'\r', text).is_some() {
        let breaks = text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r'));
        breaks.for_each(|byte| *byte = b' ');
    }
}

/// Converts the output of an encoder, which is valid UTF-8.
fn encoded(text: Vec<u8>) -> String {
    String::from_utf8(text).unwrap_or_default()
}

fn encoding(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Codec, format!("the value can't be encoded: {error}")).with_source(error)
}

/// Decodes a result that must be complete. Checks the kind of the result before it reports an error
/// in the content.
fn complete<T: DeserializeOwned>(
    method: Method,
    raw: &Raw,
    kind: fn(&T) -> Option<&ResultType>,
) -> Result<T> {
    match raw.decode::<T>() {
        Ok(result) => match kind(&result) {
            None | Some(ResultType::Complete) => Ok(result),
            Some(other) => Err(unexpected_kind(method, other)),
        },
        Err(error) => {
            if let Some(sound) = without_negative_ttl(raw) {
                return complete(method, &sound, kind);
            }
            #[derive(serde::Deserialize)]
            struct ResultPeek {
                #[serde(default, rename = "resultType")]
                kind: Option<ResultType>,
            }
            match raw.decode::<ResultPeek>().ok().and_then(|peek| peek.kind) {
                Some(kind) if kind != ResultType::Complete => Err(unexpected_kind(method, &kind)),
                _ => Err(undecodable(method.as_str(), &error)),
            }
        }
    }
}

fn unexpected_kind(method: Method, kind: &ResultType) -> Error {
    let message = match kind {
        ResultType::InputRequired => {
            format!(
                "the server wants input before it answers {method}, and this client has no way to give any"
            )
        }
        _ => {
            format!("the server answered {method} with a kind of result this client does not know")
        }
    };
    Error::protocol(message)
}

/// Returns the params of a request with a name and arguments.
fn call_params(name: &str, arguments: &impl Serialize) -> Result<String> {
    let mut text = Vec::with_capacity(name.len() + 128);
    text.extend_from_slice(br#"{"name":"#);
    serde_json::to_writer(&mut text, name).map_err(encoding)?;
    let named = text.len();
    text.extend_from_slice(br#","arguments":"#);
    if write_object(&mut text, arguments)? == EncodedParams::Nothing {
        text.truncate(named);
    }
    text.push(b'}');
    Ok(encoded(text))
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::RawValue};
    use turnbuckle_types::CallToolResult;

    use super::*;

    #[test]
    fn arguments_must_be_an_object_or_nothing() {
        assert_eq!(call_params("a\"", &()).unwrap(), r#"{"name":"a\""}"#);
        assert_eq!(
            call_params("a", &json!({"x": 1})).unwrap(),
            r#"{"name":"a","arguments":{"x":1}}"#
        );
        assert_eq!(call_params("a", &[1]).unwrap_err().kind(), ErrorKind::Codec);
        let raw = RawValue::from_string("{\n\"x\":1}".into()).unwrap();
        assert!(!call_params("a", &raw).unwrap().contains('\n'));
    }

    // req: extensions:client:claimed-result-undeclared-invalid
    #[test]
    fn a_kind_of_result_that_nobody_owns_is_an_error() {
        for kind in ["task", "example.com/claimed"] {
            let raw: Raw = json!({"resultType": kind, "content": []}).into();
            let error =
                complete::<CallToolResult>(Method::CallTool, &raw, |r| r.result_type.as_ref())
                    .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol);
            assert!(error.to_string().contains("does not know"), "{error}");
        }
    }

    #[test]
    fn a_result_that_wants_input_is_not_an_empty_success() {
        let raw: Raw = json!({"resultType": "input_required", "requestState": "s"}).into();
        let error = complete::<CallToolResult>(Method::CallTool, &raw, |r| r.result_type.as_ref())
            .unwrap_err();
        assert!(error.to_string().contains("wants input"), "{error}");
        let absent: Raw = json!({"content": []}).into();
        assert!(
            complete::<CallToolResult>(Method::CallTool, &absent, |r| r.result_type.as_ref())
                .is_ok()
        );
    }
}
