//! Owns why authorization failed, and what is said of it. Does not own what happens then.

use std::fmt;

use crate::Challenge;

/// Why authorization failed. Its text never has a secret in it.
///
/// ```
/// use turnbuckle_auth::{AuthError, AuthErrorKind};
/// let error = AuthError::new(AuthErrorKind::Metadata, "the issuer is another");
/// assert_eq!(error.kind(), AuthErrorKind::Metadata);
/// assert_eq!(error.to_string(), "the issuer is another");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthError {
    kind: AuthErrorKind,
    message: String,
    oauth: Option<String>,
    challenge: Option<Box<Challenge>>,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// Someone must log in, or consent to more: [`AuthError::challenge`] says to what.
    Required,
    /// The server asks for more scopes than it was possible to get.
    Scope,
    /// What a server says of itself is missing, wrong or not to be trusted.
    Metadata,
    /// The authorization server would not register this client, or there is no way to be one.
    Registration,
    /// The authorization server, or whoever logged in, said no: [`AuthError::oauth_code`].
    Refused,
    /// The answer to a login is not the one that was asked for.
    Response,
    /// The grant is used up: `invalid_grant`.
    Expired,
    /// An address that must not be asked.
    Forbidden,
    /// A server could not be reached, took too long, or answered nonsense; another try may help.
    Unreachable,
    /// The store of grants failed.
    Store,
    /// Nobody logged in before the deadline, or the login was given up.
    NotLoggedIn,
    /// The settings do not fit together.
    Settings,
}

impl AuthError {
    /// With a sentence for a reader. No secret may be in it.
    pub fn new(kind: AuthErrorKind, message: impl Into<String>) -> AuthError {
        AuthError { kind, message: message.into(), oauth: None, challenge: None }
    }

    /// Adds the code that an authorization server gave.
    #[must_use]
    pub fn with_oauth_code(mut self, code: impl Into<String>) -> AuthError {
        self.oauth = Some(code.into());
        self
    }

    /// Adds the challenge that asked for it.
    #[must_use]
    pub fn with_challenge(mut self, challenge: Challenge) -> AuthError {
        self.challenge = Some(Box::new(challenge));
        self
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> AuthErrorKind {
        self.kind
    }

    /// The authorization server's code for it, such as `access_denied`.
    pub fn oauth_code(&self) -> Option<&str> {
        self.oauth.as_deref()
    }

    /// What the protected server asked for.
    pub fn challenge(&self) -> Option<&Challenge> {
        self.challenge.as_deref()
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AuthError {}
