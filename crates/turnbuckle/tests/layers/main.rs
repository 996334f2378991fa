//! What stands around handlers: layers, and whoever looks on; through real clients, on every wire
//! and in both eras.

#![cfg(all(feature = "client", feature = "server", feature = "sse-2024"))]

mod accounts;
mod asking_offers;
mod bypass;
#[path = "../common/fields.rs"]
mod fields;
#[path = "../common/heard.rs"]
mod heard;
mod listening;
mod logs;
mod nested;
mod offers;
mod questions;
mod spans;
mod support;
mod watched;
#[path = "../common/ways.rs"]
mod ways;
