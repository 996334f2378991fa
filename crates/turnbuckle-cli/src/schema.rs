//! The reading of a tool's input schema: its arguments, and which types each takes.

use serde::Deserialize;
use serde_json::{Map, Value};
use turnbuckle::types::{Named, Raw, Tool};

use crate::limits::limits;

/// How many references are followed before a schema counts as saying nothing.
const DEPTH: usize = 16;

/// How many values to choose from are shown; where there are more, their type says enough.
const CHOICES: usize = 8;

/// What a tool takes.
#[derive(Debug)]
pub(crate) struct Schema {
    root: Value,
    /// The names of the arguments, as the server wrote them.
    order: Vec<String>,
}

/// One argument of a tool.
#[derive(Debug)]
pub(crate) struct Argument<'a> {
    pub(crate) name: &'a str,
    pub(crate) need: Need,
    pub(crate) type_name: String,
    /// What its values keep to, in a few words each.
    pub(crate) limits: Vec<String>,
    pub(crate) description: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
}

/// A type of JSON, as schemas tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    Null,
}

/// Which values an argument takes, as far as their type goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    Anything,
    /// Any of these. Invariant: not empty, none twice.
    Kinds(Vec<Kind>),
}

/// What the schema says of arguments that it does not name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unnamed {
    Refused,
    Accepted(Accepts),
}

impl Schema {
    pub(crate) fn of(tool: &Tool) -> Schema {
        Schema::new(&tool.input_schema)
    }

    pub(crate) fn new(raw: &Raw) -> Schema {
        #[derive(Deserialize)]
        struct Ordered {
            properties: Named<Raw>,
        }
        let order = raw.decode::<Ordered>().map_or_else(
            |_| Vec::new(),
            |ordered| ordered.properties.iter().map(|(name, _)| name.to_owned()).collect(),
        );
        // Text that came as JSON is JSON.
        Schema { root: raw.decode().unwrap_or(Value::Bool(true)), order }
    }

    /// The arguments that the schema names.
    pub(crate) fn arguments(&self) -> Vec<Argument<'_>> {
        let mut arguments = Vec::new();
        self.collect(&self.root, DEPTH, &mut arguments);
        let place = |name: &str| self.order.iter().position(|ordered| ordered == name);
        arguments.sort_by_key(|argument| place(argument.name).unwrap_or(usize::MAX));
        arguments
    }

    /// What the argument of this name takes; `None` if the schema does not name it.
    pub(crate) fn accepts(&self, name: &str) -> Option<Accepts> {
        self.property(&self.root, name, DEPTH).map(|property| self.kinds(property, DEPTH))
    }

    pub(crate) fn unnamed(&self) -> Unnamed {
        let root = self.resolve(&self.root, DEPTH);
        // Which names a pattern allows is for the server to say.
        let patterns = root.get("patternProperties").is_some();
        match root.get("additionalProperties") {
            Some(Value::Bool(false)) if !patterns => Unnamed::Refused,
            Some(schema @ Value::Object(members)) if !members.is_empty() => {
                Unnamed::Accepted(self.kinds(schema, DEPTH))
            }
            _ => Unnamed::Accepted(Accepts::Kinds(vec![Kind::String])),
        }
    }

    /// Whether the schema names all arguments there are, as far as can be told: many that do leave
    /// out `additionalProperties: false`.
    pub(crate) fn names_all(&self) -> bool {
        let root = self.resolve(&self.root, DEPTH);
        root.get("properties").is_some() && !self.is_open(root, DEPTH)
    }

    /// Whether the schema speaks of names that are not among its properties.
    fn is_open(&self, node: &Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return true };
        let node = self.resolve(node, depth);
        let has = |keyword: &&str| node.get(*keyword).is_some();
        let allows = |keyword: &&str| node.get(*keyword).is_some_and(|said| *said != false);
        ["additionalProperties", "unevaluatedProperties"].iter().any(allows)
            || ["$ref", "patternProperties", "if", "dependentSchemas"].iter().any(has)
            || branches(node).any(|branch| self.is_open(branch, depth))
    }

    fn collect<'a>(&'a self, node: &'a Value, depth: usize, found: &mut Vec<Argument<'a>>) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let node = self.resolve(node, depth);
        let required = node.get("required").and_then(Value::as_array);
        for (name, property) in members(node, "properties") {
            if found.iter().any(|argument| argument.name == name) {
                continue;
            }
            let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
            let text = |node: &'a Value| node.get("description").and_then(Value::as_str);
            found.push(Argument {
                name,
                need: if is_required { Need::Required } else { Need::Optional },
                type_name: self.type_name(property, DEPTH),
                limits: limits(self.without_null(property)),
                description: text(property).or_else(|| text(self.resolve(property, DEPTH))),
            });
        }
        for branch in branches(node) {
            self.collect(branch, depth, found);
        }
    }

    fn property<'a>(&'a self, node: &'a Value, name: &str, depth: usize) -> Option<&'a Value> {
        let depth = depth.checked_sub(1)?;
        let node = self.resolve(node, depth);
        let own = node.get("properties").and_then(|properties| properties.get(name));
        own.or_else(|| branches(node).find_map(|branch| self.property(branch, name, depth)))
    }

    /// Follows references within the schema.
    fn resolve<'a>(&'a self, mut node: &'a Value, depth: usize) -> &'a Value {
        for _ in 0..depth {
            let reference = node.get("$ref").and_then(Value::as_str);
            let target = reference
                .and_then(|reference| reference.strip_prefix('#'))
                .and_then(|pointer| self.root.pointer(pointer));
            match target {
                Some(target) => node = target,
                None => break,
            }
        }
        node
    }

    /// Follows references, and what may be this or null to this.
    fn without_null<'a>(&'a self, node: &'a Value) -> &'a Value {
        let node = self.resolve(node, DEPTH);
        let either =
            ["anyOf", "oneOf"].into_iter().find_map(|keyword| node.get(keyword)?.as_array());
        let is_null = |node: &&Value| node.get("type").is_some_and(|name| name == "null");
        match either.map(Vec::as_slice) {
            Some([one, null] | [null, one]) if is_null(&null) => self.resolve(one, DEPTH),
            _ => node,
        }
    }

    fn kinds(&self, node: &Value, depth: usize) -> Accepts {
        let Some(depth) = depth.checked_sub(1) else { return Accepts::Anything };
        let node = self.resolve(node, depth);
        if let Some(named) = node.get("type") {
            return named_kinds(named);
        }
        if let Some(value) = node.get("const") {
            return Accepts::of([kind_of(value)]);
        }
        if let Some(values) = node.get("enum").and_then(Value::as_array) {
            return Accepts::of(values.iter().map(kind_of));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(alternatives) = node.get(keyword).and_then(Value::as_array) {
                let each = alternatives.iter().map(|node| self.kinds(node, depth));
                return each.reduce(Accepts::or).unwrap_or(Accepts::Anything);
            }
        }
        let parts = node.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let mut parts = parts.map(|node| self.kinds(node, depth));
        parts.find(|part| *part != Accepts::Anything).unwrap_or(Accepts::Anything)
    }

    fn type_name(&self, node: &Value, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else { return "anything".to_owned() };
        let node = self.without_null(node);
        if let Some(choices) = choices(node) {
            return choices;
        }
        let Accepts::Kinds(kinds) = self.kinds(node, depth) else { return "anything".to_owned() };
        // That an optional argument may also be null is noise to people.
        let telling: Vec<Kind> = match kinds.iter().copied().filter(|kind| *kind != Kind::Null) {
            others if others.clone().next().is_none() => kinds,
            others => others.collect(),
        };
        let names = telling.iter().map(|kind| match (kind, node.get("items")) {
            (Kind::Array, Some(items)) => {
                format!("array of {}", self.type_name(items, depth))
            }
            _ => kind.name().to_owned(),
        });
        names.collect::<Vec<_>>().join(" or ")
    }
}

impl Accepts {
    fn of(kinds: impl IntoIterator<Item = Kind>) -> Accepts {
        let mut distinct = Vec::new();
        for kind in kinds {
            if !distinct.contains(&kind) {
                distinct.push(kind);
            }
        }
        if distinct.is_empty() { Accepts::Anything } else { Accepts::Kinds(distinct) }
    }

    fn or(self, other: Accepts) -> Accepts {
        match (self, other) {
            (Accepts::Kinds(mine), Accepts::Kinds(theirs)) => {
                Accepts::of(mine.into_iter().chain(theirs))
            }
            _ => Accepts::Anything,
        }
    }
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::String,
        Kind::Integer,
        Kind::Number,
        Kind::Boolean,
        Kind::Array,
        Kind::Object,
        Kind::Null,
    ];

    /// As schemas spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::Array => "array",
            Kind::Object => "object",
            Kind::Null => "null",
        }
    }
}

fn named_kinds(named: &Value) -> Accepts {
    let one = |name: &Value| Kind::ALL.into_iter().find(|kind| name == kind.name());
    match named {
        Value::Array(names) => Accepts::of(names.iter().filter_map(one)),
        name => Accepts::of(one(name)),
    }
}

fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) if number.is_f64() => Kind::Number,
        Value::Number(_) => Kind::Integer,
        Value::String(_) => Kind::String,
        Value::Array(_) => Kind::Array,
        Value::Object(_) => Kind::Object,
    }
}

fn members<'a>(node: &'a Value, keyword: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let members: Option<&Map<String, Value>> = node.get(keyword).and_then(Value::as_object);
    members.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// The values that a schema leaves to choose from, where it names them.
fn choices(node: &Value) -> Option<String> {
    let array = |keyword: &str| node.get(keyword).and_then(Value::as_array);
    let values: Vec<&Value> = match (array("enum"), array("oneOf").or_else(|| array("anyOf"))) {
        (Some(values), _) => values.iter().collect(),
        // How choices are written of which each is described.
        (None, Some(each)) => each.iter().map(|one| one.get("const")).collect::<Option<_>>()?,
        (None, None) => return None,
    };
    let names = values.iter().map(ToString::to_string).collect::<Vec<_>>();
    (1..=CHOICES).contains(&names.len()).then(|| names.join(" or "))
}

/// The schemas that a schema is put together from.
fn branches(node: &Value) -> impl Iterator<Item = &Value> {
    ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| node.get(keyword).and_then(Value::as_array))
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(properties: Value) -> Schema {
        Schema::new(&json!({"type": "object", "properties": properties}).into())
    }

    #[test]
    fn the_types_of_an_argument_are_found_wherever_they_are_said() {
        let schema = Schema::new(
            &json!({
                "type": "object",
                "properties": {
                    "plain": {"type": "integer"},
                    "several": {"type": ["number", "null"]},
                    "referred": {"$ref": "#/$defs/Name"},
                    "chosen": {"enum": ["a", "b"]},
                    "fixed": {"const": true},
                    "either": {"anyOf": [{"type": "array"}, {"$ref": "#/$defs/Name"}]},
                    "all": {"allOf": [{}, {"type": "object"}]},
                    "open": {},
                    "loop": {"$ref": "#/properties/loop"},
                },
                "$defs": {"Name": {"type": "string"}},
            })
            .into(),
        );
        let kinds = |kinds: &[Kind]| Some(Accepts::Kinds(kinds.to_vec()));
        assert_eq!(schema.accepts("plain"), kinds(&[Kind::Integer]));
        assert_eq!(schema.accepts("several"), kinds(&[Kind::Number, Kind::Null]));
        assert_eq!(schema.accepts("referred"), kinds(&[Kind::String]));
        assert_eq!(schema.accepts("chosen"), kinds(&[Kind::String]));
        assert_eq!(schema.accepts("fixed"), kinds(&[Kind::Boolean]));
        assert_eq!(schema.accepts("either"), kinds(&[Kind::Array, Kind::String]));
        assert_eq!(schema.accepts("all"), kinds(&[Kind::Object]));
        assert_eq!(schema.accepts("open"), Some(Accepts::Anything));
        assert_eq!(schema.accepts("loop"), Some(Accepts::Anything));
        assert_eq!(schema.accepts("absent"), None);
    }

    #[test]
    fn a_schema_in_parts_is_read_as_one() {
        let schema = Schema::new(
            &json!({
                "$ref": "#/$defs/Root",
                "$defs": {"Root": {
                    "properties": {"a": {"type": "integer"}},
                    "required": ["a"],
                    "oneOf": [{"properties": {"b": {"type": "string"}}}],
                }},
            })
            .into(),
        );
        assert_eq!(schema.accepts("b"), Some(Accepts::Kinds(vec![Kind::String])));
        let names: Vec<_> = schema.arguments().iter().map(|one| (one.name, one.need)).collect();
        assert_eq!(names, [("a", Need::Required), ("b", Need::Optional)]);
    }

    #[test]
    fn arguments_are_in_the_servers_order() {
        let text = r#"{"properties":{"z":{"type":"string"},"a":{"type":"string"}}}"#;
        let schema = Schema::new(&Raw::from_json(text).unwrap());
        let names: Vec<_> = schema.arguments().iter().map(|one| one.name).collect();
        assert_eq!(names, ["z", "a"]);
    }

    #[test]
    fn type_names_are_for_people() {
        let table = [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["integer", "null"]}), "integer"),
            (json!({"type": "null"}), "null"),
            (json!({"type": "array", "items": {"type": "number"}}), "array of number"),
            (json!({"enum": ["a", 2]}), "\"a\" or 2"),
            (json!({"type": ["string", "integer"]}), "string or integer"),
            (json!({"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9]}), "integer"),
            (json!({"anyOf": [{"type": "null"}, {"enum": ["a"]}]}), "\"a\""),
            (json!({"oneOf": [{"const": "a"}, {"const": "b", "title": "B"}]}), "\"a\" or \"b\""),
            (json!({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}), "\"a\""),
            (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), "string or integer"),
            (json!(true), "anything"),
        ];
        for (property, name) in table {
            let schema = schema(json!({"x": property}));
            assert_eq!(schema.arguments()[0].type_name, name);
        }
    }

    #[test]
    fn names_beyond_the_schema_are_refused_only_where_it_says_so() {
        let unnamed = |schema: Value| Schema::new(&schema.into()).unnamed();
        let strings = || Unnamed::Accepted(Accepts::Kinds(vec![Kind::String]));
        assert_eq!(unnamed(json!({"additionalProperties": false})), Unnamed::Refused);
        assert_eq!(unnamed(json!({"additionalProperties": true})), strings());
        assert_eq!(unnamed(json!({"type": "object"})), strings());
        let integers = json!({"additionalProperties": {"type": "integer"}});
        assert_eq!(unnamed(integers), Unnamed::Accepted(Accepts::Kinds(vec![Kind::Integer])));
        let patterns = json!({"additionalProperties": false, "patternProperties": {"^x-": {}}});
        assert_eq!(unnamed(patterns), strings());
    }
}
