//! A request that the server sends to a client within a session, until it is answered.

use std::{
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
};

use tokio::sync::{mpsc, oneshot};
use turnbuckle_types::{Raw, RequestId};

use super::{
    super::super::{server::response_stream::ResponseStream, timing::QUESTION_PROGRESS},
    in_flight::{QuestionAsker, SessionInFlight},
};
use crate::{
    error::{Closed, Error, Executed},
    rpc::{Abandon, ExchangeEvent, Note, Outgoing, exchange::Drive, pending::Serial},
};

/// Creates the error of a question whose stream has ended.
pub(super) fn closed(executed: Executed) -> Error {
    Closed::new("the stream that this question belongs to has ended").error(executed)
}

/// A question. It is sent with the first poll; dropping it takes it back.
pub(crate) struct SessionQuestion {
    /// The request that it belongs to, if others share the stream.
    request: Option<Serial>,
    stream: Arc<ResponseStream>,
    session: Weak<SessionInFlight>,
    stage: QuestionStage,
    reason: Option<String>,
}

enum QuestionStage {
    New(Outgoing),
    Sent {
        id: RequestId,
        serial: Serial,
        abandon: Abandon,
        answer: oneshot::Receiver<Result<Raw, Error>>,
        progress: Option<mpsc::Receiver<Note>>,
    },
    Done,
}

impl SessionQuestion {
    pub(crate) fn new(
        request: Option<Serial>,
        stream: Arc<ResponseStream>,
        session: Weak<SessionInFlight>,
        question: Outgoing,
    ) -> SessionQuestion {
        SessionQuestion {
            request,
            stream,
            session,
            stage: QuestionStage::New(question),
            reason: None,
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let QuestionStage::New(question) = &self.stage else { return Poll::Ready(Ok(())) };
        ready!(self.stream.poll_room(context));
        let Some(session) = self.session.upgrade() else {
            return Poll::Ready(Err(closed(Executed::No)));
        };
        let (sender, answer) = oneshot::channel();
        let (progress_sender, progress) =
            question.token_at.map(|_| mpsc::channel(QUESTION_PROGRESS)).unzip();
        let asker = QuestionAsker { answer: sender, progress: progress_sender };
        let (id, serial) = session.ask(asker, &self.stream, self.request, question)?;
        self.stage =
            QuestionStage::Sent { id, serial, abandon: question.abandon, answer, progress };
        Poll::Ready(Ok(()))
    }

    fn done(&mut self, end: Result<Raw, Error>) -> Poll<ExchangeEvent> {
        self.stage = QuestionStage::Done;
        Poll::Ready(ExchangeEvent::Done(end))
    }
}

impl Drive for SessionQuestion {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        if let Err(error) = ready!(self.poll_send(context)) {
            return self.done(Err(error));
        }
        let QuestionStage::Sent { answer, progress, .. } = &mut self.stage else {
            return self.done(Err(Error::refused("this question has already ended")));
        };
        if let Some(progress) = progress
            && let Poll::Ready(Some(note)) = progress.poll_recv(context)
        {
            return Poll::Ready(ExchangeEvent::Note(note));
        }
        let end =
            ready!(Pin::new(answer).poll(context)).unwrap_or_else(|_| Err(closed(Executed::Maybe)));
        self.done(end)
    }

    fn reason(mut self: Pin<&mut Self>, reason: String) {
        self.reason = Some(reason);
    }

    fn silence(mut self: Pin<&mut Self>) {
        if let QuestionStage::Sent { abandon, .. } = &mut self.stage {
            *abandon = Abandon::Silence;
        }
    }

    fn id(&self) -> Option<&RequestId> {
        match &self.stage {
            QuestionStage::Sent { id, .. } => Some(id),
            QuestionStage::New(_) | QuestionStage::Done => None,
        }
    }
}

impl Drop for SessionQuestion {
    fn drop(&mut self) {
        let QuestionStage::Sent { id, serial, abandon, .. } = &self.stage else { return };
        let Some(session) = self.session.upgrade() else { return };
        let reason = match abandon {
            Abandon::Signal => Some(self.reason.as_deref().unwrap_or("caller cancelled")),
            Abandon::Silence => None,
        };
        session.abandon(id, *serial, &self.stream, reason);
    }
}
