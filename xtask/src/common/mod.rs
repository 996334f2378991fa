//! Code that several tasks share.

pub(crate) mod built;
pub(crate) mod files;
pub(crate) mod npm;
pub(crate) mod page;
pub(crate) mod process;
