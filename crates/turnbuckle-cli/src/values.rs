//! Owns how `key=value` on the command line becomes a tool's arguments.
//! Does not own the schema's meaning, nor whether the tool likes what it gets.

use std::{fmt, str::FromStr};

use turnbuckle::types::{Named, Raw};

use crate::schema::{Accepts, Kind, Schema, Unnamed};

const NO_PAIR: &str = "arguments are written as key=value";

/// One `key=value`, not yet typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    key: String,
    value: String,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Pair, String> {
        match text.split_once('=') {
            Some(("", _)) => Err("the name before `=` is missing".to_owned()),
            Some((key, value)) => Ok(Pair { key: key.to_owned(), value: value.to_owned() }),
            None => Err(NO_PAIR.to_owned()),
        }
    }
}

impl Pair {
    /// Reads a pair where `--json` takes a whole object.
    pub(crate) fn beside_an_object(text: &str) -> Result<Pair, String> {
        // An object may well have `=` in it.
        if !text.contains('=') || text.parse::<Object>().is_ok() {
            return Err(format!("{NO_PAIR}; a whole object is given with --json '{{…}}'"));
        }
        text.parse()
    }
}

/// A JSON object as it was typed: its values keep their spelling.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object(Named<Raw>);

impl FromStr for Object {
    type Err = String;

    fn from_str(text: &str) -> Result<Object, String> {
        let raw = Raw::from_json(text).map_err(|error| format!("this is not JSON: {error}"))?;
        if !raw.is_object() {
            return Err("this is JSON, but not an object like {\"a\": 1}".to_owned());
        }
        raw.decode().map(Object).map_err(|error| error.to_string())
    }
}

/// The arguments of a call: `base`, and over it the pairs with the types that the schema gives.
pub(crate) fn arguments(
    schema: &Schema,
    base: Object,
    pairs: &[Pair],
) -> Result<Named<Raw>, ValueError> {
    let Object(mut arguments) = base;
    for (index, Pair { key, value }) in pairs.iter().enumerate() {
        if pairs[..index].iter().any(|before| before.key == *key) {
            return Err(ValueError::Twice { key: key.clone() });
        }
        let accepts = match (schema.accepts(key), schema.unnamed()) {
            (Some(accepts), _) | (None, Unnamed::Accepted(accepts)) => accepts,
            (None, Unnamed::Refused) => {
                let known = schema.arguments().iter().map(|one| one.name.to_owned()).collect();
                return Err(ValueError::Unknown { key: key.clone(), known });
            }
        };
        arguments.insert(key.as_str(), typed(key, value, &accepts)?);
    }
    Ok(arguments)
}

/// The arguments of a prompt, all of them texts.
pub(crate) fn texts(pairs: &[Pair]) -> Result<Named<String>, ValueError> {
    let mut texts = Named::new();
    for Pair { key, value } in pairs {
        if texts.value(key).is_some() {
            return Err(ValueError::Twice { key: key.clone() });
        }
        texts.insert(key, value);
    }
    Ok(texts)
}

/// Why a `key=value` can't be an argument.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ValueError {
    Twice { key: String },
    Unknown { key: String, known: Vec<String> },
    WrongType { key: String, value: String, expected: Vec<Kind> },
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::Twice { key } => write!(f, "the argument `{key}` is given twice"),
            ValueError::Unknown { key, known } if known.is_empty() => {
                write!(f, "there is no argument `{key}`: this tool takes none")
            }
            ValueError::Unknown { key, known } => {
                write!(f, "there is no argument `{key}`: this tool takes `{}`", known.join("`, `"))
            }
            ValueError::WrongType { key, value, expected } => {
                let names: Vec<&str> = expected.iter().map(|kind| with_article(*kind)).collect();
                let names = names.join(" or ");
                write!(f, "the argument `{key}` must be {names}, and `{value}` is not")
            }
        }
    }
}

fn typed(key: &str, value: &str, accepts: &Accepts) -> Result<Raw, ValueError> {
    let text = || Raw::from(serde_json::Value::from(value));
    let parsed = Raw::from_json(value.trim());
    match accepts {
        // Nothing says what it is: what reads as JSON is meant as JSON.
        Accepts::Anything => Ok(parsed.unwrap_or_else(|_| text())),
        // Where text will do it is text, so that `text=42` stays what it is.
        Accepts::Kinds(kinds) if kinds.contains(&Kind::String) => Ok(text()),
        Accepts::Kinds(kinds) => match parsed {
            Ok(parsed) if kinds.iter().any(|kind| is_of(&parsed, *kind)) => Ok(parsed),
            _ => Err(ValueError::WrongType {
                key: key.to_owned(),
                value: value.to_owned(),
                expected: kinds.clone(),
            }),
        },
    }
}

/// By its spelling: `4.0` is a number and not an integer, and no digit of a long one is lost.
fn is_of(value: &Raw, kind: Kind) -> bool {
    let text = value.as_str();
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    match kind {
        Kind::String => text.starts_with('"'),
        Kind::Integer => is_number && !text.contains(['.', 'e', 'E']),
        Kind::Number => is_number,
        Kind::Boolean => text == "true" || text == "false",
        Kind::Array => text.starts_with('['),
        Kind::Object => text.starts_with('{'),
        Kind::Null => text == "null",
    }
}

fn with_article(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "a string",
        Kind::Integer => "an integer",
        Kind::Number => "a number",
        Kind::Boolean => "a boolean (true or false)",
        Kind::Array => "an array (as JSON, like [1, 2])",
        Kind::Object => "an object (as JSON, like {\"a\": 1})",
        Kind::Null => "null",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn schema() -> Schema {
        Schema::new(
            &json!({
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "ratio": {"type": "number"},
                    "flag": {"type": "boolean"},
                    "list": {"type": "array"},
                    "map": {"type": "object"},
                    "maybe": {"type": ["integer", "null"]},
                    "open": {},
                },
                "additionalProperties": false,
            })
            .into(),
        )
    }

    fn convert(pairs: &[&str]) -> Result<Value, String> {
        convert_over("{}", pairs)
    }

    fn convert_over(base: &str, pairs: &[&str]) -> Result<Value, String> {
        let pairs: Vec<Pair> = pairs.iter().map(|pair| pair.parse().unwrap()).collect();
        arguments(&schema(), base.parse().unwrap(), &pairs)
            .map(|arguments| serde_json::to_value(arguments).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_take_the_type_that_the_schema_gives() {
        let table = [
            ("text=42", json!({"text": "42"})),
            ("text=true", json!({"text": "true"})),
            ("text=", json!({"text": ""})),
            ("text=a=b", json!({"text": "a=b"})),
            ("text= spaced ", json!({"text": " spaced "})),
            ("count=42", json!({"count": 42})),
            ("count=-1", json!({"count": -1})),
            ("ratio=1", json!({"ratio": 1})),
            ("ratio=2.5e3", json!({"ratio": 2500.0})),
            ("flag=true", json!({"flag": true})),
            ("list=[1, \"a\"]", json!({"list": [1, "a"]})),
            ("map={\"a\": {}}", json!({"map": {"a": {}}})),
            ("maybe=null", json!({"maybe": null})),
            ("maybe=7", json!({"maybe": 7})),
            ("open=7", json!({"open": 7})),
            ("open=seven", json!({"open": "seven"})),
        ];
        for (pair, expected) in table {
            assert_eq!(convert(&[pair]), Ok(expected), "{pair}");
        }
    }

    #[test]
    fn a_value_of_another_type_names_the_key_and_the_type() {
        let table = [
            ("count=four", "the argument `count` must be an integer, and `four` is not"),
            ("count=4.5", "the argument `count` must be an integer, and `4.5` is not"),
            ("count=\"4\"", "the argument `count` must be an integer, and `\"4\"` is not"),
            ("ratio=", "the argument `ratio` must be a number, and `` is not"),
            ("flag=yes", "the argument `flag` must be a boolean (true or false), and `yes` is not"),
            (
                "list=1,2",
                "the argument `list` must be an array (as JSON, like [1, 2]), and `1,2` is not",
            ),
            ("maybe=x", "the argument `maybe` must be an integer or null, and `x` is not"),
        ];
        for (pair, sentence) in table {
            assert_eq!(convert(&[pair]), Err(sentence.to_owned()), "{pair}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_known_ones_or_passed_as_text() {
        let refused = convert(&["txt=hi"]).unwrap_err();
        assert!(refused.starts_with("there is no argument `txt`: this tool takes `"), "{refused}");
        assert!(refused.contains("`text`"), "{refused}");
        let open = Schema::new(&json!({"type": "object"}).into());
        let passed = arguments(&open, Object::default(), &["n=42".parse().unwrap()]).unwrap();
        assert_eq!(passed.value("n").unwrap().as_str(), "\"42\"");
        let none = Schema::new(&json!({"additionalProperties": false}).into());
        let refused = arguments(&none, Object::default(), &["n=42".parse().unwrap()]).unwrap_err();
        assert_eq!(refused.to_string(), "there is no argument `n`: this tool takes none");
    }

    #[test]
    fn pairs_go_over_the_object_and_no_key_comes_twice() {
        let merged = convert_over(r#"{"count": 1, "text": "a", "free": []}"#, &["count=2"]);
        assert_eq!(merged, Ok(json!({"count": 2, "text": "a", "free": []})));
        let twice = convert(&["count=1", "count=2"]);
        assert_eq!(twice, Err("the argument `count` is given twice".to_owned()));
    }

    #[test]
    fn the_arguments_of_a_prompt_are_texts() {
        let pairs = |pairs: &[&str]| pairs.iter().map(|pair| pair.parse().unwrap()).collect();
        let both: Vec<Pair> = pairs(&["a=1", "b=x=y"]);
        let json = serde_json::to_value(texts(&both).unwrap()).unwrap();
        assert_eq!(json, json!({"a": "1", "b": "x=y"}));
        let twice: Vec<Pair> = pairs(&["a=1", "a=1"]);
        assert_eq!(texts(&twice).unwrap_err(), ValueError::Twice { key: "a".into() });
    }

    #[test]
    fn long_numbers_keep_every_digit() {
        let digits = "123456789012345678901234567890";
        let pair = format!("count={digits}").parse().unwrap();
        let base = format!(r#"{{"ratio": {digits}.10}}"#).parse().unwrap();
        let arguments = arguments(&schema(), base, &[pair]).unwrap();
        assert_eq!(arguments.value("count").unwrap().as_str(), digits);
        assert_eq!(arguments.value("ratio").unwrap().as_str(), format!("{digits}.10"));
    }

    #[test]
    fn what_is_no_pair_and_no_object_is_refused() {
        assert!("text".parse::<Pair>().is_err());
        assert!("=x".parse::<Pair>().is_err());
        for text in ["[1]", "{", "{\"a\":1} x", "7", "{\"a\":1,\"a\":2}"] {
            assert!(text.parse::<Object>().is_err(), "{text}");
        }
    }
}
