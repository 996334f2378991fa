//! Owns what is told of a server's own work: what goes along with it, and forwarded logs.
//! Does not own spans and numbers, which clients have too.

mod carry;
#[cfg(feature = "logs")]
mod forward;
#[cfg(feature = "logs")]
mod relay;

#[cfg(feature = "logs")]
pub use forward::ForwardLogs;

pub(super) use carry::Carry;
#[cfg(feature = "logs")]
pub(super) use relay::{Queue, relayed};
