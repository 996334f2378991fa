//! An issuer's keys: fetched by one at a time, kept for a while, fetched again when a token names
//! an unknown one, but not more often than that.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};

use super::discovery::{self, unreachable};
use crate::{AuthError, Clock, Fetch, jose::KeySet};

/// How long keys are used before they are fetched again, in seconds.
const KEPT: u64 = 3600;

/// How long after an attempt there is no other one, whatever tokens name: nobody can make this server
/// ask the issuer more often.
const BETWEEN_ATTEMPTS: u64 = 30;

/// How long a request waits for newer keys while the earlier ones are good.
const PATIENCE: Duration = Duration::from_millis(500);

/// The same while there are no keys at all, and nobody can come in.
const BETWEEN_FIRST_ATTEMPTS: u64 = 3;

/// What asking the issuer needs.
#[derive(Clone)]
pub(super) struct Outside {
    pub(super) fetch: Arc<dyn Fetch>,
    pub(super) clock: Arc<dyn Clock>,
}

/// One issuer's keys.
pub(super) struct IssuerKeys {
    issuer: String,
    /// Where they are; nothing is where the issuer's metadata says.
    given: Option<String>,
    latest: RwLock<Option<Latest>>,
    /// Held by whoever asks the issuer: when the last attempt was.
    attempt: Arc<Mutex<Option<u64>>>,
    /// Whether that one failed.
    is_behind: AtomicBool,
}

/// What there is in place of keys in which one was missing.
pub(super) struct Newer {
    pub(super) keys: Arc<KeySet>,
    /// When they were fetched, if the issuer was not asked this time because it had been a moment ago.
    pub(super) as_of: Option<u64>,
}

#[derive(Clone)]
struct Latest {
    keys: Arc<KeySet>,
    since: u64,
}

impl IssuerKeys {
    pub(super) fn new(issuer: &str, given: Option<String>) -> IssuerKeys {
        IssuerKeys {
            issuer: issuer.to_owned(),
            given,
            latest: RwLock::default(),
            attempt: Arc::default(),
            is_behind: AtomicBool::new(false),
        }
    }

    /// The keys as they are known. Dropping the future leaves a fetch that began to itself: others may
    /// wait for it.
    pub(super) async fn current(
        self: &Arc<Self>,
        outside: &Outside,
    ) -> Result<Arc<KeySet>, AuthError> {
        match self.latest() {
            Some(latest) if latest.is_fresh(outside.clock.now()) => Ok(latest.keys),
            None => self.newer_than(None, outside).await.map(|newer| newer.keys),
            // What is known stays good while a slow issuer is asked, which goes on by itself.
            Some(latest) => {
                let newer = self.newer_than(Some(&latest.keys), outside);
                match timeout(PATIENCE, newer).await {
                    Ok(newer) => newer.map(|newer| newer.keys),
                    Err(_) => Ok(latest.keys),
                }
            }
        }
    }

    /// Other keys than `seen`, in which a token's was missing; the same ones if there are no others, or
    /// if the issuer was asked a moment ago.
    pub(super) async fn newer_than(
        self: &Arc<Self>,
        seen: Option<&Arc<KeySet>>,
        outside: &Outside,
    ) -> Result<Newer, AuthError> {
        let attempt = Arc::clone(&self.attempt).lock_owned().await;
        let latest = self.latest();
        let now = outside.clock.now();
        if let Some(latest) = &latest {
            let is_other = seen.is_none_or(|seen| !Arc::ptr_eq(seen, &latest.keys));
            if is_other && latest.is_fresh(now) {
                return Ok(Newer { keys: Arc::clone(&latest.keys), as_of: None });
            }
        }
        let between = if latest.is_some() { BETWEEN_ATTEMPTS } else { BETWEEN_FIRST_ATTEMPTS };
        if attempt.is_some_and(|last| is_within(last, now, between)) {
            let none = || unreachable("the issuer's keys could not be fetched a moment ago");
            let latest = latest.ok_or_else(none)?;
            return Ok(Newer { keys: latest.keys, as_of: Some(latest.since) });
        }
        // A task of its own: whoever asks and leaves must not make the others begin again.
        let fetched = tokio::spawn(Arc::clone(self).fetch(attempt, outside.clone())).await;
        let fetched = fetched.unwrap_or_else(|_| Err(unreachable("fetching keys was given up")));
        match (fetched, latest) {
            (Ok(keys), _) => Ok(Newer { keys, as_of: None }),
            (Err(error), Some(latest)) => {
                tracing::warn!(issuer = self.issuer, %error, "the issuer's earlier keys stay in use");
                Ok(Newer { keys: latest.keys, as_of: None })
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Whether the issuer may have other keys than those that are known: it could not be asked.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Acquire)
    }

    fn latest(&self) -> Option<Latest> {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(
        self: Arc<Self>,
        mut attempt: OwnedMutexGuard<Option<u64>>,
        outside: Outside,
    ) -> Result<Arc<KeySet>, AuthError> {
        let fetched = self.ask(&*outside.fetch).await;
        let now = outside.clock.now();
        *attempt = Some(now);
        self.is_behind.store(fetched.is_err(), Ordering::Release);
        let keys = Arc::new(fetched?);
        let latest = Latest { keys: Arc::clone(&keys), since: now };
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(latest);
        Ok(keys)
    }

    async fn ask(&self, fetch: &dyn Fetch) -> Result<KeySet, AuthError> {
        let (address, rules) = match &self.given {
            Some(address) => (address.clone(), discovery::rules_for_chosen(address)?),
            None => {
                let metadata = discovery::metadata(fetch, &self.issuer).await?;
                let address = discovery::address(&metadata, "jwks_uri")?;
                (address.to_owned(), discovery::rules_for_named(address, &self.issuer)?)
            }
        };
        match discovery::ask(fetch, &address, &rules).await? {
            Some(document) => KeySet::read(&document),
            None => Err(unreachable("the issuer has no key set where it says")),
        }
    }
}

impl Latest {
    fn is_fresh(&self, now: u64) -> bool {
        is_within(self.since, now, KEPT)
    }
}

/// Not if it is later than now: clocks are set back, and what they said before means nothing then.
fn is_within(since: u64, now: u64, longest: u64) -> bool {
    now.checked_sub(since).is_some_and(|age| age < longest)
}
