//! Owns what lives as long as a client's connection, or as long as its session is in use: the tasks
//! that run for it alone end with it. Does not own its requests: each ends by itself.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};

use tokio::{sync::mpsc, task::AbortHandle};
use turnbuckle_types::{Initialize, Method, Revision};

use super::{
    far::Far,
    line::{NearLine, closed},
    link::{Guest, Link},
};
use crate::{
    dispatch::{BoxFuture, Note, Outcome, Peer},
    server::forward::{Line, Near, Visitor},
};

/// How many notifications may wait for a client that does not read.
const WAITING: usize = 1024;
/// How long anything waits for the connection of a session to be made.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client's side, as whoever serves the client holds it.
pub(super) struct Held {
    line: Arc<NearLine>,
    /// Sends the client what waits for it.
    saying: OnceLock<AbortHandle>,
    /// Connects to the server.
    beginning: Mutex<Option<AbortHandle>>,
}

impl Held {
    pub(super) fn open(far: Weak<Far>, near: Near) -> Held {
        let line = NearLine::open(far, near);
        Held { line, saying: OnceLock::new(), beginning: Mutex::default() }
    }

    /// Begins to tell the client of changes, unless that is being done. It must not wait.
    fn begin_telling(&self) {
        if self.line.can_wait() {
            return self.later(|line, _| line.begin_telling());
        }
        let mut beginning = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
        if beginning.as_ref().is_none_or(AbortHandle::is_finished) {
            let task = tokio::spawn(self.line.clone().begin_telling());
            *beginning = Some(task.abort_handle());
        }
    }

    /// Does something for a session that may take a connection to be made first. It outlives this,
    /// though not for long: a session is not held between its requests, and what is begun for one
    /// of them is there for the next.
    fn later<F>(&self, what: impl FnOnce(Arc<NearLine>, Arc<Far>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(far) = self.line.far.upgrade() else { return };
        let Ok(place) = far.unsent.clone().try_acquire_owned() else {
            tracing::warn!("too much waits for the server: something for a session is dropped");
            return;
        };
        let doing = what(self.line.clone(), far);
        tokio::spawn(async move {
            let _place = place;
            if tokio::time::timeout(PATIENCE, doing).await.is_err() {
                tracing::debug!("the server took too long for something to be done for a session");
            }
        });
    }
}

/// Sends a notification of a session once its connection is there.
async fn note(line: Arc<NearLine>, far: Arc<Far>, note: Note) {
    let Some((revision, client)) = line.opened.get() else { return };
    match line.legacy(&far, Guest { revision: *revision, client }).await {
        Ok(link) => pass(&link, note),
        Err(error) => tracing::debug!(%error, "a notification is dropped"),
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let beginning = self.beginning.get_mut().unwrap_or_else(PoisonError::into_inner);
        for task in self.saying.get().into_iter().chain(beginning.as_ref()) {
            task.abort();
        }
    }
}

impl Line for Held {
    fn initialize(&self, revision: Revision, client: Initialize) -> BoxFuture<'static, Outcome> {
        let line = self.line.clone();
        let _ = line.opened.set((revision, client));
        Box::pin(async move {
            let far = line.far.upgrade().ok_or_else(closed)?;
            let (revision, client) = line.opened.get().ok_or_else(closed)?;
            let link = line.legacy(&far, Guest { revision: *revision, client }).await?;
            Ok(link.facts.initialize(*revision))
        })
    }

    fn request(&self, visitor: Visitor) -> BoxFuture<'static, Outcome> {
        Box::pin(self.line.clone().answer(visitor))
    }

    fn note(&self, note: Note) {
        match Method::from_name(&note.method) {
            // What a cancellation does has been done: the request was dropped.
            Some(Method::Cancelled) => return,
            Some(Method::Initialized) => return self.begin_telling(),
            _ => {}
        }
        match self.line.known() {
            Some(link) => pass(&link, note),
            None if self.line.can_wait() => self.later(|line, far| self::note(line, far, note)),
            None => tracing::debug!("a notification is dropped: there is no server for it"),
        }
    }

    fn connected(&self, peer: Peer) {
        self.line.aside.get_or_init(|| {
            let (sender, waiting) = mpsc::channel(WAITING);
            let _ = self.saying.set(tokio::spawn(say(peer.clone(), waiting)).abort_handle());
            (peer, sender)
        });
        // A session was opened before; elsewhere the handshake is still to come.
        if self.line.opened.get().is_some() {
            self.begin_telling();
        }
    }

    fn ended(&self) {
        self.line.ended();
    }

    fn subscriptions(&self) -> BTreeSet<String> {
        self.line.subscriptions()
    }
}

/// Sends the server a notification, if its revision has it.
fn pass(link: &Link, note: Note) {
    let known = Method::from_name(&note.method);
    if known.is_none_or(|method| method.sent_by_client(link.facts.revision)) {
        link.note(note);
    }
}

/// Sends a client what waits for it, for as long as it is there.
async fn say(peer: Peer, mut waiting: mpsc::Receiver<Note>) {
    while let Some(note) = waiting.recv().await {
        let Some(transport) = peer.transport() else { return };
        transport.notify(note).await;
    }
}
