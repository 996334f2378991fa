//! Owns the constraints of a schema that decoding into the type does not enforce, compiled once.
//! Does not own running them over arguments, nor validation by a whole schema.

use std::collections::HashMap;
use std::fmt;

use regex_lite::Regex;
use serde_json::{Map, Value};

use super::SchemaError;
use super::inline::{ANNOTATIONS, definition_name};
use super::number::{Number, enforced_range};
use super::problem::{ArgumentError, Problem, shorten};
use super::shape::Shape;
use super::{texts, walk};
use crate::server::uri::TextValue;

/// How deep a schema may nest, references included, before it is taken for one that never ends.
const DEEPEST: usize = 64;

/// Constraints of a tool's arguments beside what decoding enforces.
///
/// Checked are ranges and multiples of numbers, lengths and patterns of strings (`pattern` may match
/// anywhere, as JSON Schema has it), `enum`, sizes of arrays and objects and `uniqueItems`, at any
/// depth. Left to decoding are types, `required`, `additionalProperties: false`, and all that stands
/// in `oneOf`, `anyOf`, `not` or `if`: which branch of a union applies is serde's decision.
///
/// ```
/// use turnbuckle::schema::Checks;
///
/// let schema = serde_json::json!({"properties": {"count": {"type": "integer", "minimum": 1}}});
/// let checks = Checks::compile(&schema)?.expect("there is something to check");
/// assert!(checks.run(r#"{"count": 1}"#).is_ok());
/// let error = checks.run(r#"{"count": 0}"#).unwrap_err();
/// assert_eq!(error.to_string(), "`count` must be at least 1, is 0");
/// # Ok::<(), turnbuckle::schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Checks {
    /// Invariant: the first node is the root; every number of a node is a place in this list.
    nodes: std::sync::Arc<[Node]>,
    /// Set where arguments come as texts: a program with tools alone does not link it.
    on_texts: Option<OnTexts>,
}

type OnTexts = fn(&Checks, &[(String, TextValue)]) -> Result<(), ArgumentError>;

impl Checks {
    /// Compiles what must be checked in arguments of this schema; `None` when there is nothing.
    ///
    /// A `format` that names an integer type, such as `uint8`, says that decoding enforces the range
    /// of that type.
    pub fn compile(schema: &Value) -> Result<Option<Checks>, SchemaError> {
        Checks::compile_beside(schema, &Shape::default())
    }

    /// As [`Checks::compile`], leaving out the `enum`s that the decoder knows as its own variants.
    /// They are told by their names: a string limited to some of them by hand is left out as well.
    pub(super) fn compile_beside(
        schema: &Value,
        decoder: &Shape,
    ) -> Result<Option<Checks>, SchemaError> {
        Checks::compile_for(schema, Beside::Decoding(decoder))
    }

    /// As [`Checks::compile`], for what a type is serialised as: its variants are its own, and its
    /// sets have nothing twice.
    pub(super) fn compile_output(schema: &Value) -> Result<Option<Checks>, SchemaError> {
        Checks::compile_for(schema, Beside::Serialising)
    }

    fn compile_for(schema: &Value, beside: Beside<'_>) -> Result<Option<Checks>, SchemaError> {
        let mut compiler =
            Compiler { root: schema, beside, nodes: Vec::new(), by_reference: HashMap::new() };
        compiler.by_reference.insert("#", 0);
        compiler.fresh_node(schema, "", 0)?;
        Ok(compiler.finish())
    }

    /// What is wrong with the text of one JSON value: a few violations at most.
    pub(crate) fn problems(&self, text: &str) -> Vec<Problem> {
        walk::walk(&self.nodes, text)
    }

    /// Checks arguments, given as the text of one JSON value. Reports a few violations at most.
    pub fn run(&self, arguments: &str) -> Result<(), ArgumentError> {
        let problems = self.problems(arguments);
        if problems.is_empty() { Ok(()) } else { Err(ArgumentError { problems }) }
    }

    /// The same, for arguments that come as texts.
    pub(crate) fn of_texts(self) -> Checks {
        let run = |checks: &Checks, values: &[(String, TextValue)]| {
            checks.run(&texts::as_json(&checks.nodes, values).to_string())
        };
        Checks { on_texts: Some(run), ..self }
    }

    /// As [`Checks::run`], for texts that came by name and have been decoded.
    pub(crate) fn run_on_texts(&self, values: &[(String, TextValue)]) -> Result<(), ArgumentError> {
        self.on_texts.map_or(Ok(()), |run| run(self, values))
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").field("places", &self.nodes.len()).finish()
    }
}

/// What is checked at one place of the arguments.
#[derive(Default)]
pub(super) struct Node {
    pub(super) number: NumberCheck,
    pub(super) text: TextCheck,
    /// The scalars of `enum`, or nothing.
    pub(super) choices: Option<Box<[Value]>>,
    pub(super) array: ArrayCheck,
    pub(super) object: ObjectCheck,
    /// Other nodes that check the same value.
    pub(super) also: Vec<(usize, Applies)>,
}

/// When another node checks the same value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Applies {
    Always,
    UnlessNull,
}

#[derive(Default)]
pub(super) struct NumberCheck {
    pub(super) minimum: Option<Number>,
    pub(super) exclusive_minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) exclusive_maximum: Option<Number>,
    pub(super) multiple_of: Option<Number>,
}

#[derive(Default)]
pub(super) struct TextCheck {
    pub(super) size: Size,
    pub(super) pattern: Option<Regex>,
}

#[derive(Default)]
pub(super) struct ArrayCheck {
    pub(super) size: Size,
    pub(super) unique: bool,
    pub(super) first: Vec<Option<usize>>,
    pub(super) rest: Option<usize>,
}

#[derive(Default)]
pub(super) struct ObjectCheck {
    pub(super) size: Size,
    /// Invariant: sorted by name. A property without checks is here too, as `None`, so that the
    /// checks of additional properties leave it alone.
    pub(super) properties: Vec<(Box<str>, Option<usize>)>,
    pub(super) patterns: Vec<(Regex, Option<usize>)>,
    pub(super) additional: Option<usize>,
    pub(super) names: Option<usize>,
}

impl NumberCheck {
    pub(super) fn is_checked(&self) -> bool {
        let NumberCheck { minimum, exclusive_minimum, maximum, exclusive_maximum, multiple_of } =
            self;
        let limits = [minimum, exclusive_minimum, maximum, exclusive_maximum, multiple_of];
        limits.iter().any(|limit| limit.is_some())
    }
}

impl ArrayCheck {
    pub(super) fn is_checked(&self) -> bool {
        !self.size.is_any() || self.unique || !self.first.is_empty() || self.rest.is_some()
    }

    /// What checks the item at this place.
    pub(super) fn node_of(&self, place: usize) -> Option<usize> {
        self.first.get(place).copied().unwrap_or(self.rest)
    }
}

impl ObjectCheck {
    /// What checks the property of this name, if there is such a property.
    pub(super) fn by_name(&self, name: &str) -> Option<Option<usize>> {
        let known = self.properties.binary_search_by(|(known, _)| (**known).cmp(name));
        known.ok().map(|index| self.properties[index].1)
    }

    /// What checks the member of this name.
    pub(super) fn nodes_of(&self, name: &str) -> Vec<usize> {
        let matching = self.patterns.iter().filter(|(pattern, _)| pattern.is_match(name));
        let matching = matching.map(|(_, node)| *node);
        let mut nodes: Vec<_> = matching.chain(self.by_name(name)).collect();
        if nodes.is_empty() {
            nodes.push(self.additional);
        }
        nodes.into_iter().flatten().collect()
    }
}

/// The fewest and the most characters, items or members.
#[derive(Default, Clone, Copy)]
pub(super) struct Size {
    pub(super) least: Option<u64>,
    pub(super) most: Option<u64>,
}

impl Size {
    fn of(schema: &Map<String, Value>, least: &str, most: &str) -> Size {
        let limit = |keyword: &str| schema.get(keyword).and_then(whole);
        Size { least: limit(least).filter(|least| *least > 0), most: limit(most) }
    }

    pub(super) fn is_any(self) -> bool {
        self.least.is_none() && self.most.is_none()
    }
}

/// What holds by itself, so that it needs no check.
enum Beside<'a> {
    /// What decoding into a type of this shape enforces.
    Decoding(&'a Shape),
    /// What a value of a type is whenever it is serialised.
    Serialising,
}

struct Compiler<'a> {
    root: &'a Value,
    beside: Beside<'a>,
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
            self.nodes[number] = self.compile(schema, path, depth)?;
        }
        Ok(number)
    }

    fn compile(
        &mut self,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Node, SchemaError> {
        Ok(Node {
            number: self.number(schema),
            text: TextCheck {
                size: Size::of(schema, "minLength", "maxLength"),
                pattern: match schema.get("pattern").and_then(Value::as_str) {
                    Some(pattern) => Some(compile_pattern(pattern, path)?),
                    None => None,
                },
            },
            choices: self.choices(schema),
            array: self.array(schema, path, depth)?,
            object: self.object(schema, path, depth)?,
            also: self.also(schema, path, depth)?,
        })
    }

    fn number(&self, schema: &Map<String, Value>) -> NumberCheck {
        let limit = |keyword: &str| schema.get(keyword).and_then(Number::of);
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let (least, most) = enforced_range(format);
        NumberCheck {
            minimum: limit("minimum").filter(|minimum| least.is_none_or(|least| *minimum > least)),
            maximum: limit("maximum").filter(|maximum| most.is_none_or(|most| *maximum < most)),
            exclusive_minimum: limit("exclusiveMinimum"),
            exclusive_maximum: limit("exclusiveMaximum"),
            multiple_of: limit("multipleOf").filter(|step| step.as_real() > 0.0),
        }
    }

    /// The choices of an `enum` that must be checked. One with an array or object among its choices
    /// is left to decoding.
    fn choices(&self, schema: &Map<String, Value>) -> Option<Box<[Value]>> {
        let Beside::Decoding(decoder) = &self.beside else { return None };
        let choices = match (schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(choices)), _) => choices.clone(),
            (_, Some(only)) => vec![only.clone()],
            _ => return None,
        };
        if choices.iter().any(|choice| choice.is_array() || choice.is_object()) {
            return None;
        }
        let names: Option<Vec<&str>> = choices.iter().map(Value::as_str).collect();
        let is_decoded = names.is_some_and(|names| {
            !names.is_empty() && decoder.variants_with(names.iter().copied()).is_some()
        });
        (!is_decoded).then(|| choices.into())
    }

    fn array(
        &mut self,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<ArrayCheck, SchemaError> {
        let mut first = Vec::new();
        if let Some(Value::Array(schemas)) = schema.get("prefixItems") {
            for (index, schema) in schemas.iter().enumerate() {
                first.push(Some(self.node(schema, &format!("{path}[{index}]"), depth + 1)?));
            }
        }
        let rest = match schema.get("items") {
            Some(items) => Some(self.node(items, &format!("{path}[]"), depth + 1)?),
            None => None,
        };
        let mut size = Size::of(schema, "minItems", "maxItems");
        let length = Some(first.len() as u64);
        if !first.is_empty() && size.least == length && size.most == length {
            // A tuple: decoding counts its items.
            size = Size::default();
        }
        let unique = matches!(self.beside, Beside::Decoding(_))
            && schema.get("uniqueItems").is_some_and(|unique| *unique == true);
        Ok(ArrayCheck { size, unique, first, rest })
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<ObjectCheck, SchemaError> {
        let mut properties: Vec<(Box<str>, _)> = Vec::new();
        if let Some(Value::Object(schemas)) = schema.get("properties") {
            let mut names: Vec<&str> = schemas.keys().map(String::as_str).collect();
            names.sort_unstable();
            for name in names {
                let node = self.node(&schemas[name], &format!("{path}/{name}"), depth + 1)?;
                properties.push((Box::from(name), Some(node)));
            }
        }
        let mut patterns = Vec::new();
        if let Some(Value::Object(schemas)) = schema.get("patternProperties") {
            for (pattern, schema) in schemas {
                let node = self.node(schema, &format!("{path}/{pattern}"), depth + 1)?;
                patterns.push((compile_pattern(pattern, path)?, Some(node)));
            }
        }
        let mut inner = |keyword: &str| match schema.get(keyword) {
            Some(schema) => self.node(schema, &format!("{path}/*"), depth + 1).map(Some),
            None => Ok(None),
        };
        let additional = inner("additionalProperties")?;
        let names = inner("propertyNames")?;
        let size = Size::of(schema, "minProperties", "maxProperties");
        Ok(ObjectCheck { size, properties, patterns, additional, names })
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
        if let Some(Value::Array(schemas)) = schema.get("anyOf")
            && let [one, two] = &schemas[..]
        {
            let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
            if let Some(schema) = match (is_null(one), is_null(two)) {
                (false, true) => Some(one),
                (true, false) => Some(two),
                _ => None,
            } {
                also.push((self.node(schema, path, depth + 1)?, Applies::UnlessNull));
            }
        }
        Ok(also)
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
        // Before its content is looked at, which may refer to it.
        self.by_reference.insert(reference, self.nodes.len());
        self.fresh_node(definition, path, depth + 1)
    }

    /// Drops every way that leads to no check; `None` when that is all of them.
    fn finish(mut self) -> Option<Checks> {
        let mut matters: Vec<bool> = self.nodes.iter().map(Node::checks_something).collect();
        loop {
            let more: Vec<usize> = (0..self.nodes.len())
                .filter(|number| !matters[*number])
                .filter(|number| self.nodes[*number].leads_to().any(|inner| matters[inner]))
                .collect();
            if more.is_empty() {
                break;
            }
            more.into_iter().for_each(|number| matters[number] = true);
        }
        if !matters.first().is_some_and(|root| *root) {
            return None;
        }
        self.nodes.iter_mut().for_each(|node| node.keep_ways(&matters));
        Some(Checks { nodes: self.nodes.into(), on_texts: None })
    }
}

impl Node {
    fn checks_something(&self) -> bool {
        let sizes = [self.text.size, self.array.size, self.object.size];
        self.number.is_checked()
            || sizes.iter().any(|size| !size.is_any())
            || self.text.pattern.is_some()
            || self.choices.is_some()
            || self.array.unique
    }

    fn leads_to(&self) -> impl Iterator<Item = usize> {
        let array = self.array.first.iter().chain([&self.array.rest]);
        let object = self.object.properties.iter().map(|(_, node)| node);
        let patterns = self.object.patterns.iter().map(|(_, node)| node);
        let others = [&self.object.additional, &self.object.names];
        let nodes = array.chain(object).chain(patterns).chain(others);
        nodes.filter_map(|node| *node).chain(self.also.iter().map(|(node, _)| *node))
    }

    fn keep_ways(&mut self, matters: &[bool]) {
        let keep = |node: &mut Option<usize>| *node = node.filter(|node| matters[*node]);
        self.array.first.iter_mut().for_each(keep);
        keep(&mut self.array.rest);
        keep(&mut self.object.additional);
        keep(&mut self.object.names);
        self.object.properties.iter_mut().for_each(|(_, node)| keep(node));
        self.object.patterns.iter_mut().for_each(|(_, node)| keep(node));
        self.also.retain(|(node, _)| matters[*node]);
    }
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

/// A size, which JSON Schema lets be written as `3.0` too.
fn whole(value: &Value) -> Option<u64> {
    let real = || value.as_f64().filter(|real| *real >= 0.0 && real.fract() == 0.0);
    value.as_u64().or_else(|| real().map(|real| real as u64))
}
