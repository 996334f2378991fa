//! What stands around a client's calls: layers, whoever looks on, the log of its wires; on every wire
//! and in both eras.

#![cfg(all(feature = "client", feature = "server", feature = "sse-2024"))]

mod again;
mod calls;
#[path = "../common/fields.rs"]
mod fields;
#[path = "../common/heard.rs"]
mod heard;
mod joined;
mod listening;
mod questions;
mod support;
mod tower_own;
mod watched;
#[path = "../common/ways.rs"]
mod ways;
mod wire_log;
