//! Owns the portable shape: what is changed in schemars' output so that every client takes it.
//! Does not own which definitions are inlined, nor the order and text of the result.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::SchemaError;
use super::inline;
use super::keywords::{self, each_inner_mut};
use super::shape::Shape;

/// Whose view of a type a schema is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// What may be sent to be decoded.
    Input,
    /// What serialising gives.
    Output,
}

/// The schema of arguments. Numeric `format`s are still in it: they say what decoding enforces.
pub(super) fn input_tree<T: JsonSchema>(shape: &Shape) -> Result<Value, SchemaError> {
    let mut tree = tree_of::<T>(Side::Input, shape);
    require_object(&mut tree, &T::schema_name())?;
    Ok(tree)
}

/// The schema of a result; its root says `object` whenever every value is one.
pub(super) fn output_tree<T: JsonSchema>() -> Value {
    let mut tree = tree_of::<T>(Side::Output, &Shape::default());
    let union = ["oneOf", "anyOf"].into_iter().find_map(|keyword| tree.get(keyword)?.as_array());
    let is_object = |branch: &Value| branch.get("type").is_some_and(|kind| kind == "object");
    if union.is_some_and(|branches| branches.iter().all(is_object)) {
        tree["type"] = "object".into();
    }
    tree
}

fn tree_of<T: JsonSchema>(side: Side, shape: &Shape) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let settings = match side {
        Side::Input => settings.for_deserialize(),
        Side::Output => settings.for_serialize(),
    };
    let mut root = settings.into_generator().into_root_schema_for::<T>().to_value();
    // schemars titles the root after the type unless it has a title of its own.
    if let Value::Object(members) = &mut root
        && members.get("title").is_some_and(|title| *title == *T::schema_name())
    {
        members.remove("title");
    }
    tidy(&mut root, side, shape);
    inline::inline(root)
}

/// Refuses what cannot be a tool's arguments, and makes the root say `object`.
fn require_object(root: &mut Value, name: &str) -> Result<(), SchemaError> {
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
        Some("object") => Ok(()),
        None | Some("string") if union || members.contains_key("enum") => {
            Err(refuse(name, "is an enum", "put it in a field of a struct and take that struct"))
        }
        None => {
            members.insert("type".to_owned(), "object".into());
            Ok(())
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
fn tidy(schema: &mut Value, side: Side, shape: &Shape) {
    if let Value::Bool(accepts) = schema {
        *schema = if *accepts { json!({}) } else { json!({"not": {}}) };
    }
    let Value::Object(members) = schema else {
        return;
    };
    members.retain(|keyword, _| keywords::holds(keyword).is_some());
    drop_open_boundaries(members);
    each_inner_mut(members, |inner| {
        if *inner != Value::Bool(false) {
            tidy(inner, side, shape);
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
    order_choices(members, shape);
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

/// schemars puts documented variants last; the decoder knows the order of declaration.
fn order_choices(members: &mut Map<String, Value>, shape: &Shape) {
    let Some(Value::Array(choices)) = members.get_mut("enum") else {
        return;
    };
    if choices.len() < 2 || !choices.iter().all(Value::is_string) {
        return;
    }
    if let Some(variants) = shape.variants_with(choices.iter().filter_map(Value::as_str)) {
        let mut known = Vec::with_capacity(choices.len());
        for variant in variants {
            while let Some(at) = choices.iter().position(|choice| choice == variant) {
                known.push(choices.remove(at));
            }
        }
        // What is left, if anything, stays where it is.
        choices.append(&mut known);
    }
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
