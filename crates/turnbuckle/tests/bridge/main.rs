//! A bridge between real clients and servers, in every pair of wires and eras; and between scripts
//! that see every byte.

#![cfg(all(feature = "client", feature = "server", feature = "http"))]

mod bytes;
mod calls;
mod failures;
mod listening;
mod questions;
mod script;
mod sessions;
mod support;
