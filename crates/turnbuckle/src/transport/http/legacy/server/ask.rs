//! Owns what a handler of a session can say besides its answer, and its questions to the client
//! until they are answered. Does not own the streams they go out on.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::sync::{mpsc, oneshot};
use turnbuckle_types::{Raw, RequestId};

use super::{
    desk::{Desk, Question},
    stream::{Owner, Shape, Stream, Unasked},
};
use crate::{
    dispatch::{
        Abandon, Event, Exchange, Note, Outgoing, Replying, duplex::write_cancel, exchange::Drive,
        table::Serial,
    },
    error::{Closed, Error, Executed},
};

/// How much of what a client says of a question may wait until the handler hears it.
const HEARD: usize = 64;

/// The way from the handler of one request to its client. It may outlive the request, and keeps
/// nothing of the session alive.
pub(super) struct Line {
    pub(super) owner: Owner,
    pub(super) stream: Arc<Stream>,
    pub(super) desk: Arc<Desk>,
}

impl Replying for Line {
    fn poll_note(
        &self,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        self.stream.poll_note(self.owner, context, method, render)
    }

    fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_clear(context)
    }

    /// No request of this era ends with the server: only its GET stream does, which has no answer.
    fn at_shutdown(&self, _: Raw) {}

    fn ask(&self, request: Outgoing) -> Exchange {
        if self.stream.shape() == Shape::Json {
            return refused(&request.method, "this server answers with JSON only");
        }
        Exchange::new(Asking::new(self.owner, self.stream.clone(), self.desk.clone(), request))
    }

    fn release(&self) {
        self.stream.release();
    }
}

/// A question that can't be asked.
pub(super) fn refused(method: &str, why: &str) -> Exchange {
    Exchange::failed(Error::refused(format!(
        "`{method}` can't be sent: {why}, so that there is no way to ask the client"
    )))
}

/// What questions end with when there is nobody left who could answer.
pub(super) fn closed(executed: Executed) -> Error {
    Closed::new("the stream that this question belongs to has ended").error(executed)
}

/// A question. Nothing is sent before it is polled; dropping it takes it back.
pub(super) struct Asking {
    owner: Owner,
    stream: Arc<Stream>,
    desk: Arc<Desk>,
    stage: Stage,
    reason: Option<String>,
}

enum Stage {
    New(Outgoing),
    Sent {
        id: RequestId,
        serial: Serial,
        abandon: Abandon,
        answer: oneshot::Receiver<Result<Raw, Error>>,
        notes: Option<mpsc::Receiver<Note>>,
    },
    Done,
}

impl Asking {
    pub(super) fn new(
        owner: Owner,
        stream: Arc<Stream>,
        desk: Arc<Desk>,
        request: Outgoing,
    ) -> Asking {
        Asking { owner, stream, desk, stage: Stage::New(request), reason: None }
    }

    /// Enters the question before it is said, so that no answer can come before the entry.
    fn enter(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Stage::New(request) = &self.stage else { return Poll::Ready(Ok(())) };
        ready!(self.stream.poll_room(context));
        let (asker, answer) = oneshot::channel();
        let (sender, notes) = request.token_at.map(|_| mpsc::channel(HEARD)).unzip();
        let question = Question { asker, notes: sender, stream: self.stream.clone() };
        let (id, serial) = self.desk.ask(question)?;
        let mut text = Vec::new();
        request.write(&id, &mut text);
        if self.stream.ask(self.owner, &id, serial, text).is_err() {
            self.desk.abandon(&id, serial);
            return Poll::Ready(Err(closed(Executed::No)));
        }
        self.stage = Stage::Sent { id, serial, abandon: request.abandon, answer, notes };
        Poll::Ready(Ok(()))
    }

    fn done(&mut self, end: Result<Raw, Error>) -> Poll<Event> {
        if let Stage::Sent { serial, .. } = self.stage {
            self.stream.unask(serial);
        }
        self.stage = Stage::Done;
        Poll::Ready(Event::Done(end))
    }
}

impl Drive for Asking {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        if let Err(error) = ready!(self.enter(context)) {
            return self.done(Err(error));
        }
        let Stage::Sent { answer, notes, .. } = &mut self.stage else {
            return self.done(Err(Error::refused("this question has already ended")));
        };
        if let Some(notes) = notes
            && let Poll::Ready(Some(note)) = notes.poll_recv(context)
        {
            return Poll::Ready(Event::Note(note));
        }
        let end =
            ready!(Pin::new(answer).poll(context)).unwrap_or_else(|_| Err(closed(Executed::Maybe)));
        self.done(end)
    }

    fn reason(mut self: Pin<&mut Self>, reason: String) {
        self.reason = Some(reason);
    }

    fn silence(mut self: Pin<&mut Self>) {
        if let Stage::Sent { abandon, .. } = &mut self.stage {
            *abandon = Abandon::Silence;
        }
    }

    fn id(&self) -> Option<&RequestId> {
        match &self.stage {
            Stage::Sent { id, .. } => Some(id),
            Stage::New(_) | Stage::Done => None,
        }
    }
}

/// Takes the question back if the pump has not taken it yet; else leaves one cancellation behind.
impl Drop for Asking {
    fn drop(&mut self) {
        let Stage::Sent { id, serial, abandon, .. } = &self.stage else { return };
        // If it was answered, or its stream has ended, there is nothing left to say.
        let waited = self.desk.abandon(id, *serial);
        let unasked = self.stream.unask(*serial);
        if waited && unasked == Unasked::Written && *abandon == Abandon::Signal {
            let mut text = Vec::new();
            write_cancel(&mut text, id, self.reason.as_deref().unwrap_or("caller cancelled"));
            self.stream.say(text);
        }
    }
}
