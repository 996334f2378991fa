//! Clients: connecting, calling, callbacks.
//!
//! [`Client`], [`ClientBuilder`] and [`Call`] are at the root of the crate. This module has the types that
//! they take and return.
//!
//! ```
//! use turnbuckle::{Client, client::Reconnect};
//! let builder = Client::builder().reconnect(Reconnect::never());
//! # let _ = builder;
//! ```

mod api;
#[cfg(all(feature = "auth", feature = "http"))]
mod auth;
pub(crate) mod builder;
pub(crate) mod cache;
pub(crate) mod call;
mod connection;
pub(crate) mod handle;
mod handlers;
pub(crate) mod handshake;
#[cfg(feature = "http")]
pub(crate) mod http;
pub(crate) mod seam;
pub(crate) mod subscribe;
mod tools;
mod wire_log;

pub use crate::rpc::Counters;
pub use api::{
    CustomMethod,
    pager::{Pager, Pages, Tools},
};
pub use builder::IntoSpawn;
pub use call::{CallEvent, CallEvents, InputAnswer, Questions, Round, ServerQuestion};
pub use connection::{ConnectionState, ConnectionStates, Reconnect, Retry, ShutdownReport};
pub use handlers::{answer::ServerRequest, roots::RootSet};
#[cfg(feature = "http")]
pub use handshake::discovery::Discovery;
#[cfg(feature = "validate")]
pub use tools::Validate;
pub use wire_log::{WireDirection, WireKind, WireLine, WireLog};

use api::LogSetting;
pub(crate) use builder::ClientBuilder;
pub(crate) use cache::{CacheMode, ResponseCache};
pub(crate) use call::Call;
use handle::Inner;
pub(crate) use handle::{Client, Timeouts};
