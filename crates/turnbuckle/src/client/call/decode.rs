//! Owns what a result is made into, and with what it is judged. Does not own when.

use std::sync::Arc;

use turnbuckle_types::Raw;

use super::super::{
    known::{CompileOutput, KnownTool},
    link::Link,
};
use crate::error::Result;

/// Makes a result of its text.
pub(crate) enum Decode<T> {
    /// As most do.
    By(DecodeBy<T>),
    /// With something of its own.
    With(Arc<DecodeWith<T>>),
}

impl<T> Clone for Decode<T> {
    fn clone(&self) -> Decode<T> {
        match self {
            Decode::By(decode) => Decode::By(*decode),
            Decode::With(decode) => Decode::With(decode.clone()),
        }
    }
}

/// The same, with something of its own.
type DecodeWith<T> = dyn Fn(&Told<'_>, &Raw) -> Result<T> + Send + Sync;

/// Makes a result of its text, and of what is known.
pub(crate) type DecodeBy<T> = fn(&Told<'_>, &Raw) -> Result<T>;

/// What this side knows when a result arrives.
pub(crate) struct Told<'a> {
    pub(crate) link: &'a Link,
    /// The tool that gave it, as a listing described it, if its output is validated.
    pub(crate) tool: Option<(&'a KnownTool, CompileOutput)>,
}

impl<T> Decode<T> {
    pub(crate) fn decode(&self, told: &Told<'_>, result: &Raw) -> Result<T> {
        match self {
            Decode::By(decode) => decode(told, result),
            Decode::With(decode) => decode(told, result),
        }
    }
}
