//! What listings teach, and what they cost.

use serde_json::{Value, json};
use turnbuckle_types::{Raw, Revision, Tool, ToolAnnotations};

use super::*;

fn tool(name: &str, output: Option<Value>) -> Tool {
    let mut tool = Tool::new(name, json!({"type": "object"}));
    tool.output_schema = output.map(Raw::from);
    tool
}

fn marked(name: &str, mark: impl FnOnce(&mut ToolAnnotations)) -> Tool {
    let mut tool = tool(name, None);
    let mut annotations = ToolAnnotations::new();
    mark(&mut annotations);
    tool.annotations = Some(annotations);
    tool
}

fn learned(tools: &[Tool]) -> KnownTools {
    let known = KnownTools::default();
    known.learn(tools, Revision::LATEST);
    known
}

#[test]
fn a_tool_may_run_twice_if_its_listing_says_so() {
    let known = learned(&[
        marked("reads", |marks| marks.read_only_hint = Some(true)),
        marked("settles", |marks| marks.idempotent_hint = Some(true)),
        marked("writes", |marks| marks.read_only_hint = Some(false)),
        tool("silent", None),
    ]);
    for name in ["reads", "settles"] {
        assert_eq!(known.tool(name).unwrap().twice, Twice::Harmless, "{name}");
    }
    for name in ["writes", "silent", "unlisted"] {
        assert!(known.tool(name).is_none(), "{name}");
    }
    known.learn(&[tool("reads", None)], Revision::LATEST);
    assert!(known.tool("reads").is_none(), "the newest listing counts");
}

#[test]
fn no_more_tools_are_kept_than_there_is_room_for() {
    let mark = |marks: &mut ToolAnnotations| marks.read_only_hint = Some(true);
    let many: Vec<Tool> = (0..MOST + 5).map(|n| marked(&n.to_string(), mark)).collect();
    assert_eq!(learned(&many).lock().tools.len(), MOST);
}

#[cfg(feature = "validate")]
mod output {
    use turnbuckle_types::CallToolResult;

    use super::*;
    use crate::{
        error::{ErrorKind, Result},
        protocol::json_schema::validator::OutputCheck,
    };

    fn compile(schema: &Raw) -> std::result::Result<OutputRule, String> {
        let check = OutputCheck::compile(schema).map_err(|error| error.to_string())?;
        Ok(Arc::new(move |result| check.check(result)))
    }

    fn gave(content: Option<Value>) -> CallToolResult {
        let mut result = CallToolResult::new([]);
        result.structured_content = content.map(Raw::from);
        result
    }

    /// What becomes of output under a schema.
    fn judged(schema: Value, content: Option<Value>) -> Result<CallToolResult> {
        let known = learned(&[tool("t", Some(schema))]);
        known.tool("t").unwrap().checked(gave(content), compile)
    }

    fn integer() -> Value {
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    }

    // req: client:output-schema:validate, client:output-schema:missing-structured
    #[test]
    fn output_that_is_not_what_was_promised_is_an_error_that_has_it() {
        judged(integer(), Some(json!({"n": 1}))).unwrap();
        let wrong = judged(integer(), Some(json!({"n": "one"}))).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::Protocol);
        assert!(wrong.to_string().contains("`n`"), "{wrong}");
        let came = wrong.tool_result().unwrap().structured_content.as_ref().unwrap();
        assert_eq!(came.as_str(), r#"{"n":"one"}"#);
        let missing = judged(integer(), None).unwrap_err();
        assert!(missing.to_string().contains("no structured content"), "{missing}");
    }

    // req: client:output-schema:skip-on-error
    #[test]
    fn a_tool_that_failed_promised_nothing() {
        let known = learned(&[tool("t", Some(integer()))]);
        let failed = CallToolResult::error("no such city");
        known.tool("t").unwrap().checked(failed, compile).unwrap();
    }

    // req: client:jsonschema:falsy-structured-content-validated
    // req: client:jsonschema:non-object-output
    #[test]
    fn what_is_empty_or_no_object_is_output_too() {
        for (schema, fits) in [
            (json!({"type": "integer"}), json!(0)),
            (json!({"type": "boolean"}), json!(false)),
            (json!({"type": "string"}), json!("")),
            (json!({"type": "null"}), json!(null)),
            (json!({"type": "array"}), json!([])),
        ] {
            judged(schema.clone(), Some(fits.clone())).unwrap();
            let strict = json!({"not": schema});
            assert!(judged(strict, Some(fits.clone())).is_err(), "{fits}");
        }
    }

    // req: client:jsonschema:dialect:default-is-2020-12, client:jsonschema:same-document-ref-ok
    #[test]
    fn a_schema_without_a_dialect_is_of_2020_12_and_may_refer_to_itself() {
        let pair = json!({"prefixItems": [{"$ref": "#/$defs/n"}, {"type": "string"}],
            "items": false, "$defs": {"n": {"type": "integer"}}});
        judged(pair.clone(), Some(json!([1, "a"]))).unwrap();
        assert!(judged(pair.clone(), Some(json!(["a", "a"]))).is_err());
        assert!(judged(pair, Some(json!([1, "a", 2]))).is_err());
    }

    // req: client:jsonschema:unsupported-dialect-graceful, client:jsonschema:bad-schema-isolates-tool
    #[test]
    fn a_schema_that_can_not_be_used_costs_nothing_but_its_own_check() {
        let unusable = [
            json!({"$schema": "https://example.com/mine", "type": "object"}),
            json!({"$ref": "https://example.com/elsewhere.json"}),
            json!({"type": "no such type"}),
            json!({"pattern": "(?<=a)b"}),
            json!([]),
        ];
        let mut tools = vec![tool("fine", Some(integer()))];
        for (n, schema) in unusable.into_iter().enumerate() {
            tools.push(tool(&n.to_string(), Some(schema)));
        }
        let known = learned(&tools);
        for tool in &tools[1..] {
            let tool = known.tool(&tool.name).unwrap();
            tool.checked(gave(Some(json!("anything"))), compile).unwrap();
            tool.checked(gave(None), compile).unwrap();
        }
        assert!(known.tool("fine").unwrap().checked(gave(None), compile).is_err());
    }

    #[test]
    fn a_listing_that_says_the_same_again_keeps_what_was_compiled() {
        let known = learned(&[tool("t", Some(integer()))]);
        let first = known.tool("t").unwrap();
        known.learn(&[tool("t", Some(integer()))], Revision::LATEST);
        assert!(Arc::ptr_eq(&first, &known.tool("t").unwrap()));
        known.learn(&[tool("t", Some(json!({"type": "object"})))], Revision::LATEST);
        known.tool("t").unwrap().checked(gave(Some(json!({}))), compile).unwrap();
        known.learn(&[tool("t", None)], Revision::LATEST);
        assert!(known.tool("t").is_none());
        assert_eq!(known.lock().text, 0);
    }

    #[test]
    fn no_more_text_is_kept_than_there_is_room_for() {
        let long = json!({"description": "x".repeat(MOST_TEXT / 2)});
        let known = learned(&["a", "b", "c"].map(|name| tool(name, Some(long.clone()))));
        assert!(known.lock().text <= MOST_TEXT);
        assert!(known.tool("a").is_some() && known.tool("c").is_none());
    }

    #[test]
    fn a_revision_without_structured_output_promises_none() {
        let known = KnownTools::default();
        known.learn(&[tool("t", Some(integer()))], Revision::V2025_03_26);
        assert!(known.tool("t").is_none());
    }
}
