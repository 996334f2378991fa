//! An SDK for the Model Context Protocol.

#[cfg(feature = "client")]
mod client;
mod dispatch;
mod envelope;
mod error;
#[cfg(all(feature = "client", feature = "server"))]
mod in_process;
mod limits;
#[cfg(feature = "server")]
mod server;
pub mod transport;

#[cfg(feature = "client")]
pub use client::{Call, Client, ClientBuilder, IntoSpawn, Listening, ServerRequest, Tools, Watch};
pub use dispatch::Counters;
pub use error::{Error, ErrorKind, Result};
pub use limits::Limits;
#[cfg(feature = "server")]
pub use server::{
    Amount, Args, BlockingFn, Changes, Ctx, FromCall, IntoReply, IntoTool, Json, RawArgs, Report,
    Server, Serving, State, Tool, ToolError, ToolFn, blocking_tool, tool,
};
pub use turnbuckle_types as types;
pub use turnbuckle_types::{Revision, RpcError};

/// What generated code refers to. Not for use by hand.
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;

    pub use crate::server::{Call, Description, Failure};
}
