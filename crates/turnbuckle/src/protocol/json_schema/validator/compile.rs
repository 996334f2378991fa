//! Compiles the text of a hand-written schema into a validator. A schema is bounded in size and depth,
//! has a known dialect, and refers to nothing outside itself.

use crate::protocol::{
    json_schema::{
        SchemaError,
        rewrite::{Inside, rewrite},
    },
    place::{check_unique_members, shorten},
};
use jsonschema::{
    Draft, PatternOptions, ReferencingError, ValidationError, Validator, error::ValidationErrorKind,
};
use serde_json::{Value, json};
use turnbuckle_types::Raw;

use super::steps::SchemaSteps;

/// The largest schema that is compiled, in bytes.
const LARGEST: usize = 256 * 1024;
/// The deepest nesting of arrays and objects in a schema.
const DEEPEST: usize = 64;
/// The most objects in a schema: no schema in it is anything else that costs something.
const MOST_OBJECTS: usize = 10_000;
/// How large one compiled pattern may become, in bytes.
const LARGEST_PATTERN: usize = 1024 * 1024;
/// What a reference is relative to when the schema has no `$id`.
const NO_BASE: &str = "json-schema:///";

/// Reads a schema, unless it is too large or too deep.
pub(crate) fn read(schema: &Raw) -> Result<Value, SchemaError> {
    let text = schema.as_str();
    if text.len() > LARGEST {
        return Err(SchemaError::new(format!(
            "the schema has {} bytes and may have {LARGEST}: make it smaller",
            text.len()
        )));
    }
    let too_deep = || {
        SchemaError::new(format!(
            "the schema nests more than {DEEPEST} levels deep: \
             make it flatter, or use `$defs` and `$ref`"
        ))
    };
    if let Err(problem) = check_unique_members(text) {
        return Err(SchemaError::new(format!("in the schema {problem}: remove one of the two")));
    }
    // The text is JSON, so all that can stop the parser is its own limit on nesting.
    let tree: Value = serde_json::from_str(text).map_err(|_| too_deep())?;
    if depth(&tree) > DEEPEST {
        return Err(too_deep());
    }
    let objects = objects(&tree);
    if objects > MOST_OBJECTS {
        return Err(SchemaError::new(format!(
            "the schema is made of {objects} objects and may be made of {MOST_OBJECTS}: \
             make it smaller, or use `$defs` and `$ref`"
        )));
    }
    Ok(tree)
}

/// A schema whose validation is bounded in steps.
pub(crate) struct CompiledSchema {
    pub(crate) validator: Validator,
    pub(crate) steps: SchemaSteps,
}

/// Compiles a schema that was read. Nothing is ever fetched, and no pattern takes more than linear
/// time.
pub(crate) fn compile(schema: &Raw, tree: &Value) -> Result<CompiledSchema, SchemaError> {
    let draft = draft_of(schema, tree)?;
    let patterns =
        PatternOptions::regex().size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN);
    let options = jsonschema::options().with_draft(draft).with_pattern_options(patterns).offline();
    let validator = options.build(tree).map_err(|error| refuse(&error))?;
    let steps = SchemaSteps::new(tree).ok_or_else(|| {
        SchemaError::new(
            "the references of the schema can't be followed, or lead back to themselves: refer to \
             `#/$defs/…`, and let circles pass through `properties` or `items`",
        )
    })?;
    Ok(CompiledSchema { validator, steps })
}

/// The dialect of the root. Documents inside may have others, but none that nobody knows.
fn draft_of(schema: &Raw, tree: &Value) -> Result<Draft, SchemaError> {
    const KNOWN: [Draft; 5] =
        [Draft::Draft202012, Draft::Draft201909, Draft::Draft7, Draft::Draft6, Draft::Draft4];
    let mut unknown = None;
    rewrite(schema, &mut |members| {
        let named = members.value("$schema").and_then(|named| named.decode::<String>().ok());
        let named = named
            .filter(|named| !KNOWN.contains(&Draft::default().detect(&json!({"$schema": named}))));
        unknown = unknown.take().or(named);
        Inside::Changes
    });
    let draft = Draft::default().detect(tree);
    match unknown {
        None if KNOWN.contains(&draft) => Ok(draft),
        unknown => Err(unknown_dialect(&unknown.unwrap_or_default())),
    }
}

fn unknown_dialect(named: &str) -> SchemaError {
    SchemaError::new(format!(
        "the dialect `{}` in `$schema` is not supported: \
         use https://json-schema.org/draft/2020-12/schema, or leave `$schema` out",
        shorten(named)
    ))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn objects(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(objects).sum(),
        Value::Object(members) => 1 + members.values().map(objects).sum::<usize>(),
        _ => 0,
    }
}

fn refuse(error: &ValidationError<'_>) -> SchemaError {
    let place = match error.instance_path().as_str() {
        "" => "at its root".to_owned(),
        pointer => format!("at `{pointer}`"),
    };
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::UnknownSpecification {
            specification,
        }) => unknown_dialect(specification),
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => {
            SchemaError::new(format!(
                "the schema refers to `{}`, which is not in it, and nothing is fetched: \
                 copy that into `$defs` and refer to it there",
                uri.strip_prefix(NO_BASE).unwrap_or(uri)
            ))
        }
        ValidationErrorKind::Referencing(error) => SchemaError::new(format!(
            "the schema refers to something that is not in it ({error}): \
             copy that into `$defs` and refer to it there"
        )),
        ValidationErrorKind::Format { format } if format == "regex" => {
            let pattern = error.instance().as_str().unwrap_or_default();
            SchemaError::new(format!(
                "the pattern `{}` {place} of the schema can't be used: write one that is matched \
                 in linear time, without look-around and backreferences, and that is not too large",
                shorten(pattern)
            ))
        }
        _ => SchemaError::new(format!(
            "the schema is not valid JSON Schema {place} ({error}): correct it there"
        )),
    }
}
