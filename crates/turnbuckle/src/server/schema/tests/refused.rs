//! Owns which types cannot be arguments, and what their authors are told.
//! Does not own the schemas of types that can.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::zoo::{Documented, External, Internal, Plain, Point};
use crate::server::schema::input_schema_of;

macro_rules! assert_refused {
    ($type:ty, $sentence:literal) => {
        assert_eq!(
            input_schema_of::<$type>().unwrap_err().to_string(),
            concat!("the arguments of a tool must be an object, but ", $sentence)
        )
    };
}

#[test]
fn enums() {
    assert_refused!(
        Plain,
        "`Plain` is an enum: put it in a field of a struct and take that struct"
    );
    assert_refused!(
        Documented,
        "`Documented` is an enum: put it in a field of a struct and take that struct"
    );
    assert_refused!(
        Internal,
        "`Internal` is an enum: put it in a field of a struct and take that struct"
    );
    assert_refused!(
        External,
        "`External` is an enum: put it in a field of a struct and take that struct"
    );

    #[derive(Deserialize, JsonSchema)]
    enum Never {}
    assert_refused!(Never, "`Never` accepts nothing: take a struct");
}

#[test]
fn flattened_enums() {
    #[derive(Deserialize, JsonSchema)]
    struct Flattened {
        #[expect(dead_code, reason = "only its schema matters")]
        id: u8,
        #[schemars(flatten)]
        #[expect(dead_code, reason = "only its schema matters")]
        action: Internal,
    }
    assert_refused!(
        Flattened,
        "`Flattened` flattens an enum, which makes it a union: \
         make the enum an ordinary field, without `flatten`"
    );
}

#[test]
fn what_is_not_an_object() {
    #[derive(Deserialize, JsonSchema)]
    struct Unit;
    assert_refused!(Unit, "`Unit` holds nothing: write it with braces, as in `struct Nothing {}`");
    assert_refused!(
        Option<Point>,
        "`Nullable_Point` is optional as a whole: take the type itself and make its fields optional"
    );
    assert_refused!(
        Vec<u8>,
        "`Array_of_uint8` is an array: put it in a field of a struct and take that struct"
    );
    assert_refused!(
        String,
        "`string` is a string: put it in a field of a struct and take that struct"
    );
    assert_refused!(
        u8,
        "`uint8` is an integer: put it in a field of a struct and take that struct"
    );
    assert_refused!(
        (u8, u8),
        "`Tuple_of_uint8_and_uint8` is an array: put it in a field of a struct and take that struct"
    );
}

#[test]
fn maps_and_free_form_objects_are_fine() {
    let of = |schema: crate::server::schema::InputSchema| schema.schema.as_str().to_owned();
    let any = r#"{"type":"object","properties":{},"additionalProperties":true}"#;
    assert_eq!(of(input_schema_of::<serde_json::Value>().unwrap()), any);
    assert_eq!(of(input_schema_of::<HashMap<String, serde_json::Value>>().unwrap()), any);
    assert_eq!(
        of(input_schema_of::<HashMap<String, bool>>().unwrap()),
        r#"{"type":"object","properties":{},"additionalProperties":{"type":"boolean"}}"#
    );
}
