//! Owns a stream that a modern server was asked for: one request that stays open.
//! Does not own which notifications are this stream's: the dispatcher finds that by the
//! subscription's id.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use turnbuckle_types::{Acknowledged, ListenResult, Method, Raw};

use super::{EventSource, OpenedStream, SourceEvent, event_from, is};
use crate::{
    client::{
        Call,
        call::{InFlightCall, undecodable},
        connection::handle::ClientConnection,
    },
    error::{Error, Result},
    rpc::ExchangeEvent,
};

/// The request in flight. Dropping it unsubscribes.
pub(super) struct ModernStream {
    running: InFlightCall,
}

/// Opens a stream, and returns when the server has acknowledged it; with what it said then.
pub(super) async fn open(
    call: Call<Raw>,
    link: Arc<ClientConnection>,
) -> Result<(OpenedStream, Raw)> {
    let mut running = call.open(link)?;
    loop {
        match running.next().await? {
            ExchangeEvent::Note(note) if is(&note, Method::Acknowledged) => {
                let acknowledged: Acknowledged = serde_json::from_str(note.params.text())
                    .map_err(|error| undecodable(Method::Listen.as_str(), &error))?;
                running.deadlines.lift();
                let opened = OpenedStream {
                    link: running.link.clone(),
                    source: EventSource::Modern(ModernStream { running }),
                    granted: acknowledged.notifications,
                };
                return Ok((opened, note.params.raw.unwrap_or_else(Raw::empty_object)));
            }
            // 2026-07-28 patterns/subscriptions: nothing may come before it.
            ExchangeEvent::Note(note) => {
                tracing::debug!(method = %note.method, "said before the acknowledgement");
            }
            ExchangeEvent::Done(result) => {
                result?;
                return Err(Error::protocol(
                    "the server ended the stream before it acknowledged it",
                ));
            }
        }
    }
}

impl ModernStream {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<SourceEvent> {
        let exchange = &mut self.running.exchange;
        if exchange.take_lost() {
            return Poll::Ready(SourceEvent::Event(super::Event::Missed));
        }
        Poll::Ready(match ready!(exchange.poll_event(context)) {
            // A server may say the end with this frame, with the result, or with both in any
            // order.
            ExchangeEvent::Note(note) if is(&note, Method::Cancelled) => {
                exchange.silence();
                SourceEvent::Ended
            }
            ExchangeEvent::Note(note) if is(&note, Method::Acknowledged) => {
                tracing::debug!("acknowledged again");
                SourceEvent::Nothing
            }
            ExchangeEvent::Note(note) => SourceEvent::Event(event_from(&note)),
            ExchangeEvent::Done(Ok(raw)) => match raw.decode::<ListenResult>() {
                Ok(_) => SourceEvent::Ended,
                Err(error) => SourceEvent::Lost(undecodable(Method::Listen.as_str(), &error)),
            },
            ExchangeEvent::Done(Err(error)) => SourceEvent::Lost(error),
        })
    }
}
