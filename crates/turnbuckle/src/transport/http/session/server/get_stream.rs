//! Sends messages that belong to no request, on the stream that the client's GET opened.

use std::{
    future::{poll_fn, ready},
    sync::Arc,
};

use super::in_flight::SessionInFlight;
use crate::{
    error::Error,
    rpc::{BoxFuture, Counters, Exchange, Note, Outgoing, Peer, Replying as _, Transport},
};

impl SessionInFlight {
    /// Returns the way to the client for messages that belong to no request.
    pub(super) fn peer(self: &Arc<Self>) -> Peer {
        let transport: Arc<dyn Transport> = self.clone();
        Peer::new(Arc::downgrade(&transport))
    }
}

impl Transport for SessionInFlight {
    fn open(&self, request: Outgoing) -> Exchange {
        match self.get_stream() {
            Some(stream) => stream.ask(None, request),
            None => Exchange::failed(Error::refused(format!(
                "`{}` can't be sent: the client has opened no GET stream, so that there is no way \
                 to ask the client",
                request.method
            ))),
        }
    }

    fn notify(&self, note: Note) -> BoxFuture<'_, ()> {
        let Some(stream) = self.get_stream() else { return Box::pin(ready(())) };
        Box::pin(async move {
            let params = note.params.text();
            let mut render = |out: &mut Vec<u8>| out.extend_from_slice(params.as_bytes());
            poll_fn(|context| stream.poll_note(None, context, &note.method, &mut render)).await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.close_now();
        Box::pin(ready(()))
    }

    fn close_now(&self) {
        self.set_get_stream(None);
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}
