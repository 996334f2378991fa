//! Nonces that a server gives and knows again without remembering them (RFC 9449 §8, §9).

use std::fmt;

use ring::hmac;

use crate::{
    Secret,
    jose::{decode, encode},
};

/// The time, and a digest of it with a key that only servers have.
pub(crate) struct Nonces {
    key: hmac::Key,
    /// In seconds.
    good_for: u64,
}

impl Nonces {
    /// Servers that answer for each other share the secret.
    pub(crate) fn new(secret: &Secret, good_for: u64) -> Nonces {
        Nonces { key: hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes()), good_for }
    }

    pub(crate) fn issue(&self, now: u64) -> String {
        let time = now.to_be_bytes();
        let tag = hmac::sign(&self.key, &time);
        encode([&time[..], tag.as_ref()].concat())
    }

    pub(crate) fn is_good(&self, nonce: &str, now: u64) -> bool {
        let Some(bytes) = decode(nonce) else { return false };
        let Some((time, tag)) = bytes.split_first_chunk::<8>() else { return false };
        let issued = u64::from_be_bytes(*time);
        hmac::verify(&self.key, time, tag).is_ok() && issued <= now && now - issued <= self.good_for
    }
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces").field("good_for", &self.good_for).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_and_only_for_a_while() {
        let nonces = Nonces::new(&Secret::new("a"), 60);
        let nonce = nonces.issue(1000);
        assert!(nonces.is_good(&nonce, 1000));
        assert!(nonces.is_good(&nonce, 1060));
        assert!(!nonces.is_good(&nonce, 1061));
        assert!(!nonces.is_good(&nonce, 999));
        assert!(!Nonces::new(&Secret::new("b"), 60).is_good(&nonce, 1000));
        for other in ["", "AAAA", "not base64!", &encode([0; 40])] {
            assert!(!nonces.is_good(other, 0), "{other}");
        }
    }
}
