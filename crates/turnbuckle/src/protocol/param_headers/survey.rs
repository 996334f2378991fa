//! Owns finding the annotations of a schema and what makes one invalid: where it stands, what it
//! says, and on what. Does not own what is done with the valid ones.

use serde_json::{Map, Value};

use super::{Annotation, KEYWORD};
use crate::protocol::headers;

/// What the value of a keyword holds.
#[derive(Clone, Copy)]
enum AnnotationKeyword {
    /// A schema, or a list of them.
    Schemas,
    /// Schemas by name.
    Named,
}

/// The keywords, other than `properties`, below which there are schemas. All else is data:
/// `enum`, `const`, `default`, `examples`, and keywords that nobody defined.
const ELSEWHERE: &[(&str, AnnotationKeyword)] = &[
    ("items", AnnotationKeyword::Schemas),
    ("prefixItems", AnnotationKeyword::Schemas),
    ("additionalItems", AnnotationKeyword::Schemas),
    ("unevaluatedItems", AnnotationKeyword::Schemas),
    ("contains", AnnotationKeyword::Schemas),
    ("additionalProperties", AnnotationKeyword::Schemas),
    ("unevaluatedProperties", AnnotationKeyword::Schemas),
    ("propertyNames", AnnotationKeyword::Schemas),
    ("patternProperties", AnnotationKeyword::Named),
    ("dependentSchemas", AnnotationKeyword::Named),
    ("dependencies", AnnotationKeyword::Named),
    ("oneOf", AnnotationKeyword::Schemas),
    ("anyOf", AnnotationKeyword::Schemas),
    ("allOf", AnnotationKeyword::Schemas),
    ("not", AnnotationKeyword::Schemas),
    ("if", AnnotationKeyword::Schemas),
    ("then", AnnotationKeyword::Schemas),
    ("else", AnnotationKeyword::Schemas),
    ("contentSchema", AnnotationKeyword::Schemas),
    ("$defs", AnnotationKeyword::Named),
    ("definitions", AnnotationKeyword::Named),
];

const TYPES: [&str; 3] = ["string", "integer", "boolean"];

/// The annotations of a schema, or one reason why they are invalid. How deep it goes is bounded
/// by what serde_json reads.
pub(super) fn survey(schema: &str) -> Result<Vec<Annotation>, String> {
    let schema: Value =
        serde_json::from_str(schema).map_err(|error| format!("it can't be read: {error}"))?;
    let mut survey = Survey { path: Vec::new(), found: Vec::new() };
    survey.visit(&schema, SchemaPath::Properties)?;
    Ok(survey.found)
}

/// How a schema was reached from the root.
#[derive(Clone, Copy)]
enum SchemaPath {
    Properties,
    /// Through this keyword, which leads to no single argument.
    Through(&'static str),
}

struct Survey<'s> {
    /// The names of the properties on the way.
    path: Vec<&'s str>,
    found: Vec<Annotation>,
}

impl<'s> Survey<'s> {
    fn visit(&mut self, schema: &'s Value, way: SchemaPath) -> Result<(), String> {
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        if let Some(name) = keywords.get(KEYWORD) {
            let annotation = self.judge(name, keywords, way)?;
            self.found.push(annotation);
        }
        if let Some(Value::Object(properties)) = keywords.get("properties") {
            for (name, property) in properties {
                self.path.push(name);
                self.visit(property, way)?;
                self.path.pop();
            }
        }
        for (keyword, holds) in ELSEWHERE {
            let Some(value) = keywords.get(*keyword) else {
                continue;
            };
            let way = SchemaPath::Through(keyword);
            match (holds, value) {
                (AnnotationKeyword::Named, Value::Object(named)) => {
                    named.values().try_for_each(|schema| self.visit(schema, way))?;
                }
                (AnnotationKeyword::Schemas, Value::Array(list)) => {
                    list.iter().try_for_each(|schema| self.visit(schema, way))?;
                }
                (AnnotationKeyword::Schemas, schema) => self.visit(schema, way)?,
                (AnnotationKeyword::Named, _) => {}
            }
        }
        Ok(())
    }

    fn judge(
        &self,
        name: &Value,
        keywords: &Map<String, Value>,
        way: SchemaPath,
    ) -> Result<Annotation, String> {
        let place = self.place();
        if let SchemaPath::Through(keyword) = way {
            return Err(format!(
                "`{KEYWORD}` at {place} is below `{keyword}`; only what `properties` alone leads \
                 to can be a header"
            ));
        }
        if self.path.is_empty() {
            return Err(format!("`{KEYWORD}` is on the whole schema, not on a property"));
        }
        let Value::String(name) = name else {
            return Err(format!("`{KEYWORD}` of {place} is not a string"));
        };
        if name.is_empty() {
            return Err(format!("`{KEYWORD}` of {place} is empty"));
        }
        if !name.bytes().all(is_token_byte) {
            return Err(format!(
                "`{KEYWORD}` of {place} is {name:?}, which can't be part of a header's name"
            ));
        }
        match keywords.get("type") {
            Some(Value::String(kind)) if TYPES.contains(&kind.as_str()) => {}
            Some(kind) => {
                return Err(format!(
                    "`{KEYWORD}` is on {place}, whose type is {kind}; only a string, an integer \
                     or a boolean can be a header"
                ));
            }
            None => return Err(format!("`{KEYWORD}` is on {place}, which has no type")),
        }
        let header = format!("{}{}", headers::PARAM, name.to_ascii_lowercase());
        if let Some(other) = self.found.iter().find(|other| other.header == header) {
            return Err(format!(
                "`{KEYWORD}` of {place} is {name:?}, as is that of `{}`; case does not count",
                other.path.join(".")
            ));
        }
        let path = self.path.iter().map(|&key| key.to_owned()).collect();
        Ok(Annotation { path, header })
    }

    fn place(&self) -> String {
        match self.path.as_slice() {
            [] => "the root".to_owned(),
            path => format!("`{}`", path.join(".")),
        }
    }
}

/// `tchar` of RFC 9110 §5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
