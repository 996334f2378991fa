//! Owns that decoding and the emitted schema agree on what arguments are valid.
//! Does not own what either says about arguments that are not.
//!
//! Decoding is wider on purpose in three ways, which these tests steer around: `null` for an absent
//! optional field, an array for a nested struct, `{"Name":null}` for a unit variant.

use proptest::{collection::vec, prelude::*, sample::select};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::zoo::*;
use crate::server::schema::{InputSchema, decode_arguments, input_schema_of};

/// Both sides of one argument type.
struct Sides {
    input: InputSchema,
    validator: jsonschema::Validator,
}

impl Sides {
    fn of<T: JsonSchema + DeserializeOwned>() -> Sides {
        let input = input_schema_of::<T>().unwrap();
        let tree = serde_json::from_str(input.schema.as_str()).unwrap();
        let validator = jsonschema::options().offline().build(&tree).unwrap();
        Sides { input, validator }
    }

    /// What decoding says, once the schema has been seen to say the same.
    fn accept<T: DeserializeOwned>(&self, text: &str) -> Result<bool, String> {
        let decoded = decode_arguments::<T>(text, Some(&self.input.checks));
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let validated = self.validator.validate(&value);
        let explained = self.input.checks.explain(text);
        if explained.is_empty() != validated.is_ok() {
            return Err(format!("{text} is explained by {explained:?}: {:?}", validated.err()));
        }
        match (&decoded, &validated) {
            (Ok(_), Err(error)) => Err(format!("only the schema refuses {text}: {error}")),
            (Err(error), Ok(())) => Err(format!("only decoding refuses {text}: {error}")),
            _ => Ok(decoded.is_ok()),
        }
    }
}

/// JSON values of every kind, written in several ways. Integers stay where doubles are exact, since
/// a validator has nothing better, and `null` is left out.
const ANYTHING: &[&str] = &[
    "0",
    "1",
    "-1",
    "-0",
    "5",
    "7.0",
    "2.5",
    "1e2",
    "1E-1",
    "100",
    "101",
    "127",
    "128",
    "255",
    "256",
    "-128",
    "-129",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967296",
    "9007199254740991",
    "-9007199254740991",
    "\"\"",
    "\"a\"",
    "\"ab\"",
    "\"ä\"",
    "\"\\u00e4\\n\"",
    "\"abcdef\"",
    "\"Ab\"",
    "\"zebra\"",
    "\"kelvin\"",
    "\"Only\"",
    "\"eu\"",
    "true",
    "false",
    "[]",
    "[1]",
    "[1,2,3]",
    "[1,2,3.0]",
    "[\"a\"]",
    "[\"\"]",
    "[\"a\",\"a\"]",
    "[\"a\",\"b\"]",
    "[\"a\",\"b\",\"c\"]",
    "[1,\"a\"]",
    "[[1.5],[]]",
    "[\"kelvin\",\"celsius\"]",
    "{}",
    "{\"a\":1}",
];

/// Arguments with these fields: mostly fitting values, sometimes any, sometimes none, and sometimes
/// a field that nobody knows.
fn arguments(
    fields: &'static [(&'static str, &'static [&'static str])],
) -> impl Strategy<Value = String> {
    let field = |(name, fitting): &'static (&'static str, &'static [&'static str])| {
        prop_oneof![
            60 => select(*fitting).prop_map(move |value| Some(format!("\"{name}\": {value}"))),
            3 => select(ANYTHING).prop_map(move |value| Some(format!("\"{name}\":{value}"))),
            1 => Just(None),
        ]
        .boxed()
    };
    let extra = prop_oneof![20 => Just(None), 1 => Just(Some("\"stranger\": [null]".to_owned()))];
    let members: Vec<BoxedStrategy<Option<String>>> =
        fields.iter().map(field).chain([extra.boxed()]).collect();
    members.prop_map(|members| {
        let members: Vec<String> = members.into_iter().flatten().collect();
        format!("{{{}}}", members.join(","))
    })
}

/// Tries many arguments of one type, of which enough must be valid and enough must not.
fn try_many<T: JsonSchema + DeserializeOwned>(
    fields: &'static [(&'static str, &'static [&'static str])],
) {
    let sides = Sides::of::<T>();
    let (accepted, refused) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    proptest!(ProptestConfig::with_cases(500), |(text in arguments(fields))| {
        let outcome = sides.accept::<T>(&text).map_err(TestCaseError::fail)?;
        let counter = if outcome { &accepted } else { &refused };
        counter.set(counter.get() + 1);
    });
    assert!(accepted.get() > 50, "only {} were valid", accepted.get());
    assert!(refused.get() > 50, "only {} were not valid", refused.get());
}

// req: mcpserver:tool:schema-variants
#[test]
fn on_constraints() {
    try_many::<Constrained>(&[
        ("count", &["1", "100", "50.0", "1e1"]),
        ("ratio", &["-0.5", "0", "3", "1e10"]),
        ("code", &["\"ab\"", "\"äöüéè\"", "\"\\u00e4b\""]),
        ("word", &["\"a\"", "\"abc\""]),
        ("tags", &["[]", "[\"a\"]", "[\"a\",\"a\"]"]),
        ("steps", &["0", "-5", "45", "10.0"]),
        ("email", &["\"not checked\""]),
    ]);
}

#[test]
fn on_integers() {
    try_many::<Integers>(&[
        ("z", &["-128", "127", "1.0"]),
        ("y", &["0", "255", "-0"]),
        ("x", &["-32768", "32767"]),
        ("w", &["0", "65535"]),
        ("v", &["-2147483648", "2147483647"]),
        ("u", &["0", "4294967295"]),
        ("t", &["-9007199254740991", "9007199254740991"]),
        ("s", &["0", "18446744073709551615"]),
        ("r", &["-1"]),
        ("q", &["1"]),
        ("p", &["-1", "1e3"]),
        ("o", &["1"]),
        ("n", &["1", "255"]),
        ("m", &["-1", "1"]),
    ]);
}

// req: mcpserver:tool:schema-variants
#[test]
fn on_enums() {
    try_many::<Enums>(&[
        ("plain", &["\"zebra\"", "\"ant\"", "\"\\u0061nt\""]),
        ("documented", &["\"celsius\"", "\"fahrenheit\"", "\"kelvin\""]),
        ("single", &["\"Only\""]),
        ("many", &["[]", "[\"celsius\"]"]),
    ]);
}

#[test]
fn on_defaults_and_unknown_fields() {
    try_many::<Strict>(&[
        ("verbose", &["true", "false"]),
        ("limit", &["0", "4294967295"]),
        ("query", &["\"\"", "\"a\""]),
    ]);
}

#[test]
fn on_sequences() {
    try_many::<Sequences>(&[
        ("pair", &["[1,\"a\"]", "[255.0,\"\"]"]),
        ("triple", &["[1,2,3]", "[1,2,3.0]"]),
        ("set", &["[]", "[\"a\",\"b\"]", "[\"a\",\"\\u0061\"]"]),
        ("list", &["[]", "[[],[1,2.5]]"]),
    ]);
}

#[test]
fn on_primitives() {
    try_many::<Primitives>(&[
        ("text", &["\"\"", "\"a\""]),
        ("single", &["0", "1.5", "-1e3"]),
        ("double", &["0", "1.5", "-1e3"]),
        ("flag", &["true", "false"]),
        ("letter", &["\"a\"", "\"ä\"", "\"\\n\""]),
        ("nothing", &["null"]),
        ("anything", &["null", "[1,{}]", "2"]),
    ]);
}

#[test]
fn on_what_nests() {
    fn check<T: JsonSchema + DeserializeOwned>(good: &[&str], bad: &[&str]) {
        let sides = Sides::of::<T>();
        for text in good {
            assert_eq!(sides.accept::<T>(text), Ok(true), "{text}");
        }
        for text in bad {
            assert_eq!(sides.accept::<T>(text), Ok(false), "{text}");
        }
    }
    check::<Tagged>(
        &[
            r#"{"internal":{"kind":"circle","radius":1},"adjacent":[]}"#,
            r#"{"internal":{"kind":"rectangle","width":1},"adjacent":[{"t":"One","c":1},{"t":"Two"}]}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[],"external":"Unit"}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[],"external":{"Newtype":""}}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[],"external":{"Pair":[1,2]}}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[],"external":{"Fields":{"b":true}}}"#,
        ],
        &[
            r#"{"internal":{"kind":"circle"},"adjacent":[]}"#,
            r#"{"internal":{"kind":"oval"},"adjacent":[]}"#,
            r#"{"internal":{"kind":"rectangle","width":-1},"adjacent":[]}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[{"t":"One"}]}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[],"external":"Newtype"}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[],"external":{"Pair":[1]}}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[],"external":{"Pair":[1,2,3]}}"#,
            r#"{"internal":{"kind":"nothing"},"adjacent":[],"external":{"Newtype":"","Unit":null}}"#,
        ],
    );
    check::<Nested>(
        &[concat!(
            r#"{"startingPoint":{"x":1,"y":2},"wayPoints":[{"x":1,"y":2,"z":3}],"end":{"y":1,"x":0},"#,
            r#""once":{"field":""}}"#
        )],
        &[
            r#"{"startingPoint":{"x":1},"wayPoints":[],"end":{"y":1,"x":0},"once":{"field":""}}"#,
            r#"{"startingPoint":{"x":1,"y":2},"wayPoints":{},"end":{"y":1,"x":0},"once":{"field":""}}"#,
        ],
    );
    check::<Optional>(
        &[
            r#"{"holes":[1,null]}"#,
            r#"{"holes":[],"unit":"ant","unit_with_docs":"kelvin","point":{"x":1,"y":1},"first":0}"#,
        ],
        &[r#"{"holes":null}"#, r#"{"holes":[""]}"#, r#"{"holes":[],"unit":"dog"}"#, "{}"],
    );
    check::<Maps>(
        &[
            r#"{"counts":{"a":1},"points":{"":{"x":1,"y":1}},"by_number":{"1":"a"},"free":{"a":null}}"#,
            r#"{"counts":{},"points":{},"by_number":{},"free":{}}"#,
        ],
        &[
            r#"{"counts":{"a":-1},"points":{},"by_number":{},"free":{}}"#,
            r#"{"counts":{},"points":{"a":{"x":1}},"by_number":{},"free":{}}"#,
            r#"{"counts":{},"points":{},"by_number":{"a":"b"},"free":{}}"#,
            r#"{"counts":{},"points":{},"by_number":{},"free":[]}"#,
        ],
    );
    check::<Forest>(
        &[r#"{"trees":[{"name":"a","children":[{"name":"b","children":[]}]}]}"#],
        &[
            r#"{"trees":[{"name":"a","children":[{"name":"","children":[]}]}]}"#,
            r#"{"trees":[{"name":"a","children":[],"parent":{"name":"","children":[]}}]}"#,
            r#"{"trees":[{"name":"a"}]}"#,
        ],
    );
    check::<Extended>(
        &[r#"{"region":"eu"}"#],
        &[r#"{"region":"EU"}"#, r#"{"region":"eu","old":-1}"#],
    );
}

/// A schema of numbers, texts or lists with random limits, so that the checks alone, without any
/// type, are held against the validator.
fn constraint() -> impl Strategy<Value = Value> {
    let limits = |names: &'static [&'static str], range: std::ops::Range<i64>| {
        vec((select(names), range), 0..3).prop_map(|limits| {
            Value::Object(
                limits.into_iter().map(|(name, limit)| (name.into(), limit.into())).collect(),
            )
        })
    };
    prop_oneof![
        limits(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], -3..4),
        limits(&["multipleOf"], 1..5),
        limits(&["minLength", "maxLength", "minItems", "maxItems"], 0..4),
        select(&["a", "^a", "b$", "^[ab]*$", "\\d"][..])
            .prop_map(|pattern| serde_json::json!({"pattern": pattern})),
        Just(serde_json::json!({"uniqueItems": true})),
        Just(serde_json::json!({"items": {"minimum": 1}, "uniqueItems": true})),
        Just(serde_json::json!({"enum": ["a", 1, true]})),
        Just(serde_json::json!({"additionalProperties": {"minimum": 2}, "minProperties": 1})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn on_any_constraint(schema in constraint(), value in select(ANYTHING)) {
        use crate::server::schema::Checks;

        let schema = serde_json::json!({"properties": {"v": schema}});
        let text = format!("{{\"v\":{value}}}");
        let checked = Checks::compile(&schema).unwrap().run(&text);
        let validator = jsonschema::options().offline().build(&schema).unwrap();
        let tree: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(checked.is_ok(), validator.is_valid(&tree), "{} under {}", text, schema);
    }

    #[test]
    fn nothing_makes_decoding_panic(text in "[ -~äß\\n]{0,40}") {
        let (strict, maps, tagged) =
            (Sides::of::<Strict>(), Sides::of::<Maps>(), Sides::of::<Tagged>());
        let (strict, maps, tagged) =
            (&strict.input.checks, &maps.input.checks, &tagged.input.checks);
        let _ = decode_arguments::<Strict>(&text, Some(strict));
        let limit = format!("{{\"limit\":{text}}}");
        let _ = decode_arguments::<Strict>(&limit, Some(strict));
        let counts = format!("{{\"counts\":{{\"{text}\":1.0}}}}");
        let _ = decode_arguments::<Maps>(&counts, Some(maps));
        let external = format!("{{\"external\":{text}}}");
        let _ = decode_arguments::<Tagged>(&external, Some(tagged));
    }
}
