//! Owns the check that every published example survives decoding and encoding.

use std::fs;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use turnbuckle_types::{
    At, AudioContent, BlobResourceContents, BooleanSchema, CallTool, CallToolResult, Cancelled,
    ClientCapabilities, Complete, CompleteResult, ContentBlock, CreateMessage, CreateMessageResult,
    DiscoverResult, Elicit, ElicitResult, EmbeddedResource, Encode, GetPrompt, GetPromptResult,
    ImageContent, InputRequest, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListRootsResult, ListTools, ListToolsResult,
    ListenResult, LogMessage, MissingClientCapability, ModelPreferences, MultiSelect, Named,
    Notification, NumberSchema, PrimitiveSchema, Progress, Raw, ReadResourceResult, Request,
    Resource, ResourceContents, ResourceLink, ResourceUpdated, Revision, Root, RpcError,
    SamplingBlock, SamplingMessage, SelectSchema, ServerCapabilities, StringSchema, TextContent,
    TextResourceContents, TitledMultiSelect, TitledSelect, Tool, ToolResultContent, ToolUseContent,
    UnsupportedVersion,
    jsonrpc::{self, Frame, Message},
    methods,
};

use crate::spec;

/// Decodes an example and encodes it again.
type Trip = fn(&str, At) -> Value;

/// One row a folder.
const FOLDERS: &[(&str, Trip)] = &[
    ("AudioContent", block::<AudioContent>),
    ("BlobResourceContents", contents::<BlobResourceContents>),
    ("BooleanSchema", field::<BooleanSchema>),
    ("CallToolRequest", request::<methods::CallTool>),
    ("CallToolRequestParams", model::<CallTool>),
    ("CallToolResult", model::<CallToolResult>),
    ("CallToolResultResponse", response::<CallToolResult>),
    ("CancelledNotification", note::<methods::Cancelled>),
    ("CancelledNotificationParams", model::<Cancelled>),
    ("ClientCapabilities", model::<ClientCapabilities>),
    ("CompleteRequest", request::<methods::Complete>),
    ("CompleteRequestParams", model::<Complete>),
    ("CompleteResult", model::<CompleteResult>),
    ("CompleteResultResponse", response::<CompleteResult>),
    ("CreateMessageRequest", model::<InputRequest>),
    ("CreateMessageRequestParams", model::<CreateMessage>),
    ("CreateMessageResult", model::<CreateMessageResult>),
    ("DiscoverRequest", request::<methods::Discover>),
    ("DiscoverResult", model::<DiscoverResult>),
    ("DiscoverResultResponse", response::<DiscoverResult>),
    ("ElicitRequest", model::<InputRequest>),
    ("ElicitRequestFormParams", model::<Elicit>),
    ("ElicitRequestURLParams", model::<Elicit>),
    ("ElicitResult", model::<ElicitResult>),
    ("EmbeddedResource", block::<EmbeddedResource>),
    ("GetPromptRequest", request::<methods::GetPrompt>),
    ("GetPromptRequestParams", model::<GetPrompt>),
    ("GetPromptResult", model::<GetPromptResult>),
    ("GetPromptResultResponse", response::<GetPromptResult>),
    ("HeaderMismatchError", failure::<Raw>),
    ("ImageContent", block::<ImageContent>),
    ("InputRequests", model::<Named<InputRequest>>),
    ("InputRequiredResult", model::<InputRequiredResult>),
    ("InputResponses", input_responses),
    ("InternalError", error),
    ("InvalidParamsError", error),
    ("ListPromptsRequest", request::<methods::ListPrompts>),
    ("ListPromptsResult", model::<ListPromptsResult>),
    ("ListPromptsResultResponse", response::<ListPromptsResult>),
    ("ListResourceTemplatesRequest", request::<methods::ListResourceTemplates>),
    ("ListResourceTemplatesResult", model::<ListResourceTemplatesResult>),
    ("ListResourceTemplatesResultResponse", response::<ListResourceTemplatesResult>),
    ("ListResourcesRequest", request::<methods::ListResources>),
    ("ListResourcesResult", model::<ListResourcesResult>),
    ("ListResourcesResultResponse", response::<ListResourcesResult>),
    ("ListRootsRequest", model::<InputRequest>),
    ("ListRootsResult", model::<ListRootsResult>),
    ("ListToolsRequest", request::<methods::ListTools>),
    ("ListToolsResult", model::<ListToolsResult>),
    ("ListToolsResultResponse", response::<ListToolsResult>),
    ("LoggingMessageNotification", note::<methods::LogMessage>),
    ("LoggingMessageNotificationParams", model::<LogMessage>),
    ("MethodNotFoundError", error),
    ("MissingRequiredClientCapabilityError", failure::<MissingClientCapability>),
    ("ModelPreferences", model::<ModelPreferences>),
    ("NumberSchema", field::<NumberSchema>),
    ("PaginatedRequestParams", model::<ListTools>),
    ("ParseError", error),
    ("ProgressNotification", note::<methods::Progress>),
    ("ProgressNotificationParams", model::<Progress>),
    ("PromptListChangedNotification", note::<methods::PromptListChanged>),
    ("ReadResourceRequest", request::<methods::ReadResource>),
    ("ReadResourceResult", model::<ReadResourceResult>),
    ("ReadResourceResultResponse", response::<ReadResourceResult>),
    ("Resource", model::<Resource>),
    ("ResourceLink", block::<ResourceLink>),
    ("ResourceListChangedNotification", note::<methods::ResourceListChanged>),
    ("ResourceUpdatedNotification", note::<methods::ResourceUpdated>),
    ("ResourceUpdatedNotificationParams", model::<ResourceUpdated>),
    ("Root", model::<Root>),
    ("SamplingMessage", model::<SamplingMessage>),
    ("ServerCapabilities", model::<ServerCapabilities>),
    ("StringSchema", field::<StringSchema>),
    ("SubscriptionsAcknowledgedNotification", note::<methods::Acknowledged>),
    ("SubscriptionsListenRequest", request::<methods::Listen>),
    ("SubscriptionsListenResult", model::<ListenResult>),
    ("SubscriptionsListenResultResponse", response::<ListenResult>),
    ("TextContent", block::<TextContent>),
    ("TextResourceContents", contents::<TextResourceContents>),
    ("TitledMultiSelectEnumSchema", field::<TitledMultiSelect>),
    ("TitledSingleSelectEnumSchema", field::<TitledSelect>),
    ("Tool", model::<Tool>),
    ("ToolListChangedNotification", note::<methods::ToolListChanged>),
    ("ToolResultContent", sampling::<ToolResultContent>),
    ("ToolUseContent", sampling::<ToolUseContent>),
    ("UnsupportedProtocolVersionError", failure::<UnsupportedVersion>),
    ("UntitledMultiSelectEnumSchema", field::<MultiSelect>),
    ("UntitledSingleSelectEnumSchema", field::<SelectSchema>),
];

/// Examples that lack members which the schema requires: the encoder adds them.
const INCOMPLETE: &[(&str, &[(&str, &str)])] = &[(
    "ReadResourceResultResponse/read-resource-result-response.json",
    &[("ttlMs", "0"), ("cacheScope", "\"private\"")],
)];

#[test]
fn every_example_survives() {
    let Some(directory) = spec::directory() else { return };
    let mut seen = 0;
    for folder in fs::read_dir(directory.join("2026-07-28/examples")).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let row = FOLDERS.iter().find(|(folder, _)| *folder == name);
        let (_, trip) = row.unwrap_or_else(|| panic!("no row for the examples of {name}"));
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            let text = fs::read_to_string(file.path()).unwrap();
            let label = format!("{name}/{}", file.file_name().to_string_lossy());
            check(&label, &text, *trip);
            seen += 1;
        }
    }
    assert!(seen > 120, "only {seen} examples");
}

fn check(label: &str, text: &str, trip: Trip) {
    let mut example: Value = serde_json::from_str(text).unwrap();
    let everything = trip(text, At::Everything);
    assert!(same(&everything, &example), "{label}\nas everything: {everything:#}");
    for (_, members) in INCOMPLETE.iter().filter(|(incomplete, _)| *incomplete == label) {
        for (member, value) in *members {
            example["result"][member] = serde_json::from_str(value).unwrap();
        }
    }
    let written = trip(text, Revision::V2026_07_28.into());
    assert!(same(&written, &example), "{label}\nas 2026-07-28: {written:#}");
}

/// Equality that takes 50 and 50.0 for one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn decode<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn model<T: DeserializeOwned + Encode>(text: &str, at: At) -> Value {
    decode(Raw::at(&decode::<T>(text), at).as_str())
}

/// Decodes as the one type and as the union, which must agree.
fn both<T: DeserializeOwned + Encode, U: DeserializeOwned + Encode>(text: &str, at: At) -> Value {
    let one = model::<T>(text, at);
    assert_eq!(one, model::<U>(text, at));
    one
}

fn block<T: DeserializeOwned + Encode + Into<ContentBlock>>(text: &str, at: At) -> Value {
    assert_eq!(decode::<ContentBlock>(text), decode::<T>(text).into());
    both::<T, ContentBlock>(text, at)
}

fn sampling<T: DeserializeOwned + Encode + Into<SamplingBlock>>(text: &str, at: At) -> Value {
    assert_eq!(decode::<SamplingBlock>(text), decode::<T>(text).into());
    both::<T, SamplingBlock>(text, at)
}

fn contents<T: DeserializeOwned + Encode + Into<ResourceContents>>(text: &str, at: At) -> Value {
    assert_eq!(decode::<ResourceContents>(text), decode::<T>(text).into());
    both::<T, ResourceContents>(text, at)
}

fn field<T: DeserializeOwned + Encode + Into<PrimitiveSchema>>(text: &str, at: At) -> Value {
    assert_eq!(decode::<PrimitiveSchema>(text), decode::<T>(text).into());
    both::<T, PrimitiveSchema>(text, at)
}

fn frame(text: &str) -> Frame {
    match jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), 64) {
        Ok(Message::Single(frame)) => frame,
        other => panic!("{other:?}"),
    }
}

fn request<R: Request>(text: &str, at: At) -> Value {
    let Frame::Request(request) = frame(text) else { panic!("not a request: {text}") };
    assert_eq!(&*request.method, R::METHOD.as_str());
    let params = Raw::at(&decode::<R::Params>(request.params.text()), at);
    let mut out = Vec::new();
    jsonrpc::write_request(&mut out, &request.id, &request.method, params.as_str());
    serde_json::from_slice(&out).unwrap()
}

fn note<N: Notification>(text: &str, at: At) -> Value {
    let Frame::Notification(note) = frame(text) else { panic!("not a notification: {text}") };
    assert_eq!(&*note.method, N::METHOD.as_str());
    let params = Raw::at(&decode::<N::Params>(note.params.text()), at);
    let mut out = Vec::new();
    jsonrpc::write_notification(&mut out, &note.method, params.as_str());
    serde_json::from_slice(&out).unwrap()
}

fn response<T: DeserializeOwned + Encode>(text: &str, at: At) -> Value {
    let Frame::Response(response) = frame(text) else { panic!("not a response: {text}") };
    let result = Raw::at(&decode::<T>(response.outcome.unwrap().as_str()), at);
    let mut out = Vec::new();
    let id = response.id.unwrap();
    jsonrpc::write_result(&mut out, &id, result.as_str().as_bytes());
    serde_json::from_slice(&out).unwrap()
}

/// A response with an error whose data, if any, is a `T`.
fn failure<T: DeserializeOwned + Encode>(text: &str, at: At) -> Value {
    let Frame::Response(response) = frame(text) else { panic!("not a response: {text}") };
    let mut error = response.outcome.unwrap_err();
    error.data = error.data.map(|data| Raw::at(&decode::<T>(data.as_str()), at));
    let mut out = Vec::new();
    jsonrpc::write_error(&mut out, response.id.as_ref(), &error);
    serde_json::from_slice(&out).unwrap()
}

fn error(text: &str, _: At) -> Value {
    serde_json::to_value(decode::<RpcError>(text)).unwrap()
}

/// The answers have no tag: whoever asked knows what each name stands for.
fn input_responses(text: &str, at: At) -> Value {
    let mut written = json!({});
    for (name, answer) in decode::<Named<Raw>>(text) {
        written[&name] = match name.as_str() {
            "github_login" => model::<ElicitResult>(answer.as_str(), at),
            "capital_of_france" => model::<CreateMessageResult>(answer.as_str(), at),
            other => panic!("no type for {other}"),
        };
    }
    written
}
