//! One POST of the modern era, from its first byte to the end of its response. Dropping it, at
//! any stage, closes it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use turnbuckle_types::{Method, RequestId};

use super::{
    HttpClientShared,
    events::{self, EventBody},
    flight::RequestInFlight,
    place,
    request::HttpRequest,
    stack::{Body, PendingResponse},
    whole::{CollectedBody, Kind},
};
use crate::{
    error::{Error, Executed, Result},
    rpc::{ExchangeEvent, Outgoing, exchange::Drive},
};

/// One exchange.
pub(super) struct PostExchange {
    wire: Arc<HttpClientShared>,
    stage: PostStage,
    /// Its place in the table, from before it is sent until it ends.
    flight: Option<RequestInFlight>,
}

enum PostStage {
    New(Box<Outgoing>),
    /// Being sent, or waiting for the head of the answer.
    Sending(PendingResponse, Box<SentPost>),
    /// Reading a body that is one message, or none.
    Whole(Box<CollectedBody>),
    /// Reading a stream.
    Events(Box<EventBody>),
    Done,
}

struct SentPost {
    request: HttpRequest,
    /// How many bytes a stream may bring; a listen stream may last for ever.
    most: Option<usize>,
}

impl PostExchange {
    pub(super) fn new(wire: Arc<HttpClientShared>, request: Outgoing) -> PostExchange {
        PostExchange { wire, stage: PostStage::New(Box::new(request)), flight: None }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        loop {
            if let Some(flight) = &self.flight
                && let Some(stopped) = flight.stop.poll(context)
            {
                return Poll::Ready(ExchangeEvent::Done(Err(flight.stopped(stopped))));
            }
            let step = match &mut self.stage {
                PostStage::New(_) => self.start(),
                PostStage::Sending(sending, _) => {
                    let response = ready!(Pin::new(sending).poll(context));
                    let PostStage::Sending(_, sent) =
                        std::mem::replace(&mut self.stage, PostStage::Done)
                    else {
                        return Poll::Pending;
                    };
                    match response {
                        Ok(response) => self.answered(response, *sent),
                        Err(failure) => Err(failure.into_error(&place(&sent.request.to))),
                    }
                }
                PostStage::Whole(whole) => {
                    let id = self.flight.as_ref().map(RequestInFlight::id);
                    return whole.poll(&self.wire, id, context).map(ExchangeEvent::Done);
                }
                PostStage::Events(events) => {
                    let id = self.flight.as_ref().map(RequestInFlight::id);
                    return events::poll(events, &self.wire, id, context);
                }
                PostStage::Done => Err(Error::refused("this call has already ended")),
            };
            if let Err(error) = step {
                return Poll::Ready(ExchangeEvent::Done(Err(error)));
            }
        }
    }

    /// Enters the table, then makes the request. The POST starts when that is polled.
    fn start(&mut self) -> Result<()> {
        let PostStage::New(request) = std::mem::replace(&mut self.stage, PostStage::Done) else {
            return Ok(());
        };
        let wire = &self.wire;
        if let Some(closed) = wire.closed.get() {
            return Err(closed.error(Executed::No));
        }
        // It is repeated in a header as it is.
        if request.method.is_empty() || !request.method.bytes().all(|byte| byte.is_ascii_graphic())
        {
            let message = "over HTTP a method's name has only printable ASCII and no spaces";
            return Err(Error::refused(message));
        }
        let flight = RequestInFlight::enter(wire, request.id.clone(), None)?;
        let message = message(flight.id(), &request);
        self.flight = Some(flight);
        wire.sends(&request.method, request.mirror.revision);
        let long_lived =
            Method::from_name(&request.method).is_some_and(|method| method.row().long_lived);
        let headers = wire.headers(&request.method, &request.params, &request.mirror);
        let sent = SentPost {
            request: HttpRequest::new(wire, http::Method::POST, headers, Some(message)),
            most: (!long_lived).then_some(wire.limits.stream_bytes),
        };
        self.send(sent);
        Ok(())
    }

    fn send(&mut self, sent: SentPost) {
        let sending = sent.request.send(&self.wire, &self.wire.stack, None);
        self.stage = PostStage::Sending(sending, Box::new(sent));
    }

    /// The head of the answer decides how the rest is read.
    fn answered(&mut self, response: http::Response<Body>, mut sent: SentPost) -> Result<()> {
        if sent.request.follow(&self.wire, &response)? {
            self.send(sent);
            return Ok(());
        }
        let (head, body) = response.into_parts();
        self.stage = match Kind::of(&head.headers) {
            Kind::Events if head.status.is_success() => {
                PostStage::Events(Box::new(EventBody::new(Some(body), &self.wire, sent.most)))
            }
            _ => PostStage::Whole(Box::new(CollectedBody::new(
                body,
                head.status,
                &head.headers,
                &self.wire,
            ))),
        };
        Ok(())
    }
}

fn message(id: &RequestId, request: &Outgoing) -> Bytes {
    let mut message = Vec::with_capacity(request.params.len() + request.method.len() + 96);
    request.write(id, &mut message);
    message.into()
}

impl Drive for PostExchange {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        let event = ready!(self.poll(context));
        if matches!(event, ExchangeEvent::Done(_)) {
            self.stage = PostStage::Done;
            self.flight = None;
        }
        Poll::Ready(event)
    }

    fn reason(self: Pin<&mut Self>, reason: String) {
        // The close is the whole message on this wire.
        tracing::debug!(reason, "a call is about to be abandoned");
    }

    fn id(&self) -> Option<&RequestId> {
        match &self.stage {
            PostStage::New(request) => request.id.as_ref(),
            _ => self.flight.as_ref().map(RequestInFlight::id),
        }
    }
}
