//! The public half of a key: how it is written down, and its thumbprint.

use serde_json::{Map, Value};

use super::{Algorithm, encode, sha256};

/// The public half of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicKey {
    pub(super) material: Material,
    #[cfg(feature = "server")]
    pub(super) key_id: Option<String>,
    /// What its owner says that it is for; nothing is whatever its kind is good for.
    #[cfg(feature = "server")]
    pub(super) only: Option<Algorithm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Material {
    /// `x` and `y`, 32 bytes each.
    P256(Vec<u8>),
    /// `x` and `y`, 48 bytes each.
    P384(Vec<u8>),
    /// 32 bytes.
    Ed25519(Vec<u8>),
    /// Big-endian, without leading zeros.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

impl PublicKey {
    pub(super) fn new(material: Material) -> PublicKey {
        PublicKey {
            material,
            #[cfg(feature = "server")]
            key_id: None,
            #[cfg(feature = "server")]
            only: None,
        }
    }

    /// As a JSON web key with what it must have, and nothing else.
    pub(crate) fn to_jwk(&self) -> Map<String, Value> {
        let members = self.members();
        members.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect()
    }

    /// RFC 7638, with SHA-256.
    pub(crate) fn thumbprint(&self) -> String {
        // By hand, for the order and the spacing are what is hashed; no value needs escapes.
        let members: Vec<String> =
            self.members().iter().map(|(name, value)| format!(r#""{name}":"{value}""#)).collect();
        encode(sha256(format!("{{{}}}", members.join(","))))
    }

    /// The members that a key of this kind must have, in the order of their names (RFC 7638 §3.2).
    fn members(&self) -> Vec<(&'static str, String)> {
        let curve = |name: &str, point: &[u8]| {
            let (x, y) = point.split_at(point.len() / 2);
            vec![("crv", name.into()), ("kty", "EC".into()), ("x", encode(x)), ("y", encode(y))]
        };
        match &self.material {
            Material::P256(point) => curve("P-256", point),
            Material::P384(point) => curve("P-384", point),
            Material::Ed25519(x) => {
                vec![("crv", "Ed25519".into()), ("kty", "OKP".into()), ("x", encode(x))]
            }
            Material::Rsa { modulus, exponent } => {
                vec![("e", encode(exponent)), ("kty", "RSA".into()), ("n", encode(modulus))]
            }
        }
    }
}

impl Material {
    /// Whether a key of this kind can sign like that.
    pub(super) fn fits(&self, algorithm: Algorithm) -> bool {
        match self {
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::P384(_) => algorithm == Algorithm::Es384,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
            Material::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
        }
    }
}
