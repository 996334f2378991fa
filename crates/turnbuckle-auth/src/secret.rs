//! Texts that nobody may see.

use std::hash::{Hash, Hasher};

use ring::digest;
use zeroize::Zeroizing;

/// A text that nobody may see: it can't be printed, and its memory is zeroed.
///
/// ```
/// use turnbuckle_auth::Secret;
/// let token = Secret::new("s3cr3t");
/// assert_eq!(token.expose(), "s3cr3t");
/// assert!(token == Secret::new("s3cr3t"));
/// ```
///
/// ```compile_fail
/// println!("{:?}", turnbuckle_auth::Secret::new("s3cr3t"));
/// ```
#[expect(missing_debug_implementations, reason = "what can't be printed can't be leaked")]
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a text over. Copies that were made of it before are not zeroed.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(Zeroizing::new(text.into()))
    }

    /// The text. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Takes as long for every wrong text of the same length.
impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        // Of the digests, so that how far two texts agree can't be measured.
        let [ours, theirs] =
            [self, other].map(|secret| digest::digest(&digest::SHA256, secret.0.as_bytes()));
        ours.as_ref() == theirs.as_ref()
    }
}

impl Eq for Secret {}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        digest::digest(&digest::SHA256, self.0.as_bytes()).as_ref().hash(state);
    }
}
