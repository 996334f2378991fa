//! Owns the way to a client outside its requests: the stream that its GET opened, if it has one.
//! Does not own the stream's pump.

use std::{
    future::{poll_fn, ready},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    ask::{self, Asking},
    desk::Desk,
    stream::{Owner, Stream},
};
use crate::dispatch::{BoxFuture, Counters, Exchange, Note, Outgoing, Peer, Transport};

/// What a session says that belongs to no request.
pub(super) struct Aside {
    desk: Arc<Desk>,
    current: Mutex<Option<Arc<Stream>>>,
}

impl Aside {
    pub(super) fn new(desk: Arc<Desk>) -> Aside {
        Aside { desk, current: Mutex::default() }
    }

    /// The way to the client, as whoever serves the session uses it.
    pub(super) fn peer(self: &Arc<Self>) -> Peer {
        let transport: Arc<dyn Transport> = self.clone();
        Peer::new(Arc::downgrade(&transport))
    }

    /// Takes a stream instead of the one before, which ends.
    pub(super) fn replace(&self, stream: &Arc<Stream>) {
        let before = self.lock().replace(stream.clone());
        if let Some(before) = before {
            self.desk.kill(&before);
        }
    }

    /// Whether the client has such a stream.
    pub(super) fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    /// A stream has ended.
    pub(super) fn remove(&self, stream: &Arc<Stream>) {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|known| Arc::ptr_eq(known, stream)) {
            *current = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Stream>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Aside {
    fn open(&self, request: Outgoing) -> Exchange {
        match self.lock().clone() {
            Some(stream) => {
                Exchange::new(Asking::new(Owner::Session, stream, self.desk.clone(), request))
            }
            None => ask::refused(&request.method, "the client has opened no GET stream"),
        }
    }

    fn notify(&self, note: Note) -> BoxFuture<'_, ()> {
        let Some(stream) = self.lock().clone() else { return Box::pin(ready(())) };
        Box::pin(async move {
            let params = note.params.text();
            let mut render = |out: &mut Vec<u8>| out.extend_from_slice(params.as_bytes());
            poll_fn(|context| stream.poll_note(Owner::Session, context, &note.method, &mut render))
                .await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.close_now();
        Box::pin(ready(()))
    }

    fn close_now(&self) {
        let current = self.lock().take();
        if let Some(stream) = current {
            self.desk.kill(&stream);
        }
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}
