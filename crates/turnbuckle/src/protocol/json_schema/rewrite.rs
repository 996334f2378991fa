//! Owns the way through a schema's text, from each schema to those inside it, with everything else
//! and all order left as it is. Does not own what is changed.

use turnbuckle_types::{At, Named, Raw};

use super::keywords::{KeywordValue, holds};

/// What older drafts keep schemas behind, besides the keywords of 2020-12.
const OLDER: &[(&str, KeywordValue)] = &[
    ("additionalItems", KeywordValue::Schema),
    ("definitions", KeywordValue::NamedSchemas),
    ("dependencies", KeywordValue::NamedSchemas),
];

/// What happens to the schemas inside one that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// They are changed too.
    Changes,
    /// They stay as they are.
    Stays,
}

/// Changes a schema and those inside it, outer ones first.
pub(crate) fn rewrite(schema: &Raw, change: &mut dyn FnMut(&mut Named<Raw>) -> Inside) -> Raw {
    let Some(mut members) = members(schema) else { return schema.clone() };
    if change(&mut members) == Inside::Changes {
        members = members
            .into_iter()
            .map(|(keyword, value)| {
                let value = rewrite_behind(&keyword, value, change);
                (keyword, value)
            })
            .collect();
    }
    Raw::at(&members, At::Everything)
}

/// The schema without a keyword, wherever it stands as one.
#[cfg(feature = "server")]
pub(crate) fn without_keyword(schema: &Raw, keyword: &str) -> Raw {
    rewrite(schema, &mut |members| {
        members.remove(keyword);
        Inside::Changes
    })
}

/// What stands behind a keyword, with the schemas in it changed.
fn rewrite_behind(
    keyword: &str,
    value: Raw,
    change: &mut dyn FnMut(&mut Named<Raw>) -> Inside,
) -> Raw {
    let older = || OLDER.iter().find(|(name, _)| *name == keyword).map(|(_, holds)| *holds);
    match holds(keyword).or_else(older) {
        None | Some(KeywordValue::Data) => value,
        // An older `items` may be an array.
        Some(KeywordValue::Schema | KeywordValue::Schemas) => match value.decode::<Vec<Raw>>() {
            Ok(schemas) => {
                let schemas: Vec<Raw> =
                    schemas.iter().map(|schema| rewrite(schema, change)).collect();
                Raw::at(&schemas, At::Everything)
            }
            Err(_) => rewrite(&value, change),
        },
        Some(KeywordValue::NamedSchemas) => match members(&value) {
            Some(named) => {
                let named =
                    named.into_iter().map(|(name, schema)| (name, rewrite(&schema, change)));
                Raw::at(&named.collect::<Named<Raw>>(), At::Everything)
            }
            None => value,
        },
    }
}

fn members(schema: &Raw) -> Option<Named<Raw>> {
    if schema.is_object() { schema.decode().ok() } else { None }
}
