//! Owns why a call is given up by who can't tell its exchange. Does not own giving it up: dropping
//! does that.

use std::sync::{Mutex, PoisonError};

/// What the server is told when the call is dropped, unless nobody has said anything.
#[derive(Debug, Default)]
pub(crate) struct Why(Mutex<Option<String>>);

impl Why {
    /// The last who leaves has the last word, also if that is nothing.
    pub(crate) fn set(&self, reason: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
