//! A server over HTTP: driven as a service, and over sockets with bytes written by hand.

#![cfg(all(feature = "http", feature = "server"))]

mod asking;
mod both_eras;
mod disconnect;
#[cfg(all(feature = "client", feature = "sse-2024"))]
mod extensions;
#[cfg(feature = "client")]
mod legacy_answers;
mod legacy_batches;
mod legacy_faults;
mod legacy_questions;
mod legacy_requests;
mod legacy_resume;
mod legacy_sessions;
mod legacy_shutdown;
mod legacy_stateless;
mod legacy_support;
mod memory;
mod mounted;
mod refusals;
mod service;
mod shutdown;
mod slow;
#[cfg(feature = "sse-2024")]
mod sse_2024;
mod support;
