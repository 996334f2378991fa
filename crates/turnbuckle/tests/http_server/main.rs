//! A server over HTTP: driven as a service, and over sockets with bytes written by hand.

#![cfg(all(feature = "http", feature = "server"))]

mod disconnect;
mod mounted;
mod refusals;
mod service;
mod shutdown;
mod slow;
mod sse_2024;
mod support;
