//! Comparing and writing where a lock is held for it, and how a version and a record become one
//! text.

use super::{StoreKey, Stored, Swap, Version};
use crate::{AuthError, Secret};

/// Where one text is kept under each key. Each of these blocks.
pub(super) trait Shelf {
    fn read(&self, key: &StoreKey) -> Result<Option<Stored>, AuthError>;
    fn write(&self, key: &StoreKey, text: &Secret) -> Result<(), AuthError>;
    /// What is there.
    fn delete(&self, key: &StoreKey) -> Result<(), AuthError>;
}

/// Compares and writes; the caller holds the lock.
pub(super) fn replace(
    shelf: &impl Shelf,
    key: &StoreKey,
    expected: Option<&Version>,
    record: Option<&Secret>,
) -> Result<Swap, AuthError> {
    let found = shelf.read(key)?;
    if found.as_ref().map(|stored| &stored.version) != expected {
        return Ok(Swap::Conflict);
    }
    let version = Version::random()?;
    match record {
        Some(record) => shelf.write(key, &seal(&version, record))?,
        None if found.is_some() => shelf.delete(key)?,
        None => {}
    }
    Ok(Swap::Done(version))
}

/// A version and a record as one text.
pub(super) fn seal(version: &Version, record: &Secret) -> Secret {
    // Made long enough, so that no copy is left behind by growing.
    let (version, record) = (version.as_str(), record.expose());
    let mut text = String::with_capacity(version.len() + 1 + record.len());
    text.push_str(version);
    text.push('\n');
    text.push_str(record);
    Secret::new(text)
}

/// What [`seal`] made one text of.
pub(super) fn open(text: &str) -> Option<(Version, Secret)> {
    let (version, record) = text.split_once('\n')?;
    let sound = version.len() == 32 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    sound.then(|| (Version::new(version), Secret::new(record)))
}
