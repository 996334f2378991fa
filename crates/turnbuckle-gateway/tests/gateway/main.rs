//! A gateway between real clients and servers, in every pair of wires and eras; and between scripts
//! that see every byte.

mod bytes;
mod calls;
mod failures;
mod listening;
mod questions;
mod script;
mod sessions;
mod support;
