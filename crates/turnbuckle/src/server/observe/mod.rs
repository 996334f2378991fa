//! Owns what is told of requests to whoever runs the server: spans, numbers, forwarded logs.
//! Does not own the requests: nothing here changes an answer.

mod carry;
mod ended;
#[cfg(feature = "logs")]
mod forward;
mod metrics;
#[cfg(feature = "logs")]
mod relay;
mod span;

pub use ended::Ended;
#[cfg(feature = "logs")]
pub use forward::ForwardLogs;
pub use metrics::{Finished, Metrics, Started};

pub(super) use carry::Carry;
pub(super) use ended::{End, Finish, guarded};
#[cfg(feature = "logs")]
pub(super) use relay::{Queue, relayed};
pub(super) use span::{Subject, Topic, Wire, close, open, payload, wanted};
