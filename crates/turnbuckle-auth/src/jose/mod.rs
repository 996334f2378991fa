//! Signed tokens without I/O: keys, JSON web tokens and proofs of possession (JOSE).

mod algorithm;
pub(crate) mod dpop;
pub(crate) mod jwt;
mod key;
mod public;

mod json;
#[cfg(feature = "server")]
mod jwk;
#[cfg(all(test, feature = "client", feature = "server"))]
mod jws_cases;
#[cfg(all(test, feature = "client", feature = "server"))]
mod properties;
#[cfg(all(test, feature = "server"))]
mod vectors;
#[cfg(all(test, feature = "server"))]
mod wycheproof;

pub use algorithm::Algorithm;
pub use key::SigningKey;

pub(crate) use json::object as strict_object;
#[cfg(feature = "server")]
pub(crate) use jwk::KeySet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest,
    rand::{SecureRandom as _, SystemRandom},
};

use crate::{AuthError, AuthErrorKind};

/// The longest token that is looked at.
#[cfg(feature = "server")]
pub(crate) const LONGEST_TOKEN: usize = 16 * 1024;

/// base64url without padding (RFC 7515 §2).
pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Only what [`encode`] could have written: no padding, no other bits at the end.
#[cfg(feature = "server")]
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> digest::Digest {
    digest::digest(&digest::SHA256, bytes.as_ref())
}

/// 128 random bits, as a text.
pub(crate) fn random_id() -> Result<String, AuthError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| {
        AuthError::new(AuthErrorKind::Settings, "this system gives no random numbers")
    })?;
    Ok(encode(bytes))
}
