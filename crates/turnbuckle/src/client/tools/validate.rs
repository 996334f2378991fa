//! Validates structured output by the schemas that listings gave.

use std::sync::Arc;

use turnbuckle_types::Raw;

use super::{CompileOutput, OutputRule};
use crate::{Call, ClientBuilder, protocol::json_schema::validator::OutputCheck};

/// Whether structured output is validated by the schema of its tool.
///
/// ```
/// use turnbuckle::{Client, client::Validate};
/// let builder = Client::builder().validate_output(Validate::IfKnown);
/// # let _ = builder;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Validate {
    /// Output is validated if a listing on this connection gave a usable schema for its tool. Output
    /// that does not fit, or is missing, fails the call.
    IfKnown,
    /// Output is not validated.
    #[default]
    Never,
}

impl Validate {
    fn compiler(self) -> Option<CompileOutput> {
        match self {
            Validate::IfKnown => Some(compile),
            Validate::Never => None,
        }
    }
}

fn compile(schema: &Raw) -> Result<OutputRule, String> {
    let check = OutputCheck::compile(schema).map_err(|error| error.to_string())?;
    Ok(Arc::new(move |result| check.check(result)))
}

impl ClientBuilder {
    /// Sets whether structured output is validated by the schema that a listing gave for its tool. By
    /// default it is not. The client never lists tools on its own. Each call can choose for itself:
    /// see [`Call::validate`].
    pub fn validate_output(mut self, validate: Validate) -> ClientBuilder {
        self.validate_output = validate.compiler();
        self
    }
}

impl<T> Call<T> {
    /// Sets whether the structured output of the tool is validated by the schema that its listing
    /// gave, for this call. Has no effect on other calls than those of tools.
    pub fn validate(mut self, validate: Validate) -> Call<T> {
        self.request.validate_output = validate.compiler();
        self
    }
}
