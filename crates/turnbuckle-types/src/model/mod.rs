//! The protocol model: one superset for every revision.
//!
//! Owns: the params and the result of every method, and what they are made of. Does not
//! own: which revision has which method (`method`), or how text is written (`wire`).
//!
//! Names follow one rule. The params of a method are named after what it does
//! ([`CallTool`](crate::CallTool), [`ListTools`](crate::ListTools),
//! [`Progress`](crate::Progress)), its result is that name and `Result`, and everything
//! else has the name that the specification gives it.

pub(crate) mod capabilities;
pub(crate) mod common;
pub(crate) mod completion;
pub(crate) mod content;
pub(crate) mod elicitation;
pub(crate) mod input;
pub(crate) mod lifecycle;
pub(crate) mod logging;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod roots;
pub(crate) mod sampling;
pub(crate) mod schema;
pub(crate) mod subscription;
pub(crate) mod task;
#[cfg(test)]
mod tests;
pub(crate) mod tool;
