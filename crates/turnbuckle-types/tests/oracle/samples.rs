//! Owns one instance of every type with everything set, whatever revision has it.
//! Does not own what each is checked against.

use serde_json::json;
use turnbuckle_types::{
    Annotations, AudioContent, BlobResourceContents, BooleanSchema, CallTool, CallToolResult,
    Choice, ClientCapabilities, ClientTaskRequests, ClientTasks, Complete, CompleteResult,
    Completion, CompletionArgument, CompletionContext, CompletionReference, ContentBlock,
    CreateMessage, CreateMessageResult, ElicitForm, ElicitSchema, ElicitUrl, ElicitationCapability,
    ElicitationTasks, EmbeddedResource, FormMode, GetPrompt, Icon, IconTheme, ImageContent,
    Implementation, IncludeContext, InputRequest, LogLevel, Meta, ModelHint, ModelPreferences,
    MultiSelect, Named, NumberKind, NumberSchema, PrimitiveSchema, Prompt, PromptArgument,
    PromptMessage, PromptReference, PromptsCapability, Raw, RelatedTask, Resource,
    ResourceContents, ResourceLink, ResourceTemplate, ResourceTemplateReference,
    ResourcesCapability, ResultType, Revision, Role, Root, RootsCapability, SamplingBlock,
    SamplingCapability, SamplingMessage, SamplingTasks, SelectItems, SelectSchema,
    ServerCapabilities, ServerTaskRequests, ServerTasks, StringFormat, StringSchema,
    SubscriptionFilter, Task, TaskMetadata, TaskStatus, TaskSupport, TextContent,
    TextResourceContents, TitledItems, TitledMultiSelect, TitledSelect, Tool, ToolAnnotations,
    ToolChoice, ToolChoiceMode, ToolExecution, ToolResultContent, ToolTasks, ToolUseContent,
    ToolsCapability,
};

/// Sets optional fields, and after a semicolon `_meta`.
macro_rules! with {
    ($value:expr $(, $field:ident = $to:expr)* $(; $meta:expr)?) => {{
        let mut value = $value;
        $( value.$field = Some($to.into()); )*
        $( value.meta = $meta; )?
        value
    }};
}
pub(crate) use with;

pub(crate) fn object() -> Raw {
    json!({"any": [1, "thing"]}).into()
}

pub(crate) fn schema() -> Raw {
    json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}).into()
}

pub(crate) fn named() -> Named<Raw> {
    Named::from_iter([("com.example/thing", object())])
}

/// What any part of a message may carry.
pub(crate) fn meta() -> Meta {
    let mut meta = Meta::new();
    meta.insert("com.example/color", json!("red"));
    meta
}

/// What a request of 2026-07-28 must carry.
pub(crate) fn stamp() -> Meta {
    let mut meta = Meta::new();
    meta.set_protocol_version(Revision::LATEST.as_str());
    meta.set_client_capabilities(&ClientCapabilities::new());
    meta
}

pub(crate) fn request_meta() -> Meta {
    let mut meta = meta();
    meta.set_progress_token("token");
    meta.set_protocol_version(Revision::LATEST.as_str());
    meta.set_client_info(&implementation());
    meta.set_client_capabilities(&client_capabilities());
    meta.set_log_level(LogLevel::Info);
    meta.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
    meta.set_tracestate("a=b");
    meta.set_baggage("c=d");
    meta
}

/// What a request that servers send may carry, which is none of the modern keys.
pub(crate) fn ask_meta() -> Meta {
    let mut meta = meta();
    meta.set_progress_token(7);
    meta
}

pub(crate) fn note_meta() -> Meta {
    let mut meta = meta();
    meta.set_subscription_id("listen-1");
    meta
}

pub(crate) fn result_meta() -> Meta {
    let mut meta = meta();
    meta.set_server_info(&implementation());
    meta
}

pub(crate) fn listen_result_meta() -> Meta {
    let mut meta = result_meta();
    meta.set_subscription_id(3);
    meta
}

pub(crate) fn related_task() -> RelatedTask {
    RelatedTask::new("task-1")
}

pub(crate) fn icon() -> Icon {
    let sizes = vec!["48x48".to_owned()];
    with!(
        Icon::new("https://example.com/a.png"),
        mime_type = "image/png",
        sizes = sizes,
        theme = IconTheme::Dark
    )
}

pub(crate) fn implementation() -> Implementation {
    with!(
        Implementation::new("calc", "1.0"),
        title = "Calculator",
        description = "Adds.",
        website_url = "https://example.com",
        icons = vec![icon()]
    )
}

pub(crate) fn annotations() -> Annotations {
    with!(
        Annotations::new(),
        audience = vec![Role::User, Role::Assistant],
        priority = 1,
        last_modified = "2025-01-12T15:00:58Z"
    )
}

pub(crate) fn text() -> TextContent {
    with!(TextContent::new("hello \"world\"\n"), annotations = annotations(); meta())
}

pub(crate) fn image() -> ImageContent {
    with!(ImageContent::new("AAAA", "image/png"), annotations = annotations(); meta())
}

pub(crate) fn audio() -> AudioContent {
    with!(AudioContent::new("AAAA", "audio/wav"), annotations = annotations(); meta())
}

pub(crate) fn text_contents() -> TextResourceContents {
    with!(TextResourceContents::new("file:///a", "text"), mime_type = "text/plain"; meta())
}

pub(crate) fn blob_contents() -> BlobResourceContents {
    with!(BlobResourceContents::new("file:///a", "AAAA"), mime_type = "image/png"; meta())
}

pub(crate) fn both_contents() -> Vec<ResourceContents> {
    vec![text_contents().into(), blob_contents().into()]
}

pub(crate) fn embedded() -> EmbeddedResource {
    with!(EmbeddedResource::new(text_contents()), annotations = annotations(); meta())
}

pub(crate) fn resource() -> Resource {
    with!(Resource::new("file:///a", "a"), title = "A", description = "It is A.",
        mime_type = "text/plain", annotations = annotations(), size = 12u64,
        icons = vec![icon()]; meta())
}

pub(crate) fn link() -> ResourceLink {
    with!(ResourceLink::new("file:///a", "a"), title = "A", description = "It is A.",
        mime_type = "text/plain", annotations = annotations(), size = 12u64,
        icons = vec![icon()]; meta())
}

pub(crate) fn resource_template() -> ResourceTemplate {
    with!(ResourceTemplate::new("file:///{path}", "files"), title = "Files",
        description = "Any file.", mime_type = "text/plain", annotations = annotations(),
        icons = vec![icon()]; meta())
}

pub(crate) fn blocks() -> Vec<ContentBlock> {
    vec![text().into(), image().into(), audio().into(), link().into(), embedded().into()]
}

pub(crate) fn prompt_argument() -> PromptArgument {
    with!(
        PromptArgument::new("code"),
        title = "Code",
        description = "What to read.",
        required = true
    )
}

pub(crate) fn prompt() -> Prompt {
    with!(Prompt::new("review"), title = "Review", description = "Reads code.",
        arguments = vec![prompt_argument()], icons = vec![icon()]; meta())
}

pub(crate) fn prompt_messages() -> Vec<PromptMessage> {
    blocks().into_iter().map(|block| PromptMessage::new(Role::User, block)).collect()
}

pub(crate) fn tool_annotations() -> ToolAnnotations {
    with!(
        ToolAnnotations::new(),
        title = "Add",
        read_only_hint = true,
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    )
}

pub(crate) fn tool_execution() -> ToolExecution {
    with!(ToolExecution::new(), task_support = TaskSupport::Optional)
}

pub(crate) fn tool() -> Tool {
    with!(Tool::new("add", schema()), title = "Add", description = "Adds.",
        output_schema = schema(), annotations = tool_annotations(),
        execution = tool_execution(), icons = vec![icon()]; meta())
}

pub(crate) fn input_responses() -> Named<Raw> {
    Named::from_iter([("who", Raw::from(json!({"action": "accept", "content": {"name": "Ada"}})))])
}

pub(crate) fn call_tool() -> CallTool {
    with!(CallTool::new("add"), arguments = json!({"a": 1}), input_responses = input_responses(),
        request_state = "state", task = task_metadata(); request_meta())
}

pub(crate) fn call_tool_result() -> CallToolResult {
    with!(CallToolResult::new(blocks()), structured_content = json!({"sum": 3}),
        is_error = false, result_type = ResultType::Complete; result_meta())
}

fn words() -> Named<String> {
    Named::from([("language", "python")])
}

pub(crate) fn get_prompt() -> GetPrompt {
    with!(GetPrompt::new("review"), arguments = words(), input_responses = input_responses(),
        request_state = "state"; request_meta())
}

pub(crate) fn prompt_reference() -> PromptReference {
    with!(PromptReference::new("review"), title = "Review")
}

pub(crate) fn complete(reference: impl Into<CompletionReference>) -> Complete {
    let context = with!(CompletionContext::new(), arguments = words());
    let argument = CompletionArgument::new("framework", "fla");
    with!(Complete::new(reference, argument), context = context; request_meta())
}

pub(crate) fn template_reference() -> ResourceTemplateReference {
    ResourceTemplateReference::new("file:///{path}")
}

pub(crate) fn complete_result() -> CompleteResult {
    let completion = with!(Completion::new(["flask".to_owned()]), total = 1u64, has_more = false);
    with!(CompleteResult::new(completion), result_type = ResultType::Complete; result_meta())
}

pub(crate) fn tool_use() -> ToolUseContent {
    with!(ToolUseContent::new("1", "weather", json!({"city": "Paris"})); meta())
}

pub(crate) fn tool_result() -> ToolResultContent {
    with!(ToolResultContent::new("1", blocks()), structured_content = json!({"c": 18}),
        is_error = false; meta())
}

pub(crate) fn sampling_blocks() -> Vec<SamplingBlock> {
    vec![text().into(), image().into(), audio().into(), tool_use().into(), tool_result().into()]
}

pub(crate) fn sampling_message() -> SamplingMessage {
    with!(SamplingMessage::new(Role::User, sampling_blocks()); meta())
}

pub(crate) fn model_hint() -> ModelHint {
    with!(ModelHint::new(), name = "sonnet")
}

pub(crate) fn model_preferences() -> ModelPreferences {
    with!(
        ModelPreferences::new(),
        hints = vec![model_hint()],
        cost_priority = 0.25,
        speed_priority = 0.5,
        intelligence_priority = 1
    )
}

pub(crate) fn tool_choice() -> ToolChoice {
    with!(ToolChoice::new(), mode = ToolChoiceMode::Auto)
}

pub(crate) fn create_message() -> CreateMessage {
    let alone = with!(SamplingMessage::new(Role::Assistant, text()); meta());
    with!(CreateMessage::new([sampling_message(), alone], 100),
        model_preferences = model_preferences(), system_prompt = "Be brief.",
        include_context = IncludeContext::ThisServer, temperature = 0.5,
        stop_sequences = vec!["END".to_owned()], metadata = object(), tools = vec![tool()],
        tool_choice = tool_choice(), task = task_metadata(); ask_meta())
}

pub(crate) fn create_message_result() -> CreateMessageResult {
    with!(CreateMessageResult::new(Role::Assistant, sampling_blocks(), "sonnet"),
        stop_reason = "endTurn"; meta())
}

pub(crate) fn string_schema() -> StringSchema {
    with!(
        StringSchema::new(),
        title = "Mail",
        description = "Yours.",
        min_length = 3u64,
        max_length = 50u64,
        format = StringFormat::Email,
        default = "a@b.c"
    )
}

pub(crate) fn number_schema() -> NumberSchema {
    with!(
        NumberSchema::new(NumberKind::Integer),
        title = "Age",
        description = "Yours.",
        minimum = 0,
        maximum = 100,
        default = 50
    )
}

pub(crate) fn boolean_schema() -> BooleanSchema {
    with!(BooleanSchema::new(), title = "Sure", description = "Are you?", default = true)
}

fn colors() -> Vec<String> {
    vec!["red".to_owned(), "green".to_owned()]
}

fn choices() -> Vec<Choice> {
    vec![Choice::new("red", "Red"), Choice::new("green", "Green")]
}

/// With names for its values, which is the older kind of titled choice.
pub(crate) fn select() -> SelectSchema {
    with!(untitled_select(), enum_names = vec!["Red".to_owned(), "Green".to_owned()])
}

pub(crate) fn untitled_select() -> SelectSchema {
    with!(SelectSchema::new(colors()), title = "Color", description = "Which?", default = "red")
}

pub(crate) fn titled_select() -> TitledSelect {
    with!(TitledSelect::new(choices()), title = "Color", description = "Which?", default = "red")
}

pub(crate) fn multi_select() -> MultiSelect {
    with!(
        MultiSelect::new(SelectItems::new(colors())),
        title = "Colors",
        description = "Which?",
        min_items = 1u64,
        max_items = 2u64,
        default = colors()
    )
}

pub(crate) fn titled_multi_select() -> TitledMultiSelect {
    with!(
        TitledMultiSelect::new(TitledItems::new(choices())),
        title = "Colors",
        description = "Which?",
        min_items = 1u64,
        max_items = 2u64,
        default = colors()
    )
}

pub(crate) fn fields() -> Vec<PrimitiveSchema> {
    vec![
        string_schema().into(),
        number_schema().into(),
        boolean_schema().into(),
        select().into(),
        titled_select().into(),
        multi_select().into(),
        titled_multi_select().into(),
    ]
}

pub(crate) fn elicit_form() -> ElicitForm {
    let fields = fields().into_iter().enumerate().map(|(i, field)| (format!("f{i}"), field));
    let schema = with!(
        ElicitSchema::new(fields.collect::<Named<_>>()),
        schema = "https://json-schema.org/draft/2020-12/schema",
        required = vec!["f0".to_owned()]
    );
    with!(ElicitForm::new("Tell me", schema), mode = FormMode::Form, task = task_metadata();
        ask_meta())
}

pub(crate) fn elicit_url() -> ElicitUrl {
    with!(ElicitUrl::new("Log in", "https://example.com/login"), elicitation_id = "e-1",
        task = task_metadata(); ask_meta())
}

pub(crate) fn input_requests() -> Named<InputRequest> {
    Named::from_iter([
        ("model", InputRequest::from(create_message())),
        ("form", elicit_form().into()),
        ("page", elicit_url().into()),
        ("roots", with!(turnbuckle_types::ListRoots::new(); meta()).into()),
    ])
}

pub(crate) fn root() -> Root {
    with!(Root::new("file:///home/ada"), name = "Home"; meta())
}

pub(crate) fn filter() -> SubscriptionFilter {
    with!(
        SubscriptionFilter::new(),
        tools_list_changed = true,
        prompts_list_changed = true,
        resources_list_changed = true,
        resource_subscriptions = vec!["file:///a".to_owned()]
    )
}

pub(crate) fn client_capabilities() -> ClientCapabilities {
    let sampling = with!(SamplingTasks::new(), create_message = object());
    let elicitation = with!(ElicitationTasks::new(), create = object());
    let requests = with!(ClientTaskRequests::new(), sampling = sampling, elicitation = elicitation);
    let tasks = with!(ClientTasks::new(), list = object(), cancel = object(), requests = requests);
    with!(
        ClientCapabilities::new(),
        experimental = named(),
        roots = with!(RootsCapability::new(), list_changed = true),
        sampling = with!(SamplingCapability::new(), context = object(), tools = object()),
        elicitation = with!(ElicitationCapability::new(), form = object(), url = object()),
        tasks = tasks,
        extensions = named()
    )
}

pub(crate) fn server_capabilities() -> ServerCapabilities {
    let tools = with!(ToolTasks::new(), call = object());
    let requests = with!(ServerTaskRequests::new(), tools = tools);
    let tasks = with!(ServerTasks::new(), list = object(), cancel = object(), requests = requests);
    with!(
        ServerCapabilities::new(),
        experimental = named(),
        logging = object(),
        completions = object(),
        prompts = with!(PromptsCapability::new(), list_changed = true),
        resources = with!(ResourcesCapability::new(), subscribe = true, list_changed = true),
        tools = with!(ToolsCapability::new(), list_changed = true),
        tasks = tasks,
        extensions = named()
    )
}

pub(crate) fn task_metadata() -> TaskMetadata {
    with!(TaskMetadata::new(), ttl = 60_000u64)
}

pub(crate) fn bare_task() -> Task {
    let now = "2025-11-25T10:00:00Z";
    Task::new("task-1", TaskStatus::Working, now, now, None)
}

/// A task as it stands inside something else, where it has no `_meta`.
pub(crate) fn task() -> Task {
    let now = "2025-11-25T10:00:00Z";
    with!(
        Task::new("task-1", TaskStatus::Working, now, now, Some(60_000)),
        status_message = "halfway",
        poll_interval = 500u64
    )
}
