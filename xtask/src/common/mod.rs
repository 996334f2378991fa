//! Owns: what several tasks need: files, packages of npm, children, pages that are partly generated.
//! Does not own: any task.

pub(crate) mod built;
pub(crate) mod files;
pub(crate) mod npm;
pub(crate) mod page;
pub(crate) mod process;
pub(crate) mod serving;
