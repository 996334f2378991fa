//! The Model Context Protocol as Rust types.
//!
//! Owns: JSON-RPC frames, the protocol model (one superset for all revisions),
//! [`Revision`] and [`Era`], the method table and the differences between
//! revisions. Does not own: any I/O, any async, any decision about a connection.

#[macro_use]
mod macros;

mod error;
mod extra;
mod id;
pub mod jsonrpc;
mod meta;
mod method;
mod model;
mod named;
mod raw;
mod revision;
mod wire;

pub use error::{RpcError, code};
pub use extra::Extra;
pub use id::{Key, RequestId};
pub use meta::{InvalidMeta, Meta};
pub use method::{Method, MethodKind, Notification, Request, Row, Span, methods};
pub use model::{
    capabilities::{
        ClientCapabilities, ClientTaskRequests, ClientTasks, ElicitationCapability,
        ElicitationTasks, PromptsCapability, ResourcesCapability, RootsCapability,
        SamplingCapability, SamplingTasks, ServerCapabilities, ServerTaskRequests, ServerTasks,
        ToolTasks, ToolsCapability,
    },
    common::{
        Annotations, CacheScope, EmptyResult, Icon, IconTheme, Implementation, ResultType, Role,
        Signal,
    },
    completion::{
        Complete, CompleteResult, Completion, CompletionArgument, CompletionContext,
        CompletionReference, PromptReference, ResourceTemplateReference,
    },
    content::{
        AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink, TextContent,
    },
    elicitation::{
        Elicit, ElicitAction, ElicitForm, ElicitResult, ElicitUrl, ElicitationComplete, FormMode,
        UrlElicitationRequired,
    },
    input::{Answer, InputKind, InputRequest, InputRequiredResult, MayAsk},
    lifecycle::{
        Discover, DiscoverResult, Initialize, InitializeResult, MissingClientCapability, Ping,
        UnsupportedVersion,
    },
    logging::{LogLevel, LogMessage, SetLevel},
    progress::{Cancelled, Progress},
    prompt::{
        GetPrompt, GetPromptResult, ListPrompts, ListPromptsResult, Prompt, PromptArgument,
        PromptMessage,
    },
    resource::{
        BlobResourceContents, ListResourceTemplates, ListResourceTemplatesResult, ListResources,
        ListResourcesResult, ReadResource, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate, ResourceUpdated, Subscribe, TextResourceContents, Unsubscribe,
    },
    roots::{ListRoots, ListRootsResult, Root},
    sampling::{
        CreateMessage, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
        SamplingBlock, SamplingContent, SamplingMessage, ToolChoice, ToolChoiceMode,
        ToolResultContent, ToolUseContent,
    },
    schema::{
        BooleanSchema, Choice, ElicitSchema, MultiSelect, NumberKind, NumberSchema,
        PrimitiveSchema, SelectItems, SelectSchema, StringFormat, StringSchema, TitledItems,
        TitledMultiSelect, TitledSelect,
    },
    subscription::{Acknowledged, Listen, ListenResult, SubscriptionFilter},
    task::{
        CancelTask, CreateTaskResult, GetTask, GetTaskPayload, ListTasks, ListTasksResult,
        RelatedTask, Task, TaskMetadata, TaskStatus,
    },
    tool::{
        CallTool, CallToolResult, ListTools, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
        ToolExecution,
    },
};
pub use named::Named;
pub use raw::Raw;
pub use revision::{Era, Revision, UnknownRevision};
pub use wire::{At, Encode, write_at};
