//! Owns who comes with a request. Does not own the token that said so: nobody behind this gets it.

use serde_json::{Map, Value};

use crate::Scopes;

/// Who comes with a request: what the token said, and never the token itself.
///
/// ```
/// use turnbuckle_auth::resource_server::Identity;
/// fn owner(identity: &Identity) -> (&str, &str) {
///     (&identity.issuer, &identity.subject)
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Identity {
    /// Who says so. A subject means nothing without it.
    pub issuer: String,
    /// Whose token it is; of a client that acts for itself, the client's own name.
    pub subject: String,
    /// Which program the token was given to.
    pub client_id: Option<String>,
    /// What the token is good for.
    pub scopes: Scopes,
    /// Until when, in seconds since 1970.
    pub expires_at: Option<u64>,
    /// All that is said of the token: claims, or what introspection answered.
    pub claims: Map<String, Value>,
}

impl Identity {
    /// Returns `None` if the claims name no subject, or one that is not text.
    pub(super) fn from_claims(issuer: &str, claims: Map<String, Value>) -> Option<Identity> {
        let text = |name: &str| {
            let text = claims.get(name).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        // `azp` is what providers wrote before RFC 9068.
        let client_id = text("client_id").or_else(|| text("azp"));
        // RFC 9068 §2.2: without a person the subject is the client. RFC 7519 §4.1.2: a subject is text.
        let subject = match claims.get("sub") {
            Some(_) => text("sub")?,
            None => client_id.clone()?,
        };
        Some(Identity {
            issuer: issuer.to_owned(),
            subject,
            client_id,
            scopes: scopes(&claims),
            expires_at: claims.get("exp").and_then(Value::as_f64).map(|time| time as u64),
            claims,
        })
    }
}

/// `scope` (RFC 8693 §4.2), or `scp`, which some providers write; one text or a list.
fn scopes(claims: &Map<String, Value>) -> Scopes {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Scopes::none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity(claims: Value) -> Option<Identity> {
        Identity::from_claims("https://a", claims.as_object().unwrap().clone())
    }

    #[test]
    fn claims_name_someone_or_nobody() {
        let full = json!({"sub": "ann", "client_id": "app", "scope": "b a", "exp": 7.5});
        let identity_of_ann = identity(full).unwrap();
        assert_eq!(identity_of_ann.subject, "ann");
        assert_eq!(identity_of_ann.client_id.as_deref(), Some("app"));
        assert_eq!(identity_of_ann.scopes.to_string(), "a b");
        assert_eq!(identity_of_ann.expires_at, Some(7));
        assert_eq!(identity(json!({"client_id": "app"})).unwrap().subject, "app");
        assert_eq!(identity(json!({"sub": "ann", "scp": ["x"]})).unwrap().scopes.to_string(), "x");
        assert_eq!(identity(json!({"sub": ""})), None);
        for sub in [json!(1), json!(""), json!(null), json!(["ann"]), json!({"ann": 1})] {
            assert_eq!(identity(json!({"sub": sub, "client_id": "app"})), None, "{sub}");
        }
    }
}
