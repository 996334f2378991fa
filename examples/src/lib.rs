//! One file a task, in `src/bin`. Each is run by `tests/examples.rs`.
//!
//! Owns: short programs that show one thing. Does not own: anything another crate needs.

/// The README's programs, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// How clients log in and servers let no one else in, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../docs/auth.md")]
pub struct Authorization;

/// How to test a server, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../docs/testing.md")]
pub struct Testing;
