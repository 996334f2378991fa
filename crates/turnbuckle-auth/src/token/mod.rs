//! Asking an authorization server for tokens, as both sides do: who asks, with what proof, and what
//! the answers say; all of it is pure.

pub(crate) mod authenticate;
pub(crate) mod registration;
pub(crate) mod request;
pub(crate) mod text;
