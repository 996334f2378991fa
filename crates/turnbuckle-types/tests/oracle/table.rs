//! Owns the check of every type against every revision that has it: with everything set
//! and with nothing, what is written validates and has no member that the revision does
//! not name. Does not own the instances.

use std::{collections::BTreeSet, fmt::Debug, fs, path::Path};

use serde_json::{Value, json};
use turnbuckle_types::{
    Acknowledged, AudioContent, BlobResourceContents, BooleanSchema, CallTool, CallToolResult,
    CancelTask, Cancelled, ClientCapabilities, Complete, CompleteResult, Completion,
    CompletionArgument, ContentBlock, CreateMessage, CreateMessageResult, CreateTaskResult,
    Discover, DiscoverResult, Elicit, ElicitAction, ElicitForm, ElicitResult, ElicitSchema,
    ElicitUrl, ElicitationComplete, EmbeddedResource, EmptyResult, Encode, GetPrompt,
    GetPromptResult, GetTask, GetTaskPayload, Icon, ImageContent, Implementation, Initialize,
    InitializeResult, InputRequest, InputRequiredResult, ListPrompts, ListPromptsResult,
    ListResourceTemplates, ListResourceTemplatesResult, ListResources, ListResourcesResult,
    ListRoots, ListRootsResult, ListTasks, ListTasksResult, ListTools, ListToolsResult, Listen,
    ListenResult, LogLevel, LogMessage, MissingClientCapability, ModelHint, ModelPreferences,
    MultiSelect, Named, NumberKind, NumberSchema, Ping, PrimitiveSchema, Progress, Prompt,
    PromptArgument, PromptMessage, PromptReference, Raw, ReadResource, ReadResourceResult,
    RelatedTask, Resource, ResourceContents, ResourceLink, ResourceTemplate, ResourceUpdated,
    ResultType, Revision, Role, Root, SamplingBlock, SamplingMessage, SelectItems, SelectSchema,
    ServerCapabilities, SetLevel, Signal, StringSchema, Subscribe, SubscriptionFilter,
    TaskMetadata, TextContent, TextResourceContents, TitledItems, TitledMultiSelect, TitledSelect,
    Tool, ToolAnnotations, ToolChoice, ToolExecution, ToolResultContent, ToolUseContent,
    Unsubscribe, UnsupportedVersion, UrlElicitationRequired,
};

use crate::{
    samples::{self as s, with},
    spec::Schema,
    walk,
};

trait Sample: Encode + Debug {}
impl<T: Encode + Debug> Sample for T {}

/// Where a type stands in its definition.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// It is the definition.
    Whole,
    /// It is the params of a request or notification with this method.
    Params(&'static str),
    /// It is the data of an error response with this code.
    Data(i64),
}
use Place::{Data, Params, Whole};

struct Row {
    model: &'static str,
    definition: &'static str,
    place: Place,
    revisions: (Revision, Revision),
    full: Box<dyn Sample>,
    minimal: Box<dyn Sample>,
}

impl Row {
    fn claims(&self, revision: Revision) -> bool {
        (self.revisions.0..=self.revisions.1).contains(&revision)
    }
}

const ALL: (Revision, Revision) = (Revision::V2024_11_05, Revision::V2026_07_28);
const LEGACY: (Revision, Revision) = (Revision::V2024_11_05, Revision::V2025_11_25);
const MODERN: (Revision, Revision) = (Revision::V2026_07_28, Revision::V2026_07_28);
const SINCE_0326: (Revision, Revision) = (Revision::V2025_03_26, Revision::V2026_07_28);
const UNTIL_0326: (Revision, Revision) = (Revision::V2024_11_05, Revision::V2025_03_26);
const SINCE_0618: (Revision, Revision) = (Revision::V2025_06_18, Revision::V2026_07_28);
const SINCE_1125: (Revision, Revision) = (Revision::V2025_11_25, Revision::V2026_07_28);
const ONLY_1125: (Revision, Revision) = (Revision::V2025_11_25, Revision::V2025_11_25);

/// `Type: definition, place, revisions => everything set, nothing set;`
macro_rules! rows {
    ($($model:ident: $definition:literal, $place:expr, $revisions:ident => $full:expr, $minimal:expr;)+) => {
        vec![$(
            Row {
                model: stringify!($model),
                definition: $definition,
                place: $place,
                revisions: $revisions,
                full: Box::new($full),
                minimal: Box::new($minimal),
            },
        )+]
    };
}

fn rows() -> Vec<Row> {
    [
        parts(),
        content(),
        tools(),
        resources(),
        prompts(),
        questions(),
        schemas(),
        lifecycle(),
        tasks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn parts() -> Vec<Row> {
    rows! {
        Annotations: "Annotations", Whole, SINCE_0326 => s::annotations(), turnbuckle_types::Annotations::new();
        Icon: "Icon", Whole, SINCE_1125 => s::icon(), Icon::new("https://a.b/c");
        Implementation: "Implementation", Whole, ALL => s::implementation(), Implementation::new("a", "1");
        ClientCapabilities: "ClientCapabilities", Whole, ALL => s::client_capabilities(), ClientCapabilities::new();
        ServerCapabilities: "ServerCapabilities", Whole, ALL => s::server_capabilities(), ServerCapabilities::new();
        EmptyResult: "EmptyResult", Whole, ALL => with!(EmptyResult::new(), result_type = ResultType::Complete; s::result_meta()), EmptyResult::new();
        Meta: "RequestMetaObject", Whole, MODERN => s::request_meta(), s::stamp();
        Meta: "ResultMetaObject", Whole, MODERN => s::result_meta(), turnbuckle_types::Meta::new();
        Meta: "NotificationMetaObject", Whole, MODERN => s::note_meta(), turnbuckle_types::Meta::new();
        Meta: "MetaObject", Whole, MODERN => s::meta(), turnbuckle_types::Meta::new();
        Progress: "ProgressNotification", Params("notifications/progress"), ALL => with!(Progress::new("t", 50), total = 100, message = "m"; s::note_meta()), Progress::new(1, 0.5);
        Cancelled: "CancelledNotification", Params("notifications/cancelled"), ALL => with!(Cancelled::new("a"), reason = "r"; s::note_meta()), Cancelled::new(7);
        SetLevel: "SetLevelRequest", Params("logging/setLevel"), LEGACY => with!(SetLevel::new(LogLevel::Alert); s::request_meta()), SetLevel::new(LogLevel::Debug);
        LogMessage: "LoggingMessageNotification", Params("notifications/message"), ALL => with!(LogMessage::new(LogLevel::Error, s::object()), logger = "db"; s::note_meta()), LogMessage::new(LogLevel::Info, json!("x"));
        Complete: "CompleteRequest", Params("completion/complete"), ALL => s::complete(s::prompt_reference()), with!(Complete::new(PromptReference::new("p"), CompletionArgument::new("a", "")); s::stamp());
        Complete: "CompleteRequest", Params("completion/complete"), ALL => s::complete(s::template_reference()), with!(Complete::new(s::template_reference(), CompletionArgument::new("a", "")); s::stamp());
        CompleteResult: "CompleteResult", Whole, ALL => s::complete_result(), CompleteResult::new(Completion::new([]));
        PromptReference: "PromptReference", Whole, ALL => s::prompt_reference(), PromptReference::new("p");
        ResourceTemplateReference: "ResourceReference", Whole, UNTIL_0326 => s::template_reference(), s::template_reference();
        ResourceTemplateReference: "ResourceTemplateReference", Whole, SINCE_0618 => s::template_reference(), s::template_reference();
    }
}

fn content() -> Vec<Row> {
    rows! {
        TextContent: "TextContent", Whole, ALL => s::text(), TextContent::new("");
        ImageContent: "ImageContent", Whole, ALL => s::image(), ImageContent::new("", "image/png");
        AudioContent: "AudioContent", Whole, SINCE_0326 => s::audio(), AudioContent::new("", "audio/wav");
        ResourceLink: "ResourceLink", Whole, SINCE_0618 => s::link(), ResourceLink::new("a:b", "a");
        EmbeddedResource: "EmbeddedResource", Whole, ALL => s::embedded(), EmbeddedResource::new(BlobResourceContents::new("a:b", ""));
        ContentBlock: "ContentBlock", Whole, SINCE_0618 => ContentBlock::from(s::link()), ContentBlock::text("");
        PromptMessage: "PromptMessage", Whole, ALL => PromptMessage::new(Role::User, s::audio()), PromptMessage::new(Role::Assistant, ContentBlock::text(""));
        PromptMessage: "PromptMessage", Whole, ALL => PromptMessage::new(Role::User, s::link()), PromptMessage::new(Role::Assistant, s::image());
        ToolUseContent: "ToolUseContent", Whole, SINCE_1125 => s::tool_use(), ToolUseContent::new("1", "t", json!({}));
        ToolResultContent: "ToolResultContent", Whole, SINCE_1125 => s::tool_result(), ToolResultContent::new("1", []);
        SamplingBlock: "SamplingMessageContentBlock", Whole, SINCE_1125 => SamplingBlock::from(s::tool_result()), SamplingBlock::from(TextContent::new(""));
        SamplingMessage: "SamplingMessage", Whole, ALL => s::sampling_message(), SamplingMessage::new(Role::User, TextContent::new(""));
        SamplingMessage: "SamplingMessage", Whole, ALL => with!(SamplingMessage::new(Role::User, s::audio()); s::meta()), SamplingMessage::new(Role::User, s::image());
        TextResourceContents: "TextResourceContents", Whole, ALL => s::text_contents(), TextResourceContents::new("a:b", "");
        BlobResourceContents: "BlobResourceContents", Whole, ALL => s::blob_contents(), BlobResourceContents::new("a:b", "");
    }
}

fn tools() -> Vec<Row> {
    rows! {
        Tool: "Tool", Whole, ALL => s::tool(), Tool::new("t", json!({"type": "object"}));
        ToolAnnotations: "ToolAnnotations", Whole, SINCE_0326 => s::tool_annotations(), ToolAnnotations::new();
        ToolExecution: "ToolExecution", Whole, ONLY_1125 => s::tool_execution(), ToolExecution::new();
        ListTools: "ListToolsRequest", Params("tools/list"), ALL => with!(ListTools::new(), cursor = "c"; s::request_meta()), with!(ListTools::new(); s::stamp());
        ListToolsResult: "ListToolsResult", Whole, ALL => with!(ListToolsResult::new([s::tool()]), next_cursor = "c", ttl_ms = 5u64, cache_scope = turnbuckle_types::CacheScope::Public, result_type = ResultType::Complete; s::result_meta()), ListToolsResult::new([]);
        CallTool: "CallToolRequest", Params("tools/call"), ALL => s::call_tool(), with!(CallTool::new("t"); s::stamp());
        CallToolResult: "CallToolResult", Whole, ALL => s::call_tool_result(), CallToolResult::new([]);
        ToolListChanged: "ToolListChangedNotification", Params("notifications/tools/list_changed"), ALL => with!(Signal::new(); s::note_meta()), Signal::new();
    }
}

fn resources() -> Vec<Row> {
    use turnbuckle_types::CacheScope::Private;
    rows! {
        Resource: "Resource", Whole, ALL => s::resource(), Resource::new("a:b", "a");
        ResourceTemplate: "ResourceTemplate", Whole, ALL => s::resource_template(), ResourceTemplate::new("a:{b}", "a");
        ListResources: "ListResourcesRequest", Params("resources/list"), ALL => with!(ListResources::new(), cursor = "c"; s::request_meta()), with!(ListResources::new(); s::stamp());
        ListResourcesResult: "ListResourcesResult", Whole, ALL => with!(ListResourcesResult::new([s::resource()]), next_cursor = "c", ttl_ms = 5u64, cache_scope = Private, result_type = ResultType::Complete; s::result_meta()), ListResourcesResult::new([]);
        ListResourceTemplates: "ListResourceTemplatesRequest", Params("resources/templates/list"), ALL => with!(ListResourceTemplates::new(), cursor = "c"; s::request_meta()), with!(ListResourceTemplates::new(); s::stamp());
        ListResourceTemplatesResult: "ListResourceTemplatesResult", Whole, ALL => with!(ListResourceTemplatesResult::new([s::resource_template()]), next_cursor = "c", ttl_ms = 5u64, cache_scope = Private, result_type = ResultType::Complete; s::result_meta()), ListResourceTemplatesResult::new([]);
        ReadResource: "ReadResourceRequest", Params("resources/read"), ALL => with!(ReadResource::new("a:b"), input_responses = s::input_responses(), request_state = "s"; s::request_meta()), with!(ReadResource::new("a:b"); s::stamp());
        ReadResourceResult: "ReadResourceResult", Whole, ALL => with!(ReadResourceResult::new(s::both_contents()), ttl_ms = 5u64, cache_scope = Private, result_type = ResultType::Complete; s::result_meta()), ReadResourceResult::new(Vec::<ResourceContents>::new());
        Subscribe: "SubscribeRequest", Params("resources/subscribe"), LEGACY => with!(Subscribe::new("a:b"); s::request_meta()), Subscribe::new("a:b");
        Unsubscribe: "UnsubscribeRequest", Params("resources/unsubscribe"), LEGACY => with!(Unsubscribe::new("a:b"); s::request_meta()), Unsubscribe::new("a:b");
        ResourceUpdated: "ResourceUpdatedNotification", Params("notifications/resources/updated"), ALL => with!(ResourceUpdated::new("a:b"); s::note_meta()), ResourceUpdated::new("a:b");
        ResourceListChanged: "ResourceListChangedNotification", Params("notifications/resources/list_changed"), ALL => with!(Signal::new(); s::note_meta()), Signal::new();
        SubscriptionFilter: "SubscriptionFilter", Whole, MODERN => s::filter(), SubscriptionFilter::new();
        Listen: "SubscriptionsListenRequest", Params("subscriptions/listen"), MODERN => with!(Listen::new(s::filter()); s::request_meta()), with!(Listen::new(SubscriptionFilter::new()); s::stamp());
        ListenResult: "SubscriptionsListenResult", Whole, MODERN => with!(ListenResult::new(), result_type = ResultType::Complete; s::listen_result_meta()), with!(ListenResult::new(); s::listen_result_meta());
        Meta: "SubscriptionsListenResultMetaObject", Whole, MODERN => s::listen_result_meta(), s::listen_result_meta();
        Acknowledged: "SubscriptionsAcknowledgedNotification", Params("notifications/subscriptions/acknowledged"), MODERN => with!(Acknowledged::new(s::filter()); s::note_meta()), Acknowledged::new(SubscriptionFilter::new());
    }
}

fn prompts() -> Vec<Row> {
    use turnbuckle_types::CacheScope::Public;
    rows! {
        Prompt: "Prompt", Whole, ALL => s::prompt(), Prompt::new("p");
        PromptArgument: "PromptArgument", Whole, ALL => s::prompt_argument(), PromptArgument::new("a");
        ListPrompts: "ListPromptsRequest", Params("prompts/list"), ALL => with!(ListPrompts::new(), cursor = "c"; s::request_meta()), with!(ListPrompts::new(); s::stamp());
        ListPromptsResult: "ListPromptsResult", Whole, ALL => with!(ListPromptsResult::new([s::prompt()]), next_cursor = "c", ttl_ms = 5u64, cache_scope = Public, result_type = ResultType::Complete; s::result_meta()), ListPromptsResult::new([]);
        GetPrompt: "GetPromptRequest", Params("prompts/get"), ALL => s::get_prompt(), with!(GetPrompt::new("p"); s::stamp());
        GetPromptResult: "GetPromptResult", Whole, ALL => with!(GetPromptResult::new(s::prompt_messages()), description = "d", result_type = ResultType::Complete; s::result_meta()), GetPromptResult::new([]);
        PromptListChanged: "PromptListChangedNotification", Params("notifications/prompts/list_changed"), ALL => with!(Signal::new(); s::note_meta()), Signal::new();
    }
}

fn questions() -> Vec<Row> {
    rows! {
        CreateMessage: "CreateMessageRequest", Params("sampling/createMessage"), ALL => s::create_message(), CreateMessage::new([], 1);
        CreateMessageResult: "CreateMessageResult", Whole, ALL => s::create_message_result(), CreateMessageResult::new(Role::Assistant, TextContent::new(""), "m");
        ModelPreferences: "ModelPreferences", Whole, ALL => s::model_preferences(), ModelPreferences::new();
        ModelHint: "ModelHint", Whole, ALL => s::model_hint(), ModelHint::new();
        ToolChoice: "ToolChoice", Whole, SINCE_1125 => s::tool_choice(), ToolChoice::new();
        ListRoots: "ListRootsRequest", Params("roots/list"), ALL => with!(ListRoots::new(); s::ask_meta()), ListRoots::new();
        ListRootsResult: "ListRootsResult", Whole, ALL => with!(ListRootsResult::new([s::root()]); s::meta()), ListRootsResult::new([]);
        Root: "Root", Whole, ALL => s::root(), Root::new("file:///");
        RootsListChanged: "RootsListChangedNotification", Params("notifications/roots/list_changed"), LEGACY => with!(Signal::new(); s::meta()), Signal::new();
        Elicit: "ElicitRequest", Params("elicitation/create"), SINCE_0618 => Elicit::from(s::elicit_form()), Elicit::from(ElicitForm::new("m", ElicitSchema::new(Named::new())));
        Elicit: "ElicitRequest", Params("elicitation/create"), SINCE_0618 => Elicit::from(s::elicit_url()), Elicit::from(ElicitUrl::new("m", "https://a.b"));
        ElicitForm: "ElicitRequestFormParams", Whole, SINCE_1125 => s::elicit_form(), ElicitForm::new("m", ElicitSchema::new(Named::new()));
        ElicitUrl: "ElicitRequestURLParams", Whole, SINCE_1125 => s::elicit_url(), ElicitUrl::new("m", "https://a.b");
        ElicitResult: "ElicitResult", Whole, SINCE_0618 => with!(ElicitResult::new(ElicitAction::Accept), content = json!({"a": "b", "c": 1, "d": true}); s::meta()), ElicitResult::new(ElicitAction::Cancel);
        ElicitationComplete: "ElicitationCompleteNotification", Params("notifications/elicitation/complete"), ONLY_1125 => with!(ElicitationComplete::new("e"); s::meta()), ElicitationComplete::new("e");
        UrlElicitationRequired: "URLElicitationRequiredError", Data(-32042), ONLY_1125 => UrlElicitationRequired::new([s::elicit_url()]), UrlElicitationRequired::new([]);
        InputRequest: "InputRequest", Whole, MODERN => InputRequest::from(s::create_message()), InputRequest::from(ListRoots::new());
        InputRequests: "InputRequests", Whole, MODERN => s::input_requests(), Named::<InputRequest>::new();
        InputResponses: "InputResponses", Whole, MODERN => s::input_responses(), Named::<Raw>::new();
        InputRequiredResult: "InputRequiredResult", Whole, MODERN => with!(InputRequiredResult::new(), input_requests = s::input_requests(), request_state = "s"; s::result_meta()), InputRequiredResult::new();
    }
}

fn schemas() -> Vec<Row> {
    const ONLY_0618: (Revision, Revision) = (Revision::V2025_06_18, Revision::V2025_06_18);
    rows! {
        StringSchema: "StringSchema", Whole, SINCE_0618 => s::string_schema(), StringSchema::new();
        NumberSchema: "NumberSchema", Whole, SINCE_0618 => s::number_schema(), NumberSchema::new(NumberKind::Number);
        BooleanSchema: "BooleanSchema", Whole, SINCE_0618 => s::boolean_schema(), BooleanSchema::new();
        SelectSchema: "EnumSchema", Whole, SINCE_0618 => s::select(), SelectSchema::new([]);
        SelectSchema: "LegacyTitledEnumSchema", Whole, SINCE_1125 => s::select(), SelectSchema::new([]);
        SelectSchema: "UntitledSingleSelectEnumSchema", Whole, SINCE_1125 => s::untitled_select(), SelectSchema::new([]);
        SelectSchema: "SingleSelectEnumSchema", Whole, SINCE_1125 => s::untitled_select(), SelectSchema::new([]);
        TitledSelect: "TitledSingleSelectEnumSchema", Whole, SINCE_1125 => s::titled_select(), TitledSelect::new([]);
        MultiSelect: "UntitledMultiSelectEnumSchema", Whole, SINCE_1125 => s::multi_select(), MultiSelect::new(SelectItems::new([]));
        MultiSelect: "MultiSelectEnumSchema", Whole, SINCE_1125 => s::multi_select(), MultiSelect::new(SelectItems::new([]));
        TitledMultiSelect: "TitledMultiSelectEnumSchema", Whole, SINCE_1125 => s::titled_multi_select(), TitledMultiSelect::new(TitledItems::new([]));
        PrimitiveSchema: "PrimitiveSchemaDefinition", Whole, SINCE_0618 => PrimitiveSchema::from(s::titled_multi_select()), PrimitiveSchema::from(StringSchema::new());
        PrimitiveSchema: "EnumSchema", Whole, ONLY_0618 => PrimitiveSchema::from(s::titled_select()), PrimitiveSchema::from(s::multi_select());
    }
}

fn lifecycle() -> Vec<Row> {
    let versions = || vec!["2026-07-28".to_owned()];
    rows! {
        Initialize: "InitializeRequest", Params("initialize"), LEGACY => with!(Initialize::new("v", s::client_capabilities(), s::implementation()); s::request_meta()), Initialize::new("v", ClientCapabilities::new(), Implementation::new("a", "1"));
        InitializeResult: "InitializeResult", Whole, LEGACY => with!(InitializeResult::new("v", s::server_capabilities(), s::implementation()), instructions = "i"; s::result_meta()), InitializeResult::new("v", ServerCapabilities::new(), Implementation::new("a", "1"));
        Initialized: "InitializedNotification", Params("notifications/initialized"), LEGACY => with!(Signal::new(); s::meta()), Signal::new();
        Ping: "PingRequest", Params("ping"), LEGACY => with!(Ping::new(); s::request_meta()), Ping::new();
        Discover: "DiscoverRequest", Params("server/discover"), MODERN => with!(Discover::new(); s::request_meta()), with!(Discover::new(); s::stamp());
        DiscoverResult: "DiscoverResult", Whole, MODERN => with!(DiscoverResult::new(versions(), s::server_capabilities()), instructions = "i", ttl_ms = 5u64, cache_scope = turnbuckle_types::CacheScope::Public, result_type = ResultType::Complete; s::result_meta()), DiscoverResult::new([], ServerCapabilities::new());
        UnsupportedVersion: "UnsupportedProtocolVersionError", Data(-32022), MODERN => UnsupportedVersion::new(versions(), "1900-01-01"), UnsupportedVersion::new([], "");
        MissingClientCapability: "MissingRequiredClientCapabilityError", Data(-32021), MODERN => MissingClientCapability::new(s::client_capabilities()), MissingClientCapability::new(ClientCapabilities::new());
    }
}

fn tasks() -> Vec<Row> {
    rows! {
        Task: "Task", Whole, ONLY_1125 => s::task(), s::bare_task();
        Task: "GetTaskResult", Whole, ONLY_1125 => with!(s::task(); s::meta()), s::bare_task();
        Task: "CancelTaskResult", Whole, ONLY_1125 => with!(s::task(); s::meta()), s::bare_task();
        Task: "TaskStatusNotification", Params("notifications/tasks/status"), ONLY_1125 => with!(s::task(); s::meta()), s::bare_task();
        TaskMetadata: "TaskMetadata", Whole, ONLY_1125 => s::task_metadata(), TaskMetadata::new();
        RelatedTask: "RelatedTaskMetadata", Whole, ONLY_1125 => s::related_task(), RelatedTask::new("t");
        CreateTaskResult: "CreateTaskResult", Whole, ONLY_1125 => with!(CreateTaskResult::new(s::task()); s::result_meta()), CreateTaskResult::new(s::bare_task());
        GetTask: "GetTaskRequest", Params("tasks/get"), ONLY_1125 => with!(GetTask::new("t"); s::request_meta()), GetTask::new("t");
        GetTaskPayload: "GetTaskPayloadRequest", Params("tasks/result"), ONLY_1125 => with!(GetTaskPayload::new("t"); s::request_meta()), GetTaskPayload::new("t");
        CancelTask: "CancelTaskRequest", Params("tasks/cancel"), ONLY_1125 => with!(CancelTask::new("t"); s::request_meta()), CancelTask::new("t");
        ListTasks: "ListTasksRequest", Params("tasks/list"), ONLY_1125 => with!(ListTasks::new(), cursor = "c"; s::request_meta()), ListTasks::new();
        ListTasksResult: "ListTasksResult", Whole, ONLY_1125 => with!(ListTasksResult::new([s::task()]), next_cursor = "c"; s::result_meta()), ListTasksResult::new([]);
    }
}

/// Types that the schemas spell out in place: they are checked inside these.
const INLINE: &[(&str, &str)] = &[
    ("Choice", "TitledSelect"),
    ("ClientTaskRequests", "ClientCapabilities"),
    ("ClientTasks", "ClientCapabilities"),
    ("Completion", "CompleteResult"),
    ("CompletionArgument", "Complete"),
    ("CompletionContext", "Complete"),
    ("CompletionReference", "Complete"),
    ("ElicitSchema", "Elicit"),
    ("ElicitationCapability", "ClientCapabilities"),
    ("ElicitationTasks", "ClientCapabilities"),
    ("InputKind", "InputRequest"),
    ("PromptsCapability", "ServerCapabilities"),
    ("ResourceContents", "ReadResourceResult"),
    ("ResourcesCapability", "ServerCapabilities"),
    ("RootsCapability", "ClientCapabilities"),
    ("SamplingCapability", "ClientCapabilities"),
    ("SamplingContent", "SamplingMessage"),
    ("SamplingTasks", "ClientCapabilities"),
    ("SelectItems", "MultiSelect"),
    ("ServerTaskRequests", "ServerCapabilities"),
    ("ServerTasks", "ServerCapabilities"),
    ("Signal", "Initialized"),
    ("TitledItems", "TitledMultiSelect"),
    ("ToolTasks", "ServerCapabilities"),
    ("ToolsCapability", "ServerCapabilities"),
];

/// Definitions that are no type of the model: frames, unions of messages, base types,
/// scalars, and params that are checked with their request.
const NOT_TYPES: &[&str] = &[
    "Annotated",
    "BaseMetadata",
    "CacheableResult",
    "ClientNotification",
    "ClientRequest",
    "ClientResult",
    "Cursor",
    "ElicitRequestParams",
    "Error",
    "GetTaskPayloadResult",
    "HeaderMismatchError",
    "Icons",
    "InputResponse",
    "InputResponseRequestParams",
    "InternalError",
    "InvalidParamsError",
    "InvalidRequestError",
    "LoggingLevel",
    "MethodNotFoundError",
    "Notification",
    "NotificationParams",
    "PaginatedRequest",
    "PaginatedRequestParams",
    "PaginatedResult",
    "ParseError",
    "ProgressToken",
    "Request",
    "RequestId",
    "RequestParams",
    "ResourceContents",
    "ResourceRequestParams",
    "Result",
    "ResultType",
    "Role",
    "ServerNotification",
    "ServerRequest",
    "ServerResult",
    "TaskAugmentedRequestParams",
    "TaskStatus",
];

fn written(row: &Row, sample: &dyn Sample, schema: &Schema) -> Value {
    let mut text = Vec::new();
    sample.write(schema.revision.into(), &mut text);
    let value: Value = serde_json::from_slice(&text).unwrap();
    let named = &schema.definitions()[row.definition]["properties"];
    let mut whole = match row.place {
        Whole => return value,
        Params(method) => json!({"method": method, "params": value}),
        Data(code) => json!({"error": {"code": code, "message": "m", "data": value}}),
    };
    for (name, value) in [("jsonrpc", json!("2.0")), ("id", json!(1))] {
        if named.get(name).is_some() {
            whole[name] = value;
        }
    }
    whole
}

/// What is wrong with an instance; with a full one, also what it leaves out.
fn check(
    row: &Row,
    definition: &str,
    value: &Value,
    sample: Instance,
    schema: &Schema,
) -> Vec<String> {
    let mut wrong = schema.errors(definition, value);
    let found = walk::compare(schema, definition, value);
    wrong.extend(found.unnamed.iter().map(|pointer| format!("{pointer} is not named")));
    if sample == Instance::Full && !NOT_FULL.contains(&row.definition) {
        let stand_in = |pointer: &str| {
            let part = |(model, part): &(&str, &str)| row.model == *model && pointer.contains(part);
            schema.revision < Revision::V2025_11_25 && STAND_INS.iter().any(part)
        };
        let missing = found.missing.iter().filter(|pointer| !stand_in(pointer));
        wrong.extend(missing.map(|pointer| format!("{pointer} is left out")));
    }
    for line in &mut wrong {
        *line = format!("{} as {definition} at {}: {line}", row.model, schema.revision);
    }
    wrong
}

/// Where, before 2025-11-25, something plain stands for what those revisions lack.
const STAND_INS: &[(&str, &str)] = &[
    ("CreateMessage", "/messages/"),
    ("CreateMessageResult", "/content/"),
    ("Elicit", "/requestedSchema/"),
    ("SamplingMessage", "/content/"),
];

#[derive(Clone, Copy, PartialEq)]
enum Instance {
    Full,
    Minimal,
}

#[test]
fn every_type_at_every_revision_is_what_the_schema_says() {
    let rows = rows();
    let mut wrong = Vec::new();
    for schema in Schema::all() {
        for row in rows.iter().filter(|row| row.claims(schema.revision)) {
            for (sample, instance) in
                [(&row.full, Instance::Full), (&row.minimal, Instance::Minimal)]
            {
                let value = written(row, &**sample, &schema);
                wrong.extend(check(row, row.definition, &value, instance, &schema));
                let params = format!("{}Params", row.definition);
                if matches!(row.place, Params(_)) && schema.has(&params) {
                    wrong.extend(check(row, &params, &value["params"], instance, &schema));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_says_which_revisions_have_a_definition() {
    let rows = rows();
    for schema in Schema::all() {
        let revision = schema.revision;
        for definition in rows.iter().map(|row| row.definition).collect::<BTreeSet<_>>() {
            let any = rows.iter().any(|row| row.definition == definition && row.claims(revision));
            assert_eq!(any, schema.has(definition), "{definition} at {revision}");
        }
        for definition in schema.definitions().keys() {
            let request = definition.strip_suffix("Params").unwrap_or(definition);
            let response = definition.strip_suffix("Response").unwrap_or(definition);
            let names = [definition.as_str(), request, response];
            let known =
                rows.iter().any(|row| row.claims(revision) && names.contains(&row.definition));
            let frame = definition.starts_with("JSON") || NOT_TYPES.contains(&definition.as_str());
            assert!(known || frame, "{definition} of {revision} is nowhere in the table");
        }
    }
}

#[test]
fn every_type_of_the_model_is_in_the_table() {
    let rows: BTreeSet<&str> = rows().iter().map(|row| row.model).collect();
    for (inline, parent) in INLINE {
        assert!(rows.contains(parent), "{inline} is said to be checked in {parent}");
    }
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/model");
    let mut types = 0;
    for text in texts_below(Path::new(directory)) {
        // Enums of words are checked with the members that hold them.
        let words = "keywords! {";
        let definitions = text.split("\n}\n").filter(|item| !item.contains(words));
        let names = definitions.flat_map(|item| item.lines()).filter_map(|line| {
            let line = line.trim();
            let rest = line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum "))?;
            rest.split(|c: char| !c.is_alphanumeric()).next()
        });
        for name in names.filter(|name| !["Answer", "ResultType"].contains(name)) {
            let inline = INLINE.iter().any(|(inline, _)| *inline == name);
            assert!(inline || rows.contains(name), "{name} is nowhere in the table");
            types += 1;
        }
    }
    assert!(types > 100, "found only {types} types");
}

/// The texts of all files below a directory.
fn texts_below(directory: &Path) -> Vec<String> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => texts_below(&path),
            false => vec![fs::read_to_string(path).unwrap()],
        })
        .collect()
}

/// Instances in which something must stay unset: a task inside something else has no
/// `_meta`, and a choice with names for its values is another kind of choice.
const NOT_FULL: &[&str] = &[
    "Task",
    "CreateTaskResult",
    "ListTasksResult",
    "SingleSelectEnumSchema",
    "UntitledSingleSelectEnumSchema",
];

#[test]
fn the_full_instances_are_full() {
    for row in rows().iter().filter(|row| !NOT_FULL.contains(&row.definition)) {
        let text = format!("{:?}", row.full);
        assert!(!text.contains(": None"), "{}: {text}", row.model);
        assert!(!text.contains("meta: {}"), "{}: {text}", row.model);
    }
}
