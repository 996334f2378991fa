//! Access control of an endpoint: tokens, scopes and trusted issuers.

#[cfg(feature = "auth")]
pub(crate) mod issuers;
#[cfg_attr(not(feature = "auth"), path = "unprotected.rs")]
pub(crate) mod protect;
