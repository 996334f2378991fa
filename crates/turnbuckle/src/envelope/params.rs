//! Owns how params become a type, and the sentence that says where they don't.
//! Does not own what the params mean.

use serde::de::DeserializeOwned;
use turnbuckle_types::{RpcError, jsonrpc::Params};

/// Decodes params; the error names the member that is wrong.
pub(crate) fn decode<T: DeserializeOwned>(params: &Params) -> Result<T, RpcError> {
    serde_json::from_str(params.text()).map_err(|_| {
        // Only a failure is worth the bookkeeping that finds its place.
        let mut again = serde_json::Deserializer::from_str(params.text());
        match serde_path_to_error::deserialize::<_, T>(&mut again) {
            Ok(_) => RpcError::invalid_params("`params` are not valid"),
            Err(error) => {
                let path = error.path().to_string();
                let at = if path == "." { "params".to_owned() } else { format!("params.{path}") };
                RpcError::invalid_params(format!("`{at}`: {}", error.inner()))
            }
        }
    })
}
