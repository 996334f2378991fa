//! One HTTP request of either era: sent, redirected, and sent again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use tokio::time::timeout;

use super::{
    HttpClientShared, place,
    progress::SendProgress,
    redirect::{self, OwnHeaders},
    stack::{Body, HttpSender, PendingResponse, PostBody},
    timing::END_OF_BODY,
};
use crate::{
    error::{Closed, Error, Executed, Result},
    transport::http::session::client::CallState,
};

/// A request, with everything that is needed to send it again elsewhere.
pub(crate) struct HttpRequest {
    pub(crate) to: Uri,
    pub(crate) headers: HeaderMap,
    method: Method,
    message: Option<Bytes>,
    own: OwnHeaders,
    hops: usize,
}

impl HttpRequest {
    pub(crate) fn new(
        wire: &HttpClientShared,
        method: Method,
        headers: HeaderMap,
        message: Option<Bytes>,
    ) -> HttpRequest {
        let to = wire.address.clone();
        HttpRequest { to, headers, method, message, own: OwnHeaders::Kept, hops: 0 }
    }

    /// Adds headers of one call. None of them is the protocol's.
    pub(crate) fn with(mut self, extra: &[(HeaderName, HeaderValue)]) -> HttpRequest {
        for (name, value) in extra {
            self.headers.append(name, value.clone());
        }
        self
    }

    /// Starts to send it when the result is polled. `progress` follows the body.
    pub(crate) fn send(
        &self,
        wire: &HttpClientShared,
        stack: &HttpSender,
        progress: Option<Arc<SendProgress>>,
    ) -> PendingResponse {
        let body = self.message.clone().map_or_else(PostBody::empty, PostBody::new);
        let mut request = http::Request::new(body.telling(progress));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.to.clone();
        *request.headers_mut() = self.headers.clone();
        if self.own == OwnHeaders::Kept {
            wire.add_own(request.headers_mut());
        }
        stack.send(request)
    }

    /// Changes to the address that the response redirects to. Returns `false` if the response is
    /// no redirect; the error says why it is not followed.
    pub(crate) fn follow<B>(
        &mut self,
        wire: &HttpClientShared,
        response: &Response<B>,
    ) -> Result<bool> {
        let status = response.status();
        if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
            return Ok(false);
        }
        let location = response.headers().get(header::LOCATION).map(HeaderValue::as_bytes);
        let hop = redirect::judge(wire.redirects, &self.to, status, location, self.hops).map_err(
            |why| {
                let message = format!("{} did not answer: {why}", place(&self.to));
                Error::http(status.as_u16(), message)
            },
        )?;
        if hop.own_headers == OwnHeaders::Dropped {
            self.own = OwnHeaders::Dropped;
            redirect::drop_credentials(&mut self.headers);
        }
        self.to = hop.to;
        self.hops += 1;
        Ok(true)
    }
}

/// Sends a request and follows redirects, up to the head of the response. `call` is told how far
/// the request is.
pub(crate) async fn send(
    wire: &HttpClientShared,
    stack: &HttpSender,
    mut request: HttpRequest,
    call: Option<&CallState>,
) -> Result<Response<Body>> {
    loop {
        let sending = request.send(wire, stack, call.map(CallState::sending));
        let response = sending.await.map_err(|failure| failure.into_error(&place(&request.to)))?;
        if !request.follow(wire, &response)? {
            return Ok(response);
        }
        if call.is_some_and(CallState::is_given_up) {
            return Err(Closed::new("it was redirected after it was given up").error(Executed::No));
        }
    }
}

/// Sends a message that has no answer; the server has to accept it in time. A failure is logged.
pub(crate) async fn say(
    wire: &HttpClientShared,
    stack: &HttpSender,
    request: HttpRequest,
    within: Duration,
    what: &str,
) {
    match timeout(within, send(wire, stack, request, None)).await {
        Ok(Ok(response)) => {
            let status = response.status();
            if !status.is_success() {
                tracing::debug!(what, status = status.as_u16(), "a message was not accepted");
            }
            finish(response.into_body()).await;
        }
        Ok(Err(error)) => tracing::debug!(what, %error, "a message did not arrive"),
        Err(_) => tracing::debug!(what, "a message was not accepted in time"),
    }
}

/// Reads the rest of a body, within bounds, so that its connection can be used again.
pub(crate) async fn finish(mut body: Body) {
    let (mut left, longest) = END_OF_BODY;
    let rest = async {
        while let Some(Ok(chunk)) = std::future::poll_fn(|context| body.poll_chunk(context)).await {
            match left.checked_sub(chunk.len()) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = timeout(longest, rest).await;
}
