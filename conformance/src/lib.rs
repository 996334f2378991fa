//! The two programs that the official conformance suite looks at, as short as a user's would be.
//!
//! Owns: what they do. Does not own: the suite, which `cargo xtask conformance` runs.

pub mod auth;
pub mod client;
pub mod server;
