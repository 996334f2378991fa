//! What differs between revisions beyond the marks on the fields.

use serde_json::json;

use crate::{
    At, AudioContent, CallToolResult, Choice, ClientCapabilities, ContentBlock, CreateMessage,
    CreateMessageResult, Elicit, ElicitUrl, ElicitationCapability, EmptyResult, Encode,
    ImageContent, ListToolsResult, MultiSelect, PrimitiveSchema, Raw, ResourceLink, Revision, Role,
    SamplingBlock, SamplingCapability, SamplingMessage, SelectItems, TextContent, TitledItems,
    TitledMultiSelect, TitledSelect, Tool, ToolResultContent, ToolUseContent,
};

fn at(value: &impl Encode, revision: Revision) -> serde_json::Value {
    Raw::at(value, revision).decode().unwrap()
}

#[test]
fn a_block_that_a_revision_lacks_is_a_text_that_names_it() {
    let audio = ContentBlock::from(AudioContent::new("AAAA", "audio/wav"));
    let link = ContentBlock::from(ResourceLink::new("file:///a.rs", "a.rs"));
    let text = |text: &str| json!({"type": "text", "text": text});

    assert_eq!(at(&audio, Revision::V2024_11_05), text("[audio: audio/wav]"));
    assert_eq!(at(&audio, Revision::V2025_03_26)["type"], "audio");
    let named = text("[resource: a.rs at file:///a.rs]");
    assert_eq!(at(&link, Revision::V2024_11_05), named);
    assert_eq!(at(&link, Revision::V2025_03_26), named);
    assert_eq!(at(&link, Revision::V2025_06_18)["type"], "resource_link");
}

#[test]
fn a_message_of_several_blocks_becomes_several_messages() {
    let blocks: Vec<SamplingBlock> = vec![
        TextContent::new("look").into(),
        ImageContent::new("AAAA", "image/png").into(),
        ToolUseContent::new("1", "zoom", json!({})).into(),
    ];
    let request = CreateMessage::new([SamplingMessage::new(Role::User, blocks)], 10);
    let old = at(&request, Revision::V2025_06_18);
    let contents: Vec<_> =
        old["messages"].as_array().unwrap().iter().map(|m| &m["content"]).collect();
    assert_eq!(contents[0], &json!({"type": "text", "text": "look"}));
    assert_eq!(contents[1]["type"], "image");
    assert_eq!(contents[2], &json!({"type": "text", "text": "[tool use: zoom]"}));
    assert_eq!(contents.len(), 3);

    let new = at(&request, Revision::V2025_11_25);
    assert_eq!(new["messages"][0]["content"].as_array().unwrap().len(), 3);
}

#[test]
fn a_result_of_several_blocks_becomes_one_text() {
    let blocks: Vec<SamplingBlock> = vec![
        TextContent::new("done").into(),
        ImageContent::new("AAAA", "image/png").into(),
        ToolResultContent::new("1", [ContentBlock::text("42")]).into(),
    ];
    let result = CreateMessageResult::new(Role::Assistant, blocks, "m");
    let text = json!({"type": "text", "text": "done\n[image: image/png]\n[tool result] 42"});
    assert_eq!(at(&result, Revision::V2025_06_18)["content"], text);
    assert_eq!(at(&result, Revision::V2026_07_28)["content"].as_array().unwrap().len(), 3);

    let alone: Vec<SamplingBlock> = vec![ImageContent::new("AAAA", "image/png").into()];
    let result = CreateMessageResult::new(Role::Assistant, alone, "m");
    assert_eq!(at(&result, Revision::V2025_03_26)["content"]["type"], "image");
}

#[test]
fn a_page_is_a_form_that_names_it_where_there_are_only_forms() {
    let ask = Elicit::from(ElicitUrl::new("Log in", "https://example.com/login"));
    let form = json!({
        "message": "Log in (https://example.com/login)",
        "requestedSchema": {"type": "object", "properties": {}},
    });
    assert_eq!(at(&ask, Revision::V2025_06_18), form);
    let page = at(&ask, Revision::V2025_11_25);
    assert_eq!(page["elicitationId"], "https://example.com/login");
    assert_eq!(at(&ask, Revision::V2026_07_28).get("elicitationId"), None);
}

#[test]
fn every_choice_is_a_plain_one_where_there_is_only_that() {
    let choices = || vec![Choice::new("r", "Red"), Choice::new("g", "Green")];
    let titled = json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]});
    let select = PrimitiveSchema::from(TitledSelect::new(choices()));
    assert_eq!(at(&select, Revision::V2025_06_18), titled);
    let many = PrimitiveSchema::from(TitledMultiSelect::new(TitledItems::new(choices())));
    assert_eq!(at(&many, Revision::V2025_06_18), titled);
    let items = SelectItems::new(["r".to_owned()]);
    let plain = PrimitiveSchema::from(MultiSelect::new(items));
    assert_eq!(at(&plain, Revision::V2025_06_18), json!({"type": "string", "enum": ["r"]}));
    for schema in [select, many, plain] {
        let new = at(&schema, Revision::V2025_11_25);
        assert_eq!(new, serde_json::to_value(&schema).unwrap());
    }
}

#[test]
fn elicitation_without_forms_is_no_capability_of_2025_06_18() {
    let with = |form: Option<Raw>, url: Option<Raw>| {
        let mut capabilities = ClientCapabilities::new();
        let mut elicitation = ElicitationCapability::new();
        (elicitation.form, elicitation.url) = (form, url);
        capabilities.elicitation = Some(elicitation);
        capabilities
    };
    let yes = Some(Raw::empty_object());
    let forms = json!({"elicitation": {}});
    assert_eq!(at(&with(None, None), Revision::V2025_06_18), forms);
    assert_eq!(at(&with(yes.clone(), yes.clone()), Revision::V2025_06_18), forms);
    assert_eq!(at(&with(None, yes.clone()), Revision::V2025_06_18), json!({}));
    let pages = json!({"elicitation": {"url": {}}});
    assert_eq!(at(&with(None, yes), Revision::V2025_11_25), pages);
}

#[test]
fn what_sampling_can_do_is_not_detailed_before_2025_11_25() {
    let mut capabilities = ClientCapabilities::new();
    let mut sampling = SamplingCapability::new();
    sampling.context = Some(Raw::empty_object());
    sampling.tools = Some(Raw::empty_object());
    capabilities.sampling = Some(sampling);
    assert_eq!(at(&capabilities, Revision::V2025_06_18), json!({"sampling": {}}));
    let detailed = json!({"sampling": {"context": {}, "tools": {}}});
    assert_eq!(at(&capabilities, Revision::V2025_11_25), detailed);
}

#[test]
fn structured_output_is_an_object_until_2025_11_25() {
    let mut result = CallToolResult::text("1, 2");
    result.structured_content = Some(json!([1, 2]).into());
    let mut tool = Tool::new("list", json!({"type": "object"}));
    tool.output_schema = Some(json!({"type": "array"}).into());
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        assert_eq!(at(&result, revision).get("structuredContent"), None);
        assert_eq!(at(&tool, revision).get("outputSchema"), None);
    }
    assert_eq!(at(&result, Revision::V2026_07_28)["structuredContent"], json!([1, 2]));
    assert_eq!(at(&tool, Revision::V2026_07_28)["outputSchema"], json!({"type": "array"}));

    let mut inner = ToolResultContent::new("1", []);
    inner.structured_content = Some(json!([1, 2]).into());
    assert_eq!(at(&inner, Revision::V2025_11_25).get("structuredContent"), None);
    assert_eq!(at(&inner, Revision::V2026_07_28)["structuredContent"], json!([1, 2]));

    result.structured_content = Some(json!({"a": 1}).into());
    tool.output_schema = Some(json!({"type": "object"}).into());
    assert_eq!(at(&result, Revision::V2025_06_18)["structuredContent"], json!({"a": 1}));
    assert_eq!(at(&tool, Revision::V2025_06_18)["outputSchema"], json!({"type": "object"}));
}

#[test]
fn what_2026_07_28_insists_on_is_written_there_and_nowhere_else() {
    let list = ListToolsResult::new([]);
    let required = ["ttlMs", "cacheScope", "resultType"];
    let modern = at(&list, Revision::V2026_07_28);
    let expected =
        json!({"tools": [], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"});
    assert_eq!(modern, expected);
    let legacy = at(&list, Revision::V2025_11_25);
    let everything: serde_json::Value = Raw::at(&list, At::Everything).decode().unwrap();
    for name in required {
        assert_eq!(legacy.get(name), None);
        assert_eq!(everything.get(name), None);
    }
    assert_eq!(at(&EmptyResult::new(), Revision::V2025_11_25), json!({}));
}
