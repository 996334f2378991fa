//! Owns how text that a client keeps for us is sealed: unreadable, unforgeable, bound to its purpose.
//! Does not own what is in it.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Prk, Salt},
    rand::{SecureRandom as _, SystemRandom},
};

/// How many random bytes each sealed text has. Its key is derived from them, so that no two texts
/// share one, however many there are.
pub(crate) const SALT: usize = 16;

/// The longest sealed text that travels with every request: session ids. Whoever seals for another
/// purpose says what is too long. A longer one is refused before anything is done with it.
#[cfg(feature = "http")]
pub(crate) const LONGEST: usize = 1024;

/// What keys are derived for. A change of how texts are sealed needs another.
const LABEL: &[u8] = b"turnbuckle seal 1";

/// The secret keys that seal what clients keep for a server: session ids, and what a request that
/// asked for input needs to go on.
///
/// A server has a random one unless it is told otherwise: then what it sealed is worth nothing to
/// another replica, nor to itself after a restart. Replicas that share keys accept what the others
/// sealed.
///
/// To change the key of running replicas, first let all of them accept the new one, then seal
/// with it, and stop accepting the old one when the last text that it sealed has expired.
///
/// ```
/// use turnbuckle::KeyRing;
/// // From a secret store, in practice.
/// let (new, old) = ([7; 32], [3; 32]);
/// let keys = KeyRing::new(new).and_accept(old);
/// assert!(!format!("{keys:?}").contains('7'), "keys are not for logs");
/// ```
#[derive(Clone)]
pub struct KeyRing(Arc<[Prk]>);

impl KeyRing {
    /// Seals and opens with this key: 32 bytes from a source of random numbers, not a password.
    pub fn new(key: [u8; 32]) -> KeyRing {
        KeyRing(Arc::new([root(&key)]))
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
        KeyRing(self.0.iter().cloned().chain([root(&key)]).collect())
    }

    /// Seals a text for a purpose. `salt` must be fresh.
    pub(crate) fn seal(&self, purpose: &[u8], salt: [u8; SALT], text: &[u8]) -> String {
        let mut whole = Vec::with_capacity(SALT + text.len() + CHACHA20_POLY1305.tag_len());
        whole.extend_from_slice(&salt);
        whole.extend_from_slice(text);
        let tag = key(&self.0[0], purpose, &salt)
            .seal_in_place_separate_tag(nonce(), Aad::from(purpose), &mut whole[SALT..])
            .expect("a text that fits into memory is not too long for the algorithm");
        whole.extend_from_slice(tag.as_ref());
        URL_SAFE_NO_PAD.encode(whole)
    }

    /// [`open_within`](KeyRing::open_within) of a text that travels with every request.
    #[cfg(feature = "http")]
    pub(crate) fn open(&self, purpose: &[u8], sealed: &[u8]) -> Option<([u8; SALT], Vec<u8>)> {
        self.open_within(LONGEST, purpose, sealed)
    }

    /// Opens what was sealed for this purpose with any of the keys. Whatever is wrong with it, the
    /// answer is the same.
    pub(crate) fn open_within(
        &self,
        longest: usize,
        purpose: &[u8],
        sealed: &[u8],
    ) -> Option<([u8; SALT], Vec<u8>)> {
        if sealed.len() > longest {
            return None;
        }
        let whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (salt, sealed) = whole.split_first_chunk::<SALT>()?;
        self.0.iter().find_map(|root| {
            // A failed attempt leaves nothing usable behind, so that each has its own.
            let mut text = sealed.to_vec();
            let length = key(root, purpose, salt)
                .open_in_place(nonce(), Aad::from(purpose), &mut text)
                .ok()?
                .len();
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

/// What the keys of texts are derived from.
fn root(secret: &[u8; 32]) -> Prk {
    Salt::new(HKDF_SHA256, LABEL).extract(secret)
}

/// The key of one text. The salt is what a client sends: it is only ever data here, never a key.
fn key(root: &Prk, purpose: &[u8], salt: &[u8; SALT]) -> LessSafeKey {
    // The salt has a fixed length, so that no two purposes and salts give the same text.
    let info = [LABEL, purpose, salt.as_slice()];
    let key = root.expand(&info, &CHACHA20_POLY1305).map(UnboundKey::from);
    LessSafeKey::new(key.expect("the length is the algorithm's own"))
}

/// Each key seals one text, so that the nonce may be the same for all.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(all(test, feature = "http"))]
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
    fn each_salt_and_each_purpose_has_a_key_of_its_own() {
        let keys = KeyRing::new([1; 32]);
        let sealed = |purpose: &[u8], salt| {
            let whole = URL_SAFE_NO_PAD.decode(keys.seal(purpose, salt, &[0; 64])).unwrap();
            whole[SALT..SALT + 64].to_vec()
        };
        let streams = [
            sealed(b"a", [1; SALT]),
            sealed(b"b", [1; SALT]),
            sealed(b"a", [2; SALT]),
            vec![0; 64],
        ];
        for (index, one) in streams.iter().enumerate() {
            assert!(streams[..index].iter().all(|other| other != one), "{index}");
        }
    }

    #[test]
    fn what_is_too_long_or_too_short_or_no_base64_is_refused() {
        let keys = KeyRing::random();
        let open = |text: &[u8]| keys.open(b"a", text).is_some();
        // 16 bytes of salt, 16 of the tag.
        let most = LONGEST / 4 * 3 - SALT - 16;
        let longest = keys.seal(b"a", random(), &vec![b'x'; most]);
        assert_eq!(longest.len(), LONGEST);
        assert!(open(longest.as_bytes()));
        assert!(!open(keys.seal(b"a", random(), &vec![b'x'; most + 1]).as_bytes()));
        assert!(open(keys.seal(b"a", random(), b"").as_bytes()));
        for bad in [&b""[..], b"A", b"AAAA", b"===", b"\xff\xff", &[b'A'; 43], &[b'A'; 2000]] {
            assert!(!open(bad), "{bad:?}");
        }
        let padded = keys.seal(b"a", random(), b"text") + "=";
        assert!(!open(padded.as_bytes()));
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
