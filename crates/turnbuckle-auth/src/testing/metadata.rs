//! Owns what the server tells of itself. Does not own whether it is true.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::{Endpoint, Fault, InsecureAuthorizationServer, reply};

impl InsecureAuthorizationServer {
    /// RFC 8414 §2 and OpenID Connect Discovery §3 in one.
    pub(super) fn metadata(&self, fault: Option<Fault>) -> Response<Bytes> {
        let issuer = match &fault {
            Some(Fault::WrongIssuer(other)) => other,
            _ => &self.issuer,
        };
        let methods = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
        let algorithms = ["ES256", "ES384", "EdDSA", "PS256", "RS256"];
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": self.address(Endpoint::Authorize),
            "token_endpoint": self.address(Endpoint::Token),
            "registration_endpoint": self.address(Endpoint::Register),
            "introspection_endpoint": self.address(Endpoint::Introspect),
            "revocation_endpoint": self.address(Endpoint::Revoke),
            "jwks_uri": self.address(Endpoint::Keys),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": [
                "authorization_code",
                "refresh_token",
                "client_credentials",
                "urn:ietf:params:oauth:grant-type:jwt-bearer",
                "urn:ietf:params:oauth:grant-type:token-exchange",
            ],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "token_endpoint_auth_signing_alg_values_supported": algorithms,
            "introspection_endpoint_auth_methods_supported": &methods[1..],
            "dpop_signing_alg_values_supported": algorithms,
            "authorization_response_iss_parameter_supported": true,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        });
        if self.lock().clients.keys().any(|id| id.starts_with("https://")) {
            document["client_id_metadata_document_supported"] = true.into();
        }
        // Only where someone else's word for who a person is counts.
        if !self.settings.trusted.is_empty() {
            let profiles = ["urn:ietf:params:oauth:grant-profile:id-jag"];
            document["authorization_grant_profiles_supported"] = json!(profiles);
        }
        if let Some(scopes) = &self.settings.scopes {
            document["scopes_supported"] = scopes.iter().collect::<Vec<_>>().into();
        }
        match fault {
            Some(Fault::Says(name, Value::Null)) => {
                document.as_object_mut().map(|document| document.remove(&name));
            }
            Some(Fault::Says(name, value)) => document[name] = value,
            _ => {}
        }
        reply::json(200, &document)
    }

    pub(super) fn key_set(&self) -> Response<Bytes> {
        let key = Value::Object(self.lock().key.public_jwk());
        reply::json(200, &json!({ "keys": [key] }))
    }
}
