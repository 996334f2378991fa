//! The sentences about arguments that a tool or a prompt does not have: most servers pass over them
//! in silence.

use turnbuckle::types::{Named, Raw};

use crate::{exit::Failure, schema::Schema};

/// How many names of a tool's arguments are worth reading.
const NAMED: usize = 30;
/// Names that are longer than this are not compared: it would take long.
const LONGEST: usize = 100;

/// A sentence for each argument that the schema does not have.
pub(crate) fn warnings(tool: &str, schema: &Schema, given: &Named<Raw>) -> Vec<String> {
    if !schema.names_all() {
        return Vec::new();
    }
    let known: Vec<&str> = schema.arguments().iter().map(|argument| argument.name).collect();
    let unknown = given.iter().map(|(name, _)| name).filter(|name| !known.contains(name));
    unknown.map(|name| format!("warning: {}", sentence(tool, name, &known))).collect()
}

/// Fails if one of the names is not known, with those that are.
pub(crate) fn refuse<'a>(
    what: &str,
    known: &[&str],
    given: impl IntoIterator<Item = &'a str>,
) -> Result<(), Failure> {
    match given.into_iter().find(|name| !known.contains(name)) {
        Some(name) => Err(Failure::usage(sentence(what, name, known))),
        None => Ok(()),
    }
}

fn sentence(what: &str, name: &str, known: &[&str]) -> String {
    let lacks = format!("`{what}` has no argument `{name}`");
    let meant =
        near(name, known).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    match known {
        [] => format!("{lacks}; it has none"),
        [_] if !meant.is_empty() => format!("{lacks}; {}", meant.trim_end()),
        _ => {
            let more = if known.len() > NAMED { " and more" } else { "" };
            let shown = &known[..known.len().min(NAMED)];
            format!("{lacks}; {meant}it has `{}`{more}", shown.join("`, `"))
        }
    }
}

/// The name that may be meant.
fn near<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // `deliveryDate` and `delivery_date` are the same to people.
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(name);
    let far = 1 + wanted.chars().count() / 4;
    let known = known.iter().filter(|known| known.len().max(name.len()) <= LONGEST);
    let distances = known.map(|known| (strsim::osa_distance(&wanted, &plain(known)), *known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    // Of a name of one or two letters nothing would be left.
    (distance <= far && distance < wanted.chars().count().min(nearest.chars().count()))
        .then_some(nearest)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(schema: Value, given: &[&str]) -> Vec<String> {
        let given = given.iter().map(|name| (*name, Raw::from(json!(1)))).collect();
        warnings("order", &Schema::new(&schema.into()), &given)
    }

    fn order() -> Value {
        json!({"properties": {"name": {}, "size": {}}})
    }

    #[test]
    fn what_the_tool_does_not_have_is_told_with_what_it_has() {
        assert_eq!(said(order(), &["size", "name"]), [""; 0]);
        assert_eq!(
            said(order(), &["size", "nme", "colour"]),
            [
                "warning: `order` has no argument `nme`; did you mean `name`? it has `name`, `size`",
                "warning: `order` has no argument `colour`; it has `name`, `size`",
            ]
        );
        let one = json!({"properties": {"name": {}}});
        assert_eq!(
            said(one.clone(), &["nmae"]),
            ["warning: `order` has no argument `nmae`; did you mean `name`?"]
        );
        assert_eq!(said(one, &["x"]), ["warning: `order` has no argument `x`; it has `name`"]);
        assert_eq!(
            said(json!({"properties": {}}), &["x"]),
            ["warning: `order` has no argument `x`; it has none"]
        );
    }

    #[test]
    fn a_name_that_is_not_known_is_refused() {
        let refused =
            |given: &[&str]| refuse("review", &["language", "code"], given.iter().copied());
        refused(&["code", "language"]).unwrap();
        assert_eq!(
            refused(&["code", "langage"]).unwrap_err().sentence(),
            "`review` has no argument `langage`; did you mean `language`? it has `language`, `code`"
        );
    }

    #[test]
    fn where_other_names_may_be_meant_nothing_is_said() {
        let with = |keyword: &str, value: Value| {
            let mut schema = order();
            schema[keyword] = value;
            said(schema, &["nme"])
        };
        for (keyword, value) in [
            ("additionalProperties", json!(true)),
            ("additionalProperties", json!({})),
            ("unevaluatedProperties", json!({"type": "string"})),
            ("patternProperties", json!({"^n": {}})),
            ("if", json!({})),
            ("dependentSchemas", json!({})),
            ("allOf", json!([{"$ref": "https://example.com/elsewhere"}])),
            ("anyOf", json!([{"properties": {"nme": {}}}])),
            ("oneOf", json!([{"additionalProperties": true}])),
        ] {
            assert_eq!(with(keyword, value.clone()), [""; 0], "{keyword}: {value}");
        }
        assert_eq!(said(json!({"type": "object"}), &["nme"]), [""; 0]);
        for (keyword, value) in
            [("additionalProperties", json!(false)), ("anyOf", json!([{"required": ["name"]}]))]
        {
            assert_eq!(with(keyword, value.clone()).len(), 1, "{keyword}: {value}");
        }
    }

    #[test]
    fn a_name_is_near_if_few_letters_differ() {
        let known = ["delay_ms", "from", "a"];
        for (name, meant) in [
            ("delayMs", Some("delay_ms")),
            ("dely_ms", Some("delay_ms")),
            ("form", Some("from")),
            ("FROM", Some("from")),
            ("b", None),
            ("until", None),
        ] {
            assert_eq!(near(name, &known), meant, "{name}");
        }
    }
}
