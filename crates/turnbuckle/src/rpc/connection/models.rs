//! A connection without I/O, for the concurrency models in `models/`: the model moves the lines.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use turnbuckle_types::{Raw, RequestId, jsonrpc::Fault};

use super::{ConnectionShared, io::write_loop, outbound::OutboundRequest, task::RunningHandler};
use crate::{
    error::Closed,
    limits::Limits,
    rpc::{Exchange, Incoming, Note, Outgoing, Replies, Reply, Serve, pending::Serial},
};

static SWITCH: OnceLock<fn()> = OnceLock::new();

/// Sets the function that is called before each lock, where another thread may run.
pub fn on_switch(switch: fn()) {
    SWITCH.get_or_init(|| switch);
}

pub(crate) fn switch() {
    if let Some(switch) = SWITCH.get() {
        switch();
    }
}

/// One end of a connection.
#[derive(Clone)]
pub struct ModelLink(Arc<ConnectionShared>);

/// A request of the peer that runs.
pub struct ModelHandler {
    link: ModelLink,
    id: RequestId,
    serial: Serial,
}

/// Answers nothing by itself.
struct Silent;

impl Serve for Silent {
    fn serve(&self, _: Incoming, _: Replies) -> Reply {
        Reply::Never
    }

    fn note(&self, _: Note) {}

    fn answers(&self, _: &Fault) -> bool {
        false
    }
}

impl ModelLink {
    /// Creates a connection on which nothing was sent.
    pub fn new() -> ModelLink {
        ModelLink(Arc::new(ConnectionShared::new(Arc::new(Silent), Limits::default())))
    }

    /// Returns a request, which is sent when it is polled.
    pub fn open(&self) -> Exchange {
        let request = Outgoing::new("ping", String::new());
        Exchange::new(OutboundRequest::new(self.0.clone(), request))
    }

    /// Applies a line of the peer, as the reader does.
    pub fn receive(&self, line: String) {
        let read = self.0.read(Bytes::from(line));
        self.0.apply(read);
    }

    /// Writes the messages of this end, until the connection is closed.
    pub async fn write_to(self, write: impl AsyncWrite + Unpin) {
        write_loop(self.0, write).await;
    }

    /// Enters a request of the peer, as the reader does before its handler runs.
    pub fn accept(&self, id: u64) -> ModelHandler {
        let id = RequestId::from(id);
        let handler = RunningHandler::new(id.clone(), None);
        let serial = self.0.lock().table.accept(&id, handler).expect("the id is free");
        ModelHandler { link: self.clone(), id, serial }
    }

    /// Closes the connection in order: what waits is written.
    pub fn close(&self) {
        self.0.flush_and_close(Closed::new("closed"), "closed");
    }

    /// Ends the connection at once.
    pub fn abort(&self) {
        self.0.close(Closed::new("aborted"));
    }

    /// Returns the number of answers that no request waited for.
    pub fn late_answers(&self) -> usize {
        self.0.counts.late_answers.load(std::sync::atomic::Ordering::Relaxed) as usize
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.0.lock().table.in_flight()
    }
}

impl Default for ModelLink {
    fn default() -> ModelLink {
        ModelLink::new()
    }
}

impl std::fmt::Debug for ModelLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelLink").finish_non_exhaustive()
    }
}

impl ModelHandler {
    /// Ends the handler with a result.
    pub fn finish(self) {
        self.link.0.finish(&self.id, self.serial, Ok(Raw::empty_object()));
    }
}

impl std::fmt::Debug for ModelHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelHandler").field("id", &self.id).finish_non_exhaustive()
    }
}
