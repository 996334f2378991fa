//! The parts of an [`HttpService`] that the transport of revision 2024-11-05 shares: the allowed
//! hosts and origins, how a body is received, and how a response is written.

use std::{convert::Infallible, future::poll_fn, pin::pin, time::Duration};

use crate::{
    limits::Limits,
    transport::http::{
        server::{
            HttpBody, HttpService, answer, auth::protect::Protection, receive::Receiving,
            security::guard::Refusal,
        },
        session::SessionEndpoint,
    },
};
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, request};
use http_body::Body;
use turnbuckle_types::RpcError;

impl HttpService {
    pub(crate) fn host(&self) -> &dyn SessionEndpoint {
        &*self.0.host
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn keep_alive_window(&self) -> Duration {
        self.0.keep_alive
    }

    pub(crate) fn protection(&self) -> Option<&Protection> {
        self.0.protection.as_ref()
    }

    /// Returns why this service cannot serve.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.0.problem()
    }

    /// Returns the response to a request for a stream or to it that is refused by its head.
    pub(crate) fn refuse_head(&self, head: &request::Parts) -> Option<Response<HttpBody>> {
        let gate = &self.0.gate;
        if let Some(preflight) = gate.preflight(head) {
            return Some(preflight);
        }
        match head.method {
            Method::GET => gate.judge_caller(&head.uri, &head.headers),
            Method::POST => gate.judge_posted(head),
            _ => gate.judge_caller(&head.uri, &head.headers).or_else(|| {
                Some(answer::refused(Refusal {
                    status: StatusCode::METHOD_NOT_ALLOWED,
                    allow: Some("GET, POST"),
                    message: "this endpoint takes GET for its stream, and POST".into(),
                }))
            }),
        }
    }

    /// Returns the CORS headers of the response to this request.
    pub(crate) fn cors_headers(&self, request: &HeaderMap) -> Option<Box<HeaderMap>> {
        self.0.gate.sharing(request)
    }

    /// Receives the whole body. The error is the response to a body that is too long or too slow.
    /// Dropping the future stops receiving.
    pub(crate) async fn receive<B: Body>(&self, body: B) -> Result<Bytes, Response<HttpBody>> {
        let mut body = pin!(body);
        let mut receiving = Receiving::new(self.0.limits.body_bytes, self.0.memory.clone());
        poll_fn(|context| receiving.poll(body.as_mut(), context)).await.map_err(answer::refused)
    }
}

/// Creates a response with a JSON-RPC error.
pub(crate) fn refused(status: StatusCode, error: &RpcError) -> Response<HttpBody> {
    answer::error(status, None, error)
}

/// Creates the response to a message that is answered on the stream.
pub(crate) fn accepted() -> Response<HttpBody> {
    answer::empty(StatusCode::ACCEPTED)
}

/// Creates a response that is an event stream.
pub(crate) fn events(
    body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Response<HttpBody> {
    answer::events(HttpBody::other(body))
}
