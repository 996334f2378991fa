//! An SDK for the Model Context Protocol.

mod dispatch;
mod error;
mod limits;
mod transport;

pub use dispatch::Counters;
pub use error::{Error, ErrorKind, Result};
pub use limits::Limits;
pub use turnbuckle_types as types;
