//! Compiles a schema into the nodes of [`Checks`](crate::server::schema::Checks).

use std::{collections::HashMap, sync::Arc};

use super::{
    kinds::Kinds,
    number::{Number, enforced_range},
};
use crate::server::schema::{
    SchemaError,
    checks::{Applies, ArrayRule, Choices, Node, NumberRule, ObjectRule, Property, Size, TextRule},
    inline::{ANNOTATIONS, definition_name},
    portable::DECODED,
    problem::shorten,
};
use regex_lite::Regex;
use serde_json::{Map, Value};

/// How deep a schema may nest, references included, before it counts as endless.
const DEEPEST: usize = 64;

/// What a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Values that are decoded.
    Input,
    /// Values that a type is serialized as: `enum` and `uniqueItems` hold by themselves.
    Output,
}

/// Compiles a schema. The first node is the root.
pub(crate) fn compile(schema: &Value, side: Side) -> Result<Arc<[Node]>, SchemaError> {
    let by_reference = HashMap::from([("#", 0)]);
    let mut compiler = Compiler { root: schema, side, nodes: Vec::new(), by_reference };
    compiler.fresh_node(schema, "", 0)?;
    let mut nodes = compiler.nodes;
    // Marks what leads to a constraint, until there is nothing left to mark.
    loop {
        let leads = |node: &Node| node.leads_to().any(|inner| nodes[inner].constrains);
        let more: Vec<usize> = (0..nodes.len())
            .filter(|number| !nodes[*number].constrains && leads(&nodes[*number]))
            .collect();
        if more.is_empty() {
            break;
        }
        more.into_iter().for_each(|number| nodes[number].constrains = true);
    }
    Ok(nodes.into())
}

struct Compiler<'a> {
    root: &'a Value,
    side: Side,
    nodes: Vec<Node>,
    by_reference: HashMap<&'a str, usize>,
}

impl<'a> Compiler<'a> {
    /// Compiles the schema at `path` (for messages) and returns its number.
    fn node(&mut self, schema: &'a Value, path: &str, depth: usize) -> Result<usize, SchemaError> {
        let says_more = |schema: &Map<String, Value>| {
            schema
                .keys()
                .any(|keyword| keyword != "$ref" && !ANNOTATIONS.contains(&keyword.as_str()))
        };
        match (schema.get("$ref"), schema) {
            (Some(Value::String(reference)), Value::Object(schema)) if !says_more(schema) => {
                self.reference(reference, path, depth)
            }
            _ => self.fresh_node(schema, path, depth),
        }
    }

    fn fresh_node(
        &mut self,
        schema: &'a Value,
        path: &str,
        depth: usize,
    ) -> Result<usize, SchemaError> {
        let number = self.nodes.len();
        self.nodes.push(Node::default());
        if depth > DEEPEST {
            return Err(SchemaError::new(format!(
                "the schema nests more than {DEEPEST} levels deep at `{}`: make it flatter",
                shorten(path)
            )));
        }
        if let Value::Object(schema) = schema {
            let mut node = Node {
                kinds: Kinds::of(schema.get("type")),
                constrains: false,
                number: number_rule(schema),
                text: text_rule(schema, path)?,
                choices: self.choices(schema),
                array: self.array(schema, path, depth)?,
                object: self.object(schema, path, depth)?,
                also: self.also(schema, path, depth)?,
                union: self.union(schema, path, depth),
            };
            node.constrains = node.has_constraints();
            self.nodes[number] = node;
        }
        Ok(number)
    }

    /// Compiles `enum` and `const`. One with an array or object among its choices is left to
    /// decoding.
    fn choices(&self, schema: &Map<String, Value>) -> Option<Box<Choices>> {
        let values = match (schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(choices)), _) => choices.clone(),
            (_, Some(only)) => vec![only.clone()],
            _ => return None,
        };
        if values.iter().any(|choice| choice.is_array() || choice.is_object()) {
            return None;
        }
        let decoded = self.side == Side::Output || schema.contains_key(DECODED);
        Some(Box::new(Choices { values: values.into(), decoded }))
    }

    fn array(
        &mut self,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Option<Box<ArrayRule>>, SchemaError> {
        let mut first = Vec::new();
        if let Some(Value::Array(schemas)) = schema.get("prefixItems") {
            for (index, schema) in schemas.iter().enumerate() {
                first.push(self.node(schema, &format!("{path}[{index}]"), depth + 1)?);
            }
        }
        let rest = match schema.get("items") {
            Some(items) => Some(self.node(items, &format!("{path}[]"), depth + 1)?),
            None => None,
        };
        let size = size(schema, "minItems", "maxItems");
        let length = Some(first.len() as u64);
        let is_tuple = !first.is_empty() && size.least == length && size.most == length;
        let unique = self.side == Side::Input
            && schema.get("uniqueItems").is_some_and(|unique| *unique == true);
        let is_any = size.is_any() && !unique && first.is_empty() && rest.is_none();
        let rule = ArrayRule { size, is_tuple, unique, first, rest };
        Ok((!is_any).then(|| Box::new(rule)))
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Option<Box<ObjectRule>>, SchemaError> {
        let mut rule = ObjectRule {
            size: size(schema, "minProperties", "maxProperties"),
            is_closed: schema.get("additionalProperties") == Some(&Value::Bool(false)),
            ..ObjectRule::default()
        };
        let required =
            schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if let Some(Value::Object(schemas)) = schema.get("properties") {
            for (name, schema) in schemas {
                let node = self.node(schema, &format!("{path}/{name}"), depth + 1)?;
                let takes_null =
                    schema.get("default").is_none() && !required.iter().any(|one| one == name);
                rule.properties.push(Property { name: name.as_str().into(), node, takes_null });
            }
            rule.properties.sort_unstable_by(|one, two| one.name.cmp(&two.name));
        }
        let names = required.iter().filter_map(Value::as_str);
        rule.required = names.filter_map(|name| rule.index_of(name)).collect();
        if let Some(Value::Object(schemas)) = schema.get("patternProperties") {
            for (pattern, schema) in schemas {
                let node = self.node(schema, &format!("{path}/{pattern}"), depth + 1)?;
                rule.patterns.push((compile_pattern(pattern, path)?, node));
            }
        }
        let mut inner = |keyword: &str| match schema.get(keyword) {
            Some(schema) => self.node(schema, &format!("{path}/*"), depth + 1).map(Some),
            None => Ok(None),
        };
        rule.additional = inner("additionalProperties")?;
        rule.names = inner("propertyNames")?;
        let is_any = rule.size.is_any()
            && rule.properties.is_empty()
            && rule.patterns.is_empty()
            && rule.additional.is_none()
            && rule.names.is_none();
        Ok((!is_any).then(|| Box::new(rule)))
    }

    fn also(
        &mut self,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Vec<(usize, Applies)>, SchemaError> {
        let mut also = Vec::new();
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            also.push((self.reference(reference, path, depth)?, Applies::Always));
        }
        if let Some(Value::Array(schemas)) = schema.get("allOf") {
            for schema in schemas {
                also.push((self.node(schema, path, depth + 1)?, Applies::Always));
            }
        }
        if let Some(schema) = nullable(schema) {
            also.push((self.node(schema, path, depth + 1)?, Applies::UnlessNull));
        }
        Ok(also)
    }

    /// Compiles the branches of a union. They only explain failures, so a branch that cannot be
    /// compiled is no reason to refuse the schema.
    fn union(&mut self, schema: &'a Map<String, Value>, path: &str, depth: usize) -> Vec<usize> {
        let branches = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(*keyword));
        let Some(branches) = branches.and_then(Value::as_array) else { return Vec::new() };
        if nullable(schema).is_some() {
            return Vec::new();
        }
        let before = self.nodes.len();
        let compiled: Result<_, SchemaError> =
            branches.iter().map(|branch| self.node(branch, path, depth + 1)).collect();
        compiled.unwrap_or_else(|_| {
            self.nodes.truncate(before);
            self.by_reference.retain(|_, node| *node < before);
            Vec::new()
        })
    }

    fn reference(
        &mut self,
        reference: &'a str,
        path: &str,
        depth: usize,
    ) -> Result<usize, SchemaError> {
        if let Some(known) = self.by_reference.get(reference) {
            return Ok(*known);
        }
        let definitions = self.root.get("$defs");
        let definition = definition_name(reference).and_then(|name| definitions?.get(name));
        let definition = definition.ok_or_else(|| {
            SchemaError::new(format!(
                "the reference `{}` leads nowhere: define it in `$defs` of the same schema",
                shorten(reference)
            ))
        })?;
        // Before its content is compiled, which may refer to it.
        self.by_reference.insert(reference, self.nodes.len());
        self.fresh_node(definition, path, depth + 1)
    }
}

impl Node {
    /// Whether this node itself has a constraint that decoding does not enforce.
    fn has_constraints(&self) -> bool {
        self.number.as_ref().is_some_and(|number| number.constrains())
            || self.text.is_some()
            || self.choices.as_ref().is_some_and(|choices| !choices.decoded)
            || self.object.as_ref().is_some_and(|object| !object.size.is_any())
            || self
                .array
                .as_ref()
                .is_some_and(|array| array.unique || !(array.is_tuple || array.size.is_any()))
    }

    /// The nodes behind this one. The branches of a union do not count: decoding chooses among them.
    fn leads_to(&self) -> impl Iterator<Item = usize> {
        let array = self.array.iter().flat_map(|array| array.first.iter().chain(&array.rest));
        let object = self.object.iter().flat_map(|object| {
            let properties = object.properties.iter().map(|property| &property.node);
            let patterns = object.patterns.iter().map(|(_, node)| node);
            properties.chain(patterns).chain(&object.additional).chain(&object.names)
        });
        array.chain(object).copied().chain(self.also.iter().map(|(node, _)| *node))
    }
}

/// Returns the other branch of an `anyOf` of two, one of which is `null`.
fn nullable(schema: &Map<String, Value>) -> Option<&Value> {
    let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
    match &schema.get("anyOf")?.as_array()?[..] {
        [one, two] if is_null(two) && !is_null(one) => Some(one),
        [one, two] if is_null(one) && !is_null(two) => Some(two),
        _ => None,
    }
}

fn number_rule(schema: &Map<String, Value>) -> Option<Box<NumberRule>> {
    let limit = |keyword: &str| schema.get(keyword).and_then(Number::of);
    let range = schema.get("format").and_then(Value::as_str).and_then(enforced_range);
    let (least, most) =
        range.map(|(least, most)| (Number::Whole(least), Number::Whole(most))).unzip();
    let excluded = schema.get("not").and_then(|not| not.get("enum")?.as_array());
    let rule = NumberRule {
        range,
        excluded: excluded.into_iter().flatten().filter_map(Number::of).collect(),
        minimum: limit("minimum").filter(|minimum| least.is_none_or(|least| *minimum > least)),
        maximum: limit("maximum").filter(|maximum| most.is_none_or(|most| *maximum < most)),
        exclusive_minimum: limit("exclusiveMinimum"),
        exclusive_maximum: limit("exclusiveMaximum"),
        multiple_of: limit("multipleOf").filter(|step| step.as_real() > 0.0),
    };
    let is_any = rule.range.is_none() && rule.excluded.is_empty() && !rule.constrains();
    (!is_any).then(|| Box::new(rule))
}

fn text_rule(
    schema: &Map<String, Value>,
    path: &str,
) -> Result<Option<Box<TextRule>>, SchemaError> {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let pattern = pattern.map(|pattern| compile_pattern(pattern, path)).transpose()?;
    let size = size(schema, "minLength", "maxLength");
    let is_any = size.is_any() && pattern.is_none();
    Ok((!is_any).then(|| Box::new(TextRule { size, pattern })))
}

fn compile_pattern(pattern: &str, path: &str) -> Result<Regex, SchemaError> {
    Regex::new(pattern).map_err(|error| {
        let place = if path.is_empty() { "the arguments".to_owned() } else { format!("`{path}`") };
        SchemaError::new(format!(
            "the pattern `{pattern}` of {place} cannot be checked ({error}): \
             write it without look-around, back-references and `\\p`, or check it in the handler"
        ))
    })
}

fn size(schema: &Map<String, Value>, least: &str, most: &str) -> Size {
    let limit = |keyword: &str| schema.get(keyword).and_then(whole);
    Size { least: limit(least).filter(|least| *least > 0), most: limit(most) }
}

/// Reads a size, which JSON Schema lets be written as `3.0` too.
fn whole(value: &Value) -> Option<u64> {
    let real = || value.as_f64().filter(|real| *real >= 0.0 && real.fract() == 0.0);
    value.as_u64().or_else(|| real().map(|real| real as u64))
}
