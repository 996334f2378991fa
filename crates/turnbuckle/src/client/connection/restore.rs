//! Owns what this client has set on its server, and sets it again where the server has forgotten it:
//! on the next connection, or in a session that was opened anew underneath.
//! Does not own what is declared in the handshake, which is said with each one anyway.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::rpc::{Outgoing, Transport};
use turnbuckle_types::{Method, Revision};

/// What was set last.
#[derive(Default)]
pub(crate) struct Restored {
    /// The params of `logging/setLevel`.
    level: Mutex<Option<String>>,
}

impl super::Supervisor {
    /// A request that the server has granted, in case it sets something.
    pub(crate) fn granted(&self, method: &str, params: &str) {
        if method == Method::SetLevel.as_str() {
            let mut level =
                self.settings.restored.level.lock().unwrap_or_else(PoisonError::into_inner);
            *level = Some(params.to_owned());
        }
    }
}

impl Restored {
    /// Sets it all again. What the server refuses now is left as it is.
    pub(crate) async fn restore(
        &self,
        transport: &dyn Transport,
        revision: Revision,
        limit: Duration,
    ) {
        let level = self.level.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let method = Method::SetLevel;
        let Some(params) = level.filter(|_| method.exists_in(revision)) else {
            return;
        };
        let request = Outgoing {
            #[cfg(feature = "http")]
            mirror: crate::rpc::Mirror { revision: Some(revision), ..Default::default() },
            ..Outgoing::new(method.as_str(), params)
        };
        let setting = transport.open(request);
        match tokio::time::timeout(limit, setting.done()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the log level was not set again"),
            Err(_) => tracing::debug!("the log level was not set again in time"),
        }
    }
}
