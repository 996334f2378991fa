//! The list of commands.

pub(crate) mod bridge;
pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod demo;
pub(crate) mod info;
pub(crate) mod listen;
pub(crate) mod listing;
pub(crate) mod login;
pub(crate) mod offered;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod serve;
pub(crate) mod tools;
