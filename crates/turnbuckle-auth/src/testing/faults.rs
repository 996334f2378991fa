//! Owns what can be made to go wrong, and where. Does not own what happens then.

use serde_json::{Map, Value};

/// One of the server's endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// RFC 8414 and OpenID Connect discovery.
    Metadata,
    /// The key set.
    Keys,
    /// Dynamic registration.
    Register,
    /// Where a browser goes.
    Authorize,
    /// Where tokens are given.
    Token,
    /// RFC 7662.
    Introspect,
    /// RFC 7009.
    Revoke,
}

impl Endpoint {
    pub(super) const ALL: [Endpoint; 7] = [
        Endpoint::Metadata,
        Endpoint::Keys,
        Endpoint::Register,
        Endpoint::Authorize,
        Endpoint::Token,
        Endpoint::Introspect,
        Endpoint::Revoke,
    ];

    /// Beneath the issuer; metadata has several places.
    pub(super) fn path(self) -> Option<&'static str> {
        match self {
            Endpoint::Metadata => None,
            Endpoint::Keys => Some("/jwks"),
            Endpoint::Register => Some("/register"),
            Endpoint::Authorize => Some("/authorize"),
            Endpoint::Token => Some("/token"),
            Endpoint::Introspect => Some("/introspect"),
            Endpoint::Revoke => Some("/revoke"),
        }
    }
}

/// What goes wrong. One that does not fit an endpoint does nothing there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A page instead of JSON, with 200.
    Html,
    /// This status and nothing else.
    Status(u16),
    /// Another issuer: in the metadata, or as `iss` of a redirect.
    WrongIssuer(String),
    /// No `iss` in a redirect, though the metadata promises it.
    NoIssuer,
    /// Another `state` in a redirect.
    WrongState,
    /// Whoever should log in says no.
    Denied,
    /// Nothing, until it is healed: then what was asked is answered. Only where there is someone to
    /// wait; [`handle`](super::InsecureAuthorizationServer::handle) answers 504.
    Held,
    /// So many bytes instead of JSON, with 200.
    Oversized(usize),
    /// Someone else is to be asked the same (307).
    Redirect(String),
    /// An error with this code, such as `invalid_grant`.
    Error(String),
    /// Another value of one member of the metadata, or none if it is null.
    Says(String, Value),
    /// Access tokens with other claims.
    Claims(Map<String, Value>),
    /// Access tokens that nobody has signed (`alg` is `none`).
    Unsigned,
}
