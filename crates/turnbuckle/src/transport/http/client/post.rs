//! Owns one POST from its first byte to the end of its answer. Dropping it, at any stage,
//! closes it. Does not own how the answer is read: `whole` and `events` read it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use turnbuckle_types::{Method, RequestId};

use super::{
    Wire,
    events::Events,
    flight::Flight,
    redirect::{self, OwnHeaders, place},
    stack::{Body, PostBody, Sending},
    stop::{Stop, Stopped},
    whole::{Kind, Whole},
};
use crate::{
    dispatch::{Event, Outgoing, exchange::Drive},
    error::{Closed, Error, Executed, Result},
};

/// One exchange.
pub(super) struct Post {
    wire: Arc<Wire>,
    stage: Stage,
    /// Its place in the table, from before it is sent until it ends.
    flight: Option<Flight>,
}

enum Stage {
    New(Box<Outgoing>),
    /// Being sent, or waiting for the head of the answer.
    Sending(Sending, Box<Sent>),
    /// Reading a body that is one message, or none.
    Whole(Box<Whole>),
    /// Reading a stream.
    Events(Box<Events>),
    Done,
}

/// What was sent, in case it is redirected.
struct Sent {
    to: Uri,
    headers: HeaderMap,
    own: OwnHeaders,
    message: Bytes,
    hops: usize,
    /// How many bytes a stream may bring; a listen stream may last for ever.
    most: Option<usize>,
}

impl Post {
    pub(super) fn new(wire: Arc<Wire>, request: Outgoing) -> Post {
        Post { wire, stage: Stage::New(Box::new(request)), flight: None }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        loop {
            if let Some(flight) = &self.flight
                && let Some(stopped) = flight.stop.poll(context)
            {
                return Poll::Ready(Event::Done(Err(self.stopped(stopped))));
            }
            let step = match &mut self.stage {
                Stage::New(_) => self.start(),
                Stage::Sending(sending, _) => {
                    let response = ready!(Pin::new(sending).poll(context));
                    let Stage::Sending(_, sent) = std::mem::replace(&mut self.stage, Stage::Done)
                    else {
                        return Poll::Pending;
                    };
                    match response {
                        Ok(response) => self.answered(response, *sent),
                        Err(failure) => Err(failure.into_error(&place(&sent.to))),
                    }
                }
                Stage::Whole(whole) => {
                    let id = self.flight.as_ref().map(|flight| &flight.stop.id);
                    return whole.poll(&self.wire, id, context).map(Event::Done);
                }
                Stage::Events(events) => {
                    let id = self.flight.as_ref().map(|flight| &flight.stop.id);
                    return events.poll(&self.wire, id, context);
                }
                Stage::Done => Err(Error::refused("this call has already ended")),
            };
            if let Err(error) = step {
                return Poll::Ready(Event::Done(Err(error)));
            }
        }
    }

    /// Enters the table, then makes the request. The POST starts when that is polled.
    fn start(&mut self) -> Result<()> {
        let Stage::New(request) = std::mem::replace(&mut self.stage, Stage::Done) else {
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
        let flight = Flight::enter(wire, request.id.clone(), |id| Stop::new(id.clone()))?;
        let message = message(&flight.stop.id, &request);
        self.flight = Some(flight);
        wire.sends(&request.method, request.mirror.revision);
        let long_lived =
            Method::from_name(&request.method).is_some_and(|method| method.row().long_lived);
        let sent = Sent {
            to: wire.address.clone(),
            headers: wire.headers(&request.method, &request.params, &request.mirror),
            own: OwnHeaders::Kept,
            message,
            hops: 0,
            most: (!long_lived).then_some(wire.limits.stream_bytes),
        };
        self.send(sent);
        Ok(())
    }

    fn send(&mut self, sent: Sent) {
        let (post, body) = (http::Method::POST, PostBody::new(sent.message.clone()));
        let request = self.wire.request(post, &sent.to, sent.headers.clone(), sent.own, body);
        self.stage = Stage::Sending(self.wire.stack.send(request), Box::new(sent));
    }

    /// The head of the answer decides how the rest is read.
    fn answered(&mut self, response: http::Response<Body>, mut sent: Sent) -> Result<()> {
        let (head, body) = response.into_parts();
        let status = head.status;
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            let location = head.headers.get(header::LOCATION).map(|value| value.as_bytes());
            let policy = self.wire.redirects;
            let hop =
                redirect::judge(policy, &sent.to, status, location, sent.hops).map_err(|why| {
                    let message = format!("{} did not answer: {why}", place(&sent.to));
                    Error::http(status.as_u16(), message)
                })?;
            if hop.own_headers == OwnHeaders::Dropped {
                sent.own = OwnHeaders::Dropped;
                self.wire.drop_extra(&mut sent.headers);
            }
            sent.to = hop.to;
            sent.hops += 1;
            self.send(sent);
            return Ok(());
        }
        self.stage = match Kind::of(&head.headers) {
            Kind::Events if status.is_success() => {
                Stage::Events(Box::new(Events::new(body, self.wire.limits.line_bytes, sent.most)))
            }
            _ => {
                let limit = self.wire.limits.line_bytes;
                Stage::Whole(Box::new(Whole::new(body, status, &head.headers, limit)))
            }
        };
        Ok(())
    }

    fn stopped(&self, stopped: Stopped) -> Error {
        match (stopped, self.wire.closed.get()) {
            (Stopped::Closed, Some(closed)) => closed.error(Executed::Maybe),
            _ => Closed::new("the call was cancelled by `notifications/cancelled`")
                .error(Executed::Withdrawn),
        }
    }
}

fn message(id: &RequestId, request: &Outgoing) -> Bytes {
    let mut message = Vec::with_capacity(request.params.len() + request.method.len() + 96);
    request.write(id, &mut message);
    message.into()
}

impl Drive for Post {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        let event = ready!(self.poll(context));
        if matches!(event, Event::Done(_)) {
            self.stage = Stage::Done;
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
            Stage::New(request) => request.id.as_ref(),
            _ => self.flight.as_ref().map(|flight| &flight.stop.id),
        }
    }
}
