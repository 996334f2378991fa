//! Validation of values by hand-written schemas, with the crate jsonschema.

pub(crate) mod compile;
mod output;
mod steps;
pub(crate) mod violations;

pub use output::OutputCheck;
