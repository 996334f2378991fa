//! The rules of a schema, compiled into nodes that [`walk`](crate::server::schema::checks::walk) runs over the text of a value.

pub(crate) mod compile;
pub(crate) mod kinds;
pub(crate) mod number;
pub(crate) mod union;
pub(crate) mod walk;

use std::{fmt, sync::Arc};

use super::{
    SchemaError,
    keywords::each_inner,
    problem::{ArgumentError, Problem},
    texts,
};
use crate::{
    protocol::{json_schema::problem::unfit_output, place::check_unique_members},
    server::{
        schema::checks::{
            compile::{Side, compile},
            kinds::Kinds,
            number::Number,
            walk::Scope,
        },
        uri::TextValue,
    },
};
use regex_lite::Regex;
use serde_json::Value;
use turnbuckle_types::CallToolResult;

/// The rules of a tool's arguments: the constraints that decoding does not enforce, and the shape
/// that explains why arguments cannot be decoded.
///
/// [`run`](Checks::run) checks ranges and multiples of numbers, lengths and patterns of strings
/// (`pattern` may match anywhere, as JSON Schema defines it), `enum`, sizes of arrays and objects and
/// `uniqueItems`, at any depth. Decoding enforces types, `required`, `additionalProperties: false`,
/// and everything in `oneOf`, `anyOf`, `not` or `if`. The `enum` of a Rust enum is enforced by
/// decoding as well.
///
/// ```
/// use turnbuckle::server::schema::Checks;
///
/// let schema = serde_json::json!({"properties": {"count": {"type": "integer", "minimum": 1}}});
/// let checks = Checks::compile(&schema)?;
/// assert!(checks.run(r#"{"count": 1}"#).is_ok());
/// let error = checks.run(r#"{"count": 0}"#).unwrap_err();
/// assert_eq!(error.to_string(), "`count` must be at least 1, is 0");
/// # Ok::<(), turnbuckle::server::schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Checks {
    /// Invariant: the first node is the root; every number of a node is an index into this list.
    nodes: Arc<[Node]>,
    /// Set by [`Checks::without_constraints`].
    only_explains: bool,
    /// Whether some value has members that the schema does not name: decoding may keep the last of two.
    has_free_members: bool,
    /// Set where arguments arrive as texts: a program that has only tools does not link it.
    on_texts: Option<OnTexts>,
}

type OnTexts = fn(&Checks, &[(String, TextValue)]) -> Result<(), ArgumentError>;

impl Checks {
    /// Compiles the rules of a schema.
    ///
    /// A `format` that names an integer type, such as `uint8`, states that decoding enforces the range
    /// of that type.
    pub fn compile(schema: &Value) -> Result<Checks, SchemaError> {
        Checks::compile_for(schema, Side::Input)
    }

    pub(super) fn compile_for(schema: &Value, side: Side) -> Result<Checks, SchemaError> {
        let nodes = compile(schema, side)?;
        let has_free_members = has_free_members(schema);
        Ok(Checks { nodes, only_explains: false, has_free_members, on_texts: None })
    }

    /// Returns `true` if decoding enforces every rule of the schema.
    pub fn is_empty(&self) -> bool {
        self.only_explains || !self.nodes.first().is_some_and(|root| root.constrains)
    }

    /// Checks the constraints of arguments, given as the text of one JSON value. Reports a few
    /// violations at most. Where the schema accepts members that it does not name, an object that has
    /// two members of one name is a violation, too.
    pub fn run(&self, arguments: &str) -> Result<(), ArgumentError> {
        if self.has_free_members {
            check_unique_members(arguments)
                .map_err(|message| ArgumentError::one(Problem::new("", message)))?;
        }
        let problems = self.problems(arguments);
        if problems.is_empty() { Ok(()) } else { Err(ArgumentError { problems }) }
    }

    /// Returns the violated constraints in the text of one JSON value: a few at most.
    pub(crate) fn problems(&self, text: &str) -> Vec<Problem> {
        if self.is_empty() {
            return Vec::new();
        }
        walk::walk(&self.nodes, text, Scope::Constraints)
    }

    /// Returns every rule that a text violates, those that decoding enforces included.
    #[cold]
    pub(super) fn explain(&self, text: &str) -> Vec<Problem> {
        walk::walk(&self.nodes, text, Scope::Everything)
    }

    /// Returns the rules without constraints: they explain why arguments cannot be decoded.
    pub(crate) fn without_constraints(&self) -> Checks {
        Checks { only_explains: true, ..self.clone() }
    }

    /// Returns the rules for arguments that arrive as texts.
    pub(crate) fn of_texts(self) -> Checks {
        let run = |checks: &Checks, values: &[(String, TextValue)]| {
            checks.run(&texts::as_json(&checks.nodes, values).to_string())
        };
        Checks { on_texts: Some(run), ..self }
    }

    /// Checks the constraints of texts that arrived by name and have been decoded.
    pub(crate) fn run_on_texts(&self, values: &[(String, TextValue)]) -> Result<(), ArgumentError> {
        self.on_texts.filter(|_| !self.is_empty()).map_or(Ok(()), |run| run(self, values))
    }
}

/// Whether a schema accepts values with members that it does not name.
fn has_free_members(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return *schema == Value::Bool(true) };
    const SAY_WHICH: [&str; 7] = ["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"];
    let is_free = |keyword| schema.get(keyword).is_some_and(|rule| *rule != Value::Bool(false));
    let is_any = !SAY_WHICH.iter().any(|keyword| schema.contains_key(*keyword));
    let is_any_object =
        Kinds::of(schema.get("type")).has(Kinds::OBJECT) && !schema.contains_key("properties");
    let mut found = is_any
        || is_any_object
        || is_free("additionalProperties")
        || is_free("patternProperties")
        || is_free("unevaluatedProperties");
    each_inner(schema, |inner| found = found || has_free_members(inner));
    found
}

/// Whether a result keeps the constraints that its type does not guarantee. A result that is an error
/// has none.
pub(crate) fn kept(checks: &Checks, result: &CallToolResult) -> Result<(), String> {
    match &result.structured_content {
        Some(content) if result.is_error != Some(true) => {
            unfit_output(&checks.problems(content.as_str())).map_or(Ok(()), Err)
        }
        _ => Ok(()),
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").field("places", &self.nodes.len()).finish()
    }
}

/// The rules for one place in a value.
#[derive(Default)]
pub(super) struct Node {
    pub(super) kinds: Kinds,
    /// Whether this node, or one that it leads to, has a constraint that decoding does not enforce.
    pub(super) constrains: bool,
    pub(super) number: Option<Box<NumberRule>>,
    pub(super) text: Option<Box<TextRule>>,
    pub(super) choices: Option<Box<Choices>>,
    pub(super) array: Option<Box<ArrayRule>>,
    pub(super) object: Option<Box<ObjectRule>>,
    /// Other nodes that apply to the same value.
    pub(super) also: Vec<(usize, Applies)>,
    /// The branches of `oneOf` or `anyOf`, one of which has to fit. Enforced by decoding.
    pub(super) union: Vec<usize>,
}

/// When another node applies to the same value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Applies {
    Always,
    UnlessNull,
}

/// `enum` and `const`.
pub(super) struct Choices {
    /// Scalars only.
    pub(super) values: Box<[Value]>,
    /// Whether decoding enforces them.
    pub(super) decoded: bool,
}

#[derive(Default)]
pub(super) struct NumberRule {
    /// The range of the integer type, which decoding enforces.
    pub(super) range: Option<(i128, i128)>,
    /// The values of `not: {enum: …}`, which decoding enforces.
    pub(super) excluded: Vec<Number>,
    /// The limits that are tighter than the range.
    pub(super) minimum: Option<Number>,
    pub(super) exclusive_minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) exclusive_maximum: Option<Number>,
    pub(super) multiple_of: Option<Number>,
}

#[derive(Default)]
pub(super) struct TextRule {
    pub(super) size: Size,
    pub(super) pattern: Option<Regex>,
}

#[derive(Default)]
pub(super) struct ArrayRule {
    pub(super) size: Size,
    /// Whether decoding enforces the size, as for a tuple.
    pub(super) is_tuple: bool,
    pub(super) unique: bool,
    pub(super) first: Vec<usize>,
    pub(super) rest: Option<usize>,
}

#[derive(Default)]
pub(super) struct ObjectRule {
    pub(super) size: Size,
    /// Invariant: sorted by name.
    pub(super) properties: Vec<Property>,
    /// The indices of required properties, in the order of the schema. Enforced by decoding.
    pub(super) required: Vec<usize>,
    pub(super) patterns: Vec<(Regex, usize)>,
    pub(super) additional: Option<usize>,
    /// Whether other members than the properties and patterns are refused. Enforced by decoding.
    pub(super) is_closed: bool,
    pub(super) names: Option<usize>,
}

pub(super) struct Property {
    pub(super) name: Box<str>,
    pub(super) node: usize,
    /// Whether decoding takes `null` for a property that is left out: it does unless the property is
    /// required or has a default.
    pub(super) takes_null: bool,
}

impl NumberRule {
    pub(super) fn constrains(&self) -> bool {
        let NumberRule { minimum, exclusive_minimum, maximum, exclusive_maximum, .. } = self;
        let limits = [minimum, exclusive_minimum, maximum, exclusive_maximum, &self.multiple_of];
        limits.iter().any(|limit| limit.is_some())
    }
}

impl ArrayRule {
    /// Returns the node of the item at this index.
    pub(super) fn node_of(&self, index: usize) -> Option<usize> {
        self.first.get(index).copied().or(self.rest)
    }
}

impl ObjectRule {
    pub(super) fn index_of(&self, name: &str) -> Option<usize> {
        self.properties.binary_search_by(|property| (*property.name).cmp(name)).ok()
    }

    pub(super) fn property(&self, name: &str) -> Option<&Property> {
        self.index_of(name).map(|index| &self.properties[index])
    }

    /// Returns the nodes that apply to the member of this name.
    pub(super) fn nodes_of(&self, name: &str) -> Vec<usize> {
        let matching = self.patterns.iter().filter(|(pattern, _)| pattern.is_match(name));
        let property = self.property(name).map(|property| property.node);
        let mut nodes: Vec<_> = matching.map(|(_, node)| *node).chain(property).collect();
        if nodes.is_empty() {
            nodes.extend(self.additional);
        }
        nodes
    }
}

/// The fewest and the most characters, items or members.
#[derive(Default, Clone, Copy)]
pub(super) struct Size {
    pub(super) least: Option<u64>,
    pub(super) most: Option<u64>,
}

impl Size {
    pub(super) fn is_any(self) -> bool {
        self.least.is_none() && self.most.is_none()
    }
}
