//! Owns a stream that a modern server was asked for: one request that stays open.
//! Does not own which notifications are this stream's: the dispatcher finds that by the
//! subscription's id.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use turnbuckle_types::{Acknowledged, ListenResult, Method, Raw};

use super::{Opened, Source, Told, event_from, is};
use crate::{
    client::Call, client::call::Running, client::call::undecodable,
    client::connection::handle::Link, error::Error, error::Result, rpc::Event,
};

/// The request in flight. Dropping it unsubscribes.
pub(super) struct Stream {
    running: Running,
}

/// Opens a stream, and returns when the server has acknowledged it; with what it said then.
pub(super) async fn open(call: Call<Raw>, link: Arc<Link>) -> Result<(Opened, Raw)> {
    let mut running = call.open(link)?;
    loop {
        match running.next().await? {
            Event::Note(note) if is(&note, Method::Acknowledged) => {
                let acknowledged: Acknowledged = serde_json::from_str(note.params.text())
                    .map_err(|error| undecodable(Method::Listen.as_str(), &error))?;
                running.deadlines.lift();
                let opened = Opened {
                    link: running.link.clone(),
                    source: Source::Modern(Stream { running }),
                    granted: acknowledged.notifications,
                };
                return Ok((opened, note.params.raw.unwrap_or_else(Raw::empty_object)));
            }
            // 2026-07-28 patterns/subscriptions: nothing may come before it.
            Event::Note(note) => {
                tracing::debug!(method = %note.method, "said before the acknowledgement");
            }
            Event::Done(result) => {
                result?;
                return Err(Error::protocol(
                    "the server ended the stream before it acknowledged it",
                ));
            }
        }
    }
}

impl Stream {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Told> {
        let exchange = &mut self.running.exchange;
        if exchange.take_lost() {
            return Poll::Ready(Told::Event(super::Event::Missed));
        }
        Poll::Ready(match ready!(exchange.poll_event(context)) {
            // A server may say the end with this frame, with the result, or with both in any
            // order.
            Event::Note(note) if is(&note, Method::Cancelled) => {
                exchange.silence();
                Told::Ended
            }
            Event::Note(note) if is(&note, Method::Acknowledged) => {
                tracing::debug!("acknowledged again");
                Told::Nothing
            }
            Event::Note(note) => Told::Event(event_from(&note)),
            Event::Done(Ok(raw)) => match raw.decode::<ListenResult>() {
                Ok(_) => Told::Ended,
                Err(error) => Told::Lost(undecodable(Method::Listen.as_str(), &error)),
            },
            Event::Done(Err(error)) => Told::Lost(error),
        })
    }
}
