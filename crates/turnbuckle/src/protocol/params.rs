//! Decodes params into a type, and names the member that is wrong.

use serde::de::DeserializeOwned;
use turnbuckle_types::{Decode, RpcError, jsonrpc::Params};

use super::place::{Culprit, DecodeFailure, read, read_with};

/// Decodes params; the error names the member that is wrong.
pub fn decode<T: Decode>(params: &Params) -> Result<T, RpcError> {
    read_with(params.text(), T::decode_next).map_err(|failure| refusal(params.text(), &failure))
}

/// Decodes params into a type without a decoder of its own in `turnbuckle-types`.
pub fn decode_as<T: DeserializeOwned>(params: &Params) -> Result<T, RpcError> {
    read(params.text()).map_err(|failure| refusal(params.text(), &failure))
}

#[cold]
fn refusal(text: &str, failure: &DecodeFailure) -> RpcError {
    let mut path = "params".to_owned();
    failure.place(text, Culprit::Around).write(&mut path);
    RpcError::invalid_params(format!("`{path}`: {}", failure.message()))
}
