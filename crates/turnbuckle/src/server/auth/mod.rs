//! Which scopes a request needs on a protected server.

#[cfg_attr(not(feature = "auth"), path = "unprotected.rs")]
pub(crate) mod protect;
