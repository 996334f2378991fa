//! Owns what is not tried again so soon: a renewal that has just failed, a login whose token the server
//! did not take. Does not own trying it.

use std::time::Duration;

use tokio::time::Instant;

use crate::{AuthError, Challenge, Secret};

/// How long a renewal that failed is not tried again.
const BETWEEN_RENEWALS: Duration = Duration::from_secs(5);

/// The longest that an authorization server can ask for instead.
const LONGEST: Duration = Duration::from_secs(60);

/// How long nobody is asked to log in again for a server that did not take what the last login brought.
const BETWEEN_LOGINS: Duration = Duration::from_secs(5 * 60);

/// What happened lately.
#[derive(Default)]
pub(super) struct Restraint {
    failed: Option<FailedRenewal>,
    /// The last login, until the server takes a token.
    login: Option<(Instant, Option<Challenge>)>,
}

pub(super) struct FailedRenewal {
    /// What was to be renewed.
    token: Option<Secret>,
    pub(super) error: AuthError,
    until: Instant,
    pub(super) said_by: SaidBy,
}

/// Who wants a pause.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SaidBy {
    Us,
    TheAuthorizationServer,
}

impl Restraint {
    /// Renewing `token` failed, and the authorization server may have said when to come back.
    pub(super) fn failed(
        &mut self,
        token: Option<Secret>,
        error: AuthError,
        retry_after: Option<Duration>,
    ) {
        let pause = retry_after.unwrap_or_default().clamp(BETWEEN_RENEWALS, LONGEST);
        let said_by = retry_after.map_or(SaidBy::Us, |_| SaidBy::TheAuthorizationServer);
        self.failed = Some(FailedRenewal { token, error, until: Instant::now() + pause, said_by });
    }

    /// Why `token` is not to be renewed just now.
    pub(super) fn failure(&self, token: &Secret) -> Option<&FailedRenewal> {
        let failed = self.failed.as_ref()?;
        let same = failed.token.as_ref() == Some(token);
        (same && Instant::now() < failed.until).then_some(failed)
    }

    /// There is another token.
    pub(super) fn renewed(&mut self) {
        self.failed = None;
    }

    /// Someone logged in because of this.
    pub(super) fn logged_in(&mut self, challenge: Option<&Challenge>) {
        self.login = Some((Instant::now(), challenge.cloned()));
    }

    /// The server took a token, or someone decided to begin anew.
    pub(super) fn forget_login(&mut self) {
        self.login = None;
    }

    /// Whether someone may be asked to log in because of this. Not if that was done a moment ago and
    /// the server has taken no token since: it would refuse the next one too.
    pub(super) fn may_log_in(&self, challenge: Option<&Challenge>) -> bool {
        let Some((at, earlier)) = &self.login else { return true };
        at.elapsed() >= BETWEEN_LOGINS || wanted(challenge) != wanted(earlier.as_ref())
    }
}

/// What a challenge asks for, whatever it has against the token that was shown.
fn wanted(challenge: Option<&Challenge>) -> Challenge {
    let challenge = challenge.cloned().unwrap_or_default();
    Challenge { error: None, error_description: None, ..challenge }
}
