//! Arguments of a tool, beside a validator of the schema that the tool lists.

use std::{collections::BTreeMap, sync::LazyLock};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnbuckle::server::schema::{InputSchema, decode_arguments, input_schema_of};

use crate::json;

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the fields are only decoded")]
struct Everything {
    #[schemars(range(min = 1, max = 100))]
    count: u8,
    wide: Option<i64>,
    #[schemars(range(min = 0.0, max = 1.0))]
    ratio: Option<f64>,
    #[schemars(length(min = 1, max = 5))]
    text: Option<String>,
    #[schemars(regex(pattern = "^[a-z]+$"))]
    word: Option<String>,
    #[schemars(length(max = 3))]
    tags: Option<Vec<String>>,
    numbers: Option<BTreeMap<String, i32>>,
    unit: Option<Unit>,
    flag: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Kelvin,
    Celsius,
}

static SIDES: LazyLock<(InputSchema, jsonschema::Validator)> = LazyLock::new(|| {
    let input = input_schema_of::<Everything>().expect("a schema");
    let tree: Value = serde_json::from_str(input.schema.as_str()).expect("JSON");
    let validator = jsonschema::options().offline().build(&tree).expect("a valid schema");
    (input, validator)
});

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (input, validator) = &*SIDES;
    let decoded = decode_arguments::<Everything>(text, Some(&input.checks));
    if let Err(error) = &decoded {
        assert!(!error.problems.is_empty());
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        // A member that is not known may have a number that only decoding into a value refuses.
        return;
    };
    // Decoding takes `null` for an absent member, and numbers beyond doubles are not exact.
    let is_comparable = json::unique(data).is_some() && json::normal(&value).is_some();
    if is_comparable && !json::has_null(&value) {
        assert_eq!(decoded.is_ok(), validator.is_valid(&value), "{:?}", decoded.err());
    }
}
