//! Owns what an error of the server becomes on the other side of a bridge: codes that only one era
//! has, and those that are about the way to the server. Does not own errors of the bridge. Pure.

use serde::Deserialize;
use serde_json::json;
use turnbuckle_types::{ClientCapabilities, Era, Method, Raw, Revision, RpcError, code};

use super::{super::text, Sides};
use crate::envelope::question::{lacking, written_at};

/// What a client is told instead of an error.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Error(RpcError),
    /// A result that asks for input.
    Asks(Raw),
}

/// The request that failed.
#[derive(Clone, Copy)]
pub(crate) struct Failed<'a> {
    pub(crate) method: Option<Method>,
    pub(crate) params: &'a str,
    /// What its client can be asked.
    pub(crate) capabilities: &'a ClientCapabilities,
}

impl Sides {
    /// An error as the client gets it. Within an era it stays what it is, unless it is about how the
    /// bridge talks to the server.
    pub(crate) fn error(self, request: Failed<'_>, mut error: RpcError) -> Told {
        if let Some(error) = of_the_hop(&error) {
            return Told::Error(error);
        }
        // Nobody knows what codes of unknown methods mean.
        let Some(method) = request.method else { return Told::Error(error) };
        match (self.eras(), error.code) {
            ((Era::Modern, Era::Legacy), code::RESOURCE_NOT_FOUND) => {
                Told::Error(missing_resource(request.params, error, self.near))
            }
            ((Era::Modern, Era::Legacy), code::URL_ELICITATION_REQUIRED) => {
                pages(method, request, error, self.near)
            }
            ((Era::Legacy, Era::Modern), code::INVALID_PARAMS) if is_about_resource(&error) => {
                if matches!(method, Method::ReadResource | Method::Subscribe) {
                    error.code = self.near.resource_not_found();
                }
                Told::Error(error)
            }
            // A client of that era has no such code: what it sent can't be answered as it stands.
            ((Era::Legacy, Era::Modern), code::MISSING_CLIENT_CAPABILITY) => {
                error.code = code::INVALID_REQUEST;
                Told::Error(error)
            }
            _ => Told::Error(error),
        }
    }
}

/// Revisions and headers are agreed on with the bridge. A client that was told of those of another
/// hop would draw its conclusions for its own.
fn of_the_hop(error: &RpcError) -> Option<RpcError> {
    let what = match error.code {
        code::HEADER_MISMATCH => "the headers",
        code::UNSUPPORTED_VERSION => "the revision",
        _ => return None,
    };
    let message = &error.message;
    Some(RpcError::internal(format!(
        "the server behind this bridge does not take {what} of the bridge: {message}"
    )))
}

/// 2026-07-28 server/resources §Error Handling: another code, and the URI in its data.
fn missing_resource(params: &str, mut error: RpcError, near: Revision) -> RpcError {
    let uri = text::member(params, "uri");
    error.code = near.resource_not_found();
    error.data = match (&error.data, uri) {
        (None, Some(uri)) => Some(text::raw(text::with("{}", "uri", uri))),
        (Some(data), Some(uri)) if lacks_uri(data) => {
            Some(text::raw(text::with(data.as_str(), "uri", uri)))
        }
        _ => error.data.clone(),
    };
    error
}

fn lacks_uri(data: &Raw) -> bool {
    data.is_object() && text::member(data.as_str(), "uri").is_none()
}

fn is_about_resource(error: &RpcError) -> bool {
    error.data.as_ref().is_some_and(|data| text::member(data.as_str(), "uri").is_some())
}

/// 2025-11-25 client/elicitation §URL Elicitation Required Error: the request is to be made again
/// when pages have been visited. In the other era that is a result that asks for them, without a
/// state: the request as it is made again says everything.
fn pages(method: Method, request: Failed<'_>, mut error: RpcError, near: Revision) -> Told {
    #[derive(Deserialize)]
    struct Required {
        elicitations: Vec<Raw>,
    }
    let required = error.data.as_ref().and_then(|data| data.decode::<Required>().ok());
    let pages = required.map(|Required { elicitations }| elicitations).unwrap_or_default();
    if pages.is_empty() || !method.row().may_ask {
        error.code = code::INTERNAL_ERROR;
        return Told::Error(error);
    }
    let lacks = |page: &Raw| lacking(Method::Elicit, page.as_str(), request.capabilities, near);
    if pages.iter().any(|page| lacks(page).is_some()) {
        let data = json!({"requiredCapabilities": {"elicitation": {"url": {}}}});
        let message = error.message;
        return Told::Error(
            RpcError::new(code::MISSING_CLIENT_CAPABILITY, message).with_data(&data),
        );
    }
    let asked = pages.into_iter().zip(1..).map(|(page, number): (Raw, u32)| {
        let page = written_at(Method::Elicit, page, near);
        format!(r#""{number}":{{"method":"{}","params":{page}}}"#, Method::Elicit)
    });
    let asked = asked.collect::<Vec<_>>().join(",");
    Told::Asks(text::raw(format!(
        r#"{{"resultType":"input_required","inputRequests":{{{asked}}}}}"#
    )))
}

/// Whether the client has refused a page that [`Sides::error`] asked for; then there is no use in
/// making the request again.
pub(crate) fn refused(answers: &str) -> Option<RpcError> {
    #[derive(Deserialize)]
    struct Answer {
        action: turnbuckle_types::ElicitAction,
    }
    let answers: std::collections::BTreeMap<String, Answer> = serde_json::from_str(answers).ok()?;
    let accepted = turnbuckle_types::ElicitAction::Accept;
    answers.values().any(|answer| answer.action != accepted).then(|| {
        RpcError::internal("the server needs what was asked for, and that was not accepted")
    })
}
