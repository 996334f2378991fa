//! How a client and a server agree on a revision.

pub(crate) mod capabilities;
#[cfg(feature = "http")]
pub(crate) mod discovery;
pub(crate) mod findings;
pub(crate) mod negotiate;
pub(crate) mod open;
pub(crate) mod process;
