//! Owns whose share a request is taken from. Does not own the shares.

use std::{fmt, sync::Arc};

use super::request::Request;

/// Whether all requests share one limit, or each caller has one.
#[derive(Clone)]
pub(super) enum Who {
    Everyone,
    Each(Arc<dyn Fn(&Request) -> String + Send + Sync>),
}

impl Who {
    pub(super) fn principal() -> Who {
        // Nobody knows who these are: they share what there is for them.
        Who::by(|request| request.principal().unwrap_or_default())
    }

    pub(super) fn by(key: impl Fn(&Request) -> String + Send + Sync + 'static) -> Who {
        Who::Each(Arc::new(key))
    }

    /// The key of a request's share.
    pub(super) fn of(&self, request: &Request) -> String {
        match self {
            Who::Everyone => String::new(),
            Who::Each(key) => key(request),
        }
    }
}

impl fmt::Debug for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::Everyone => "Everyone",
            Who::Each(_) => "Each",
        })
    }
}
