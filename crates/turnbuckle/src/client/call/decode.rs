//! Decoders of results.

use std::sync::Arc;

use crate::{
    client::{
        connection::handle::ClientConnection,
        tools::{CompileOutput, KnownTool},
    },
    error::Result,
};
use turnbuckle_types::Raw;

/// Decodes the text of a result.
pub(crate) enum Decode<T> {
    /// A plain function, as most are.
    By(DecodeBy<T>),
    /// A closure.
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

type DecodeWith<T> = dyn Fn(&DecodeContext<'_>, &Raw) -> Result<T> + Send + Sync;

pub(crate) type DecodeBy<T> = fn(&DecodeContext<'_>, &Raw) -> Result<T>;

/// The context in which a result is decoded.
pub(crate) struct DecodeContext<'a> {
    pub(crate) link: &'a ClientConnection,
    /// The tool that gave it, as a listing described it, if its output is validated.
    pub(crate) tool: Option<(&'a KnownTool, CompileOutput)>,
}

impl<T> Decode<T> {
    pub(crate) fn decode(&self, context: &DecodeContext<'_>, result: &Raw) -> Result<T> {
        match self {
            Decode::By(decode) => decode(context, result),
            Decode::With(decode) => decode(context, result),
        }
    }
}
