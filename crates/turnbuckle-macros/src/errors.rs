//! Owns: mistakes, gathered so that all of them are told. Does not own: any of their messages.

use syn::{Error, Result};

/// Mistakes, all of which are told.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// What was made, or `None` and one more mistake.
    pub(crate) fn take<T>(&mut self, made: Result<T>) -> Option<T> {
        made.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}
