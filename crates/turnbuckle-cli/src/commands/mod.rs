//! Owns the list of commands. Does not own what they share: `session`, `output`.

pub(crate) mod call;
pub(crate) mod demo;
pub(crate) mod listen;
pub(crate) mod serve;
pub(crate) mod tools;
