//! Owns what a form makes of an answer: its defaults, and whether the values fit its fields.
//! Does not own the question, nor who answers it.

use serde_json::Value;
use turnbuckle_types::{
    At, Choice, ElicitAction, ElicitResult, ElicitSchema, Named, NumberKind, NumberSchema,
    PrimitiveSchema, Raw, RpcError, StringSchema,
};

/// The answer as it is sent: a form's with its defaults and only if it fits, any other without
/// values. `form` is `None` for a page to visit.
pub(super) fn completed(
    form: Option<&ElicitSchema>,
    mut answer: ElicitResult,
) -> Result<ElicitResult, RpcError> {
    let given = answer.content.take();
    if let (ElicitAction::Accept, Some(form)) = (answer.action, form) {
        let content = filled(form, given.unwrap_or_else(Raw::empty_object));
        let content = content.map_err(|why| {
            RpcError::internal(format!("the answer to the form can't be sent: {why}"))
        })?;
        answer.content = Some(Raw::at(&content, At::Everything));
    }
    Ok(answer)
}

/// The values of all fields that have one, in the order of the form.
fn filled(form: &ElicitSchema, given: Raw) -> Result<Named<Raw>, String> {
    let mut given: Named<Raw> =
        given.decode().map_err(|_| "it must be an object that has no member twice".to_owned())?;
    let mut content = Named::new();
    for (name, field) in form.properties.iter() {
        let value = match given.remove(name) {
            Some(value) => {
                // The text is valid JSON already.
                let read = value.decode().unwrap_or(Value::Null);
                fits(field, &read).map_err(|why| format!("`{name}` {why}"))?;
                value
            }
            None => match default_of(field) {
                Some(default) => default,
                None if is_required(form, name) => return Err(format!("`{name}` is missing")),
                None => continue,
            },
        };
        content.insert(name, value);
    }
    match given.iter().next() {
        Some((name, _)) => Err(format!("the form has no field `{name}`")),
        None => Ok(content),
    }
}

fn is_required(form: &ElicitSchema, name: &str) -> bool {
    form.required.iter().flatten().any(|required| required == name)
}

/// What the field starts with.
fn default_of(field: &PrimitiveSchema) -> Option<Raw> {
    fn raw<T: turnbuckle_types::Encode>(value: &Option<T>) -> Option<Raw> {
        value.as_ref().map(|value| Raw::at(value, At::Everything))
    }
    match field {
        PrimitiveSchema::String(field) => raw(&field.default),
        PrimitiveSchema::Number(field) => raw(&field.default),
        PrimitiveSchema::Boolean(field) => raw(&field.default),
        PrimitiveSchema::Select(field) => raw(&field.default),
        PrimitiveSchema::TitledSelect(field) => raw(&field.default),
        PrimitiveSchema::MultiSelect(field) => raw(&field.default),
        PrimitiveSchema::TitledMultiSelect(field) => raw(&field.default),
        PrimitiveSchema::Other(field) => field.decode::<Named<Raw>>().ok()?.remove("default"),
        _ => None,
    }
}

/// Whether a value is one that the field can have.
fn fits(field: &PrimitiveSchema, value: &Value) -> Result<(), String> {
    match field {
        PrimitiveSchema::String(field) => text_fits(field, value),
        PrimitiveSchema::Number(field) => number_fits(field, value),
        PrimitiveSchema::Boolean(_) => expect(value.is_boolean(), "must be true or false"),
        PrimitiveSchema::Select(field) => one_of(value, &field.values),
        PrimitiveSchema::TitledSelect(field) => one_of(value, &values(&field.one_of)),
        PrimitiveSchema::MultiSelect(field) => {
            some_of(value, &field.items.values, field.min_items, field.max_items)
        }
        PrimitiveSchema::TitledMultiSelect(field) => {
            some_of(value, &values(&field.items.any_of), field.min_items, field.max_items)
        }
        // Of a field whose kind is not known, only that forms are flat.
        _ => expect(is_flat(value), "must be text, a number, true or false, or a list of text"),
    }
}

fn expect(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

fn text_fits(field: &StringSchema, value: &Value) -> Result<(), String> {
    let Some(text) = value.as_str() else { return Err("must be text".to_owned()) };
    let length = text.chars().count() as u64;
    let long_enough = field.min_length.is_none_or(|least| length >= least);
    expect(long_enough, "is shorter than the form allows")?;
    let short_enough = field.max_length.is_none_or(|most| length <= most);
    expect(short_enough, "is longer than the form allows")
}

fn number_fits(field: &NumberSchema, value: &Value) -> Result<(), String> {
    let Some(number) = value.as_f64() else { return Err("must be a number".to_owned()) };
    let is_whole = field.kind != NumberKind::Integer || number.fract() == 0.0;
    expect(is_whole, "must be a whole number")?;
    let in_range = field.minimum.is_none_or(|least| number >= least)
        && field.maximum.is_none_or(|most| number <= most);
    expect(in_range, "is out of the form's range")
}

fn values(choices: &[Choice]) -> Vec<String> {
    choices.iter().map(|choice| choice.value.clone()).collect()
}

fn one_of(value: &Value, choices: &[String]) -> Result<(), String> {
    let known = value.as_str().is_some_and(|text| choices.iter().any(|choice| choice == text));
    expect(known, "is not one of the form's choices")
}

fn some_of(
    value: &Value,
    choices: &[String],
    least: Option<u64>,
    most: Option<u64>,
) -> Result<(), String> {
    let Some(list) = value.as_array() else { return Err("must be a list".to_owned()) };
    list.iter().try_for_each(|value| one_of(value, choices))?;
    let count = list.len() as u64;
    let in_range =
        least.is_none_or(|least| count >= least) && most.is_none_or(|most| count <= most);
    expect(in_range, "has more or fewer values than the form allows")
}

fn is_flat(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(list) => list.iter().all(Value::is_string),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> ElicitSchema {
        serde_json::from_value(json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "John Doe", "maxLength": 10},
                "age": {"type": "integer", "default": 30, "minimum": 18},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
                "color": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]},
                "verified": {"type": "boolean", "default": true},
                "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu"]},
                    "maxItems": 1, "default": ["mo"]},
                "months": {"type": "array",
                    "items": {"anyOf": [{"const": "1", "title": "January"}]}},
                "new": {"type": "duration"},
                "must": {"type": "string"},
            },
            "required": ["name", "must"],
        }))
        .unwrap()
    }

    fn sent(content: Value) -> Result<Value, String> {
        let mut answer = ElicitResult::new(ElicitAction::Accept);
        answer.content = Some(content.into());
        let sent = completed(Some(&form()), answer).map_err(|error| error.message.into_owned())?;
        Ok(sent.content.unwrap().decode().unwrap())
    }

    #[test]
    fn fields_that_are_left_out_get_their_defaults_exactly() {
        assert_eq!(
            sent(json!({"must": "x"})).unwrap(),
            json!({"name": "John Doe", "age": 30, "score": 95.5, "status": "active",
                "verified": true, "days": ["mo"], "must": "x"})
        );
        let mut answer = ElicitResult::new(ElicitAction::Accept);
        answer.content = Some(json!({"must": "x"}).into());
        let text = completed(Some(&form()), answer).unwrap().content.unwrap();
        // As text: a whole number has no fraction.
        assert!(text.as_str().contains(r#""age":30,"#), "{text}");
    }

    #[test]
    fn what_is_given_goes_before_what_the_form_starts_with() {
        let given = json!({"must": "x", "name": "Ada", "age": 36, "score": 1, "status": "inactive",
            "color": "#f00", "verified": false, "days": [], "months": ["1"], "new": "P1D"});
        assert_eq!(sent(given.clone()).unwrap(), given);
    }

    #[test]
    fn what_does_not_fit_is_not_sent_and_the_sentence_names_the_field() {
        for (content, field) in [
            (json!({}), "must"),
            (json!({"must": null}), "must"),
            (json!({"must": {"deep": 1}}), "must"),
            (json!({"must": "x", "name": "a name of many letters"}), "name"),
            (json!({"must": "x", "age": 36.5}), "age"),
            (json!({"must": "x", "age": 17}), "age"),
            (json!({"must": "x", "score": "high"}), "score"),
            (json!({"must": "x", "status": "gone"}), "status"),
            (json!({"must": "x", "color": "Red"}), "color"),
            (json!({"must": "x", "verified": "yes"}), "verified"),
            (json!({"must": "x", "days": ["su"]}), "days"),
            (json!({"must": "x", "days": ["mo", "tu"]}), "days"),
            (json!({"must": "x", "months": "1"}), "months"),
            (json!({"must": "x", "new": {"deep": 1}}), "new"),
            (json!({"must": "x", "other": 1}), "other"),
        ] {
            let why = sent(content.clone()).unwrap_err();
            assert!(why.contains(&format!("`{field}`")), "{content}: {why}");
        }
        assert!(sent(json!([1])).unwrap_err().contains("an object"));
    }

    #[test]
    fn only_an_accepted_form_has_values() {
        let with = |action| {
            let mut answer = ElicitResult::new(action);
            answer.content = Some(json!({"must": "x"}).into());
            answer
        };
        for action in [ElicitAction::Decline, ElicitAction::Cancel] {
            assert_eq!(completed(Some(&form()), with(action)).unwrap().content, None);
        }
        assert_eq!(completed(None, with(ElicitAction::Accept)).unwrap().content, None);
    }
}
