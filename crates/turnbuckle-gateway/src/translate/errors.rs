//! Translation of the server's errors: codes that only one era has, and codes that concern only the
//! connection between the gateway and the server.

use serde::Deserialize;
use serde_json::json;
use turnbuckle::{
    __seam::{lacking, written_at},
    types::{ClientCapabilities, ElicitAction, Era, Method, Raw, Revision, RpcError, code},
};

use super::Revisions;
use crate::json;

/// The answer that a client gets for an error of the server.
#[derive(Debug, PartialEq)]
pub(crate) enum TranslatedError {
    Error(RpcError),
    /// A result that requires input.
    InputRequired(Raw),
}

/// The request that failed.
#[derive(Clone, Copy)]
pub(crate) struct FailedRequest<'a> {
    pub(crate) method: Option<Method>,
    pub(crate) params: &'a str,
    /// The capabilities of its client.
    pub(crate) capabilities: &'a ClientCapabilities,
}

impl Revisions {
    /// Translates an error. Within one era it stays the same, unless it concerns the connection
    /// between the gateway and the server.
    pub(crate) fn translate_error(
        self,
        request: FailedRequest<'_>,
        mut error: RpcError,
    ) -> TranslatedError {
        if let Some(error) = connection_error(&error) {
            return TranslatedError::Error(error);
        }
        // The meaning of a code depends on its method.
        let Some(method) = request.method else { return TranslatedError::Error(error) };
        match (self.eras(), error.code) {
            ((Era::Modern, Era::Legacy), code::RESOURCE_NOT_FOUND) => {
                TranslatedError::Error(resource_not_found(request.params, error, self.downstream))
            }
            ((Era::Modern, Era::Legacy), code::URL_ELICITATION_REQUIRED) => {
                url_elicitation_required(method, request, error, self.downstream)
            }
            ((Era::Legacy, Era::Modern), code::INVALID_PARAMS) if names_resource(&error) => {
                if matches!(method, Method::ReadResource | Method::Subscribe) {
                    error.code = self.downstream.resource_not_found();
                }
                TranslatedError::Error(error)
            }
            // The legacy era has no such code.
            ((Era::Legacy, Era::Modern), code::MISSING_CLIENT_CAPABILITY) => {
                error.code = code::INVALID_REQUEST;
                TranslatedError::Error(error)
            }
            _ => TranslatedError::Error(error),
        }
    }
}

/// Returns another error for one about the revision or the headers, which the gateway has chosen: the
/// client would look for the mistake in its own request.
fn connection_error(error: &RpcError) -> Option<RpcError> {
    let subject = match error.code {
        code::HEADER_MISMATCH => "the headers",
        code::UNSUPPORTED_VERSION => "the revision",
        _ => return None,
    };
    let message = &error.message;
    Some(RpcError::internal(format!(
        "the server behind this gateway does not accept {subject} of the gateway: {message}"
    )))
}

/// 2026-07-28 server/resources §Error Handling: another code, and the URI in its data.
fn resource_not_found(params: &str, mut error: RpcError, downstream: Revision) -> RpcError {
    let uri = json::member(params, "uri");
    error.code = downstream.resource_not_found();
    error.data = match (&error.data, uri) {
        (None, Some(uri)) => Some(json::raw(json::with("{}", "uri", uri))),
        (Some(data), Some(uri)) if lacks_uri(data) => {
            Some(json::raw(json::with(data.as_str(), "uri", uri)))
        }
        _ => error.data.clone(),
    };
    error
}

fn lacks_uri(data: &Raw) -> bool {
    data.is_object() && json::member(data.as_str(), "uri").is_none()
}

fn names_resource(error: &RpcError) -> bool {
    error.data.as_ref().is_some_and(|data| json::member(data.as_str(), "uri").is_some())
}

/// 2025-11-25 client/elicitation §URL Elicitation Required Error: the client retries the request when
/// the pages have been visited. In the modern era this is a result that requires input, without a
/// state, because the retried request has all that the server needs.
fn url_elicitation_required(
    method: Method,
    request: FailedRequest<'_>,
    mut error: RpcError,
    downstream: Revision,
) -> TranslatedError {
    #[derive(Deserialize)]
    struct Required {
        elicitations: Vec<Raw>,
    }
    let required = error.data.as_ref().and_then(|data| data.decode::<Required>().ok());
    let pages = required.map(|Required { elicitations }| elicitations).unwrap_or_default();
    if pages.is_empty() || !method.row().may_ask {
        error.code = code::INTERNAL_ERROR;
        return TranslatedError::Error(error);
    }
    let lacks =
        |page: &Raw| lacking(Method::Elicit, page.as_str(), request.capabilities, downstream);
    if pages.iter().any(|page| lacks(page).is_some()) {
        let data = json!({"requiredCapabilities": {"elicitation": {"url": {}}}});
        let error = RpcError::new(code::MISSING_CLIENT_CAPABILITY, error.message);
        return TranslatedError::Error(error.with_data(&data));
    }
    let requests = pages.into_iter().zip(1..).map(|(page, number): (Raw, u32)| {
        let page = written_at(Method::Elicit, page, downstream);
        format!(r#""{number}":{{"method":"{}","params":{page}}}"#, Method::Elicit)
    });
    let requests = requests.collect::<Vec<_>>().join(",");
    TranslatedError::InputRequired(json::raw(format!(
        r#"{{"resultType":"input_required","inputRequests":{{{requests}}}}}"#
    )))
}

/// Returns an error if the client has declined a page of [`Revisions::translate_error`]: retrying the
/// request would not help.
pub(crate) fn declined(answers: &str) -> Option<RpcError> {
    #[derive(Deserialize)]
    struct Answer {
        action: ElicitAction,
    }
    let answers: std::collections::BTreeMap<String, Answer> = serde_json::from_str(answers).ok()?;
    answers.values().any(|answer| answer.action != ElicitAction::Accept).then(|| {
        RpcError::internal(
            "the client declined the input that the server requires for this request",
        )
    })
}
