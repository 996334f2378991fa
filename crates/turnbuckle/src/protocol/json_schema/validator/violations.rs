//! The sentences on the violations that a validator finds.

use crate::protocol::{
    json_schema::problem::{Problem, count, must_be_one_of},
    place::{check_unique_members, push_index, push_key, shorten},
};
use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind},
    paths::{Location, LocationSegment},
};
use serde_json::Value;

use super::compile::CompiledSchema;

/// How many violations are reported; the rest would only repeat them.
const MOST_PROBLEMS: usize = 8;

/// What is wrong with a value, given as text: a few violations at most, none if nothing is.
pub(crate) fn problems(schema: &CompiledSchema, value: &str) -> Vec<Problem> {
    if let Err(message) = check_unique_members(value) {
        return vec![Problem::new("", message)];
    }
    // The parser stops at 128 levels, and with it the depth of what is validated.
    let value: Value = match serde_json::from_str(value) {
        Ok(value) => value,
        Err(error) => {
            return vec![Problem::new("", format!("is not JSON that can be checked: {error}"))];
        }
    };
    if schema.steps.check(&value).is_err() {
        let message =
            "takes too many steps to validate: make the schema simpler or the value smaller";
        return vec![Problem::new("", message)];
    }
    let validator = &schema.validator;
    if validator.is_valid(&value) {
        return Vec::new();
    }
    let errors = validator.iter_errors(&value).take(MOST_PROBLEMS);
    let mut problems: Vec<Problem> = errors.map(|error| explain(&error)).collect();
    problems.dedup();
    if problems.is_empty() {
        problems.push(Problem::new("", "is not valid under the tool's schema"));
    }
    problems
}

fn explain(error: &ValidationError<'_>) -> Problem {
    let mut path = write_path(error.instance_path());
    let message = match error.kind() {
        ValidationErrorKind::Required { property } => {
            push_key(&mut path, property.as_str().unwrap_or_default());
            "is missing".to_owned()
        }
        // `additionalProperties: false` without any `properties` is told apart only by its place.
        ValidationErrorKind::FalseSchema
            if error.schema_path().as_str().ends_with("/additionalProperties") =>
        {
            "unknown fields: none is expected".to_owned()
        }
        ValidationErrorKind::PropertyNames { error } => {
            if let Value::String(name) = &**error.instance() {
                push_key(&mut path, name);
            }
            "is not a name that is allowed here".to_owned()
        }
        kind => sentence(kind, error.instance()),
    };
    Problem::new(path, message)
}

fn sentence(kind: &ValidationErrorKind, value: &Value) -> String {
    use ValidationErrorKind as Kind;
    let is = || shorten(&value.to_string());
    let items = value.as_array().map_or(0, Vec::len);
    let members = value.as_object().map_or(0, serde_json::Map::len);
    let characters = value.as_str().map_or(0, |text| text.chars().count());
    let sized = |relation: &str, limit: u64, noun: &str, has: usize| {
        format!("must have {relation} {}, has {has}", count(limit, noun))
    };
    match kind {
        Kind::Type { kind } => format!("expected {}, got {}", types(kind), kind_of(value)),
        Kind::Minimum { limit } => format!("must be at least {limit}, is {}", is()),
        Kind::Maximum { limit } => format!("must be at most {limit}, is {}", is()),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}, is {}", is()),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}, is {}", is()),
        Kind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}, is {}", is())
        }
        Kind::MinLength { limit } => sized("at least", *limit, "character", characters),
        Kind::MaxLength { limit } => sized("at most", *limit, "character", characters),
        Kind::MinItems { limit } => sized("at least", *limit, "item", items),
        Kind::MaxItems { limit } => sized("at most", *limit, "item", items),
        Kind::AdditionalItems { limit } => sized("at most", *limit as u64, "item", items),
        Kind::MinProperties { limit } => sized("at least", *limit, "member", members),
        Kind::MaxProperties { limit } => sized("at most", *limit, "member", members),
        Kind::Pattern { pattern } => format!("must match the pattern `{pattern}`"),
        Kind::Format { format } => format!("must be in the format `{format}`"),
        Kind::Enum { options } => match &**options {
            Value::Array(options) => must_be_one_of(options, &is()),
            only => must_be_one_of(std::slice::from_ref(only), &is()),
        },
        Kind::Constant { expected_value } => {
            must_be_one_of(std::slice::from_ref(expected_value), &is())
        }
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Contains => "must have an item of the kind that its schema asks for".to_owned(),
        Kind::AdditionalProperties { unexpected }
        | Kind::UnevaluatedProperties { unexpected }
        | Kind::UnevaluatedItems { unexpected } => {
            let names: Vec<String> =
                unexpected.iter().take(5).map(|name| format!("`{}`", shorten(name))).collect();
            format!("unknown {}: leave out {}", noun_for(kind), names.join(", "))
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            "must match one of the forms that its schema lists".to_owned()
        }
        Kind::OneOfMultipleValid { .. } => {
            "must match only one of the forms that its schema lists".to_owned()
        }
        Kind::Not { .. } => "must not match the form that its schema excludes".to_owned(),
        Kind::FalseSchema => "must be left out".to_owned(),
        other => format!("must satisfy `{}` of its schema", other.keyword()),
    }
}

fn noun_for(kind: &ValidationErrorKind) -> &'static str {
    match kind {
        ValidationErrorKind::UnevaluatedItems { .. } => "items",
        _ => "fields",
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => with_article(*kind).to_owned(),
        TypeKind::Multiple(kinds) => {
            let kinds: Vec<&str> = kinds.iter().map(with_article).collect();
            kinds.join(" or ")
        }
    }
}

fn with_article(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn write_path(location: &Location) -> String {
    let mut path = String::new();
    for segment in location.segments() {
        match segment {
            LocationSegment::Property(key) => push_key(&mut path, &key),
            LocationSegment::Index(index) => push_index(&mut path, index),
        }
    }
    path
}
