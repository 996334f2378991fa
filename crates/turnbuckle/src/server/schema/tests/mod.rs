//! Owns the tests of the schema room. Does not own tests of tools: those live with the server.

mod agreement;
mod check;
mod decode;
#[cfg(feature = "validate")]
mod handwritten;
#[cfg(feature = "validate")]
mod output;
mod refused;
mod schemas;
mod texts;
mod zoo;
