//! Owns which ways of signing are known. Does not own the signing.

use std::fmt;

/// A way of signing (RFC 7518, RFC 8037). There is none with a shared secret, and no `none`.
///
/// ```
/// use turnbuckle_auth::Algorithm;
/// assert_eq!(Algorithm::from_name("ES256"), Some(Algorithm::Es256));
/// assert_eq!(Algorithm::from_name("none"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSA with PKCS#1 padding and SHA-256.
    Rs256,
    /// RSA with PSS padding and SHA-256.
    Ps256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

/// `Ed25519` is the name that RFC 9864 gives to what everyone calls `EdDSA`; it is read, not written.
const NAMES: [(Algorithm, &str); 6] = [
    (Algorithm::Rs256, "RS256"),
    (Algorithm::Ps256, "PS256"),
    (Algorithm::Es256, "ES256"),
    (Algorithm::Es384, "ES384"),
    (Algorithm::EdDsa, "EdDSA"),
    (Algorithm::EdDsa, "Ed25519"),
];

impl Algorithm {
    /// By its registered name; nothing if it is not one of these.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(algorithm, _)| *algorithm)
    }

    /// Its registered name.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Ps256 => "PS256",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_back_and_nothing_weaker_is_known() {
        for (algorithm, _) in NAMES {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
        for name in ["none", "None", "", "HS256", "HS384", "HS512", "RS1", "es256", "ES512"] {
            assert_eq!(Algorithm::from_name(name), None, "{name}");
        }
    }
}
