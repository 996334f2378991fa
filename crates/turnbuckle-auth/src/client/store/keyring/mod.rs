//! Grants in the system's keyring.

use std::time::Duration;

use keyring::Error;
use zeroize::Zeroizing;

use super::{
    FileStore, GrantStore, Lease, StoreFuture, StoreKey, Stored, Swap, Version, failed,
    shelf::{Shelf, open, replace},
    thread::apart,
};
use crate::{AuthError, Secret};

/// The longest record that is taken out.
const LIMIT: usize = 1 << 20;

/// Keeps each grant in the system's keyring: the Secret Service on Linux and its kin, the Keychain
/// on macOS, the Credential Manager on Windows (which takes no more than 2560 bytes a record).
///
/// Whoever may open the keyring can read the grants. Swaps and leases are guarded by files in a
/// directory, which hold nothing: every process that shares the grants must share it too.
///
/// ```no_run
/// use turnbuckle_auth::KeyringStore;
/// let store = KeyringStore::new()?;
/// # Ok::<_, turnbuckle_auth::AuthError>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyringStore {
    service: String,
    locks: FileStore,
}

impl KeyringStore {
    /// Under the name `turnbuckle`, with locks where [`FileStore::new`] keeps its own.
    pub fn new() -> Result<KeyringStore, AuthError> {
        Ok(KeyringStore::named("turnbuckle", FileStore::new()?))
    }

    /// Under a name of one's own, with locks in the directory of `locks`.
    pub fn named(service: impl Into<String>, locks: FileStore) -> KeyringStore {
        KeyringStore { service: service.into(), locks }
    }

    fn entry(&self, key: &StoreKey) -> Result<keyring::Entry, AuthError> {
        // The digest: attributes of entries can be read while the keyring is locked.
        keyring::Entry::new(&self.service, &key.digest()).map_err(|error| match error {
            Error::NoDefaultStore => match keyring::Entry::store_status() {
                Err(why) => told(why),
                Ok(()) => told(&error),
            },
            error => told(&error),
        })
    }
}

impl Shelf for KeyringStore {
    fn read(&self, key: &StoreKey) -> Result<Option<Stored>, AuthError> {
        let bytes = match self.entry(key)?.get_secret() {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(Error::NoEntry) => return Ok(None),
            Err(error) => return Err(told(&error)),
        };
        let text = std::str::from_utf8(&bytes).ok().filter(|text| text.len() <= LIMIT);
        let (version, record) = text
            .and_then(open)
            .ok_or_else(|| failed("an entry of the keyring holds no grant; delete it"))?;
        Ok(Some(Stored { version, record }))
    }

    fn write(&self, key: &StoreKey, text: &Secret) -> Result<(), AuthError> {
        let written = self.entry(key)?.set_secret(text.expose().as_bytes());
        written.map_err(|error| told(&error))
    }

    fn delete(&self, key: &StoreKey) -> Result<(), AuthError> {
        self.entry(key)?.delete_credential().map_err(|error| told(&error))
    }
}

impl GrantStore for KeyringStore {
    fn load(&self, key: &StoreKey) -> StoreFuture<'_, Option<Stored>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(apart(move || store.read(&key)))
    }

    fn swap(
        &self,
        key: &StoreKey,
        expected: Option<Version>,
        record: Option<Secret>,
    ) -> StoreFuture<'_, Swap> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(apart(move || {
            let _lock = store.locks.lock(&key)?;
            replace(&store, &key, expected.as_ref(), record.as_ref())
        }))
    }

    fn lease(&self, key: &StoreKey, longest: Duration) -> StoreFuture<'_, Lease> {
        self.locks.lease(key, longest)
    }
}

/// In one sentence, without what the entry holds: some errors carry it.
fn told(error: &Error) -> AuthError {
    failed(match error {
        Error::PlatformFailure(why) => format!("the keyring failed: {why}"),
        Error::NoStorageAccess(why) => format!("the keyring can't be opened: {why}"),
        Error::TooLong(_, most) => format!("the keyring takes no more than {most} bytes"),
        Error::NoDefaultStore => "this system has no keyring".to_owned(),
        Error::Ambiguous(_) => "the keyring has two entries for one grant; delete one".to_owned(),
        _ => "the keyring can't read or write an entry".to_owned(),
    })
}

#[cfg(all(test, target_os = "linux"))]
pub(crate) mod bus;
#[cfg(all(test, target_os = "linux"))]
mod tests;
