//! Owns how text that a client keeps for us is sealed: unreadable, unforgeable, bound to its purpose.
//! Does not own what is in it.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Prk, Salt},
    rand::{SecureRandom as _, SystemRandom},
};

/// How many random bytes each sealed text has of its own. They name it, and the first of them are
/// its nonce.
pub(crate) const ID: usize = 16;

/// What names a sealed text.
pub(crate) type Id = [u8; ID];

/// How many random bytes a [`Series`] has.
const SALT: usize = 16;

/// How many texts share a key at most. Nonces are random, so that clones of a process (a fork, a
/// snapshot) don't repeat each other's: among so many of 96 bits two are the same with a probability
/// of 2⁻⁶⁵.
const SERIES: u32 = 1 << 16;

/// How many series are remembered: the last ones of this process and of replicas with the same keys.
/// The key of any other is derived when it is needed.
const KNOWN: usize = 64;

/// The longest sealed text that travels with every request: session ids. Whoever seals for another
/// purpose says what is too long. A longer one is refused before anything is done with it.
#[cfg(feature = "http")]
pub(crate) const LONGEST: usize = 1024;

/// What keys are derived for. A change of how texts are sealed needs another.
const LABEL: &[u8] = b"turnbuckle seal 2";

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
/// use turnbuckle::server::KeyRing;
/// // From a secret store, in practice.
/// let (new, old) = ([7; 32], [3; 32]);
/// let keys = KeyRing::new(new).and_accept(old);
/// assert!(!format!("{keys:?}").contains('7'), "keys are not for logs");
/// ```
#[derive(Clone)]
pub struct KeyRing(Arc<Keys>);

struct Keys {
    /// The first seals, all of them open.
    roots: Box<[Prk]>,
    /// What is sealed with, and for how many texts yet.
    current: Mutex<Option<(Arc<Series>, u32)>>,
    known: RwLock<DerivedKeys>,
}

/// Texts that one process sealed, one after the other, with a key of their own: it is derived from a
/// root and from random bytes that each text brings along, so that whoever has the root has the key.
struct Series {
    salt: [u8; SALT],
    key: LessSafeKey,
}

/// Invariant: at most [`KNOWN`], each of which was made here or has opened a text: what anybody can
/// make up displaces nothing.
#[derive(Default)]
struct DerivedKeys {
    series: Vec<Arc<Series>>,
    /// Which one makes room.
    oldest: usize,
}

impl KeyRing {
    /// Seals and opens with this key: 32 bytes from a source of random numbers, not a password.
    pub fn new(key: [u8; 32]) -> KeyRing {
        KeyRing::of([root(&key)].into())
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
        KeyRing::of(self.0.roots.iter().cloned().chain([root(&key)]).collect())
    }

    fn of(roots: Box<[Prk]>) -> KeyRing {
        KeyRing(Arc::new(Keys { roots, current: Mutex::default(), known: RwLock::default() }))
    }

    /// Seals a text for a purpose, and names it.
    pub(crate) fn seal(&self, purpose: &[u8], text: &[u8]) -> (Id, String) {
        let id: Id = random();
        let (nonce, rest) = parts(&id);
        let series = self.0.current();
        let length = SALT + ID + text.len() + CHACHA20_POLY1305.tag_len();
        let mut whole = Vec::with_capacity(length);
        whole.extend_from_slice(&series.salt);
        whole.extend_from_slice(nonce);
        let start = whole.len();
        whole.extend_from_slice(rest);
        whole.extend_from_slice(text);
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let key = &series.key;
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::from(purpose), &mut whole[start..])
            .expect("a text that fits into memory is not too long for the algorithm");
        whole.extend_from_slice(tag.as_ref());
        (id, URL_SAFE_NO_PAD.encode(whole))
    }

    /// [`open_within`](KeyRing::open_within) of a text that travels with every request.
    #[cfg(feature = "http")]
    pub(crate) fn open(&self, purpose: &[u8], sealed: &[u8]) -> Option<(Id, Vec<u8>)> {
        self.open_within(LONGEST, purpose, sealed)
    }

    /// Opens what was sealed for this purpose with any of the keys. Whatever is wrong with it, the
    /// answer is the same.
    pub(crate) fn open_within(
        &self,
        longest: usize,
        purpose: &[u8],
        sealed: &[u8],
    ) -> Option<(Id, Vec<u8>)> {
        if sealed.len() > longest {
            return None;
        }
        let whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (salt, _) = whole.split_first_chunk::<SALT>()?;
        // No two series have the same salt, so that no other key can be the right one.
        if let Some(series) = self.0.known(salt) {
            return series.open(purpose, whole);
        }
        self.0.roots.iter().find_map(|root| {
            let series = Series::new(root, *salt);
            // A failed attempt leaves nothing usable behind, so that each has its own.
            let opened = series.open(purpose, whole.clone())?;
            self.0.remember(Arc::new(series));
            Some(opened)
        })
    }
}

impl Keys {
    /// The series of the next text.
    fn current(&self) -> Arc<Series> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((series, left @ 1..)) = &mut *current {
            *left -= 1;
            return series.clone();
        }
        let series = Arc::new(Series::new(&self.roots[0], random()));
        *current = Some((series.clone(), SERIES - 1));
        drop(current);
        self.remember(series.clone());
        series
    }

    fn known(&self, salt: &[u8; SALT]) -> Option<Arc<Series>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.series.iter().find(|series| series.salt == *salt).cloned()
    }

    fn remember(&self, series: Arc<Series>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Two may have opened their first text of it at the same time.
        if known.series.iter().any(|other| other.salt == series.salt) {
            return;
        }
        if known.series.len() < KNOWN {
            known.series.push(series);
            return;
        }
        let oldest = known.oldest;
        known.series[oldest] = series;
        known.oldest = (oldest + 1) % KNOWN;
    }
}

impl Series {
    /// The salt may be what a client sends: it is only ever data here, never a key.
    fn new(root: &Prk, salt: [u8; SALT]) -> Series {
        let key = root.expand(&[LABEL, &salt], &CHACHA20_POLY1305).map(UnboundKey::from);
        let key = LessSafeKey::new(key.expect("the length is the algorithm's own"));
        Series { salt, key }
    }

    fn open(&self, purpose: &[u8], mut whole: Vec<u8>) -> Option<(Id, Vec<u8>)> {
        let (nonce, sealed) = whole[SALT..].split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = *nonce;
        let once = Nonce::assume_unique_for_key(nonce);
        let opened = self.key.open_in_place(once, Aad::from(purpose), sealed).ok()?;
        let (rest, text) = opened.split_first_chunk::<{ ID - NONCE_LEN }>()?;
        let mut id = [0; ID];
        id[..NONCE_LEN].copy_from_slice(&nonce);
        id[NONCE_LEN..].copy_from_slice(rest);
        let length = text.len();
        whole.drain(..SALT + ID);
        whole.truncate(length);
        Some((id, whole))
    }
}

/// The nonce, which anybody can read, and the rest, which is sealed with the text.
fn parts(id: &Id) -> (&[u8; NONCE_LEN], &[u8]) {
    id.split_first_chunk().expect("a nonce is shorter than an id")
}

/// Keys are not for logs.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("keys", &self.0.roots.len()).finish_non_exhaustive()
    }
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has no random numbers");
    bytes
}

/// What the keys of series are derived from.
fn root(secret: &[u8; 32]) -> Prk {
    Salt::new(HKDF_SHA256, LABEL).extract(secret)
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_with_any_key_of_the_ring_for_its_purpose_only() {
        let old = KeyRing::new([1; 32]);
        let new = KeyRing::new([2; 32]).and_accept([1; 32]);
        let (id, sealed) = old.seal(b"a", b"text");
        // The second time its key is known.
        for _ in 0..2 {
            assert_eq!(new.open(b"a", sealed.as_bytes()), Some((id, b"text".to_vec())));
            assert_eq!(new.open(b"b", sealed.as_bytes()), None);
        }
        assert_eq!(KeyRing::new([2; 32]).open(b"a", sealed.as_bytes()), None);
        assert_eq!(old.open(b"a", new.seal(b"a", b"text").1.as_bytes()), None);
    }

    /// What zeroes become: no two may be the same, or what two texts have in common shows.
    fn stream(keys: &KeyRing) -> Vec<u8> {
        let whole = URL_SAFE_NO_PAD.decode(keys.seal(b"a", &[0; 64]).1).unwrap();
        whole[SALT + ID..][..64].to_vec()
    }

    #[test]
    fn no_two_texts_are_sealed_alike_nor_have_the_same_id() {
        let keys = KeyRing::new([1; 32]);
        let others = KeyRing::new([1; 32]);
        let streams = [stream(&keys), stream(&keys), stream(&others), vec![0; 64]];
        for (index, one) in streams.iter().enumerate() {
            assert!(streams[..index].iter().all(|other| other != one), "{index}");
        }
        assert_ne!(keys.seal(b"a", b"").0, keys.seal(b"a", b"").0);
    }

    #[test]
    fn a_key_seals_so_many_texts_and_no_more() {
        let keys = KeyRing::new([1; 32]);
        let first = keys.0.current().salt;
        for _ in 1..SERIES {
            assert_eq!(keys.0.current().salt, first);
        }
        let second = keys.0.current().salt;
        assert_ne!(second, first);
        assert_eq!(keys.0.current().salt, second);
        assert_ne!(KeyRing::new([1; 32]).0.current().salt, second, "each process has its own");
    }

    #[test]
    fn so_many_series_are_remembered_and_others_open_all_the_same() {
        let keys = KeyRing::new([1; 32]);
        let own = keys.seal(b"a", b"own").1;
        let replicas: Vec<String> =
            (0..2 * KNOWN).map(|_| KeyRing::new([1; 32]).seal(b"a", b"text").1).collect();
        for _ in 0..2 {
            for sealed in replicas.iter().chain([&own]) {
                assert!(keys.open(b"a", sealed.as_bytes()).is_some());
            }
        }
        assert_eq!(keys.0.known.read().unwrap().series.len(), KNOWN);
    }

    #[test]
    fn what_does_not_open_is_not_remembered() {
        let keys = KeyRing::new([1; 32]);
        let foreign = KeyRing::new([2; 32]).seal(b"a", b"text").1;
        let elsewhere = KeyRing::new([1; 32]).seal(b"b", b"text").1;
        for sealed in [foreign, elsewhere, URL_SAFE_NO_PAD.encode([0; 64])] {
            assert_eq!(keys.open(b"a", sealed.as_bytes()), None);
        }
        assert!(keys.0.known.read().unwrap().series.is_empty());
    }

    #[test]
    fn what_is_too_long_or_too_short_or_no_base64_is_refused() {
        let keys = KeyRing::random();
        let open = |text: &[u8]| keys.open(b"a", text).is_some();
        // Beside the text there is a tag of 16 bytes.
        let most = LONGEST / 4 * 3 - SALT - ID - 16;
        let (_, longest) = keys.seal(b"a", &vec![b'x'; most]);
        assert_eq!(longest.len(), LONGEST);
        assert!(open(longest.as_bytes()));
        assert!(!open(keys.seal(b"a", &vec![b'x'; most + 1]).1.as_bytes()));
        assert!(open(keys.seal(b"a", b"").1.as_bytes()));
        for bad in
            [&b""[..], b"A", b"AAAA", b"===", b"\xff\xff", &[b'A'; 43], &[b'A'; 64], &[b'A'; 2000]]
        {
            assert!(!open(bad), "{bad:?}");
        }
        let padded = keys.seal(b"a", b"text").1 + "=";
        assert!(!open(padded.as_bytes()));
    }

    #[test]
    fn whatever_is_changed_does_not_open() {
        let keys = KeyRing::random();
        let sealed = keys.seal(b"a", b"text").1.into_bytes();
        assert!(keys.open(b"a", &sealed).is_some());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(keys.open(b"a", &changed), None, "byte {at}");
            assert_eq!(keys.open(b"a", &sealed[..at]), None, "cut at {at}");
        }
    }
}
