//! Serves one HTTP request: reads its body, starts its handler, and polls that until the response
//! begins.

use std::{
    convert::Infallible,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{
    Endpoint, HttpService, answer,
    body::HttpBody,
    receive::{Discarding, Receiving},
    response_stream::{Format, ResponseStream},
    running::{Polled, RunningHttpRequest},
};
use crate::{
    protocol::http_checks::is_legacy_message,
    rpc::{
        BoxFuture, HttpHead, Incoming, Note, Outcome, Permit, Replies, Reply, RequestOrigin, Serve,
        memory::{HeldBytes, MemoryBudget},
        panicked,
    },
    transport::http::session::server as legacy,
};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, request};
use http_body::Body;
use pin_project_lite::pin_project;
use turnbuckle_types::{
    Method, RequestId, RpcError,
    jsonrpc::{self, Fault, Frame, FrameRole, Message, Notification, Request},
};

pin_project! {
    /// The answer to one HTTP request.
    ///
    /// The handler runs in here, and in the body of the answer once that has begun: dropping
    /// either drops the handler, which is how a request over HTTP is cancelled. Requests of
    /// sessions, which only the legacy era has, go on without either.
    ///
    /// ```
    /// use turnbuckle::http::{HttpBody, HttpFuture};
    /// fn is_a_future<B: http_body::Body + Send>(future: HttpFuture<B>) -> impl Future + Send {
    ///     future
    /// }
    /// # let _ = is_a_future::<HttpBody>;
    /// ```
    #[must_use = "nothing is served until this is polled"]
    pub struct HttpFuture<B> {
        #[pin]
        stage: FutureStage<B>,
        // What the answer gets besides, where pages may read answers.
        sharing: Option<Box<HeaderMap>>,
        // Counts the memory of the response.
        memory: Option<Arc<MemoryBudget>>,
    }
}

pin_project! {
    #[project = Projected]
    enum FutureStage<B> {
        Checking { check: Check, waiting: Option<WaitingRequest<B>> },
        Discarding { #[pin] body: B, discarding: Discarding, refused: Option<Response<HttpBody>> },
        Reading { #[pin] body: B, receiving: Receiving, asked: Option<RequestHead> },
        Running { running: Option<RunningHttpRequest> },
        Later { future: BoxFuture<'static, Response<HttpBody>> },
        Answered { response: Option<Response<HttpBody>> },
    }
}

/// A request that waits for the check of its authorization.
pub(super) type WaitingRequest<B> = (HttpService, B, Discarding, Arc<MemoryBudget>);

/// Finds out whether someone is let in: the head as those behind may see it, or the refusal.
pub(super) type Check = BoxFuture<'static, Result<request::Parts, Response<HttpBody>>>;

/// What is known of a request before its body.
#[derive(Clone)]
pub(crate) struct RequestHead {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) head: Arc<HttpHead>,
    pub(crate) memory: Arc<MemoryBudget>,
    /// The memory of the body, once that was read.
    pub(super) held: Option<Arc<HeldBytes>>,
}

impl RequestHead {
    /// Counts a request as in flight, unless there are too many or they use too much memory.
    pub(crate) fn permit(&self) -> Result<Permit, RpcError> {
        let limit = self.endpoint.limits.http_in_flight;
        let permit = Permit::take(&self.endpoint.in_flight, limit).map_err(|_| {
            RpcError::internal(format!(
                "too many requests in flight: the limit is {limit} (http_in_flight)"
            ))
        })?;
        self.memory.check_beside(self.held.as_deref())?;
        Ok(permit.holding(self.held.clone()))
    }
}

/// The first step of a response.
pub(crate) enum ResponseStart {
    Answered(Response<HttpBody>),
    Running(RunningHttpRequest),
    /// A future creates the response.
    Later(BoxFuture<'static, Response<HttpBody>>),
}

impl<B> From<ResponseStart> for FutureStage<B> {
    fn from(begun: ResponseStart) -> FutureStage<B> {
        match begun {
            ResponseStart::Answered(response) => FutureStage::Answered { response: Some(response) },
            ResponseStart::Running(running) => FutureStage::Running { running: Some(running) },
            ResponseStart::Later(future) => FutureStage::Later { future },
        }
    }
}

impl<B> From<FutureStage<B>> for HttpFuture<B> {
    fn from(stage: FutureStage<B>) -> HttpFuture<B> {
        HttpFuture { stage, sharing: None, memory: None }
    }
}

impl<B> HttpFuture<B> {
    /// Looks who comes before anything is read.
    pub(super) fn checking(check: Check, waiting: WaitingRequest<B>) -> HttpFuture<B> {
        FutureStage::Checking { check, waiting: Some(waiting) }.into()
    }

    /// Reads the body first.
    pub(super) fn read(asked: RequestHead, body: B) -> HttpFuture<B> {
        let limit = asked.endpoint.limits.body_bytes;
        let receiving = Receiving::new(limit, asked.memory.clone());
        FutureStage::Reading { body, receiving, asked: Some(asked) }.into()
    }

    /// Has no body to read.
    pub(super) fn begun(begun: ResponseStart) -> HttpFuture<B> {
        FutureStage::from(begun).into()
    }

    /// Has its answer already.
    pub(super) fn ready(response: Response<HttpBody>) -> HttpFuture<B> {
        FutureStage::Answered { response: Some(response) }.into()
    }

    /// Counts the response towards a budget until its last byte is written.
    pub(super) fn counting(mut self, memory: Arc<MemoryBudget>) -> Self {
        self.memory.get_or_insert(memory);
        self
    }

    /// Adds headers to the answer, whatever it will be.
    pub(super) fn sharing(mut self, headers: Option<Box<HeaderMap>>) -> Self {
        self.sharing = headers;
        self
    }
}

impl<B: Body> Future for HttpFuture<B> {
    type Output = Result<Response<HttpBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut response = ready!(poll_stage(this.stage.as_mut(), this.memory, context));
        if let Some(headers) = this.sharing.take() {
            response.headers_mut().extend(*headers);
        }
        if let Some(memory) = this.memory.take() {
            response.body_mut().count(memory);
        }
        Poll::Ready(Ok(response))
    }
}

fn poll_stage<B: Body>(
    mut stage: Pin<&mut FutureStage<B>>,
    response_memory: &mut Option<Arc<MemoryBudget>>,
    context: &mut Context<'_>,
) -> Poll<Response<HttpBody>> {
    loop {
        let next = match stage.as_mut().project() {
            Projected::Checking { check, waiting } => {
                match (ready!(check.as_mut().poll(context)), waiting.take()) {
                    (Ok(head), Some((service, body, _, memory))) => {
                        let HttpFuture { stage: next, memory, .. } =
                            service.admit(head, body, &memory);
                        *response_memory = memory;
                        stage.set(next);
                        continue;
                    }
                    (Err(refused), Some((_, body, discarding, _))) => {
                        let refused = Some(refused);
                        stage.set(FutureStage::Discarding { body, discarding, refused });
                        continue;
                    }
                    // Polled again after it was ready.
                    (_, None) => return Poll::Pending,
                }
            }
            Projected::Discarding { body, discarding, refused } => {
                ready!(discarding.poll(body, context));
                return refused.take().map_or(Poll::Pending, Poll::Ready);
            }
            Projected::Reading { body, receiving, asked } => {
                let text = ready!(receiving.poll(body, context));
                match (text, asked.take()) {
                    (Ok(text), Some(mut asked)) => {
                        asked.held = receiving.held();
                        begin(asked, text)
                    }
                    (Err(refusal), _) => ResponseStart::Answered(answer::refused(refusal)),
                    // Polled again after it was ready.
                    (Ok(_), None) => return Poll::Pending,
                }
            }
            Projected::Running { running: slot } => {
                let Some(running) = slot else { return Poll::Pending };
                let polled = ready!(running.poll(context));
                let Some(running) = slot.take() else { return Poll::Pending };
                return Poll::Ready(match polled {
                    Polled::Done(done) => {
                        running.count(&done);
                        answer::done(&running.id, running.statuses, done)
                    }
                    // The first message: the handler moves into the body of the response.
                    Polled::Messages | Polled::Quiet => answer::stream(running),
                });
            }
            Projected::Later { future } => return future.as_mut().poll(context),
            Projected::Answered { response } => {
                return response.take().map_or(Poll::Pending, Poll::Ready);
            }
        };
        stage.set(next.into());
    }
}

/// Parses a message and starts its handler.
fn begin(asked: RequestHead, text: Bytes) -> ResponseStart {
    let depth = asked.endpoint.limits.json_depth;
    let refused = |message: &'static str| {
        ResponseStart::Answered(answer::fault(None, &RpcError::invalid_request(message)))
    };
    let message = jsonrpc::parse(text, depth);
    if let (Ok(message), Some(protection)) = (&message, &asked.endpoint.protection)
        && let Some(refused) = protection.refuse(&asked.head, message)
    {
        return ResponseStart::Answered(refused);
    }
    if asked.endpoint.legacy.is_served() && is_legacy(&message, &asked.head.headers) {
        return legacy::begin(asked, message);
    }
    let is_note =
        matches!(&message, Ok(Message::Single(Frame::Notification(_) | Frame::Response(_))));
    if asked.endpoint.legacy.is_served()
        && is_note
        && let Some(response) = legacy::refuse_version(&asked)
    {
        return ResponseStart::Answered(response);
    }
    match message {
        Ok(Message::Single(Frame::Request(request))) => start(asked, request),
        Ok(Message::Single(Frame::Notification(Notification { method, params }))) => {
            // A cancellation cancels nothing here: the request's own stream would be closed.
            asked.endpoint.serve.note(Note { method, params });
            ResponseStart::Answered(answer::empty(StatusCode::ACCEPTED))
        }
        Ok(Message::Single(Frame::Response(_))) => {
            refused("a response was posted, but this server asks nothing")
        }
        Ok(Message::Batch(_)) => refused("batches are not part of this revision"),
        Err(fault) => {
            let id = fault.id.filter(|_| fault.role == FrameRole::Request);
            ResponseStart::Answered(answer::fault(id.as_ref(), &fault.error))
        }
    }
}

/// Whether a message belongs to the legacy era. One that can't be read belongs to none, unless it
/// answers something: only that era asks.
fn is_legacy(message: &Result<Message, Fault>, headers: &HeaderMap) -> bool {
    let params = match message {
        Ok(Message::Single(Frame::Request(request))) => {
            if !is_legacy_message(Some(&request.params), headers) {
                return false;
            }
            // Outside a session one that only the other era has can't be meant otherwise.
            let modern_only =
                Method::from_name(&request.method).is_some_and(Method::is_modern_only);
            return legacy::has_session(headers) || !modern_only;
        }
        Ok(Message::Single(Frame::Notification(note))) => Some(&note.params),
        Ok(Message::Single(Frame::Response(_)) | Message::Batch(_)) => None,
        Err(fault) if fault.role == FrameRole::Response => None,
        Err(_) => return false,
    };
    is_legacy_message(params, headers)
}

fn start(asked: RequestHead, request: Request) -> ResponseStart {
    let id = request.id.clone();
    let permit = match asked.permit() {
        Ok(permit) => permit,
        Err(error) => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return ResponseStart::Answered(answer::error(status, Some(&id), &error));
        }
    };
    let RequestHead { endpoint, head, memory, .. } = asked;
    let is_long_lived =
        Method::from_name(&request.method).is_some_and(|method| method.row().long_lived);
    let limit = endpoint.limits.queued_notifications;
    let stream = Arc::new(ResponseStream::new(Format::Events, limit, NO_REQUESTS, memory));
    let replies = Replies::http(stream.clone(), None);
    let incoming = incoming(request, permit, RequestOrigin::ByPost(head.clone()));
    let handler = match call(&*endpoint.serve, &id, incoming, replies) {
        Ok(handler) => handler,
        Err(outcome) => return ResponseStart::Answered(answer::outcome(&id, outcome)),
    };
    let handler = match &endpoint.protection {
        Some(protection) if is_long_lived => protection.until_expiry(&head.extensions, handler),
        _ => handler,
    };
    ResponseStart::Running(RunningHttpRequest::new(id, handler, stream, &endpoint))
}

const NO_REQUESTS: &str = "over HTTP a server of this revision sends no requests";

pub(crate) fn incoming(request: Request, permit: Permit, came: RequestOrigin) -> Incoming {
    let Request { id, method, params } = request;
    let mut incoming = Incoming::new(id, method, params, permit);
    incoming.came = came;
    incoming
}

/// Passes a request to its service. Returns the handler, or as an `Err` the outcome of a request
/// that needs none.
pub(crate) fn call(
    service: &dyn Serve,
    id: &RequestId,
    request: Incoming,
    replies: Replies,
) -> Result<BoxFuture<'static, Outcome>, Outcome> {
    let reply = catch_unwind(AssertUnwindSafe(|| service.serve(request, replies)))
        .unwrap_or_else(|payload| Reply::Now(Err(panicked(id, payload.as_ref()))));
    match reply {
        Reply::Now(outcome) => Err(outcome),
        Reply::Later(handler) => Ok(handler),
        Reply::Never => Err(Err(RpcError::internal("this request is not answered"))),
    }
}

impl<B> fmt::Debug for HttpFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            FutureStage::Checking { .. } => "checking",
            FutureStage::Discarding { .. } => "discarding",
            FutureStage::Reading { .. } => "reading",
            FutureStage::Running { .. } => "running",
            FutureStage::Later { .. } => "later",
            FutureStage::Answered { .. } => "answered",
        };
        f.debug_tuple("HttpFuture").field(&stage).finish()
    }
}
