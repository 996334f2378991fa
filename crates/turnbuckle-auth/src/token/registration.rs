//! Owns who a client is at an authorization server, and what it was given there. Does not own how
//! it came to that.

use std::fmt;

use crate::{Scheme, Scopes, Secret};

/// Who a client is at one authorization server.
///
/// ```
/// use turnbuckle_auth::{RegisteredBy, Registration, Secret};
/// let mut registration = Registration::public("my-client", RegisteredBy::Dynamic);
/// registration.secret = Some(Secret::new("s3cr3t"));
/// assert!(!format!("{registration:?}").contains("s3cr3t"));
/// ```
#[derive(Clone)]
pub struct Registration {
    /// Its name there.
    pub client_id: String,
    /// What it proves that with, if it does so by a secret.
    pub secret: Option<Secret>,
    /// How it proves that when it asks for a token.
    pub method: TokenAuth,
    /// How it came to be known there.
    pub origin: RegisteredBy,
    /// Where it said that answers to logins are to be sent.
    pub redirect_uri: Option<String>,
    /// When the secret stops being good, in seconds since 1970.
    pub secret_expires_at: Option<u64>,
    /// What it may ask for, where the registration says so.
    pub scopes: Option<Scopes>,
}

/// How a client proves who it is when it asks for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenAuth {
    /// Not at all: `none`.
    None,
    /// By its secret in `Authorization`: `client_secret_basic`.
    Basic,
    /// By its secret in the body: `client_secret_post`.
    Post,
    /// By a signature (RFC 7523): `private_key_jwt`.
    PrivateKeyJwt,
}

/// How a client came to be known at an authorization server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisteredBy {
    /// Someone registered it and configured what came of it.
    Beforehand,
    /// It has a document of its own, whose address is its name.
    Document,
    /// It registered itself (RFC 7591).
    Dynamic,
}

/// What an authorization server gave.
///
/// ```
/// use turnbuckle_auth::{Scheme, Secret, Tokens};
/// let tokens = Tokens {
///     access: Secret::new("s3cr3t"),
///     scheme: Scheme::Bearer,
///     refresh: None,
///     expires_at: Some(1_000),
///     granted: None,
/// };
/// assert!(tokens.expired(1_000) && !tokens.expired(999));
/// assert!(!format!("{tokens:?}").contains("s3cr3t"));
/// ```
#[derive(Clone)]
pub struct Tokens {
    /// What is shown to the protected server.
    pub access: Secret,
    /// How it is shown.
    pub scheme: Scheme,
    /// What it is renewed with.
    pub refresh: Option<Secret>,
    /// When it stops being good, in seconds since 1970; nothing if that was not said.
    pub expires_at: Option<u64>,
    /// What it is good for, where that was said.
    pub granted: Option<Scopes>,
}

impl Registration {
    /// One that proves nothing.
    pub fn public(client_id: impl Into<String>, origin: RegisteredBy) -> Registration {
        Registration {
            client_id: client_id.into(),
            secret: None,
            method: TokenAuth::None,
            origin,
            redirect_uri: None,
            secret_expires_at: None,
            scopes: None,
        }
    }
}

impl TokenAuth {
    #[cfg(feature = "client")]
    const ALL: [TokenAuth; 4] =
        [TokenAuth::None, TokenAuth::Basic, TokenAuth::Post, TokenAuth::PrivateKeyJwt];

    /// As authorization servers call it.
    pub fn name(self) -> &'static str {
        match self {
            TokenAuth::None => "none",
            TokenAuth::Basic => "client_secret_basic",
            TokenAuth::Post => "client_secret_post",
            TokenAuth::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// From what authorization servers call it.
    #[cfg(feature = "client")]
    pub(crate) fn from_name(name: &str) -> Option<TokenAuth> {
        TokenAuth::ALL.into_iter().find(|method| method.name() == name)
    }
}

#[cfg(feature = "client")]
impl RegisteredBy {
    pub(crate) const ALL: [RegisteredBy; 3] =
        [RegisteredBy::Beforehand, RegisteredBy::Document, RegisteredBy::Dynamic];

    pub(crate) fn name(self) -> &'static str {
        match self {
            RegisteredBy::Beforehand => "beforehand",
            RegisteredBy::Document => "document",
            RegisteredBy::Dynamic => "dynamic",
        }
    }
}

impl Tokens {
    /// Whether the access token is known to be good no longer.
    pub fn expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("client_id", &self.client_id)
            .field("secret", &hidden(self.secret.as_ref()))
            .field("method", &self.method)
            .field("origin", &self.origin)
            .field("redirect_uri", &self.redirect_uri)
            .field("secret_expires_at", &self.secret_expires_at)
            .field("scopes", &self.scopes)
            .finish()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("access", &hidden(Some(&self.access)))
            .field("scheme", &self.scheme)
            .field("refresh", &hidden(self.refresh.as_ref()))
            .field("expires_at", &self.expires_at)
            .field("granted", &self.granted)
            .finish()
    }
}

/// Whether there is one, and no more of it.
pub(crate) fn hidden(secret: Option<&Secret>) -> Option<fmt::Arguments<'static>> {
    secret.map(|_| format_args!("…"))
}
