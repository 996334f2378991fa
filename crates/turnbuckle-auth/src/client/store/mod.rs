//! Owns what a store of grants must do: keep texts, swap them if they are unchanged, lend the right
//! to renew one. Does not own what the texts say.
//!
//! A refresh token that is used twice is often revoked. So whoever renews a grant first takes the
//! lease, reads the grant again, and writes what it got only over what it read: in one process or
//! in several, one request reaches the authorization server.

mod file;
#[cfg(feature = "keyring")]
pub(crate) mod keyring;
mod memory;
mod shelf;
mod thread;

use std::{any::Any, fmt, path::Path, time::Duration};

use ring::{
    digest,
    rand::{SecureRandom as _, SystemRandom},
};
use url::Url;

use crate::{AuthError, AuthErrorKind, BoxFuture, Secret};

pub use file::FileStore;
#[cfg(feature = "keyring")]
pub use keyring::KeyringStore;
pub use memory::MemoryStore;

/// What a store answers, later.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, AuthError>>;

/// Where grants and registrations are kept. Their texts are secrets.
///
/// Errors have the kind [`AuthErrorKind::Store`]. [`MemoryStore`] shows what is expected of one.
pub trait GrantStore: Send + Sync {
    /// What is kept under `key`. Dropping the future changes nothing.
    fn load(&self, key: &StoreKey) -> StoreFuture<'_, Option<Stored>>;

    /// Writes `record`, or deletes it with `None`, if what is kept is still what was `expected`;
    /// `None` expects nothing to be there. Dropping the future leaves open whether it happened,
    /// but never half of it.
    fn swap(
        &self,
        key: &StoreKey,
        expected: Option<Version>,
        record: Option<Secret>,
    ) -> StoreFuture<'_, Swap>;

    /// Waits until nobody else holds the lease of `key`, and takes it. A holder that dies loses it;
    /// where that can't be seen, any holder loses it after `longest`. [`load`](Self::load) and
    /// [`swap`](Self::swap) need no lease. Dropping the future gives up the wait.
    fn lease(&self, key: &StoreKey, longest: Duration) -> StoreFuture<'_, Lease>;
}

/// Under what something is kept.
///
/// ```
/// use turnbuckle_auth::StoreKey;
/// let grant = StoreKey::grant("https://mcp.example.com/mcp");
/// let registration = StoreKey::registration("https://mcp.example.com/mcp");
/// assert_ne!(grant.digest(), registration.digest());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreKey {
    kind: &'static str,
    name: String,
}

impl StoreKey {
    /// What was granted for the server at this address, however that is spelt.
    ///
    /// ```
    /// use turnbuckle_auth::StoreKey;
    /// let grant = StoreKey::grant("https://mcp.example.com");
    /// assert_eq!(grant, StoreKey::grant("HTTPS://mcp.example.com:443/#top"));
    /// assert_ne!(grant, StoreKey::grant("https://mcp.example.com/mcp"));
    /// ```
    pub fn grant(server_url: &str) -> StoreKey {
        let name = match Url::parse(server_url) {
            Ok(mut url) => {
                url.set_fragment(None);
                url.into()
            }
            Err(_) => server_url.to_owned(),
        };
        StoreKey { kind: "grant", name }
    }

    /// What was granted for the server at this address that is reached through this Unix socket.
    ///
    /// ```
    /// use std::path::Path;
    /// use turnbuckle_auth::StoreKey;
    /// let url = "http://localhost/mcp";
    /// let one = StoreKey::grant_over_socket(url, Path::new("/run/one.sock"));
    /// assert_ne!(one, StoreKey::grant_over_socket(url, Path::new("/run/two.sock")));
    /// assert_ne!(one, StoreKey::grant(url));
    /// ```
    pub fn grant_over_socket(server_url: &str, socket: &Path) -> StoreKey {
        // No address has a space in it, so no other pair has this name.
        let name = format!("{} over {socket:?}", StoreKey::grant(server_url).name);
        StoreKey { kind: "grant", name }
    }

    /// Who this client is at the authorization server with this issuer, and at no other.
    pub fn registration(issuer: &str) -> StoreKey {
        StoreKey { kind: "registration", name: issuer.to_owned() }
    }

    /// At which issuer this client belongs, which was registered beforehand without saying where.
    pub fn client(client_id: &str) -> StoreKey {
        StoreKey { kind: "client", name: client_id.to_owned() }
    }

    /// `grant`, `registration` or `client`.
    pub fn kind(&self) -> &str {
        self.kind
    }

    /// The address, and the socket where there is one, the issuer or the client. Its query may hold secrets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of kind and name in hexadecimal digits: fit for the name of a file.
    pub fn digest(&self) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(self.kind.as_bytes());
        context.update(&[0]);
        context.update(self.name.as_bytes());
        hexadecimal(context.finish().as_ref())
    }
}

/// Without the name, whose query may hold secrets.
impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreKey")
            .field("kind", &self.kind)
            .field("digest", &self.digest())
            .finish_non_exhaustive()
    }
}

/// Tells one state of a record from every other, also from those before it was deleted.
///
/// ```
/// use turnbuckle_auth::Version;
/// assert_ne!(Version::random()?, Version::random()?);
/// assert_eq!(Version::new("7").as_str(), "7");
/// # Ok::<_, turnbuckle_auth::AuthError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version(String);

impl Version {
    /// As a store of one's own numbers them. No number may be used twice for one key.
    pub fn new(text: impl Into<String>) -> Version {
        Version(text.into())
    }

    /// One that no other is equal to.
    pub fn random() -> Result<Version, AuthError> {
        let mut bytes = [0; 16];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| failed("the system gives no random numbers"))?;
        Ok(Version(hexadecimal(&bytes)))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What was found in a store.
#[expect(missing_debug_implementations, reason = "what can't be printed can't be leaked")]
#[derive(Clone)]
pub struct Stored {
    /// What [`GrantStore::swap`] expects in order to replace it.
    pub version: Version,
    /// Its text.
    pub record: Secret,
}

/// What became of a swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    /// It happened. What is there now has this version (after a deletion nothing has it).
    Done(Version),
    /// Something else was there, or nothing. Nothing was changed.
    Conflict,
}

/// The right to renew what a key stands for, until it is dropped.
///
/// ```
/// use turnbuckle_auth::Lease;
/// let mutex = std::sync::Arc::new(tokio::sync::Mutex::new(()));
/// let lease = Lease::new(mutex.clone().try_lock_owned()?);
/// assert!(mutex.try_lock().is_err());
/// drop(lease);
/// assert!(mutex.try_lock().is_ok());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it gives it back"]
pub struct Lease(#[expect(dead_code, reason = "held for what its drop does")] Box<dyn Any + Send>);

impl Lease {
    /// Held as long as `guard` is.
    pub fn new(guard: impl Send + 'static) -> Lease {
        Lease(Box::new(guard))
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lease")
    }
}

fn failed(message: impl Into<String>) -> AuthError {
    AuthError::new(AuthErrorKind::Store, message)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod contract;
