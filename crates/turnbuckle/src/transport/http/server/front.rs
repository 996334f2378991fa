//! Owns what an endpoint beside the main one has in common with it: who may call, how a body is
//! received, what a refusal looks like. Does not own what is asked for.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, request};
use http_body::Body;
use turnbuckle_types::RpcError;

use super::{
    super::guard::Refusal, HttpBody, HttpService, answer, gate::Gate, protect::Protection,
    receive::Receiving,
};
use crate::limits::Limits;

/// What stands before an endpoint that takes GET and POST.
#[derive(Clone)]
pub(crate) struct Front {
    gate: Gate,
    body_limit: usize,
    /// Bytes of bodies that are being received.
    held: Arc<AtomicUsize>,
    pub(crate) keep_alive: Duration,
    /// Whom it lets in, if not everyone.
    pub(crate) protection: Option<Protection>,
}

impl Front {
    /// Serves loopback names only.
    pub(crate) fn new(limits: &Limits, protection: Option<Protection>) -> Front {
        Front {
            gate: Gate::new(limits.body_bytes),
            body_limit: limits.body_bytes,
            held: Arc::default(),
            keep_alive: super::KEEP_ALIVE,
            protection,
        }
    }

    /// Serves whom that service serves.
    pub(super) fn of(service: &HttpService) -> Front {
        let endpoint = &service.0;
        Front {
            gate: endpoint.gate.clone(),
            body_limit: endpoint.limits.body_bytes,
            held: endpoint.held.clone(),
            keep_alive: endpoint.keep_alive,
            protection: endpoint.protection.clone(),
        }
    }

    pub(crate) fn allow_host(&mut self, host: String) {
        self.gate.allow_host(host);
    }

    pub(crate) fn allow_origin(&mut self, origin: String) {
        self.gate.allow_origin(origin);
    }

    pub(crate) fn allow_readers(&mut self, origins: impl Iterator<Item = String>) {
        self.gate.allow_readers(origins);
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.gate.problem()
    }

    /// The answer to a request that goes no further, judged by its head.
    pub(crate) fn judge(&self, head: &request::Parts) -> Option<Response<HttpBody>> {
        if let Some(preflight) = self.gate.preflight(head) {
            return Some(preflight);
        }
        match head.method {
            Method::GET => self.gate.judge_caller(&head.uri, &head.headers),
            Method::POST => self.gate.judge_posted(head),
            _ => self.gate.judge_caller(&head.uri, &head.headers).or_else(|| {
                Some(answer::refused(Refusal {
                    status: StatusCode::METHOD_NOT_ALLOWED,
                    allow: Some("GET, POST"),
                    message: "this endpoint takes GET for its stream, and POST".into(),
                }))
            }),
        }
    }

    /// What the answer gets so that pages may read it, or may not.
    pub(crate) fn sharing(&self, request: &HeaderMap) -> Option<Box<HeaderMap>> {
        self.gate.sharing(request)
    }

    /// The whole body, or the answer to one that is too long or too slow. Dropping the future stops
    /// receiving.
    pub(crate) async fn receive<B: Body>(&self, body: B) -> Result<Bytes, Response<HttpBody>> {
        let mut body = pin!(body);
        let mut receiving = Receiving::new(self.body_limit, self.held.clone());
        poll_fn(|context| receiving.poll(body.as_mut(), context)).await.map_err(answer::refused)
    }
}

/// An answer that says why there is no other.
pub(crate) fn refused(status: StatusCode, error: &RpcError) -> Response<HttpBody> {
    answer::error(status, None, error)
}

/// The answer to what is answered elsewhere.
pub(crate) fn accepted() -> Response<HttpBody> {
    answer::empty(StatusCode::ACCEPTED)
}

/// An answer that is an event stream.
pub(crate) fn events(
    body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Response<HttpBody> {
    answer::events(HttpBody::other(body))
}
