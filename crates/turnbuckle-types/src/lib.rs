//! The Model Context Protocol as Rust types.
//!
//! Owns: JSON-RPC frames, the protocol model (one superset for all revisions),
//! [`Revision`] and [`Era`], the method table and the differences between
//! revisions. Does not own: any I/O, any async, any decision about a connection.

mod error;
mod id;
pub mod jsonrpc;
mod raw;
mod revision;

pub use error::{RpcError, code};
pub use id::{Key, RequestId};
pub use raw::Raw;
pub use revision::{Era, Revision, UnknownRevision};
