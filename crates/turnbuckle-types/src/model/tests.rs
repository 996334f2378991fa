//! What holds for every type of the model, shown on a few of them.

use serde_json::json;

use crate::{
    Annotations, Answer, At, CallTool, CallToolResult, ContentBlock, Elicit, ElicitSchema, Encode,
    InputKind, InputRequest, ListTools, Meta, Named, PrimitiveSchema, Progress, Raw, Resource,
    ResourceContents, Revision, SamplingContent, SamplingMessage, Task, TextContent, Tool,
};

fn decode<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

fn refusal<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
    serde_json::from_str::<T>(text).unwrap_err().to_string()
}

fn text(value: &impl Encode, at: impl Into<At>) -> String {
    Raw::at(value, at).as_str().to_owned()
}

#[test]
fn unknown_members_survive_byte_for_byte_and_in_order() {
    let line = r#"{"uri":"a:b","name":"n","z":1e2, "a" : [ 1,  2.50 ],"\u00e9":"\u0041\/"}"#;
    let resource: Resource = decode(line);
    let expected = r#"{"uri":"a:b","name":"n","z":1e2,"a":[ 1,  2.50 ],"é":"\u0041\/"}"#;
    for at in [At::Everything, Revision::V2024_11_05.into(), Revision::LATEST.into()] {
        assert_eq!(text(&resource, at), expected);
    }
    assert_eq!(serde_json::to_string(&resource).unwrap(), expected);
    assert_eq!(decode::<Resource>(expected), resource);
}

#[test]
fn unknown_members_survive_in_nested_objects() {
    let line = r#"{"content":[{"type":"text","text":"t","annotations":{"x":1},"y":2}],"w":3}"#;
    assert_eq!(text(&decode::<CallToolResult>(line), At::Everything), line);
}

#[test]
fn known_members_are_left_out_where_the_revision_lacks_them() {
    let line = r#"{"name":"t","inputSchema":{"type":"object"},"title":"T","execution":{},"x":1}"#;
    let tool: Tool = decode(line);
    assert_eq!(
        text(&tool, Revision::V2025_03_26),
        r#"{"name":"t","inputSchema":{"type":"object"},"x":1}"#
    );
    assert_eq!(text(&tool, Revision::V2025_11_25), line);
    assert!(!text(&tool, Revision::V2026_07_28).contains("execution"));
}

#[test]
fn a_member_that_appears_twice_is_refused() {
    assert!(refusal::<CallTool>(r#"{"name":"a","name":"b"}"#).contains("duplicate field `name`"));
    let optional = refusal::<ListTools>(r#"{"cursor":null,"cursor":"b"}"#);
    assert!(optional.contains("duplicate field `cursor`"));
    let tag = r#"{"text":"a","type":"text","type":"text"}"#;
    assert!(refusal::<ContentBlock>(tag).contains("duplicate field `type`"));
    let contents = r#"{"uri":"a:b","text":"","text":""}"#;
    assert!(refusal::<ResourceContents>(contents).contains("duplicate field `text`"));
}

#[test]
fn a_missing_or_wrong_member_is_named() {
    assert!(refusal::<CallTool>("{}").contains("missing field `name`"));
    assert!(refusal::<CallTool>(r#"{"name":5}"#).contains("expected a string"));
    assert!(refusal::<CallTool>("[]").contains("an object (CallTool)"));
    assert!(refusal::<ContentBlock>(r#"{"text":"a"}"#).contains("missing field `type`"));
    assert!(refusal::<TextContent>(r#"{"type":"image","text":"a"}"#).contains("must be `text`"));
    assert!(refusal::<ResourceContents>(r#"{"uri":"a:b"}"#).contains("`text` or `blob`"));
}

#[test]
fn null_is_absent_for_what_is_optional() {
    let call: CallTool = decode(r#"{"name":"a","arguments":null,"task":null,"_meta":null}"#);
    assert_eq!(call, CallTool::new("a"));
    assert_eq!(text(&call, At::Everything), r#"{"name":"a"}"#);
    assert!(refusal::<CallTool>(r#"{"name":null}"#).contains("null"));
}

#[test]
fn what_is_required_and_may_be_null_is_written_as_null() {
    let line =
        r#"{"taskId":"1","status":"working","createdAt":"a","lastUpdatedAt":"b","ttl":null}"#;
    assert_eq!(text(&decode::<Task>(line), Revision::V2025_11_25), line);
    assert!(refusal::<Task>(&line.replace(r#","ttl":null"#, "")).contains("missing field `ttl`"));
}

#[test]
fn integral_numbers_have_no_fraction() {
    let progress: Progress = decode(r#"{"progressToken":1,"progress":50.0,"total":1e2}"#);
    let line = r#"{"progressToken":1,"progress":50,"total":100}"#;
    assert_eq!(text(&progress, Revision::LATEST), line);
    let mut annotations = Annotations::new();
    annotations.priority = Some(0.5);
    assert_eq!(text(&annotations, Revision::LATEST), r#"{"priority":0.5}"#);
}

#[test]
fn the_tag_may_stand_anywhere() {
    let first: ContentBlock = decode(r#"{"type":"text","text":"a","x":1}"#);
    for line in [r#"{"text":"a","type":"text","x":1}"#, r#"{"text":"a","x":1,"type":"text"}"#] {
        assert_eq!(decode::<ContentBlock>(line), first);
    }
    let one: SamplingMessage = decode(r#"{"content":{"text":"a","type":"text"},"role":"user"}"#);
    assert!(matches!(one.content, SamplingContent::One(_)));
    let many: SamplingMessage = decode(r#"{"content":[{"text":"a","type":"text"}],"role":"user"}"#);
    assert_eq!(many.content.blocks(), one.content.blocks());
    assert!(refusal::<SamplingMessage>(r#"{"content":5,"role":"user"}"#).contains("content block"));
}

#[test]
fn an_unknown_content_kind_passes_through() {
    for line in [r#"{"type":"hologram","data":[ 1 ]}"#, r#"{"data":[ 1 ],"type":"hologram"}"#] {
        let block: ContentBlock = decode(line);
        assert!(matches!(&block, ContentBlock::Other(raw) if raw.as_str() == line));
        assert_eq!(text(&block, Revision::V2024_11_05), line);
    }
    let result: CallToolResult =
        decode(r#"{"content":[{"type":"new"},{"type":"text","text":""}]}"#);
    assert_eq!(result.content[1], ContentBlock::text(""));
    let field: PrimitiveSchema = decode(r#"{"type":"object"}"#);
    assert!(matches!(field, PrimitiveSchema::Other(_)));
}

#[test]
fn a_meta_key_that_appears_twice_is_refused() {
    let twice = r#"{"name":"a","_meta":{"progressToken":1,"progressToken":1}}"#;
    assert!(refusal::<CallTool>(twice).contains("`progressToken` appears twice"));
    let raw = Raw::from_json(r#"{"a/b":1,"c":2,"a/b":3}"#).unwrap();
    assert!(Meta::from_raw(&raw).unwrap_err().to_string().contains("`a/b` appears twice"));
    let many: Vec<String> = (0..40).map(|index| format!("\"k{}\":0", index % 39)).collect();
    let many = format!("{{{}}}", many.join(","));
    assert!(refusal::<Meta>(&many).contains("`k0` appears twice"));
    assert!(refusal::<Named<Raw>>(&many).contains("`k0` appears twice"));
}

#[test]
fn an_empty_meta_is_never_written() {
    let call: CallTool = decode(r#"{"name":"a","_meta":{}}"#);
    assert_eq!(text(&call, Revision::LATEST), r#"{"name":"a"}"#);
    let mut call = CallTool::new("a");
    call.meta.set_protocol_version("2026-07-28");
    assert_eq!(text(&call, Revision::V2025_11_25), r#"{"name":"a"}"#);
}

#[test]
fn meta_keys_of_a_later_revision_are_left_out() {
    let mut meta = Meta::new();
    meta.set_protocol_version("2026-07-28");
    meta.set_progress_token("t");
    meta.set_traceparent("00-1-2-01");
    meta.insert("com.example/x", json!(1));
    let old = r#"{"progressToken":"t","traceparent":"00-1-2-01","com.example/x":1}"#;
    assert_eq!(text(&meta, Revision::V2025_11_25), old);
    assert!(text(&meta, Revision::V2026_07_28).contains("protocolVersion"));
}

#[test]
fn meta_says_which_key_is_wrong() {
    let meta: Meta = decode(r#"{"progressToken":1.5,"io.modelcontextprotocol/logLevel":"loud"}"#);
    assert!(meta.progress_token().unwrap_err().to_string().contains("`progressToken`"));
    assert_eq!(meta.log_level().unwrap_err().key, Meta::LOG_LEVEL);
    assert!(meta.client_info().unwrap().is_none());
}

#[test]
fn meta_from_raw_equals_meta_decoded() {
    let line = r#"{"progressToken": 7, "io.modelcontextprotocol/clientInfo" : {"name":"a","version":"1"}, "x":[1, 2]}"#;
    let meta = Meta::from_raw(&Raw::from_json(line).unwrap()).unwrap();
    assert_eq!(meta, decode::<Meta>(line));
    assert_eq!(meta.client_info().unwrap().unwrap().name, "a");
    assert!(Meta::from_raw(&Raw::null()).is_err());
}

#[test]
fn an_absent_mode_is_a_form() {
    let form = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"b":{"type":"boolean"},"a":{"type":"string"}}}}"#;
    let ask: Elicit = decode(form);
    assert!(matches!(&ask, Elicit::Form(form) if form.mode.is_none()));
    assert_eq!(text(&ask, Revision::LATEST), form);
    let page: Elicit = decode(r#"{"message":"m","url":"https://a.b","mode":"url"}"#);
    assert!(matches!(page, Elicit::Url(_)));
    assert!(refusal::<Elicit>(r#"{"mode":"dream","message":"m"}"#).contains("dream"));
}

#[test]
fn the_fields_of_a_form_keep_their_order_and_are_unique() {
    let schema: ElicitSchema =
        decode(r#"{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"boolean"}}}"#);
    let names: Vec<_> = schema.properties.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["z", "a"]);
    let twice = r#"{"properties":{"a":{"type":"boolean"},"a":{"type":"boolean"}}}"#;
    assert!(refusal::<ElicitSchema>(twice).contains("`a` appears twice"));
}

#[test]
fn an_unknown_input_request_passes_through() {
    let line = r#"{"method":"x/y","params":{"a": 1},"id":7}"#;
    let request: InputRequest = decode(line);
    assert!(matches!(&request.kind, InputKind::Other { method, .. } if method == "x/y"));
    assert_eq!(text(&request, Revision::LATEST), line);
}

#[test]
fn an_answer_is_complete_or_asks_or_is_an_error() {
    let answer = |text: &str| {
        Answer::<CallToolResult>::decode(&Raw::from_json(text).unwrap()).map_err(|e| e.to_string())
    };
    assert!(matches!(answer(r#"{"content":[]}"#), Ok(Answer::Complete(_))));
    let done = r#"{"content":[],"resultType":"complete"}"#;
    assert!(matches!(answer(done), Ok(Answer::Complete(_))));
    let asks = r#"{"requestState":"s","resultType":"input_required"}"#;
    assert!(matches!(answer(asks), Ok(Answer::InputRequired(ask)) if ask.request_state.is_some()));
    assert!(answer(r#"{"content":[],"resultType":"task"}"#).unwrap_err().contains("`task`"));
    assert!(answer("{}").unwrap_err().contains("missing field `content`"));
}
