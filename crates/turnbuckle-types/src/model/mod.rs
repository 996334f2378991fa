//! The protocol model: the params and the result of every method, one superset for every revision.
//! The module `method` says which revision has which method, `wire` how each is written.
//!
//! Names follow one rule. The params of a method are named after what it does
//! ([`CallTool`](crate::CallTool), [`ListTools`](crate::ListTools),
//! [`Progress`](crate::Progress)), its result is that name and `Result`, and everything
//! else has the name that the specification gives it.

pub(crate) mod capabilities;
mod client;
pub(crate) mod common;
pub(crate) mod content;
pub(crate) mod lifecycle;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod schema;
pub(crate) mod subscription;
pub(crate) mod task;
#[cfg(test)]
mod tests;
pub(crate) mod tool;
mod utilities;

pub(crate) use client::{elicitation, input, roots, sampling};
pub(crate) use utilities::{completion, logging, progress};
