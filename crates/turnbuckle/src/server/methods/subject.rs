//! Owns what the run of a handler is about and how it ends. Does not own the run.

use crate::{rpc::Outcome, server::handler::reply::Failure};
use turnbuckle_types::{
    Method, Raw,
    jsonrpc::{Params, Retry},
};

/// What a request is about, to which what the client keeps is bound.
#[derive(Clone, Copy)]
pub(crate) struct RunSubject<'a> {
    pub(crate) method: Method,
    /// The tool, the prompt, or the resource's URI.
    pub(crate) name: &'a str,
    pub(crate) arguments: Option<&'a Raw>,
    /// What it brings because it asked before.
    pub(crate) retry: Option<&'a Retry>,
}

impl<'a> RunSubject<'a> {
    pub(crate) fn of(method: Method, name: &'a str, params: &'a Params) -> RunSubject<'a> {
        let (arguments, retry) = (params.arguments.as_ref(), params.retry.as_deref());
        RunSubject { method, name, arguments, retry }
    }
}

/// What is said of a state that is not one for this request.
pub(crate) const FOREIGN_STATE: &str =
    "`params.requestState` is not what this server gave out for this request";

/// How a run ended.
pub(crate) enum RunEnd<R> {
    /// The handler has come to something.
    Replied(Result<R, Failure>),
    /// The client is asked something, or told that what it sent is not enough.
    Instead(Outcome),
}
