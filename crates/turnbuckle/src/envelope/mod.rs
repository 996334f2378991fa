//! What every request says about itself.
//!
//! Owns: the `_meta` envelope of the modern era, written by `stamp` and checked by
//! `classify`. Does not own: any I/O, or which era a connection speaks.

#[cfg(feature = "server")]
pub(crate) mod classify;
#[cfg(feature = "client")]
pub(crate) mod stamp;
