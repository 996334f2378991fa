//! Owns one renewal from the lease to what is kept: among processes, one at a time. Does not own
//! who waits for it.

use std::{sync::Arc, time::Duration};

use super::{Held, Landing, Need, Session};
use crate::{
    AuthError, AuthErrorKind,
    client::{
        attempts::{By, How, required},
        auth::forget,
        drive::{Driven, Driver},
        flow::{Asked, Flow, Renewal},
        grant::{Grant, RegisteredBy},
        settings::Way,
        store::{StoreKey, Swap, Version},
    },
};

/// How much longer than a login everything else may take.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// How often a record is written again when someone else wrote meanwhile.
const SWAPS: usize = 4;

/// What the store had when the lease was taken.
struct Kept {
    version: Option<Version>,
    grant: Option<Grant>,
}

impl Session {
    pub(super) async fn renew(&self, need: &Need) -> Landing {
        let longest = self.auth.deadline.saturating_add(MARGIN);
        let store = &*self.auth.store;
        let lease = tokio::time::timeout(longest, store.lease(&self.key, longest)).await;
        let _lease =
            lease.map_err(|_| failed("another process renews the grant for too long"))??;
        let stored = store.load(&self.key).await?;
        let kept = Kept {
            version: stored.as_ref().map(|stored| stored.version.clone()),
            grant: stored.and_then(|stored| Grant::from_record(&stored.record)),
        };
        // Another process was faster.
        if let Some(held) = kept.grant.clone().and_then(Held::new)
            && need.used.as_ref() != Some(&held.tokens.access)
        {
            self.learn(Some(held.clone()));
            return Ok((held, By::Other));
        }
        self.learn(kept.grant.clone().and_then(Held::new));
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

    async fn renew_kept(&self, need: &Need, mut kept: Kept) -> Landing {
        let mut driven = self.run(need.how, need, kept.grant.clone()).await?;
        if let Err(error) = &driven.result {
            let refused = error.kind() == AuthErrorKind::Refused && driven.silent;
            let unknown = error.oauth_code() == Some("invalid_client");
            let dynamic = unknown && self.forget_client(&mut kept, &driven).await?;
            // A client that is no longer known can become one again; what can't be renewed can be
            // had anew. Once.
            if need.how != How::Refresh && (refused || dynamic) {
                driven = self.run(How::Anew, need, kept.grant.clone()).await?;
            }
        }
        match driven.result {
            Ok(grant) => {
                let by = if driven.silent { By::Refresh } else { By::Login };
                self.keep(need, &kept, *grant, by).await
            }
            Err(error) => {
                if driven.spent {
                    self.forget_tokens(&kept).await?;
                }
                Err(error)
            }
        }
    }

    async fn run(
        &self,
        how: How,
        need: &Need,
        previous: Option<Grant>,
    ) -> Result<Driven, AuthError> {
        let tools = self.auth.tools();
        let mut waiting = None;
        let flow = match (how, previous) {
            (How::Refresh, Some(grant)) => Flow::refresh(tools, grant),
            (How::Refresh, None) => {
                let message = "someone logged out meanwhile";
                return Err(AuthError::new(AuthErrorKind::Expired, message));
            }
            (how, previous) => {
                if let (Way::Person, Some(login)) = (&self.auth.settings.way, &self.auth.login) {
                    let earlier = previous.as_ref().map(|grant| &grant.registration);
                    let preferred = earlier.and_then(|it| it.redirect_uri.as_deref());
                    waiting = Some(login.redirect_uri(preferred).await?);
                }
                let mut asked = Asked::new(&self.server_url);
                asked.challenge = need.challenge.clone();
                asked.redirect_uri = waiting.as_ref().map(|it| it.redirect_uri().to_owned());
                asked.previous = previous;
                asked.renewal = if how == How::Renew { Renewal::Refresh } else { Renewal::Anew };
                Flow::authorize(tools, asked)
            }
        };
        let driver = Driver {
            fetch: &self.fetch,
            rules: &self.auth.rules,
            store: &*self.auth.store,
            identity: self.auth.identity.as_ref(),
            waiting,
            deadline: self.auth.deadline,
        };
        Ok(driver.drive(flow).await)
    }

    /// Knows it from now on, and writes it down.
    async fn keep(&self, need: &Need, kept: &Kept, grant: Grant, by: By) -> Landing {
        let record = grant.to_record();
        let (issuer, registration) = (grant.issuer.clone(), grant.registration.clone());
        let scopes = grant.scopes.clone();
        let held: Arc<Held> = Held::new(grant)
            .ok_or_else(|| AuthError::new(AuthErrorKind::Response, "no token was given"))?;
        // First: a store that fails must not cost a token that was rotated.
        self.learn(Some(held.clone()));
        if need.how == How::StepUp {
            self.lock().asked.push(scopes);
        }
        let mut expected = kept.version.clone();
        for _ in 0..SWAPS {
            let swap = self.auth.store.swap(&self.key, expected.clone(), Some(record.clone()));
            if let Swap::Done(_) = swap.await? {
                if registration.origin == RegisteredBy::Dynamic {
                    let key = StoreKey::registration(&issuer);
                    self.write(&key, registration.to_record()).await?;
                }
                return Ok((held, by));
            }
            let stored = self.auth.store.load(&self.key).await?;
            if stored.is_none() && kept.version.is_some() {
                self.learn(None);
                return Err(required("someone logged out meanwhile", need.challenge.clone()));
            }
            // Written without the lease. What we have is newer: it was just given.
            expected = stored.map(|stored| stored.version);
        }
        Err(failed("the record of the grant is written again and again"))
    }

    async fn write(&self, key: &StoreKey, record: crate::Secret) -> Result<(), AuthError> {
        let store = &*self.auth.store;
        for _ in 0..SWAPS {
            let stored = store.load(key).await?;
            if stored.as_ref().is_some_and(|stored| stored.record == record) {
                return Ok(());
            }
            let expected = stored.map(|stored| stored.version);
            if let Swap::Done(_) = store.swap(key, expected, Some(record.clone())).await? {
                return Ok(());
            }
        }
        Err(failed("the record of the client is written again and again"))
    }

    /// The tokens are no longer good for anything; all else is.
    async fn forget_tokens(&self, kept: &Kept) -> Result<(), AuthError> {
        self.learn(None);
        let Some(grant) = kept.grant.clone() else { return Ok(()) };
        let record = Grant { tokens: None, ..grant }.to_record();
        // A conflict means that somebody has other tokens: not these.
        self.auth.store.swap(&self.key, kept.version.clone(), Some(record)).await?;
        Ok(())
    }

    /// The authorization server does not know this client any more, so neither is anything good
    /// that it gave it. Whether the client had registered itself: what a person configured stays.
    async fn forget_client(&self, kept: &mut Kept, driven: &Driven) -> Result<bool, AuthError> {
        let earlier = kept.grant.as_ref();
        let own = earlier.filter(|grant| grant.registration.origin == RegisteredBy::Dynamic);
        let issuers: Vec<String> = own
            .map(|grant| grant.issuer.clone())
            .into_iter()
            .chain(driven.recalled.clone())
            .collect();
        for issuer in &issuers {
            forget(&*self.auth.store, &StoreKey::registration(issuer)).await?;
        }
        if own.is_some() {
            self.learn(None);
            forget(&*self.auth.store, &self.key).await?;
            *kept = Kept { version: None, grant: None };
        }
        Ok(!issuers.is_empty())
    }
}

fn failed(message: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Store, message)
}
