//! The Model Context Protocol as Rust types.
//!
//! Owns: JSON-RPC frames, the protocol model (one superset for all revisions),
//! [`Revision`] and [`Era`], the method table and the differences between
//! revisions. Does not own: any I/O, any async, any decision about a connection.
//!
//! The model has one type for each thing, with the fields of every revision. The params
//! of a method are named after what it does ([`CallTool`], [`ListTools`], [`Progress`]),
//! its result is that name and `Result`, and a part has the specification's own name.
//! Text is written for a revision ([`Raw::at`], [`write_at`]), which leaves out what that
//! revision lacks and adds what it insists on. Members that the model does not know are
//! kept and written back.
//!
//! ```
//! use turnbuckle_types::{CallToolResult, Raw, Revision};
//! let result = CallToolResult::text("3");
//! let old = Raw::at(&result, Revision::V2024_11_05);
//! assert_eq!(old.as_str(), r#"{"content":[{"type":"text","text":"3"}]}"#);
//! let new = Raw::at(&result, Revision::V2026_07_28);
//! assert!(new.as_str().ends_with(r#""resultType":"complete"}"#));
//! ```

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
pub use revision::{Era, HttpCancel, Questions, Revision, StructuredOutput, UnknownRevision};
#[doc(hidden)]
pub use wire::Decode;
pub use wire::{At, Encode, write_at};
