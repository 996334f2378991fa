//! Owns what is remembered of exchanges: what was given, and what is on its way, for each caller's
//! token. Does not own the asking.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::{ExchangedToken, unreachable};
use crate::{AuthError, Secret, jose};

/// The most callers' tokens that something is remembered of.
const MOST: usize = 1024;

/// How long an address is used before the issuer is asked again, in seconds.
const ENDPOINT_KEPT: u64 = 3600;

type TokenDigest = [u8; 32];
type ExchangeResult = Result<ExchangedToken, AuthError>;
pub(super) type Coming = watch::Receiver<Option<ExchangeResult>>;

/// What is remembered of one exchange.
#[derive(Default)]
pub(super) struct ExchangeCache {
    /// By the digest of the caller's token, so that none stays in memory. Invariant: at most [`MOST`].
    slots: Mutex<HashMap<TokenDigest, ExchangeSlot>>,
    endpoint: Mutex<Option<(String, u64)>>,
}

enum ExchangeSlot {
    Given(ExchangedToken),
    Coming(Coming),
}

/// What there is for a caller.
pub(super) enum Found {
    Given(ExchangedToken),
    /// Someone asks already.
    Coming(Coming),
    /// Whoever finds nothing asks, and lands the flight with what comes of it.
    Nothing(ExchangeInFlight, Coming),
}

impl ExchangeCache {
    pub(super) fn find(self: &Arc<Self>, token: &Secret, now: u64) -> Result<Found, AuthError> {
        let mut digest = [0; 32];
        digest.copy_from_slice(jose::sha256(token.expose()).as_ref());
        let mut slots = self.slots();
        match slots.get(&digest) {
            Some(ExchangeSlot::Given(token)) if now < token.fresh_until => {
                return Ok(Found::Given(token.clone()));
            }
            Some(ExchangeSlot::Coming(coming)) => return Ok(Found::Coming(coming.clone())),
            Some(ExchangeSlot::Given(_)) | None => {}
        }
        make_room(&mut slots, now)?;
        let (answer, coming) = watch::channel(None);
        slots.insert(digest, ExchangeSlot::Coming(coming.clone()));
        let flight = ExchangeInFlight { kept: self.clone(), digest, answer, has_landed: false };
        Ok(Found::Nothing(flight, coming))
    }

    pub(super) fn endpoint(&self, now: u64) -> Option<String> {
        let known = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = known
            .as_ref()
            .filter(|(_, since)| now.checked_sub(*since).is_some_and(|age| age < ENDPOINT_KEPT));
        fresh.map(|(address, _)| address.clone())
    }

    pub(super) fn keep_endpoint(&self, address: &str, now: u64) {
        let mut known = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((address.to_owned(), now));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots().len()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<TokenDigest, ExchangeSlot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for one more: what is used up goes first, then what ends soonest. What is on its way is
/// waited for.
fn make_room(slots: &mut HashMap<TokenDigest, ExchangeSlot>, now: u64) -> Result<(), AuthError> {
    if slots.len() < MOST {
        return Ok(());
    }
    slots.retain(|_, slot| match slot {
        ExchangeSlot::Given(token) => now < token.fresh_until,
        ExchangeSlot::Coming(_) => true,
    });
    if slots.len() < MOST {
        return Ok(());
    }
    let given = slots.iter().filter_map(|(digest, slot)| match slot {
        ExchangeSlot::Given(token) => Some((token.fresh_until, *digest)),
        ExchangeSlot::Coming(_) => None,
    });
    let (_, first) =
        given.min().ok_or_else(|| unreachable("too many tokens are being exchanged"))?;
    slots.remove(&first);
    Ok(())
}

/// One request for all who wait for it. Dropping it tells them that nothing comes.
pub(super) struct ExchangeInFlight {
    kept: Arc<ExchangeCache>,
    digest: TokenDigest,
    answer: watch::Sender<Option<ExchangeResult>>,
    has_landed: bool,
}

impl ExchangeInFlight {
    /// Keeps what was given, and tells all who wait.
    pub(super) fn land(mut self, answer: ExchangeResult, now: u64) {
        self.has_landed = true;
        let mut slots = self.kept.slots();
        match &answer {
            Ok(token) if now < token.fresh_until => {
                slots.insert(self.digest, ExchangeSlot::Given(token.clone()));
            }
            _ => drop(slots.remove(&self.digest)),
        }
        drop(slots);
        self.answer.send_replace(Some(answer));
    }
}

impl Drop for ExchangeInFlight {
    fn drop(&mut self) {
        // By then the place may be another flight's.
        if !self.has_landed {
            self.kept.slots().remove(&self.digest);
        }
    }
}
