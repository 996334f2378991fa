//! Turns a flat struct into the fields of a form.

use schemars::{
    JsonSchema,
    generate::{Contract, SchemaSettings},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turnbuckle_types::{
    BooleanSchema, Choice, ElicitSchema, MultiSelect, Named, NumberKind, NumberSchema,
    PrimitiveSchema, SelectItems, SelectSchema, StringSchema, TitledItems, TitledMultiSelect,
    TitledSelect,
};

use crate::server::schema::{ORDER, SchemaError, mark_order, put_in_order};

/// The form that asks for a value of type `T`: a struct whose fields are text, numbers, `bool`, enums
/// without data, and lists of such enums.
///
/// Doc comments are descriptions, and of an enum's variants the titles; `#[schemars(…)]` gives titles,
/// lengths, ranges and formats; an `Option` may be left out; `#[serde(default)]` is what a field starts
/// with. Fields stand in the order of declaration; variants do, if all of them are documented or none
/// is. Anything else has no place in a form, and the error says which field and what to write.
///
/// ```
/// use turnbuckle::elicit::form_of;
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order {
///     /// How many.
///     #[schemars(range(min = 1, max = 9))]
///     count: u8,
///     note: Option<String>,
/// }
/// let form = form_of::<Order>()?;
/// assert_eq!(
///     serde_json::to_value(&form).unwrap(),
///     serde_json::json!({
///         "type": "object",
///         "properties": {
///             "count": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 9},
///             "note": {"type": "string"},
///         },
///         "required": ["count"],
///     })
/// );
/// # Ok::<(), turnbuckle::server::schema::SchemaError>(())
/// ```
pub fn form_of<T: JsonSchema + DeserializeOwned>() -> Result<ElicitSchema, SchemaError> {
    let mut root = inlined::<T>(Contract::Deserialize);
    mark_order(&mut root, &inlined::<T>(Contract::Serialize));
    form(&root).map_err(|why| {
        SchemaError::new(format!("`{}` can't be asked for in a form: {why}", T::schema_name()))
    })
}

fn inlined<T: JsonSchema>(contract: Contract) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.contract = contract;
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

type FieldMembers = Map<String, Value>;

fn form(root: &Value) -> Result<ElicitSchema, String> {
    let no_struct = || "it must be a struct with named fields".to_owned();
    let is_object = root.get("type").is_some_and(|kind| kind == "object");
    let is_union = ["oneOf", "anyOf", "allOf"].iter().any(|keyword| root.get(keyword).is_some());
    if !is_object || is_union {
        return Err(no_struct());
    }
    let is_open = |more: &Value| !matches!(more, Value::Bool(false));
    if root.get("additionalProperties").is_some_and(is_open) {
        return Err("it takes members of any name; name each as a field".to_owned());
    }
    let empty = FieldMembers::new();
    let properties = match root.get("properties") {
        Some(Value::Object(properties)) => properties,
        _ => &empty,
    };
    let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
    put_in_order(&mut names, root.get(ORDER).and_then(Value::as_array));
    let mut fields = Named::new();
    for name in &names {
        let field = field(&properties[*name]).map_err(|why| format!("`{name}` {why}"))?;
        fields.insert(*name, field);
    }
    let mut form = ElicitSchema::new(fields);
    let required = root.get("required").and_then(Value::as_array);
    let required = |name: &&&str| required.is_some_and(|all| all.iter().any(|one| one == **name));
    let required: Vec<_> = names.iter().filter(required).map(|name| (*name).to_owned()).collect();
    form.required = Some(required).filter(|required| !required.is_empty());
    Ok(form)
}

/// One field, or why it has no place in a form.
fn field(schema: &Value) -> Result<PrimitiveSchema, String> {
    let Value::Object(members) = schema else {
        return Err("can be anything; say what it is".to_owned());
    };
    let members = &plain(members.clone());
    if let Some(choices) = choices(members) {
        return Ok(select(members, choices));
    }
    match members.get("type").and_then(Value::as_str) {
        Some("string") => Ok(string(members).into()),
        Some("integer") => Ok(number(members, NumberKind::Integer).into()),
        Some("number") => Ok(number(members, NumberKind::Number).into()),
        Some("boolean") => {
            let mut field = BooleanSchema::new();
            (field.title, field.description) =
                (said(members, "title"), said(members, "description"));
            field.default = members.get("default").and_then(Value::as_bool);
            Ok(field.into())
        }
        Some("array") => several(members),
        Some("object") => {
            Err("is a struct or a map: a form is flat; put the inner fields into the form itself"
                .into())
        }
        Some("null") => Err("holds nothing; leave it out".to_owned()),
        Some(_) | None => Err(odd(members).to_owned()),
    }
}

fn odd(members: &FieldMembers) -> &'static str {
    if members.contains_key("$ref") {
        "contains itself: a form is flat; ask for one level at a time"
    } else if ["oneOf", "anyOf", "allOf"].iter().any(|keyword| members.contains_key(*keyword)) {
        "is one of several kinds: use an enum whose variants hold no data, and ask for the rest \
         with another question"
    } else {
        "can be anything: make it text, a number, a `bool` or an enum without data"
    }
}

/// Takes `null` out, which in a form is a field that is left out, and unwraps what stands alone.
fn plain(mut members: FieldMembers) -> FieldMembers {
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = &kinds[..] {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(branches)) = members.get_mut(keyword) else { continue };
        let is_null = |branch: &Value| branch.get("type").is_some_and(|kind| kind == "null");
        branches.retain(|branch| !is_null(branch));
        if let [Value::Object(only)] = &branches[..] {
            let only = plain(only.clone());
            members.remove(keyword);
            for (keyword, value) in only {
                // What is said at the field weighs more than what is said at its type.
                members.entry(keyword).or_insert(value);
            }
        }
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    members
}

/// A value to choose, and what people call it.
struct ChoiceOption {
    value: String,
    title: Option<String>,
}

/// Returns the values of an enum without data; `None` for anything else. Variants without
/// documentation come first.
fn choices(members: &FieldMembers) -> Option<Vec<ChoiceOption>> {
    let mut choices = Vec::new();
    let union = ["oneOf", "anyOf"].iter().find_map(|keyword| members.get(*keyword)?.as_array());
    match union {
        Some(branches) => {
            for branch in branches {
                let branch = branch.as_object()?;
                let title = said(branch, "title").or_else(|| said(branch, "description"));
                let of_branch = plain_values(branch)?;
                choices.extend(
                    of_branch.into_iter().map(|value| ChoiceOption { value, title: title.clone() }),
                );
            }
        }
        None => {
            let values = plain_values(members)?.into_iter();
            choices.extend(values.map(|value| ChoiceOption { value, title: None }));
        }
    }
    Some(choices).filter(|choices| !choices.is_empty())
}

fn plain_values(members: &FieldMembers) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match (members.get("enum"), members.get("const")) {
        (Some(Value::Array(values)), _) => values.iter().map(text).collect(),
        (None, Some(value)) => text(value).map(|value| vec![value]),
        _ => None,
    }
}

/// The titles where any value has one.
fn titled(choices: &[ChoiceOption]) -> Option<Vec<Choice>> {
    let choice = |choice: &ChoiceOption| {
        Choice::new(choice.value.clone(), choice.title.as_ref().unwrap_or(&choice.value).clone())
    };
    let any = choices.iter().any(|choice| choice.title.is_some());
    any.then(|| choices.iter().map(choice).collect())
}

fn select(members: &FieldMembers, choices: Vec<ChoiceOption>) -> PrimitiveSchema {
    let default = said(members, "default");
    let (title, description) = (said(members, "title"), said(members, "description"));
    match titled(&choices) {
        Some(choices) => {
            let mut field = TitledSelect::new(choices);
            (field.title, field.description, field.default) = (title, description, default);
            field.into()
        }
        None => {
            let values = choices.into_iter().map(|choice| choice.value);
            let mut field = SelectSchema::new(values.collect::<Vec<_>>());
            (field.title, field.description, field.default) = (title, description, default);
            field.into()
        }
    }
}

/// A list, which in a form is some of the values of an enum.
fn several(members: &FieldMembers) -> Result<PrimitiveSchema, String> {
    let items = members.get("items").and_then(Value::as_object);
    let choices = items.and_then(|items| choices(&plain(items.clone())));
    let Some(choices) = choices else {
        return Err(
            "is a list: in a form it can only be a list of an enum whose variants hold no \
                    data; ask for one value, or for text to be split"
                .to_owned(),
        );
    };
    let (title, description) = (said(members, "title"), said(members, "description"));
    let count = |keyword| members.get(keyword).and_then(Value::as_u64);
    let (least, most) = (count("minItems"), count("maxItems"));
    let default = members.get("default").and_then(Value::as_array).map(|values| {
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    });
    Ok(match titled(&choices) {
        Some(choices) => {
            let mut field = TitledMultiSelect::new(TitledItems::new(choices));
            (field.title, field.description, field.default) = (title, description, default);
            (field.min_items, field.max_items) = (least, most);
            field.into()
        }
        None => {
            let values = choices.into_iter().map(|choice| choice.value);
            let mut field = MultiSelect::new(SelectItems::new(values.collect::<Vec<_>>()));
            (field.title, field.description, field.default) = (title, description, default);
            (field.min_items, field.max_items) = (least, most);
            field.into()
        }
    })
}

fn string(members: &FieldMembers) -> StringSchema {
    let length = |keyword| members.get(keyword).and_then(Value::as_u64);
    let mut field = StringSchema::new();
    (field.title, field.description) = (said(members, "title"), said(members, "description"));
    (field.min_length, field.max_length) = (length("minLength"), length("maxLength"));
    // Any other format is left to decoding.
    let format = members.get("format").cloned();
    field.format = format.and_then(|format| serde_json::from_value(format).ok());
    field.default = said(members, "default");
    field
}

fn number(members: &FieldMembers, kind: NumberKind) -> NumberSchema {
    let value = |keyword| members.get(keyword).and_then(Value::as_f64);
    // A form has no open bounds. Those of whole numbers can be said otherwise; the rest is checked
    // when the answer comes.
    let beside = |keyword, step| {
        value(keyword).filter(|_| kind == NumberKind::Integer).map(|bound| bound + step)
    };
    let mut field = NumberSchema::new(kind);
    (field.title, field.description) = (said(members, "title"), said(members, "description"));
    field.minimum = value("minimum").or_else(|| beside("exclusiveMinimum", 1.0));
    field.maximum = value("maximum").or_else(|| beside("exclusiveMaximum", -1.0));
    field.default = value("default");
    field
}

fn said(members: &FieldMembers, keyword: &str) -> Option<String> {
    members.get(keyword).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests;
