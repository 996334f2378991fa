//! Owns what structured output that is no object becomes where only objects are known: its schema
//! and its content, by one rule. Does not own which revisions those are, nor how schemas move.

use crate::server::schema::wrap;
use turnbuckle_types::{At, CallToolResult, Named, Raw, Revision, StructuredOutput};

/// The member that such output is.
const MEMBER: &str = "result";

/// What a tool's structured output is where only objects are known.
#[derive(Clone, Debug, Default)]
pub(crate) enum Structured {
    /// No schema says: each value that is no object is wrapped.
    #[default]
    Undescribed,
    /// The schema is an object's, and so is the output.
    Object,
    /// The schema is not: every value is wrapped, and so is the schema, as it is here.
    Wrapped(Raw),
}

impl Structured {
    /// By the tool's output schema.
    pub(crate) fn of(schema: Option<&Raw>) -> Structured {
        match schema {
            None => Structured::Undescribed,
            Some(schema) if is_objects(schema) => Structured::Object,
            Some(schema) => Structured::Wrapped(wrap(schema, MEMBER)),
        }
    }

    /// What stands in for the tool's own schema in this revision.
    pub(crate) fn schema_at(&self, revision: Revision) -> Option<&Raw> {
        match (revision.structured_output(), self) {
            (StructuredOutput::Objects, Structured::Wrapped(schema)) => Some(schema),
            _ => None,
        }
    }

    /// Makes a result one that this revision has.
    pub(crate) fn fit(&self, result: &mut CallToolResult, revision: Revision) {
        if revision.structured_output() != StructuredOutput::Objects {
            return;
        }
        let wraps = |content: &Raw| match self {
            Structured::Undescribed => !content.is_object(),
            Structured::Object => false,
            // An object too: a schema that takes objects and others was wrapped for all of them.
            Structured::Wrapped(_) => true,
        };
        if let Some(content) = result.structured_content.take_if(|content| wraps(content)) {
            let whole = Named::<Raw>::from([(MEMBER, content)]);
            result.structured_content = Some(Raw::at(&whole, At::Everything));
        }
    }
}

/// Whether the root of a schema says that it describes an object, as those revisions want it.
fn is_objects(schema: &Raw) -> bool {
    let members = schema.decode::<Named<Raw>>().ok();
    members.is_some_and(|members| {
        members.value("type").is_some_and(|kind| kind.as_str() == "\"object\"")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use turnbuckle_types::Tool;

    use super::*;

    const ALL: [Revision; 5] = Revision::ALL;

    /// Schema and content, as each revision has them on the wire.
    fn seen(schema: Option<Value>, content: Value) -> [(Value, Value); 5] {
        let mut tool = Tool::new("t", json!({"type": "object"}));
        tool.output_schema = schema.map(Raw::from);
        let structured = Structured::of(tool.output_schema.as_ref());
        ALL.map(|revision| {
            let mut listed = tool.clone();
            if let Some(schema) = structured.schema_at(revision) {
                listed.output_schema = Some(schema.clone());
            }
            let listed = Raw::at(&listed, revision);
            let mut result = CallToolResult::new([]);
            result.structured_content = Some((&content).into());
            structured.fit(&mut result, revision);
            let result = Raw::at(&result, revision);
            let member = |raw: &Raw, name: &str| raw.decode::<Value>().unwrap()[name].take();
            (member(&listed, "outputSchema"), member(&result, "structuredContent"))
        })
    }

    // req: 2025:jsonschema:non-object-output-wrapped, mcpserver:tool:output-schema:wrapped
    // req: 2025:jsonschema:non-object-structured-content-wrapped
    #[test]
    fn what_is_no_object_is_wrapped_exactly_where_objects_are_needed() {
        let schema = json!({"type": "array", "items": {"type": "integer"}});
        let whole = json!({"type": "object", "properties": {"result": schema},
            "required": ["result"]});
        let absent = (Value::Null, Value::Null);
        let wrapped = (whole, json!({"result": [1, 2]}));
        assert_eq!(
            seen(Some(schema.clone()), json!([1, 2])),
            [absent.clone(), absent, wrapped.clone(), wrapped, (schema, json!([1, 2]))]
        );
    }

    #[test]
    fn an_object_stays_what_it_is() {
        let schema = json!({"type": "object"});
        for (_, content) in &seen(Some(schema), json!({"a": 1}))[2..] {
            assert_eq!(*content, json!({"a": 1}));
        }
    }

    // req: 2025:jsonschema:wrap-follows-schema-not-value, server:jsonschema:union-output-natural
    #[test]
    fn a_schema_that_takes_objects_and_others_is_wrapped_for_all_of_them() {
        let either = json!({"anyOf": [{"type": "object"}, {"type": "null"}]});
        for content in [json!({"a": 1}), Value::Null] {
            let seen = seen(Some(either.clone()), content.clone());
            let expected = json!({"result": content});
            let whole = jsonschema::validator_for(&seen[3].0).unwrap();
            assert_eq!(seen[3].1, expected);
            assert!(whole.is_valid(&expected));
            assert_eq!(seen[4], (either.clone(), content), "neither where anything goes");
        }
    }

    // req: 2025:jsonschema:schemaless-non-object-sc-wrapped
    // req: server:jsonschema:primitive-structured-content
    #[test]
    fn without_a_schema_the_value_decides() {
        assert_eq!(seen(None, json!(5))[3], (Value::Null, json!({"result": 5})));
        assert_eq!(seen(None, json!({"a": 5}))[3], (Value::Null, json!({"a": 5})));
        assert_eq!(seen(None, json!(5))[4].1, json!(5));
    }
}
