//! Owns what a protected server tells of itself (RFC 9728 §2). Does not own where that is.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Bound, ResourceServer, denied::PROOF_ALGORITHMS};

pub(super) fn document(server: &ResourceServer) -> Bytes {
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
    put("resource", server.place.resource.as_str().into());
    let issuers: Vec<&str> = server.issuers.iter().map(|issuer| issuer.name.as_str()).collect();
    put("authorization_servers", issuers.into());
    put("bearer_methods_supported", vec!["header"].into());
    let scopes = server.offered.union(&server.required);
    if !scopes.is_empty() {
        put("scopes_supported", scopes.iter().collect::<Vec<_>>().into());
    }
    if let Some(name) = &server.name {
        put("resource_name", name.as_str().into());
    }
    if let Some(address) = &server.documentation {
        put("resource_documentation", address.as_str().into());
    }
    put("dpop_signing_alg_values_supported", PROOF_ALGORITHMS.to_vec().into());
    if server.bound == Bound::Always {
        put("dpop_bound_access_tokens_required", true.into());
    }
    Bytes::from(Value::Object(document).to_string())
}
