//! Keys that sign.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair as _, RsaKeyPair,
    },
};
use zeroize::Zeroizing;

use super::{
    Algorithm,
    public::{Material, PublicKey},
};
use crate::{AuthError, AuthErrorKind, Secret};

/// A key that signs: assertions of who a client is, and proofs that a token is its own.
///
/// ```
/// use turnbuckle_auth::{Algorithm, SigningKey};
/// let key = SigningKey::generate()?.with_key_id("first");
/// assert_eq!(key.algorithm(), Algorithm::Es256);
/// let same = SigningKey::from_pkcs8(&key.to_pkcs8())?;
/// assert_eq!(same.thumbprint(), key.thumbprint());
/// # Ok::<(), turnbuckle_auth::AuthError>(())
/// ```
#[derive(Clone)]
pub struct SigningKey {
    parts: Arc<Parts>,
    algorithm: Algorithm,
    key_id: Option<String>,
}

struct Parts {
    pair: Pair,
    public: PublicKey,
    /// What the pair was read from.
    pkcs8: Zeroizing<Vec<u8>>,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl SigningKey {
    /// A new one, for ES256.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn generate() -> Result<SigningKey, AuthError> {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let document = made.map_err(|_| settings("this system gives no random numbers"))?;
        SigningKey::from_der(document.as_ref())
    }

    /// Reads `-----BEGIN PRIVATE KEY-----`: a key on P-256, P-384 or Ed25519, or of RSA with at
    /// least 2048 bits.
    ///
    /// # Errors
    /// If it is anything else; nothing of the text is in the error.
    pub fn from_pem(pem: &Secret) -> Result<SigningKey, AuthError> {
        const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
        const END: &str = "-----END PRIVATE KEY-----";
        let after = pem.expose().split_once(BEGIN).map(|(_, after)| after);
        let Some((body, _)) = after.and_then(|after| after.split_once(END)) else {
            return Err(settings(
                "no PKCS#8 private key in the PEM text; `openssl pkcs8 -topk8 -nocrypt` makes one \
                 of other kinds",
            ));
        };
        // Room for all of it at once, so that no copy is left behind when it grows.
        let mut packed = Zeroizing::new(String::with_capacity(body.len()));
        packed.extend(body.chars().filter(|letter| !letter.is_ascii_whitespace()));
        SigningKey::from_base64(&packed)
    }

    /// Reads what [`to_pkcs8`](SigningKey::to_pkcs8) wrote.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn from_pkcs8(base64: &Secret) -> Result<SigningKey, AuthError> {
        SigningKey::from_base64(base64.expose())
    }

    /// The whole key, to be kept: PKCS#8 in base64. What [`with_algorithm`] and [`with_key_id`]
    /// said is not in it.
    ///
    /// [`with_algorithm`]: SigningKey::with_algorithm
    /// [`with_key_id`]: SigningKey::with_key_id
    pub fn to_pkcs8(&self) -> Secret {
        Secret::new(STANDARD.encode(&*self.parts.pkcs8))
    }

    /// Signs another way: a key of RSA can sign RS256, which is what it does unless told, and PS256.
    ///
    /// # Errors
    /// If a key of this kind can't.
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Result<SigningKey, AuthError> {
        if !self.parts.public.material.fits(algorithm) {
            return Err(settings(format!("this key can't sign {algorithm}")));
        }
        self.algorithm = algorithm;
        Ok(self)
    }

    /// Names it: `kid` in what it signs.
    #[must_use]
    pub fn with_key_id(mut self, key_id: impl Into<String>) -> SigningKey {
        self.key_id = Some(key_id.into());
        self
    }

    /// How it signs.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its name, if it has one.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Its public half as a JSON web key, with `kid` (if it has a name), `alg` and `use`: what a
    /// client publishes so that others can verify what it signs.
    pub fn public_jwk(&self) -> serde_json::Map<String, serde_json::Value> {
        let mut jwk = self.parts.public.to_jwk();
        if let Some(key_id) = &self.key_id {
            jwk.insert("kid".into(), key_id.as_str().into());
        }
        jwk.insert("alg".into(), self.algorithm.name().into());
        jwk.insert("use".into(), "sig".into());
        jwk
    }

    /// The thumbprint of its public half (RFC 7638).
    pub fn thumbprint(&self) -> String {
        self.parts.public.thumbprint()
    }

    pub(crate) fn public(&self) -> &PublicKey {
        &self.parts.public
    }

    /// A raw signature, as JSON web signatures have it.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, AuthError> {
        let failed = |_| settings("the key could not sign");
        let random = SystemRandom::new();
        match &self.parts.pair {
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::Ecdsa(pair) => {
                pair.sign(&random, message).map(|made| made.as_ref().to_vec()).map_err(failed)
            }
            Pair::Rsa(pair) => {
                let padding: &dyn signature::RsaEncoding = match self.algorithm {
                    Algorithm::Ps256 => &signature::RSA_PSS_SHA256,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut made = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, message, &mut made).map_err(failed)?;
                Ok(made)
            }
        }
    }

    fn from_base64(base64: &str) -> Result<SigningKey, AuthError> {
        let decoded = STANDARD.decode(base64).map_err(|_| settings("the key is not in base64"))?;
        SigningKey::from_der(&Zeroizing::new(decoded))
    }

    fn from_der(pkcs8: &[u8]) -> Result<SigningKey, AuthError> {
        let Some((pair, material, algorithm)) = read(pkcs8) else {
            return Err(settings(
                "not a PKCS#8 key on P-256, P-384 or Ed25519, or of RSA with at least 2048 bits",
            ));
        };
        let pkcs8 = Zeroizing::new(pkcs8.to_vec());
        let parts = Parts { pair, public: PublicKey::new(material), pkcs8 };
        Ok(SigningKey { parts: Arc::new(parts), algorithm, key_id: None })
    }
}

/// Says which key it is, and nothing of its private half.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .field("key_id", &self.key_id)
            .field("thumbprint", &self.thumbprint())
            .finish_non_exhaustive()
    }
}

/// Of whatever kind it is: the document itself says it, and each reader refuses other kinds.
fn read(pkcs8: &[u8]) -> Option<(Pair, Material, Algorithm)> {
    let random = SystemRandom::new();
    // The first byte of a point says that it is not compressed.
    let point = |pair: &EcdsaKeyPair| pair.public_key().as_ref()[1..].to_vec();
    if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random) {
        let material = Material::P256(point(&pair));
        return Some((Pair::Ecdsa(pair), material, Algorithm::Es256));
    }
    if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, pkcs8, &random) {
        let material = Material::P384(point(&pair));
        return Some((Pair::Ecdsa(pair), material, Algorithm::Es384));
    }
    // OpenSSL leaves the public half out, and it can be computed.
    if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8) {
        let material = Material::Ed25519(pair.public_key().as_ref().to_vec());
        return Some((Pair::Ed25519(pair), material, Algorithm::EdDsa));
    }
    let pair = RsaKeyPair::from_pkcs8(pkcs8).ok()?;
    let public: PublicKeyComponents<Vec<u8>> = pair.public().into();
    let material = Material::Rsa { modulus: public.n, exponent: public.e };
    Some((Pair::Rsa(Box::new(pair)), material, Algorithm::Rs256))
}

fn settings(message: impl Into<String>) -> AuthError {
    AuthError::new(AuthErrorKind::Settings, message)
}
