//! The specification's utilities: completion, log messages and progress.

pub(crate) mod completion;
pub(crate) mod logging;
pub(crate) mod progress;
