//! Owns what a form makes of an answer: its defaults, and whether the values fit its fields.
//! Does not own the question, nor who answers it.
//!
//! Both sides use it: a client before it sends, a server before it believes.

mod format;

#[cfg(feature = "server")]
pub(crate) use format::is_uri;

use serde_json::Value;
use turnbuckle_types::{
    At, Choice, ElicitSchema, Named, NumberKind, NumberSchema, PrimitiveSchema, Raw, StringSchema,
};
#[cfg(feature = "client")]
use turnbuckle_types::{ElicitAction, ElicitResult, RpcError};

/// What is said of an answer that does not fit its form, before why.
#[cfg(feature = "client")]
const UNFIT: &str = "the answer does not fit the form: ";

/// Why an answer does not fit its form, if that is what the error says. Layers that stand around
/// questions know no other error, so that it can be told by its words only.
#[cfg(feature = "client")]
pub(crate) fn unfit(error: &RpcError) -> Option<&str> {
    error.message.strip_prefix(UNFIT)
}

/// The answer as it is sent: a form's with its defaults and only if it fits, any other without
/// values. `form` is `None` for a page to visit.
#[cfg(feature = "client")]
pub(crate) fn completed(
    form: Option<&ElicitSchema>,
    mut answer: ElicitResult,
) -> Result<ElicitResult, RpcError> {
    let given = answer.content.take();
    if let (ElicitAction::Accept, Some(form)) = (answer.action, form) {
        let content = sendable(form, given.unwrap_or_else(Raw::empty_object));
        let content = content.map_err(|why| RpcError::internal(format!("{UNFIT}{why}")))?;
        answer.content = Some(content);
    }
    Ok(answer)
}

/// The values of a form that came back, with its defaults. A member that the form has no field for
/// is left out: 2026-07-28 basic/patterns/mrtr §Error Handling, what is not needed is ignored.
#[cfg(feature = "server")]
pub(crate) fn received(form: &ElicitSchema, given: Raw) -> Result<Raw, String> {
    let given = listed(form, given);
    let values = members(&given)?;
    let fields = form.properties.iter();
    // What has all fields in their order, and nothing else, is good as it came.
    if values.iter().map(|(name, _)| name).eq(fields.clone().map(|(name, _)| name)) {
        for ((name, field), (_, value)) in fields.zip(values.iter()) {
            check(name, field, value)?;
        }
        return Ok(given);
    }
    filled(form, values).map(|(content, _)| Raw::at(&content, At::Everything))
}

/// 2025-06-18 knows no choice of several, so that its clients were shown a choice of one: their one
/// value is a list of it.
#[cfg(feature = "server")]
fn listed(form: &ElicitSchema, given: Raw) -> Raw {
    let is_list = |field: Option<&PrimitiveSchema>| {
        use PrimitiveSchema::{MultiSelect, TitledMultiSelect};
        matches!(field, Some(MultiSelect(_) | TitledMultiSelect(_)))
    };
    if !form.properties.iter().any(|(_, field)| is_list(Some(field))) {
        return given;
    }
    let is_one = |name: &str, value: &Raw| {
        value.as_str().starts_with('"') && is_list(form.properties.value(name))
    };
    match given.decode::<Named<Raw>>() {
        Ok(values) if values.iter().any(|(name, value)| is_one(name, value)) => {
            let value = |(name, value): (String, Raw)| {
                let one = is_one(&name, &value);
                (name, if one { Raw::at(&vec![value], At::Everything) } else { value })
            };
            let values: Named<Raw> = values.into_iter().map(value).collect();
            Raw::at(&values, At::Everything)
        }
        _ => given,
    }
}

/// The values of a form that is sent, all of which must be the form's.
#[cfg(feature = "client")]
fn sendable(form: &ElicitSchema, given: Raw) -> Result<Raw, String> {
    let (content, rest) = filled(form, members(&given)?)?;
    match rest.iter().next() {
        Some((name, _)) => Err(format!("the form has no field `{name}`")),
        None => Ok(Raw::at(&content, At::Everything)),
    }
}

/// The values of all fields that have one, in the order of the form, and what was given beside them.
fn filled(form: &ElicitSchema, mut given: Named<Raw>) -> Result<(Named<Raw>, Named<Raw>), String> {
    let mut content = Named::new();
    for (name, field) in form.properties.iter() {
        let value = match given.remove(name) {
            Some(value) => {
                check(name, field, &value)?;
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
    Ok((content, given))
}

fn check(name: &str, field: &PrimitiveSchema, value: &Raw) -> Result<(), String> {
    // The text is valid JSON already.
    let read = value.decode().unwrap_or(Value::Null);
    fits(field, &read).map_err(|why| format!("`{name}` {why}"))
}

fn members(given: &Raw) -> Result<Named<Raw>, String> {
    given.members().map_err(|_| "it must be an object that has no member twice".to_owned())
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

/// Whether a value is one that a field of a form can have; if not, what is wrong with it, as the end
/// of a sentence that begins with the field.
///
/// For whoever asks a user: a client checks whole answers itself before it sends them.
///
/// ```
/// use serde_json::json;
/// use turnbuckle::{
///     elicit::field_fits,
///     types::{PrimitiveSchema, StringSchema},
/// };
/// let mut name = StringSchema::new();
/// name.min_length = Some(2);
/// let name = PrimitiveSchema::from(name);
/// assert_eq!(field_fits(&name, &json!("Ada")), Ok(()));
/// assert_eq!(field_fits(&name, &json!("A")).unwrap_err(), "is shorter than the form allows");
/// ```
pub fn fits(field: &PrimitiveSchema, value: &Value) -> Result<(), String> {
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
    expect(short_enough, "is longer than the form allows")?;
    field.format.map_or(Ok(()), |format| format::fits(format, text))
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

#[cfg(all(test, feature = "client"))]
mod tests;
