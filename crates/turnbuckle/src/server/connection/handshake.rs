//! Owns the handshake state of one legacy connection. Does not own anything that the
//! modern era has: a modern request never looks here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::classify::ClientHello;
use turnbuckle_types::{Initialize, LogLevel, Revision, RpcError};

/// Where a legacy connection stands.
#[derive(Default)]
pub(crate) struct HandshakeState(Mutex<State>);

#[derive(Default)]
struct State {
    opened: Option<Arc<ClientHello>>,
    log_level: Option<LogLevel>,
}

impl HandshakeState {
    /// A connection that was opened before, elsewhere.
    #[cfg(feature = "http")]
    pub(crate) fn restored(
        opened: Arc<ClientHello>,
        log_level: Option<LogLevel>,
    ) -> HandshakeState {
        HandshakeState(Mutex::new(State { opened: Some(opened), log_level }))
    }

    /// Applies `initialize`: echoes the revision if it is served, else offers the newest
    /// that is. A second one is refused.
    pub(crate) fn open(
        &self,
        client: Initialize,
        served: &[Revision],
    ) -> Result<Revision, RpcError> {
        let revision = choose(&client.protocol_version, served)?;
        let mut state = self.lock();
        if state.opened.is_some() {
            let message = "this connection has been initialized already; open another one";
            return Err(RpcError::invalid_request(message));
        }
        state.opened = Some(Arc::new(ClientHello { revision, client }));
        Ok(revision)
    }

    pub(crate) fn opened(&self) -> Option<Arc<ClientHello>> {
        self.lock().opened.clone()
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.lock().log_level
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.lock().log_level = Some(level);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn choose(requested: &str, served: &[Revision]) -> Result<Revision, RpcError> {
    let legacy = || served.iter().copied().filter(|revision| revision.has_handshake());
    if let Some(revision) = legacy().find(|revision| revision.as_str() == requested) {
        return Ok(revision);
    }
    legacy().max().ok_or_else(|| {
        // 2026-07-28 basic/versioning: a legacy client has nothing else to show its user.
        crate::protocol::classify::unsupported(requested, served)
    })
}

#[cfg(test)]
mod tests {
    use turnbuckle_types::{ClientCapabilities, Implementation};

    use super::*;

    fn initialize(version: &str) -> Initialize {
        Initialize::new(version, ClientCapabilities::default(), Implementation::new("c", "1"))
    }

    #[test]
    fn every_legacy_revision_is_echoed_and_anything_else_is_offered_the_newest() {
        for revision in Revision::ALL.into_iter().filter(|revision| revision.has_handshake()) {
            let opened =
                HandshakeState::default().open(initialize(revision.as_str()), &Revision::ALL);
            assert_eq!(opened, Ok(revision));
        }
        for unknown in ["2026-07-28", "1900-01-01", ""] {
            let opened = HandshakeState::default().open(initialize(unknown), &Revision::ALL);
            assert_eq!(opened, Ok(Revision::LATEST_LEGACY));
        }
    }

    #[test]
    fn a_second_initialize_is_refused_and_changes_nothing() {
        let handshake = HandshakeState::default();
        handshake.open(initialize("2024-11-05"), &Revision::ALL).unwrap();
        assert!(handshake.open(initialize("2025-11-25"), &Revision::ALL).is_err());
        assert_eq!(handshake.opened().unwrap().revision, Revision::V2024_11_05);
    }

    #[test]
    fn a_server_without_legacy_revisions_names_what_it_speaks() {
        let error = HandshakeState::default()
            .open(initialize("2025-11-25"), &[Revision::V2026_07_28])
            .unwrap_err();
        assert!(error.message.contains("2026-07-28"), "{}", error.message);
    }
}
