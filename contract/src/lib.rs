//! The server that the contract suite talks to.
//!
//! Owns: tools that start, hold, finish and count at the suite's word, through a process
//! boundary if need be. Does not own: what is right; the tests in `tests/contract` say that.
//!
//! Everything is driven by keys. A call such as `hold {key}` counts itself as started under
//! its key and waits until `release {key}`; `report {}` tells what was counted. So a test needs
//! no clock to know where a handler stands, and no memory in common with it.

mod ledger;
mod offers;
mod tools;

pub use ledger::{Count, Fixture, Ledger, Running};
pub use offers::{BYTES, MANY, Tenant, offers};
pub use tools::server;

/// How long the handler `cooperative` may wind down: longer than any test lasts.
pub const LONG_GRACE: std::time::Duration = std::time::Duration::from_secs(600);
/// How long the handler `stubborn` is left alone after it was told to stop.
pub const SHORT_GRACE: std::time::Duration = std::time::Duration::from_millis(20);
/// What no handler's answer may give away.
pub const SECRET: &str = "the password is hunter2";
