//! Owns what is told of requests to whoever looks on, on either side: spans, numbers, how they ended.
//! Does not own the requests: nothing here changes an answer.

mod ended;
#[cfg(test)]
#[path = "../../tests/common/heard.rs"]
pub(crate) mod heard;
mod metrics;
mod span;
mod watch;

pub use ended::Ended;
pub use metrics::{Finished, Metrics, Started};

#[cfg(feature = "server")]
pub(crate) use ended::Finish;
#[cfg(feature = "server")]
pub(crate) use span::payload;
pub(crate) use span::{Side, Subject, Topic, Wire, open, wanted};
pub(crate) use watch::{Labels, Watch};
