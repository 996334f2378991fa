//! The description of a tool in the list of each revision.

use turnbuckle_types::{Raw, Revision};

use crate::server::{items::ToolDef, schema::without_keyword};

/// 2026-07-28 basic/transports/streamable-http: which arguments travel in headers too.
const HEADER: &str = "x-mcp-header";

/// Returns the tool as a client of this revision sees it.
pub(crate) fn listed(tool: &ToolDef, revision: Revision) -> turnbuckle_types::Tool {
    let mut listed = tool.spec.clone();
    if let Some(schema) = tool.structured.schema_at(revision) {
        listed.output_schema = Some(schema.clone());
    }
    if !revision.has_param_headers() {
        listed.input_schema = without_header(&listed.input_schema);
    }
    listed
}

/// Removes the keyword. Most schemas do not have it, and are not parsed.
fn without_header(schema: &Raw) -> Raw {
    match schema.as_str().contains(HEADER) {
        true => without_keyword(schema, HEADER),
        false => schema.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_the_modern_era_is_told_of_headers() {
        let schema = json!({
            "type": "object",
            "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "x-mcp-header": {"type": "string", "default": {"x-mcp-header": 1}},
            },
        });
        let tool = crate::tool("t", async || ()).input_schema_unchecked(&schema);
        let seen = |revision| listed(&tool, revision).input_schema.decode::<Value>().unwrap();
        assert_eq!(seen(Revision::LATEST), schema);
        let mut plain = schema;
        plain["properties"]["region"] = json!({"type": "string"});
        for revision in Revision::ALL.into_iter().filter(|known| !known.has_param_headers()) {
            assert_eq!(seen(revision), plain, "an argument may have any name");
        }
    }
}
