//! Owns what a client was granted, by whom, for what and as whom: the one value that every leg of
//! authorization takes or makes. Does not own how it is got, or where it is kept.

mod record;

use std::fmt;

pub(crate) use crate::token::registration::{
    RegisteredBy, Registration, TokenAuth, Tokens, hidden,
};
use crate::{Scopes, Secret};

/// What a client was granted, with all that is needed to use it and to renew it.
///
/// ```
/// use turnbuckle_auth::{Endpoints, Grant, RegisteredBy, Registration, Scopes, TokenAuth};
/// let grant = Grant {
///     issuer: "https://auth.example.com".into(),
///     resource: Some("https://mcp.example.com/mcp".into()),
///     scopes: Scopes::none(),
///     registration: Registration::public("my-client", RegisteredBy::Beforehand),
///     tokens: None,
///     endpoints: Endpoints { authorize: None, token: "https://auth.example.com/token".into() },
///     proof_key: None,
/// };
/// let again = Grant::from_record(&grant.to_record()).unwrap();
/// assert_eq!(again.issuer, grant.issuer);
/// assert_eq!(again.registration.method, TokenAuth::None);
/// ```
#[derive(Clone)]
pub struct Grant {
    /// The authorization server, exactly as it names itself.
    pub issuer: String,
    /// What the tokens are for, exactly as the protected server names itself. Nothing if the
    /// settings say that it is not to be sent.
    pub resource: Option<String>,
    /// All that was asked for so far.
    pub scopes: Scopes,
    /// Who this client is at that authorization server, and nowhere else.
    pub registration: Registration,
    /// What was given.
    pub tokens: Option<Tokens>,
    /// Where the authorization server is asked.
    pub endpoints: Endpoints,
    /// The key that `DPoP` tokens are bound to: PKCS#8, in base64.
    pub proof_key: Option<Secret>,
}

/// Where an authorization server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Where someone logs in. Not needed when nobody does.
    pub authorize: Option<String>,
    /// Where tokens are given.
    pub token: String,
}

impl Grant {
    /// As one text for a store. Whoever has it can use the grant.
    pub fn to_record(&self) -> Secret {
        record::write(self)
    }

    /// From such a text; nothing if it is none, or was written by a later version of this crate.
    pub fn from_record(record: &Secret) -> Option<Grant> {
        record::read(record)
    }
}

impl Registration {
    /// As one text for a store.
    pub fn to_record(&self) -> Secret {
        record::write_registration(self)
    }

    /// From such a text; nothing if it is none.
    pub fn from_record(record: &Secret) -> Option<Registration> {
        record::read_registration(record)
    }

    /// Whether its secret is still good.
    pub(crate) fn good(&self, now: u64) -> bool {
        self.secret_expires_at.is_none_or(|end| now < end)
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .field("registration", &self.registration)
            .field("tokens", &self.tokens)
            .field("endpoints", &self.endpoints)
            .field("proof_key", &hidden(self.proof_key.as_ref()))
            .finish()
    }
}

#[cfg(test)]
mod tests;
