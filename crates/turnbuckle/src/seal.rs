//! Owns how text that a client keeps for us is sealed: unreadable, unforgeable, bound to its purpose.
//! Does not own what is in it.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, KeyType, Salt},
    rand::{SecureRandom as _, SystemRandom},
};

/// How many random bytes each sealed text has. Its key is derived from them, so that no two texts
/// share one, however many there are.
pub(crate) const SALT: usize = 16;

/// The secret keys that seal what clients keep for a server: session ids.
///
/// A server has a random one unless it is told otherwise: then what it sealed is worth nothing to
/// another replica, nor to itself after a restart. Replicas that share keys accept each other's
/// sessions.
///
/// ```
/// use turnbuckle::KeyRing;
/// // From a secret store, in practice.
/// let (new, old) = ([7; 32], [3; 32]);
/// let keys = KeyRing::new(new).and_accept(old);
/// # let _ = keys;
/// ```
#[derive(Clone)]
pub struct KeyRing(Arc<[[u8; 32]]>);

impl KeyRing {
    /// Seals and opens with this key.
    pub fn new(key: [u8; 32]) -> KeyRing {
        KeyRing(Arc::new([key]))
    }

    /// A key that nobody else has.
    ///
    /// # Panics
    ///
    /// If the system has no random numbers to give.
    pub fn random() -> KeyRing {
        KeyRing::new(random())
    }

    /// Opens with this key as well: one that was used before, or will be.
    #[must_use]
    pub fn and_accept(self, key: [u8; 32]) -> KeyRing {
        KeyRing(self.0.iter().copied().chain([key]).collect())
    }

    /// Seals a text for a purpose. `salt` must be fresh.
    pub(crate) fn seal(&self, purpose: &[u8], salt: [u8; SALT], text: &[u8]) -> String {
        let mut sealed = text.to_vec();
        // Neither fails for texts of any length that fits into memory.
        if key(&self.0[0], &salt)
            .seal_in_place_append_tag(nonce(), Aad::from(purpose), &mut sealed)
            .is_err()
        {
            sealed.clear();
        }
        let mut whole = salt.to_vec();
        whole.extend_from_slice(&sealed);
        URL_SAFE_NO_PAD.encode(whole)
    }

    /// Opens what was sealed for this purpose with any of the keys.
    pub(crate) fn open(&self, purpose: &[u8], sealed: &[u8]) -> Option<([u8; SALT], Vec<u8>)> {
        let whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (salt, sealed) = whole.split_first_chunk::<SALT>()?;
        self.0.iter().find_map(|secret| {
            let mut text = sealed.to_vec();
            let length =
                key(secret, salt).open_in_place(nonce(), Aad::from(purpose), &mut text).ok()?.len();
            text.truncate(length);
            Some((*salt, text))
        })
    }
}

/// Keys are not for logs.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("keys", &self.0.len()).finish_non_exhaustive()
    }
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has no random numbers");
    bytes
}

fn key(secret: &[u8; 32], salt: &[u8; SALT]) -> LessSafeKey {
    struct Length;
    impl KeyType for Length {
        fn len(&self) -> usize {
            CHACHA20_POLY1305.key_len()
        }
    }
    let mut derived = [0; 32];
    Salt::new(HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[b"turnbuckle seal"], Length)
        .and_then(|okm| okm.fill(&mut derived))
        .expect("the length is the algorithm's own");
    LessSafeKey::new(
        UnboundKey::new(&CHACHA20_POLY1305, &derived).expect("the length is the algorithm's own"),
    )
}

/// Each key seals one text, so that the nonce may be the same.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_with_any_key_of_the_ring_for_its_purpose_only() {
        let old = KeyRing::new([1; 32]);
        let new = KeyRing::new([2; 32]).and_accept([1; 32]);
        let sealed = old.seal(b"a", [9; SALT], b"text");
        assert_eq!(new.open(b"a", sealed.as_bytes()), Some(([9; SALT], b"text".to_vec())));
        assert_eq!(new.open(b"b", sealed.as_bytes()), None);
        assert_eq!(KeyRing::new([2; 32]).open(b"a", sealed.as_bytes()), None);
        assert_eq!(old.open(b"a", new.seal(b"a", [9; SALT], b"text").as_bytes()), None);
    }

    #[test]
    fn whatever_is_changed_does_not_open() {
        let keys = KeyRing::random();
        let sealed = keys.seal(b"a", random(), b"text").into_bytes();
        assert!(keys.open(b"a", &sealed).is_some());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(keys.open(b"a", &changed), None, "byte {at}");
            assert_eq!(keys.open(b"a", &sealed[..at]), None, "cut at {at}");
        }
    }
}
