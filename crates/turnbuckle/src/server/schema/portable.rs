//! Brings the schemas of schemars into a shape that every client takes.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    SchemaError, inline,
    keywords::{self, KeywordValue, each_inner_mut},
};
use crate::server::schema::checks::compile::Side;

/// A mark on an object: the names of its properties in the order of declaration. Never written.
pub(crate) const ORDER: &str = "turnbuckle:order";
/// A mark on an `enum`: the type that it belongs to enforces it when it decodes. Never written.
pub(super) const DECODED: &str = "turnbuckle:decoded";

/// Returns the schema of arguments. It still has numeric `format`s, which say what decoding
/// enforces.
pub(super) fn input_tree<T: JsonSchema>() -> Result<Value, SchemaError> {
    let mut tree = root_schema::<T>(Side::Input);
    mark_order(&mut tree, &root_schema::<T>(Side::Output));
    let any_member = accepts_any_member(&tree);
    let mut tree = portable(tree, Side::Input, &T::schema_name());
    let root = require_object(&mut tree, &T::schema_name())?;
    // Many clients read `properties` of every tool.
    if !root.contains_key("properties") {
        root.insert("properties".to_owned(), json!({}));
        if any_member {
            root.insert("additionalProperties".to_owned(), true.into());
        }
    }
    Ok(tree)
}

/// Whether the type is `Value` or a map to it: without a note, `properties` that are empty would read
/// as "takes no arguments".
fn accepts_any_member(root: &Value) -> bool {
    root.get("type").is_none()
        || root.get("additionalProperties").is_some_and(|accepted| *accepted == true)
}

/// Returns the schema of a result; its root says `object` whenever every value is one.
pub(super) fn output_tree<T: JsonSchema>() -> Value {
    let mut tree = portable(root_schema::<T>(Side::Output), Side::Output, &T::schema_name());
    let union = ["oneOf", "anyOf"].into_iter().find_map(|keyword| tree.get(keyword)?.as_array());
    let is_object = |branch: &Value| branch.get("type").is_some_and(|kind| kind == "object");
    if union.is_some_and(|branches| branches.iter().all(is_object)) {
        tree["type"] = "object".into();
    }
    tree
}

/// Returns the schema as schemars makes it.
#[inline(never)]
fn root_schema<T: JsonSchema>(side: Side) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let settings = match side {
        Side::Input => settings.for_deserialize(),
        Side::Output => settings.for_serialize(),
    };
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn portable(mut root: Value, side: Side, name: &str) -> Value {
    // schemars titles the root after the type unless it has a title of its own.
    if let Value::Object(members) = &mut root
        && members.get("title").is_some_and(|title| *title == *name)
    {
        members.remove("title");
    }
    tidy(&mut root, side);
    let definitions = root.get_mut("$defs").and_then(Value::as_object_mut);
    for definition in definitions.into_iter().flat_map(Map::values_mut) {
        // An `enum` that is a type of its own, other than one that limits a field.
        if let Value::Object(members) = definition
            && members.contains_key("enum")
        {
            members.insert(DECODED.to_owned(), true.into());
        }
    }
    inline::inline(root)
}

/// Marks objects with the order of their fields. A map of properties has no order, but a list of
/// required ones has, and every field that is always serialized is required in the schema of the
/// serialized type.
pub(crate) fn mark_order(schema: &mut Value, serialized: &Value) {
    let (Value::Object(members), Value::Object(serialized)) = (schema, serialized) else {
        return;
    };
    for (keyword, inner) in members.iter_mut() {
        match (keywords::holds(keyword), inner, serialized.get(keyword)) {
            (Some(KeywordValue::Schema), inner, Some(other)) => mark_order(inner, other),
            (Some(KeywordValue::Schemas), Value::Array(inner), Some(Value::Array(other))) => {
                inner.iter_mut().zip(other).for_each(|(inner, other)| mark_order(inner, other));
            }
            (
                Some(KeywordValue::NamedSchemas),
                Value::Object(inner),
                Some(Value::Object(other)),
            ) => {
                for (name, inner) in inner {
                    other.get(name).into_iter().for_each(|other| mark_order(inner, other));
                }
            }
            _ => {}
        }
    }
    if let Some(order) = serialized.get("required") {
        members.insert(ORDER.to_owned(), order.clone());
    }
}

/// Refuses what cannot be a tool's arguments, and makes the root say `object`.
fn require_object<'a>(
    root: &'a mut Value,
    name: &str,
) -> Result<&'a mut Map<String, Value>, SchemaError> {
    let nothing = || refuse(name, "accepts nothing", "take a struct");
    let members = root.as_object_mut().ok_or_else(nothing)?;
    if members.contains_key("not") {
        return Err(nothing());
    }
    let kind = members.get("type");
    let union = ["oneOf", "anyOf", "allOf"].iter().any(|keyword| members.contains_key(*keyword));
    let nullable =
        kind.and_then(Value::as_array).is_some_and(|kinds| kinds.contains(&"null".into()))
            || ["oneOf", "anyOf"].iter().any(|keyword| has_null_branch(members, keyword));
    match kind.and_then(Value::as_str) {
        _ if nullable => Err(refuse(
            name,
            "is optional as a whole",
            "take the type itself and make its fields optional",
        )),
        Some("object") if union => Err(refuse(
            name,
            "flattens an enum, which makes it a union",
            "make the enum an ordinary field, without `flatten`",
        )),
        Some("object") => Ok(members),
        None | Some("string") if union || members.contains_key("enum") => {
            Err(refuse(name, "is an enum", "put it in a field of a struct and take that struct"))
        }
        None => {
            members.insert("type".to_owned(), "object".into());
            Ok(members)
        }
        Some("null") => {
            Err(refuse(name, "holds nothing", "write it with braces, as in `struct Nothing {}`"))
        }
        Some(kind) => {
            let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
            let is = format!("is {article} {kind}");
            Err(refuse(name, &is, "put it in a field of a struct and take that struct"))
        }
    }
}

fn refuse(name: &str, is: &str, instead: &str) -> SchemaError {
    SchemaError::new(format!(
        "the arguments of a tool must be an object, but `{name}` {is}: {instead}"
    ))
}

/// Brings one schema, and first all that it contains, into shape.
fn tidy(schema: &mut Value, side: Side) {
    if let Value::Bool(accepts) = schema {
        *schema = if *accepts { json!({}) } else { json!({"not": {}}) };
    }
    let Value::Object(members) = schema else {
        return;
    };
    members.retain(|keyword, _| keyword == ORDER || keywords::holds(keyword).is_some());
    drop_open_boundaries(members);
    each_inner_mut(members, |inner| {
        if *inner != Value::Bool(false) {
            tidy(inner, side);
        }
    });
    if let Some(value) = members.remove("const") {
        members.insert("enum".to_owned(), json!([value]));
    }
    bound_by_format(members);
    collapse_named_choices(members);
    for keyword in ["allOf", "anyOf", "oneOf"] {
        merge_only_branch(members, keyword);
    }
    if side == Side::Input {
        forbid_null_in_optional(members);
    }
    if members.get("required").is_some_and(|required| *required == json!([])) {
        members.remove("required");
    }
}

/// `true` says nothing here that leaving it out does not say.
fn drop_open_boundaries(members: &mut Map<String, Value>) {
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        let accepts_all = |value: &Value| *value == Value::Bool(true) || *value == json!({});
        if members.get(keyword).is_some_and(accepts_all) {
            members.remove(keyword);
        }
    }
}

/// The range of an integer type that schemars names only in `format`. 64 bits and more are left
/// open: such bounds are not exact in the doubles that most clients have.
fn bound_by_format(members: &mut Map<String, Value>) {
    let (minimum, maximum) = match members.get("format").and_then(Value::as_str) {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Some("uint32") => (0, i64::from(u32::MAX)),
        _ => return,
    };
    if !members.contains_key("exclusiveMinimum") {
        members.entry("minimum").or_insert(minimum.into());
    }
    if !members.contains_key("exclusiveMaximum") {
        members.entry("maximum").or_insert(maximum.into());
    }
}

/// Turns a union of documented names into one `enum`, and their documentation into a list.
fn collapse_named_choices(members: &mut Map<String, Value>) {
    const ANNOTATIONS: [&str; 5] = ["type", "enum", "title", "description", "deprecated"];
    let is_names = |branch: &Value| {
        branch.get("type").is_some_and(|kind| kind == "string")
            && branch.get("enum").is_some_and(Value::is_array)
            && branch.as_object().is_some_and(|branch| {
                branch.keys().all(|keyword| ANNOTATIONS.contains(&keyword.as_str()))
            })
    };
    let clashes = members.contains_key("enum") || members.contains_key("type");
    let Some(Value::Array(branches)) = members.get("oneOf") else {
        return;
    };
    if clashes || branches.is_empty() || !branches.iter().all(is_names) {
        return;
    }
    let Some(Value::Array(branches)) = members.remove("oneOf") else {
        return;
    };
    let mut names = Vec::new();
    let mut notes = Vec::new();
    for branch in &branches {
        let choices = branch.get("enum").and_then(Value::as_array);
        for choice in choices.into_iter().flatten() {
            notes.extend(note_on(choice, branch));
            names.push(choice.clone());
        }
    }
    if !notes.is_empty() {
        let list = notes.join("\n");
        let description = match members.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description}\n\n{list}"),
            None => list,
        };
        members.insert("description".to_owned(), description.into());
    }
    members.insert("type".to_owned(), "string".into());
    members.insert("enum".to_owned(), names.into());
}

fn note_on(choice: &Value, branch: &Value) -> Option<String> {
    let said = |keyword: &str| branch.get(keyword).and_then(Value::as_str);
    let deprecated = branch.get("deprecated").is_some_and(|deprecated| *deprecated == true);
    let note = match (said("description").or(said("title")), deprecated) {
        (Some(note), false) => note.to_owned(),
        (Some(note), true) => format!("{note} (deprecated)"),
        (None, true) => "deprecated".to_owned(),
        (None, false) => return None,
    };
    Some(format!("- `{}`: {note}", choice.as_str()?))
}

/// A union or intersection of one schema is that schema.
fn merge_only_branch(members: &mut Map<String, Value>, keyword: &str) {
    let Some(Value::Array(branches)) = members.get_mut(keyword) else {
        return;
    };
    if branches.len() != 1 {
        return;
    }
    let Some(only) = branches.pop() else {
        return;
    };
    members.remove(keyword);
    inline::merge(members, only);
}

/// A field that may be left out is left out; it is not `null`. (The decoder forgives a `null`.)
fn forbid_null_in_optional(members: &mut Map<String, Value>) {
    let required = members.get("required").cloned().unwrap_or_default();
    let is_required = |name: &String| {
        required.as_array().is_some_and(|required| required.iter().any(|field| field == name))
    };
    let Some(Value::Object(properties)) = members.get_mut("properties") else {
        return;
    };
    for (name, property) in properties.iter_mut() {
        if let Value::Object(property) = property
            && !is_required(name)
        {
            forbid_null(property);
        }
    }
}

fn forbid_null(members: &mut Map<String, Value>) {
    let mut had_null = false;
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        let before = kinds.len();
        kinds.retain(|kind| kind != "null");
        had_null |= kinds.len() < before;
        if let [only] = &kinds[..] {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("enum")
        && choices.len() > 1
    {
        choices.retain(|choice| !choice.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        if has_null_branch(members, keyword)
            && let Some(Value::Array(branches)) = members.get_mut(keyword)
            && branches.len() > 1
        {
            branches.retain(|branch| !is_null(branch));
            had_null = true;
            merge_only_branch(members, keyword);
        }
    }
    if had_null && members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
}

fn has_null_branch(members: &Map<String, Value>, keyword: &str) -> bool {
    members
        .get(keyword)
        .and_then(Value::as_array)
        .is_some_and(|branches| branches.iter().any(is_null))
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}
