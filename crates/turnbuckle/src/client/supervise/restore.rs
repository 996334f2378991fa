//! Owns what this client has set on its server, and sets it again on the next connection.
//! Does not own what is declared in the handshake, which is said with each one anyway.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use turnbuckle_types::Method;

use super::super::link::Link;
use crate::dispatch::{Exchange, Outgoing};

/// What was set last.
#[derive(Default)]
pub(super) struct Restored {
    /// The params of `logging/setLevel`.
    level: Mutex<Option<String>>,
}

impl super::Supervisor {
    /// A request that the server has granted, in case it sets something.
    pub(in crate::client) fn granted(&self, method: &str, params: &str) {
        if method == Method::SetLevel.as_str() {
            let mut level = self.restored.level.lock().unwrap_or_else(PoisonError::into_inner);
            *level = Some(params.to_owned());
        }
    }
}

impl Restored {
    /// Sets it all again. What the server refuses now is left as it is.
    pub(super) async fn restore(&self, link: &Link, limit: Duration) {
        let level = self.level.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let method = Method::SetLevel;
        let Some(params) = level.filter(|_| method.exists_in(link.revision())) else {
            return;
        };
        let request = Outgoing {
            #[cfg(feature = "http")]
            mirror: crate::dispatch::Mirror {
                revision: Some(link.revision()),
                ..Default::default()
            },
            ..Outgoing::new(method.as_str(), params)
        };
        let setting: Exchange = link.transport.open(request);
        match tokio::time::timeout(limit, setting.done()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the log level was not set again"),
            Err(_) => tracing::debug!("the log level was not set again in time"),
        }
    }
}
