//! What structs become as forms, and which have no form.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[derive(Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Deserialize, JsonSchema)]
enum Color {
    #[serde(rename = "#f00")]
    #[schemars(title = "Red")]
    Red,
    /// Green, as grass is.
    #[serde(rename = "#0f0")]
    Green,
    Other,
}

fn shown<T: JsonSchema + DeserializeOwned>() -> Value {
    serde_json::to_value(form_of::<T>().unwrap()).unwrap()
}

// req: elicitation:form:schema:primitives, elicitation:form:defaults
#[test]
fn every_kind_of_plain_field_keeps_what_it_says() {
    fn ten() -> u8 {
        10
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct All {
        /// Your name.
        #[schemars(title = "Name", length(min = 1, max = 50))]
        zeta: String,
        #[schemars(email)]
        mail: String,
        #[schemars(url)]
        page: Option<String>,
        #[schemars(extend("format" = "date"))]
        day: String,
        #[schemars(extend("format" = "uuid"))]
        id: String,
        #[serde(default = "ten")]
        #[schemars(range(min = 1, max = 20))]
        count: u8,
        ratio: Option<f64>,
        #[serde(default)]
        sure: bool,
        #[serde(default)]
        nick: String,
        open: i64,
    }
    assert_eq!(
        shown::<All>(),
        json!({
            "type": "object",
            "properties": {
                "zeta": {"type": "string", "title": "Name", "description": "Your name.",
                    "minLength": 1, "maxLength": 50},
                "mail": {"type": "string", "format": "email"},
                "page": {"type": "string", "format": "uri"},
                "day": {"type": "string", "format": "date"},
                "id": {"type": "string"},
                "count": {"type": "integer", "minimum": 1, "maximum": 20, "default": 10},
                "ratio": {"type": "number"},
                "sure": {"type": "boolean", "default": false},
                "nick": {"type": "string", "default": ""},
                "open": {"type": "integer"},
            },
            "required": ["zeta", "mail", "day", "id", "open"],
        })
    );
    let form = form_of::<All>().unwrap();
    let order: Vec<_> = form.properties.iter().map(|(name, _)| name).collect();
    assert_eq!(order[..4], ["zeta", "mail", "page", "day"], "in the order of declaration");
}

// req: elicitation:form:schema:enum-variants
#[test]
fn enums_without_data_are_choices_with_titles_where_there_are_any() {
    fn small() -> Size {
        Size::Small
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Choices {
        size: Size,
        maybe: Option<Size>,
        color: Color,
        perhaps: Option<Color>,
        #[schemars(length(min = 1, max = 2))]
        sizes: Vec<Size>,
        colors: Option<Vec<Color>>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Started {
        #[serde(default = "small")]
        size: Size,
    }
    let sizes = json!(["small", "large"]);
    // Variants without documentation come first.
    let colors = json!([
        {"const": "Other", "title": "Other"},
        {"const": "#f00", "title": "Red"},
        {"const": "#0f0", "title": "Green, as grass is."},
    ]);
    assert_eq!(
        shown::<Choices>(),
        json!({
            "type": "object",
            "properties": {
                "size": {"type": "string", "enum": sizes},
                "maybe": {"type": "string", "enum": sizes},
                "color": {"type": "string", "oneOf": colors},
                "perhaps": {"type": "string", "oneOf": colors},
                "sizes": {"type": "array", "items": {"type": "string", "enum": sizes},
                    "minItems": 1, "maxItems": 2},
                "colors": {"type": "array", "items": {"anyOf": colors}},
            },
            "required": ["size", "color", "sizes"],
        })
    );
    assert_eq!(shown::<Started>()["properties"]["size"]["default"], "small");
}

// req: elicitation:form:schema:restricted-subset
#[test]
fn what_is_not_flat_is_refused_with_the_field_and_what_to_write() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        a: String,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Data {
        A { b: String },
        C,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Deep {
        deep: Option<Box<Deep>>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct With<T> {
        field: T,
    }
    fn why<T: JsonSchema + DeserializeOwned>() -> String {
        form_of::<T>().unwrap_err().to_string()
    }
    for (why, part) in [
        (why::<With<Inner>>(), "`field` is a struct or a map"),
        (why::<With<Option<Inner>>>(), "`field` is a struct or a map"),
        (why::<With<std::collections::BTreeMap<String, String>>>(), "`field` is a struct or a map"),
        (why::<With<Vec<String>>>(), "`field` is a list"),
        (why::<With<Vec<Inner>>>(), "`field` is a list"),
        (why::<With<Data>>(), "`field` is one of several kinds"),
        (why::<With<Value>>(), "`field` can be anything"),
        (why::<With<()>>(), "`field` holds nothing"),
        (why::<Deep>(), "`deep` contains itself"),
        (why::<Data>(), "must be a struct"),
        (why::<Size>(), "must be a struct"),
        (why::<String>(), "must be a struct"),
        (why::<Vec<Inner>>(), "must be a struct"),
        (why::<Option<Inner>>(), "must be a struct"),
        (why::<std::collections::BTreeMap<String, String>>(), "name each as a field"),
    ] {
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn a_form_may_have_no_fields() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    assert_eq!(shown::<Nothing>(), json!({"type": "object", "properties": {}}));
}
