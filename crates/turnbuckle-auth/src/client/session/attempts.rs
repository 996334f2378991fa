//! Owns what one request may still do about a refusal, so that none goes on for ever. Pure.
//! Does not own doing it.

use http::{HeaderMap, StatusCode};

use crate::{AuthError, AuthErrorKind, Challenge, Scheme, Scopes};

/// The most further authorizations that one request asks for because of its scopes.
const STEP_UPS: u8 = 2;

/// The most times that one request is sent again because its proof lacked a nonce.
const NONCES: u8 = 2;

/// The most times that one request is sent again because somebody else had renewed the token.
const OTHERS: u8 = 3;

/// What one request has done about being refused.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    renewed: bool,
    logged_in: bool,
    others: u8,
    step_ups: u8,
    nonces: u8,
}

/// What a response means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the caller's.
    PassOn,
    /// Send the request again: the server has now said which nonce it wants.
    Again,
    /// The token is not good: get another.
    Better(Recovery, Option<Challenge>),
    /// Nothing more can be done.
    Fail(AuthError),
}

/// How a better token is got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// From where the last one came, and in no other way: it is known to have ended.
    Refresh,
    /// Silently if that is possible, else by logging in.
    Renew,
    /// By logging in.
    Anew,
    /// By logging in for more than before.
    StepUp,
}

/// Whom a better token came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Another call or another process had got it meanwhile.
    Other,
    /// It was renewed silently.
    Refresh,
    /// Someone logged in, or whoever answers for the client did.
    Login,
}

impl Attempts {
    /// What to do about a response. `scheme` is how a token was shown, if one was.
    pub(crate) fn judge(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        scheme: Option<Scheme>,
    ) -> Verdict {
        match status {
            StatusCode::UNAUTHORIZED => self.unauthorized(headers, scheme),
            StatusCode::FORBIDDEN => self.forbidden(headers),
            _ => Verdict::PassOn,
        }
    }

    /// Notes whom a better token came from.
    pub(crate) fn got(&mut self, how: Recovery, by: By) {
        match (how, by) {
            (_, By::Other) => self.others += 1,
            (Recovery::StepUp, _) => {}
            (_, By::Refresh) => self.renewed = true,
            (_, By::Login) => self.logged_in = true,
        }
    }

    fn unauthorized(&mut self, headers: &HeaderMap, scheme: Option<Scheme>) -> Verdict {
        let challenge = Challenge::read(headers);
        let said = challenge.as_ref().and_then(|challenge| challenge.error.as_deref());
        // RFC 9449 §9: the token is good, its proof lacked what only the server could say.
        if said == Some("use_dpop_nonce") && scheme == Some(Scheme::Dpop) {
            if self.nonces == NONCES || !headers.contains_key("dpop-nonce") {
                return Verdict::Fail(required("the server refuses every proof", challenge));
            }
            self.nonces += 1;
            return Verdict::Again;
        }
        match self {
            Attempts { logged_in: true, .. } => {
                Verdict::Fail(required("the server refuses a token that is new", challenge))
            }
            Attempts { others: OTHERS.., .. } => {
                Verdict::Fail(required("the server refuses every token", challenge))
            }
            Attempts { renewed: true, .. } => Verdict::Better(Recovery::Anew, challenge),
            Attempts { renewed: false, .. } => Verdict::Better(Recovery::Renew, challenge),
        }
    }

    fn forbidden(&mut self, headers: &HeaderMap) -> Verdict {
        let Some(challenge) = Challenge::read(headers) else { return Verdict::PassOn };
        if challenge.error.as_deref() != Some("insufficient_scope") {
            return Verdict::PassOn;
        }
        if challenge.scope.as_ref().is_none_or(Scopes::is_empty) {
            let message = "the server wants more scopes, and does not say which";
            return Verdict::Fail(scope(message, challenge));
        }
        if self.step_ups == STEP_UPS || self.others >= OTHERS {
            let message = "the server wanted more scopes once too often";
            return Verdict::Fail(scope(message, challenge));
        }
        self.step_ups += 1;
        Verdict::Better(Recovery::StepUp, Some(challenge))
    }
}

/// Someone must do something about it.
pub(crate) fn required(message: &str, challenge: Option<Challenge>) -> AuthError {
    let error = AuthError::new(AuthErrorKind::Required, message);
    match challenge {
        Some(challenge) => error.with_challenge(challenge),
        None => error,
    }
}

/// More scopes can't be had.
pub(crate) fn scope(message: &str, challenge: Challenge) -> AuthError {
    AuthError::new(AuthErrorKind::Scope, message).with_challenge(challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(challenge: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("www-authenticate", challenge.parse().unwrap());
        headers
    }

    fn how(verdict: Verdict) -> Option<Recovery> {
        match verdict {
            Verdict::Better(how, _) => Some(how),
            Verdict::Fail(_) => None,
            other => panic!("{other:?}"),
        }
    }

    // req: client-auth:401-after-auth-throws
    #[test]
    fn a_401_leads_to_one_renewal_one_login_and_no_more() {
        let headers = headers("Bearer error=\"invalid_token\", scope=\"a\"");
        let ask = |attempts: &mut Attempts| {
            attempts.judge(StatusCode::UNAUTHORIZED, &headers, Some(Scheme::Bearer))
        };
        let mut attempts = Attempts::default();
        assert_eq!(how(ask(&mut attempts)), Some(Recovery::Renew));
        attempts.got(Recovery::Renew, By::Refresh);
        assert_eq!(how(ask(&mut attempts)), Some(Recovery::Anew));
        attempts.got(Recovery::Anew, By::Login);
        let Verdict::Fail(error) = ask(&mut attempts) else { panic!("it went on") };
        assert_eq!(error.kind(), AuthErrorKind::Required);
        assert_eq!(error.challenge().unwrap().scope, Some(Scopes::from_iter(["a"])));

        let mut attempts = Attempts::default();
        attempts.got(Recovery::Renew, By::Login);
        assert_eq!(how(ask(&mut attempts)), None);

        // What others got is tried, and not for ever.
        let mut attempts = Attempts::default();
        for _ in 0..OTHERS {
            assert_eq!(how(ask(&mut attempts)), Some(Recovery::Renew));
            attempts.got(Recovery::Renew, By::Other);
        }
        assert_eq!(how(ask(&mut attempts)), None);
    }

    #[test]
    fn a_401_without_challenge_is_one_too() {
        let verdict = Attempts::default().judge(StatusCode::UNAUTHORIZED, &HeaderMap::new(), None);
        assert_eq!(verdict, Verdict::Better(Recovery::Renew, None));
    }

    // req: client-auth:stepup:retry-cap
    #[test]
    fn more_scopes_are_asked_for_twice_at_most() {
        let more = headers("Bearer error=\"insufficient_scope\", scope=\"b\"");
        let mut attempts = Attempts::default();
        let mut ask = || attempts.judge(StatusCode::FORBIDDEN, &more, Some(Scheme::Bearer));
        assert_eq!(how(ask()), Some(Recovery::StepUp));
        assert_eq!(how(ask()), Some(Recovery::StepUp));
        let Verdict::Fail(error) = ask() else { panic!("it went on") };
        assert_eq!(error.kind(), AuthErrorKind::Scope);

        let unsaid = headers("Bearer error=\"insufficient_scope\"");
        let verdict = Attempts::default().judge(StatusCode::FORBIDDEN, &unsaid, None);
        assert!(matches!(verdict, Verdict::Fail(_)));
    }

    #[test]
    fn what_no_token_can_change_is_passed_on() {
        for (status, headers) in [
            (StatusCode::FORBIDDEN, HeaderMap::new()),
            (StatusCode::FORBIDDEN, headers("Bearer error=\"invalid_token\"")),
            (StatusCode::OK, headers("Bearer error=\"invalid_token\"")),
            (StatusCode::INTERNAL_SERVER_ERROR, HeaderMap::new()),
        ] {
            let verdict = Attempts::default().judge(status, &headers, Some(Scheme::Bearer));
            assert_eq!(verdict, Verdict::PassOn, "{status}");
        }
    }

    #[test]
    fn a_nonce_is_asked_for_twice_at_most() {
        let mut headers = headers("DPoP error=\"use_dpop_nonce\"");
        headers.insert("dpop-nonce", "n".parse().unwrap());
        let mut attempts = Attempts::default();
        let mut ask = || attempts.judge(StatusCode::UNAUTHORIZED, &headers, Some(Scheme::Dpop));
        assert_eq!(ask(), Verdict::Again);
        assert_eq!(ask(), Verdict::Again);
        assert!(matches!(ask(), Verdict::Fail(_)));
    }
}
