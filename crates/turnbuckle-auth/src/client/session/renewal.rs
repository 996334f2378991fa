//! One renewal from the lease to what is kept: among processes, one at a time.

use std::{sync::Arc, time::Duration};

use super::{Held, Landing, Need, Session};
use crate::{
    AuthError, AuthErrorKind,
    client::{
        attempts::{By, Recovery, required},
        auth::{forget, within, write},
        bound,
        drive::{Driven, Driver},
        flow::{Asked, Flow, Renewal},
        grant::{Grant, RegisteredBy},
        settings::Way,
        store::{StoreKey, Swap, Version},
    },
};

/// How much longer than a login everything else may take.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// Why nobody logs in: there is nobody; or someone just did, and it was of no use.
const NOBODY: &str = "someone must log in";
const REFUSED: &str = "the server refuses what the last login brought";

/// How often a record is written again when someone else wrote meanwhile.
const SWAPS: usize = 4;

/// What the store had when the lease was taken.
pub(super) struct StoredGrant {
    version: Option<Version>,
    pub(super) grant: Option<Grant>,
}

/// What became of writing a grant down.
enum Saved {
    Done,
    /// Someone has deleted what it was to replace.
    LoggedOut,
}

impl Session {
    pub(super) async fn renew(&self, need: &Need) -> Landing {
        let longest = self.longest();
        let lease = self.auth.store.lease(&self.key, longest);
        let lease = {
            // Nothing can be lost yet, and someone may log in elsewhere meanwhile.
            let _aside = self.flights.aside();
            tokio::time::timeout(longest, lease).await
        };
        let _lease =
            lease.map_err(|_| failed("another process renews the grant for too long"))??;
        let kept = self.kept().await?;
        // Another process was faster.
        if let Some(held) = kept.grant.clone().and_then(|grant| self.held(grant))
            && need.used.as_ref() != Some(&held.tokens.access)
        {
            self.learn(Some(held.clone()));
            self.auth.tell_change();
            return Ok((held, By::Other));
        }
        self.learn(kept.grant.clone().and_then(|grant| self.held(grant)));
        let renewed = tokio::time::timeout(longest, self.renew_kept(need, kept)).await;
        let error = match renewed.unwrap_or_else(|_| Err(failed("the renewal took too long"))) {
            Ok(landed) => return Ok(landed),
            Err(error) => error,
        };
        let lacks = error.challenge().is_none() && error.kind() == AuthErrorKind::NotLoggedIn;
        match &need.challenge {
            Some(challenge) if lacks => Err(error.with_challenge(challenge.clone())),
            _ => Err(error),
        }
    }

    /// How long the lease is held at most.
    pub(super) fn longest(&self) -> Duration {
        self.auth.deadline.saturating_add(MARGIN)
    }

    /// What the store has, or what would be there had it not failed.
    pub(super) async fn kept(&self) -> Result<StoredGrant, AuthError> {
        let stored = self.load().await?;
        let version = stored.as_ref().map(|stored| stored.version.clone());
        let mut state = self.lock();
        // Written since: whoever did that knows better.
        state.unsaved.take_if(|(before, _)| *before != version);
        let grant = match &state.unsaved {
            Some((_, grant)) => Some(grant.clone()),
            None => stored.and_then(|stored| Grant::from_record(&stored.record)),
        };
        Ok(StoredGrant { version, grant })
    }

    async fn renew_kept(&self, need: &Need, mut kept: StoredGrant) -> Landing {
        let mut driven = self.run(need.how, need, kept.grant.clone()).await?;
        if let Err(error) = &driven.result {
            let refused = error.kind() == AuthErrorKind::Refused && driven.silent;
            // One that is overloaded says nothing for good.
            let unknown = error.oauth_code() == Some("invalid_client")
                && error.kind() != AuthErrorKind::Unreachable;
            // A client that is no longer known can become one again; what can't be renewed can be
            // had anew. Once, and not while what there is may still be good.
            if need.how != Recovery::Refresh {
                let dynamic = unknown && self.forget_client(&mut kept, &driven).await?;
                if refused || dynamic {
                    driven = self.run(Recovery::Anew, need, kept.grant.clone()).await?;
                }
            }
        }
        match driven.result {
            Ok(grant) => {
                let by = if driven.silent { By::Refresh } else { By::Login };
                self.keep(need, &kept, *grant, by).await
            }
            Err(error) => {
                if need.how == Recovery::Refresh {
                    let (used, retry_after) = (need.used.clone(), driven.retry_after);
                    self.lock().restraint.failed(used, error.clone(), retry_after);
                }
                if driven.spent {
                    self.forget_tokens(&kept).await;
                }
                Err(error)
            }
        }
    }

    async fn run(
        &self,
        how: Recovery,
        need: &Need,
        previous: Option<Grant>,
    ) -> Result<Driven, AuthError> {
        let mut unbound = bound::key(&self.auth.settings);
        let mut issuer = None;
        if let Some(key) = &unbound {
            issuer = within(self.auth.deadline, bound::issuer(&*self.auth.store, key)).await?;
        }
        if issuer.is_some() {
            unbound = None;
        }
        let tools = self.auth.tools(issuer);
        let mut waiting = None;
        let flow = match (how, previous) {
            (Recovery::Refresh, Some(grant)) if can_refresh(&grant) => Flow::refresh(tools, grant),
            // Another process has found out that nothing is left to renew: the server says what next.
            (Recovery::Refresh, _) => {
                let message = "someone logged out meanwhile";
                return Err(AuthError::new(AuthErrorKind::Expired, message));
            }
            (how, previous) => {
                let person = matches!(self.auth.settings.way, Way::Person);
                let silent = how == Recovery::Renew && previous.as_ref().is_some_and(can_refresh);
                let challenge = need.challenge.as_ref();
                let again = how == Recovery::StepUp || self.lock().restraint.may_log_in(challenge);
                if person && !silent && (self.auth.login.is_none() || !again) {
                    let message = if again { NOBODY } else { REFUSED };
                    return Err(required(message, need.challenge.clone()));
                }
                let login = self.auth.login.as_ref().filter(|_| person && again);
                if let Some(login) = login {
                    let earlier = previous.as_ref().map(|grant| &grant.registration);
                    let preferred = earlier.and_then(|it| it.redirect_uri.as_deref());
                    waiting = match login.redirect_uri(preferred).await {
                        Ok(waiting) => Some(waiting),
                        // Most likely nobody needs to come back.
                        Err(error) if silent => {
                            tracing::debug!(%error, "nobody could log in now");
                            None
                        }
                        Err(error) => return Err(error),
                    };
                }
                let mut asked = Asked::new(&self.server_url);
                asked.challenge = need.challenge.clone();
                asked.redirect_uri = waiting.as_ref().map(|it| it.redirect_uri().to_owned());
                asked.previous = previous;
                asked.renewal =
                    if how == Recovery::Renew { Renewal::Refresh } else { Renewal::Anew };
                Flow::authorize(tools, asked)
            }
        };
        let driver = Driver {
            fetch: &self.fetch,
            rules: &self.auth.rules,
            store: &*self.auth.store,
            identity: self.auth.identity.as_ref(),
            unbound: unbound.as_ref(),
            waiting,
            deadline: self.auth.deadline,
            flights: &self.flights,
        };
        Ok(driver.drive(flow).await)
    }

    /// Knows it from now on, and writes it down. A store that fails costs nobody what was given.
    async fn keep(&self, need: &Need, kept: &StoredGrant, grant: Grant, by: By) -> Landing {
        let held: Arc<Held> = self
            .held(grant.clone())
            .ok_or_else(|| AuthError::new(AuthErrorKind::Response, "no token was given"))?;
        {
            let mut state = self.lock();
            state.known = Some(Some(held.clone()));
            state.unsaved = Some((kept.version.clone(), grant.clone()));
            state.restraint.renewed();
            if need.how == Recovery::StepUp {
                state.asked.retain(|set| grant.scopes.contains_all(set));
                state.asked.push(grant.scopes.clone());
            } else if by == By::Login {
                state.restraint.logged_in(need.challenge.as_ref());
            }
        }
        if by == By::Login {
            self.auth.tell_change();
        }
        match within(self.auth.deadline, self.save(kept, &grant)).await {
            Ok(Saved::Done) => self.save_registration(&grant).await,
            Ok(Saved::LoggedOut) => {
                self.unlearn();
                return Err(required("someone logged out meanwhile", need.challenge.clone()));
            }
            Err(error) => tracing::warn!(%error, "what was granted could not be kept"),
        }
        Ok((held, by))
    }

    async fn save(&self, kept: &StoredGrant, grant: &Grant) -> Result<Saved, AuthError> {
        let record = grant.to_record();
        let mut expected = kept.version.clone();
        for _ in 0..SWAPS {
            let swap = self.auth.store.swap(&self.key, expected.clone(), Some(record.clone()));
            if let Swap::Done(_) = swap.await? {
                self.lock().unsaved = None;
                return Ok(Saved::Done);
            }
            let stored = self.auth.store.load(&self.key).await?;
            if stored.is_none() && kept.version.is_some() {
                return Ok(Saved::LoggedOut);
            }
            // Written without the lease. What we have is newer: it was just given.
            expected = stored.map(|stored| stored.version);
            if let Some((before, _)) = &mut self.lock().unsaved {
                before.clone_from(&expected);
            }
        }
        Err(failed("the record of the grant is written again and again"))
    }

    async fn save_registration(&self, grant: &Grant) {
        if grant.registration.origin != RegisteredBy::Dynamic {
            return;
        }
        let key = StoreKey::registration(&grant.issuer);
        let written = write(&*self.auth.store, &key, grant.registration.to_record());
        if let Err(error) = within(self.auth.deadline, written).await {
            tracing::warn!(%error, "who the client is could not be kept");
        }
    }

    /// The tokens are no longer good for anything; all else is.
    async fn forget_tokens(&self, kept: &StoredGrant) {
        self.unlearn();
        let Some(grant) = kept.grant.clone() else { return };
        let record = Grant { tokens: None, ..grant }.to_record();
        let swap = self.auth.store.swap(&self.key, kept.version.clone(), Some(record));
        // A conflict means that somebody has other tokens: not these.
        if let Err(error) = within(self.auth.deadline, swap).await {
            tracing::warn!(%error, "tokens that are no longer good could not be deleted");
        }
    }

    /// The authorization server that was asked does not know this client any more, so neither is
    /// anything good that it gave it. Whether the client had registered itself: what a person
    /// configured stays, and so does what other authorization servers gave.
    async fn forget_client(
        &self,
        kept: &mut StoredGrant,
        driven: &Driven,
    ) -> Result<bool, AuthError> {
        let Some((issuer, client)) = &driven.asked_as else { return Ok(false) };
        if client.origin != RegisteredBy::Dynamic {
            return Ok(false);
        }
        let (store, deadline) = (&*self.auth.store, self.auth.deadline);
        within(deadline, forget(store, &StoreKey::registration(issuer))).await?;
        let given = kept.grant.as_ref().is_some_and(|grant| {
            grant.issuer == *issuer && grant.registration.client_id == client.client_id
        });
        if given {
            self.unlearn();
            within(deadline, forget(store, &self.key)).await?;
            *kept = StoredGrant { version: None, grant: None };
        }
        Ok(true)
    }
}

fn can_refresh(grant: &Grant) -> bool {
    grant.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some())
}

fn failed(message: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Store, message)
}
