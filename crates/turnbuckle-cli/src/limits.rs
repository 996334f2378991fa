//! Owns how the limits of an argument are told in a few words.
//! Does not own its type, nor whether a value keeps to them.

use serde_json::Value;

use crate::{output::one_line, progress::shortened};

/// How much of a long pattern is shown.
const SHOWN: usize = 40;
/// What types of 32 bits can hold, and from where on it is those of 64: that limits nobody.
const OF_TYPES: [f64; 3] = [i32::MAX as f64, -(i32::MIN as f64), u32::MAX as f64];
const HUGE: f64 = 9_007_199_254_740_991.0;

/// Ranges, lengths and the pattern of a schema without references.
pub(crate) fn limits(schema: &Value) -> Vec<String> {
    let number = |keyword: &str| {
        let number = schema.get(keyword)?.as_number()?;
        let size = number.as_f64()?.abs();
        (size < HUGE && !OF_TYPES.contains(&size)).then(|| number.to_string())
    };
    let range = |[least, most]: [&str; 2], unit: &str| match (number(least), number(most)) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    };
    let pattern = schema.get("pattern").and_then(Value::as_str);
    [
        range(["minimum", "maximum"], ""),
        number("exclusiveMinimum").map(|number| format!("more than {number}")),
        number("exclusiveMaximum").map(|number| format!("less than {number}")),
        range(["minLength", "maxLength"], " characters"),
        range(["minItems", "maxItems"], " items"),
        pattern.map(|pattern| format!("like {}", shortened(&one_line(pattern), SHOWN))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_told_in_a_few_words() {
        let table = [
            (json!({"type": "integer"}), ""),
            (json!({"minimum": 1, "maximum": 10}), "1 to 10"),
            (json!({"minimum": 0}), "at least 0"),
            (json!({"maximum": 2.5}), "at most 2.5"),
            (json!({"minimum": -9007199254740991i64, "maximum": 9007199254740991i64}), ""),
            (json!({"minimum": 0, "maximum": u32::MAX}), "at least 0"),
            (json!({"minimum": i32::MIN, "maximum": i32::MAX}), ""),
            (json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}), "more than 0, less than 1"),
            (json!({"minLength": 3, "maxLength": 5}), "3 to 5 characters"),
            (json!({"maxLength": 20, "pattern": "^a\n+$"}), "at most 20 characters, like ^a +$"),
            (json!({"minItems": 1, "maxItems": 5}), "1 to 5 items"),
            (json!({"minimum": "1", "pattern": 1}), ""),
            (json!(true), ""),
        ];
        for (schema, told) in table {
            assert_eq!(limits(&schema).join(", "), told, "{schema}");
        }
        let long = limits(&json!({"pattern": "a".repeat(1000)}));
        assert_eq!(long, [format!("like {}…", "a".repeat(SHOWN))]);
    }
}
