//! Hand-written schemas and values, beside the validator without limits.

use serde_json::Value;
use turnbuckle::server::schema::{Checks, HandWritten, OutputCheck, lint};
use turnbuckle_types::{CallToolResult, Raw};

use super::texts;

/// A schema and a value. A validation that takes long is a finding of libFuzzer, by its `-timeout`.
pub fn run(data: &[u8]) {
    let Some((schema, value)) = texts(data) else { return };
    let Ok(schema) = Raw::from_json(schema.to_owned()) else { return };
    let Ok(tree) = serde_json::from_str::<Value>(schema.as_str()) else { return };
    let Ok(value) = Raw::from_json(value.to_owned()) else { return };
    lint(&tree);
    if let Ok(checks) = Checks::compile(&tree) {
        let _ = checks.run(value.as_str());
    }
    let Ok(output) = OutputCheck::compile(&schema) else {
        assert!(HandWritten::compile(&schema).is_err(), "refused for output, accepted for input");
        return;
    };
    let mut result = CallToolResult::new([]);
    result.structured_content = Some(value.clone());
    let found = output.check(&result);
    let is_ours =
        |sentence: &str| sentence.contains("too many steps") || sentence.contains("is given twice");
    if let Ok(input) = HandWritten::compile(&schema) {
        assert_eq!(input.validate(value.as_str()).is_ok(), found.is_ok(), "the sides differ");
    }
    // The other validator has no bound of steps, and accepts a member that is given twice.
    if found.as_ref().is_err_and(|sentence| is_ours(sentence)) {
        return;
    }
    let Ok(value) = serde_json::from_str::<Value>(value.as_str()) else { return };
    if let Ok(validator) = jsonschema::options().offline().build(&tree) {
        assert_eq!(validator.is_valid(&value), found.is_ok(), "{found:?}");
    }
}
