//! Owns how params become a type, and the sentence that says where they don't.
//! Does not own what the params mean.

use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use turnbuckle_types::{RpcError, jsonrpc::Params};

use super::place::{Failure, Step, failure_of, find, read};

/// Decodes params; the error names the member that is wrong.
pub fn decode<T: DeserializeOwned>(params: &Params) -> Result<T, RpcError> {
    read(params.text()).map_err(|failure| refusal(params.text(), &failure, failure_of::<T>))
}

#[cold]
fn refusal(text: &str, failure: &Failure, again: fn(&str) -> Option<Failure>) -> RpcError {
    let mut at = "params".to_owned();
    for step in find(text, failure, again).steps {
        // Writing into a `String` does not fail.
        let _ = match step {
            Step::Key(key) => write!(at, ".{key}"),
            Step::Index(index) => write!(at, "[{index}]"),
        };
    }
    RpcError::invalid_params(format!("`{at}`: {}", failure.error))
}
