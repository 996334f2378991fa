//! Reading the public keys of others (RFC 7517, RFC 7518 §6, RFC 8037) and verifying with them.

use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::{Map, Value};

use super::{
    Algorithm, decode, json,
    public::{Material, PublicKey},
};
use crate::{AuthError, AuthErrorKind};

/// The most keys that are looked at for one token.
const MOST_KEYS: usize = 64;

/// The keys of an issuer.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeySet(Vec<PublicKey>);

impl KeySet {
    /// Reads a key set. Keys of unknown kinds or for other uses are left out, and so are private ones.
    ///
    /// # Errors
    /// If it is no key set, or has too many keys.
    pub(crate) fn read(document: &[u8]) -> Result<KeySet, AuthError> {
        let wrong = |text| AuthError::new(AuthErrorKind::Metadata, text);
        let document =
            json::object(document).ok_or_else(|| wrong("the key set is no JSON object"))?;
        let Some(Value::Array(keys)) = document.get("keys") else {
            return Err(wrong("the key set has no `keys`"));
        };
        if keys.len() > MOST_KEYS {
            return Err(wrong("the key set has too many keys"));
        }
        Ok(KeySet::of(keys.iter().filter_map(Value::as_object)))
    }

    /// Of keys that are known already.
    pub(crate) fn of(
        keys: impl IntoIterator<Item = impl std::borrow::Borrow<Map<String, Value>>>,
    ) -> KeySet {
        KeySet(keys.into_iter().filter_map(|jwk| PublicKey::from_jwk(jwk.borrow())).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter()
    }
}

/// RFC 7518 §6 and RFC 8037 §2: what must never be seen of a key, and what only private keys have.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

impl PublicKey {
    /// Nothing if it is private, malformed, of an unknown kind, or not for verifying.
    pub(crate) fn from_jwk(jwk: &Map<String, Value>) -> Option<PublicKey> {
        if PRIVATE.iter().any(|name| jwk.contains_key(*name)) {
            return None;
        }
        if jwk.get("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if let Some(operations) = jwk.get("key_ops")
            && !operations.as_array()?.iter().any(|operation| operation == "verify")
        {
            return None;
        }
        let material = material(jwk)?;
        let only = match jwk.get("alg") {
            None => None,
            Some(name) => Some(Algorithm::from_name(name.as_str()?)?),
        };
        if only.is_some_and(|only| !material.fits(only)) {
            return None;
        }
        let key_id = match jwk.get("kid") {
            None => None,
            Some(name) => Some(name.as_str()?.to_owned()),
        };
        Some(PublicKey { material, key_id, only })
    }

    pub(crate) fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Whether it may have signed like that.
    pub(crate) fn fits(&self, algorithm: Algorithm) -> bool {
        self.only.is_none_or(|only| only == algorithm) && self.material.fits(algorithm)
    }

    /// Whether it signed this.
    pub(crate) fn verifies(&self, algorithm: Algorithm, message: &[u8], made: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        let plain = |kind: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(kind, key).verify(message, made).is_ok()
        };
        // SEC 1 §2.3.3: 4 says that both coordinates follow.
        let point = |coordinates: &[u8]| [&[4], coordinates].concat();
        match &self.material {
            Material::P256(both) => plain(&signature::ECDSA_P256_SHA256_FIXED, &point(both)),
            Material::P384(both) => plain(&signature::ECDSA_P384_SHA384_FIXED, &point(both)),
            Material::Ed25519(key) => plain(&signature::ED25519, key),
            Material::Rsa { modulus, exponent } => {
                let padding = match algorithm {
                    Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    _ => &signature::RSA_PKCS1_2048_8192_SHA256,
                };
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(padding, message, made).is_ok()
            }
        }
    }
}

fn material(jwk: &Map<String, Value>) -> Option<Material> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    let bytes = |name: &str| text(name).and_then(decode);
    let sized = |name: &str, size: usize| bytes(name).filter(|bytes| bytes.len() == size);
    let point = |size: usize| Some([sized("x", size)?, sized("y", size)?].concat());
    match (text("kty")?, text("crv")) {
        ("EC", Some("P-256")) => Some(Material::P256(point(32)?)),
        ("EC", Some("P-384")) => Some(Material::P384(point(48)?)),
        ("OKP", Some("Ed25519")) => Some(Material::Ed25519(sized("x", 32)?)),
        ("RSA", _) => {
            let number = |name: &str| {
                let bytes = bytes(name)?;
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                Some(bytes[zeros..].to_vec())
            };
            Some(Material::Rsa { modulus: number("n")?, exponent: number("e")? })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::SigningKey;

    #[test]
    fn unknown_private_and_foreign_keys_are_left_out() {
        let good = Value::Object(SigningKey::generate().unwrap().with_key_id("good").public_jwk());
        let with = |name: &str, value: Value| {
            let mut jwk = good.clone();
            jwk[name] = value;
            jwk
        };
        let set = json!({"keys": [
            {"kty": "oct", "k": "AAAA"},
            {"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA"},
            {"kty": "new"}, {}, 1, "x", null,
            with("use", json!("enc")),
            with("d", json!("AAAA")),
            with("x", json!("AAAA")),
            with("kid", json!(1)),
            with("alg", json!("RS256")),
            with("key_ops", json!("verify")),
            good,
        ], "more": 1});
        let keys = KeySet::read(set.to_string().as_bytes()).unwrap();
        assert_eq!(keys.iter().map(PublicKey::key_id).collect::<Vec<_>>(), [Some("good")]);
    }

    #[test]
    fn what_is_no_key_set_or_too_long_a_one_is_refused() {
        let set = |count: usize| json!({"keys": vec![json!({}); count]}).to_string();
        assert!(KeySet::read(set(MOST_KEYS).as_bytes()).is_ok());
        for text in
            [set(MOST_KEYS + 1), "{}".into(), "[]".into(), r#"{"keys":{}}"#.into(), "<p>".into()]
        {
            assert_eq!(KeySet::read(text.as_bytes()).unwrap_err().kind(), AuthErrorKind::Metadata);
        }
    }
}
