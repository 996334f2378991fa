//! One field of a form: how it is shown, and what a line that was typed means for it.

use serde_json::Value;
use turnbuckle::{
    elicit::field_fits,
    types::{PrimitiveSchema, Raw},
};

use crate::output::{one_line, printable};

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    name: String,
    need: FieldNeed,
    kind: Kind,
    schema: PrimitiveSchema,
    /// The schema, for what all kinds have.
    members: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldNeed {
    Required,
    Optional,
}

#[derive(Debug)]
enum Kind {
    Text,
    Number,
    YesOrNo,
    One(Vec<Choice>),
    Several(Vec<Choice>),
    /// A kind that is not known.
    Other,
}

#[derive(Debug)]
struct Choice {
    value: String,
    title: Option<String>,
}

impl Field {
    pub(super) fn new(name: &str, schema: &PrimitiveSchema, need: FieldNeed) -> Field {
        // What came as JSON can be written as JSON.
        let members = serde_json::to_value(schema).unwrap_or_default();
        Field {
            name: name.to_owned(),
            need,
            kind: kind(schema, &members),
            schema: schema.clone(),
            members,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What it is, over some lines.
    pub(super) fn heading(&self) -> String {
        let text = |member: &str| self.members[member].as_str();
        let need = match self.need {
            FieldNeed::Required => "required",
            FieldNeed::Optional => "optional",
        };
        let title = one_line(text("title").unwrap_or(&self.name));
        let mut heading = format!("{title} ({}, {need})\n", self.hint());
        for line in text("description").map(printable).unwrap_or_default().lines() {
            heading.push_str(&format!("  {line}\n"));
        }
        if let Kind::One(choices) | Kind::Several(choices) = &self.kind {
            for (index, choice) in choices.iter().enumerate() {
                heading.push_str(&format!("  {}) {}\n", index + 1, choice.shown()));
            }
        }
        heading
    }

    /// What stands before what is typed.
    pub(super) fn entry(&self) -> String {
        match self.default() {
            Some(default) => format!("[{}] > ", one_line(&default)),
            None => "> ".to_owned(),
        }
    }

    /// The value that was typed, `None` to leave it out; or what is wrong with it.
    pub(super) fn read(&self, typed: &str) -> Result<Option<Raw>, String> {
        let value = match &self.kind {
            _ if typed.is_empty() => match self.nothing()? {
                Some(value) => value,
                None => return Ok(None),
            },
            Kind::Text => Value::from(typed),
            Kind::Number => number(typed).ok_or("this must be a number")?,
            Kind::YesOrNo => Value::from(yes_or_no(typed).ok_or("this must be yes or no")?),
            Kind::One(choices) => Value::from(chosen(typed, choices)?),
            Kind::Several(choices) => {
                let parts = typed.split(',').filter(|part| !part.trim().is_empty());
                Value::from(parts.map(|part| chosen(part, choices)).collect::<Result<Vec<_>, _>>()?)
            }
            Kind::Other => serde_json::from_str(typed).unwrap_or_else(|_| Value::from(typed)),
        };
        field_fits(&self.schema, &value).map_err(|why| format!("this {why}"))?;
        Ok(Some(value.into()))
    }

    /// What an empty line means.
    fn nothing(&self) -> Result<Option<Value>, String> {
        match (&self.kind, self.need) {
            // The client fills in the default.
            _ if !self.members["default"].is_null() => Ok(None),
            (_, FieldNeed::Optional) => Ok(None),
            (Kind::Several(_), FieldNeed::Required) => Ok(Some(Value::Array(Vec::new()))),
            (_, FieldNeed::Required) => Err("this must be filled in".to_owned()),
        }
    }

    /// The default, as it is shown.
    fn default(&self) -> Option<String> {
        let title = |value: &str| match &self.kind {
            Kind::One(choices) | Kind::Several(choices) => {
                let choice = choices.iter().find(|choice| choice.value == value);
                choice.map_or_else(|| value.to_owned(), Choice::shown)
            }
            _ => value.to_owned(),
        };
        Some(match &self.members["default"] {
            Value::Null => return None,
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            Value::String(text) => title(text),
            Value::Array(list) => {
                list.iter().filter_map(Value::as_str).map(title).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        })
    }

    fn hint(&self) -> String {
        let within =
            |least: &str, most: &str, unit: &str| match (&self.members[least], &self.members[most])
            {
                (Value::Null, Value::Null) => String::new(),
                (least, Value::Null) => format!(", at least {least}{unit}"),
                (Value::Null, most) => format!(", at most {most}{unit}"),
                (least, most) => format!(", {least} to {most}{unit}"),
            };
        match &self.kind {
            Kind::Text => {
                let what = match self.members["format"].as_str() {
                    Some("email") => "e-mail address",
                    Some("uri") => "URI",
                    Some("date") => "date like 2026-07-28",
                    Some("date-time") => "time like 2026-07-28T12:00:00Z",
                    _ => "text",
                };
                format!("{what}{}", within("minLength", "maxLength", " characters"))
            }
            Kind::Number => {
                let whole = self.members["type"] == "integer";
                let what = if whole { "whole number" } else { "number" };
                format!("{what}{}", within("minimum", "maximum", ""))
            }
            Kind::YesOrNo => "yes or no".to_owned(),
            Kind::One(_) => "one of these".to_owned(),
            Kind::Several(_) => {
                format!("some of these, with commas{}", within("minItems", "maxItems", ""))
            }
            Kind::Other => "JSON or text".to_owned(),
        }
    }
}

impl Choice {
    fn shown(&self) -> String {
        match &self.title {
            Some(title) if *title != self.value => {
                format!("{} ({})", one_line(title), one_line(&self.value))
            }
            _ => one_line(&self.value),
        }
    }
}

/// What was typed for a question that has two answers.
pub(super) fn yes_or_no(typed: &str) -> Option<bool> {
    match typed.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

fn kind(schema: &PrimitiveSchema, members: &Value) -> Kind {
    let plain = |values: &[String]| {
        let titles = members["enumNames"].as_array();
        let title = |index: usize| titles?.get(index)?.as_str().map(str::to_owned);
        let choice =
            |(index, value): (usize, &String)| Choice { value: value.clone(), title: title(index) };
        values.iter().enumerate().map(choice).collect()
    };
    let titled = |choices: &[turnbuckle::types::Choice]| {
        let choice = |choice: &turnbuckle::types::Choice| Choice {
            value: choice.value.clone(),
            title: Some(choice.title.clone()),
        };
        choices.iter().map(choice).collect()
    };
    match schema {
        PrimitiveSchema::String(_) => Kind::Text,
        PrimitiveSchema::Number(_) => Kind::Number,
        PrimitiveSchema::Boolean(_) => Kind::YesOrNo,
        PrimitiveSchema::Select(field) => Kind::One(plain(&field.values)),
        PrimitiveSchema::TitledSelect(field) => Kind::One(titled(&field.one_of)),
        PrimitiveSchema::MultiSelect(field) => Kind::Several(plain(&field.items.values)),
        PrimitiveSchema::TitledMultiSelect(field) => Kind::Several(titled(&field.items.any_of)),
        _ => Kind::Other,
    }
}

fn number(typed: &str) -> Option<Value> {
    serde_json::from_str::<Value>(typed.trim()).ok().filter(Value::is_number)
}

/// By its number in the list, its value or its title.
fn chosen(typed: &str, choices: &[Choice]) -> Result<String, String> {
    let typed = typed.trim();
    let numbered =
        typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    let named = || choices.iter().find(|choice| choice.value == typed);
    let titled = || {
        let is_it = |title: &String| title.to_lowercase() == typed.to_lowercase();
        choices.iter().find(|choice| choice.title.as_ref().is_some_and(is_it))
    };
    let choice = numbered.or_else(named).or_else(titled);
    let most = choices.len();
    choice
        .map(|choice| choice.value.clone())
        .ok_or_else(|| format!("`{typed}` is not in the list: type a number from 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: Value, need: FieldNeed) -> Field {
        Field::new("field", &serde_json::from_value(schema).unwrap(), need)
    }

    fn read(schema: Value, typed: &str) -> Result<Option<Value>, String> {
        let value = field(schema, FieldNeed::Required).read(typed)?;
        Ok(value.map(|value| value.decode().unwrap()))
    }

    #[test]
    fn a_line_becomes_a_value_of_the_fields_kind() {
        let select =
            json!({"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]});
        let several =
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}});
        let table = [
            (json!({"type": "string"}), "42 ", json!("42 ")),
            (json!({"type": "integer"}), " 42", json!(42)),
            (json!({"type": "number"}), "-4.5", json!(-4.5)),
            (json!({"type": "boolean"}), "Y", json!(true)),
            (json!({"type": "boolean"}), "false", json!(false)),
            (select.clone(), "2", json!("b")),
            (select.clone(), "a", json!("a")),
            (select, "second", json!("b")),
            (several.clone(), "3,a", json!(["c", "a"])),
            (several, "", json!([])),
            (json!({"type": "file"}), "x", json!("x")),
        ];
        for (schema, typed, expected) in table {
            assert_eq!(read(schema.clone(), typed), Ok(Some(expected)), "{schema} {typed}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let table = [
            (json!({"type": "string"}), "", "this must be filled in"),
            (json!({"type": "string", "maxLength": 2}), "abc", "longer than the form allows"),
            (json!({"type": "string", "format": "email"}), "ada", "this "),
            (json!({"type": "integer"}), "4.5", "must be a whole number"),
            (json!({"type": "number"}), "four", "must be a number"),
            (json!({"type": "number", "maximum": 3}), "4", "out of the form's range"),
            (json!({"type": "boolean"}), "perhaps", "must be yes or no"),
            (json!({"type": "string", "enum": ["a"]}), "2", "type a number from 1 to 1"),
            (json!({"type": "string", "enum": ["a"]}), "0", "type a number from 1 to 1"),
            (
                json!({"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["a"]}}),
                "",
                "more or fewer",
            ),
        ];
        for (schema, typed, expected) in table {
            let why = read(schema.clone(), typed).unwrap_err();
            assert!(why.contains(expected), "{schema} {typed}: {why}");
        }
    }

    #[test]
    fn an_empty_line_leaves_out_what_is_optional_or_has_a_default() {
        assert_eq!(field(json!({"type": "string"}), FieldNeed::Optional).read("").unwrap(), None);
        assert_eq!(read(json!({"type": "string", "default": "x"}), ""), Ok(None));
    }

    #[test]
    fn a_field_shows_what_it_takes_and_what_it_starts_with() {
        let shown = |schema: Value| {
            let field = field(schema, FieldNeed::Optional);
            format!("{}{}", field.heading(), field.entry())
        };
        let age =
            json!({"type": "integer", "title": "Age", "minimum": 1, "maximum": 120, "default": 7});
        assert_eq!(shown(age), "Age (whole number, 1 to 120, optional)\n[7] > ");
        let color = json!({"type": "string", "default": "#0f0", "oneOf": [
            {"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"},
        ]});
        assert_eq!(
            shown(color),
            "field (one of these, optional)\n  1) Red (#f00)\n  2) Green (#0f0)\n[Green (#0f0)] > "
        );
        let name = json!({"type": "string", "minLength": 2, "description": "A\nB"});
        assert_eq!(shown(name), "field (text, at least 2 characters, optional)\n  A\n  B\n> ");
        let sure = json!({"type": "boolean", "default": true});
        assert_eq!(shown(sure), "field (yes or no, optional)\n[yes] > ");
    }
}
