//! Owns where what can't be guessed comes from. Does not own what it is used for.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::rand::SecureRandom as _;

use crate::{AuthError, AuthErrorKind, Secret};

/// Where what can't be guessed comes from.
pub trait Random: fmt::Debug + Send + Sync {
    /// Fills all of `bytes`.
    ///
    /// # Errors
    /// If the system has none to give.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), AuthError>;
}

/// The system's.
///
/// ```
/// use turnbuckle_auth::{Random as _, SystemRandom};
/// let mut bytes = [0; 32];
/// SystemRandom.fill(&mut bytes).unwrap();
/// assert_ne!(bytes, [0; 32]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), AuthError> {
        ring::rand::SystemRandom::new().fill(bytes).map_err(|_| {
            AuthError::new(AuthErrorKind::Settings, "the system has no random numbers to give")
        })
    }
}

/// 256 bits as 43 letters: as long as a PKCE verifier must be (RFC 7636 §4.1).
pub(crate) fn unguessable(random: &dyn Random) -> Result<Secret, AuthError> {
    let mut bytes = zeroize::Zeroizing::new([0; 32]);
    random.fill(bytes.as_mut())?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes.as_ref())))
}
