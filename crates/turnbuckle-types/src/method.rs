//! The method table: every method of every revision, and what is true of it.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::{
    Acknowledged, CallTool, CallToolResult, CancelTask, Cancelled, Complete, CompleteResult,
    CreateMessage, CreateMessageResult, Discover, DiscoverResult, Elicit, ElicitResult,
    ElicitationComplete, EmptyResult, Encode, Era, GetPrompt, GetPromptResult, GetTask,
    GetTaskPayload, Initialize, InitializeResult, ListPrompts, ListPromptsResult,
    ListResourceTemplates, ListResourceTemplatesResult, ListResources, ListResourcesResult,
    ListRoots, ListRootsResult, ListTasks, ListTasksResult, ListTools, ListToolsResult, Listen,
    ListenResult, LogMessage, Ping, Progress, Raw, ReadResource, ReadResourceResult,
    ResourceUpdated, Revision, SetLevel, Signal, Subscribe, Task, Unsubscribe,
};

/// A request: its method, what it takes and what it gives.
///
/// ```
/// use turnbuckle_types::{Method, Request, methods};
/// assert_eq!(methods::CallTool::METHOD, Method::CallTool);
/// ```
pub trait Request {
    /// Its row in the table.
    const METHOD: Method;
    /// What it takes.
    type Params: Encode + DeserializeOwned + Send + Sync + 'static;
    /// What it gives when it is complete.
    type Result: Encode + DeserializeOwned + Send + Sync + 'static;
}

/// A notification: its method and what it says.
pub trait Notification {
    /// Its row in the table.
    const METHOD: Method;
    /// What it says.
    type Params: Encode + DeserializeOwned + Send + Sync + 'static;
}

/// What is true of a method.
///
/// ```
/// use turnbuckle_types::Method;
/// let row = Method::ReadResource.row();
/// assert!(row.cacheable && row.may_ask && row.abandonable);
/// assert_eq!(row.mirrored, Some("uri"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// The name on the wire.
    pub name: &'static str,
    /// Whether it wants an answer.
    pub kind: MethodKind,
    /// The revisions in which clients send it.
    pub client: Option<Span>,
    /// The revisions in which servers send it.
    pub server: Option<Span>,
    /// The revisions in which it is an input request, inside a result.
    pub input: Option<Span>,
    /// Whether a caller that gives up may tell the peer.
    pub abandonable: bool,
    /// Whether its result says for how long it may be cached, in the modern era.
    pub cacheable: bool,
    /// Whether an `input_required` result may come first, in the modern era.
    pub may_ask: bool,
    /// Whether it stays open until someone ends it.
    pub long_lived: bool,
    /// The member of its params that is repeated outside the body, in the modern era.
    pub mirrored: Option<&'static str>,
}

/// Whether a method wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// It does.
    Request,
    /// It does not.
    Notification,
}

/// Revisions from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub first: Revision,
    /// The last.
    pub last: Revision,
}

impl Span {
    /// Whether this revision is one of them.
    pub fn contains(self, revision: Revision) -> bool {
        self.first <= revision && revision <= self.last
    }

    const fn only(first: Revision, last: Revision) -> Option<Span> {
        Some(Span { first, last })
    }
}

const ALWAYS: Option<Span> = Span::only(Revision::V2024_11_05, Revision::V2026_07_28);
const LEGACY: Option<Span> = Span::only(Revision::V2024_11_05, Revision::V2025_11_25);
const MODERN: Option<Span> = Span::only(Revision::V2026_07_28, Revision::V2026_07_28);
const SINCE_ELICITATION: Option<Span> = Span::only(Revision::V2025_06_18, Revision::V2025_11_25);
const TASKS: Option<Span> = Span::only(Revision::V2025_11_25, Revision::V2025_11_25);

/// What most requests have in common.
const REQUEST: Row = Row {
    name: "",
    kind: MethodKind::Request,
    client: None,
    server: None,
    input: None,
    abandonable: true,
    cacheable: false,
    may_ask: false,
    long_lived: false,
    mirrored: None,
};

/// What notifications have in common.
const NOTE: Row = Row { kind: MethodKind::Notification, abandonable: false, ..REQUEST };

impl Method {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// What is true of it.
    pub const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Whether it is a message of this revision, in either direction.
    pub fn exists_in(self, revision: Revision) -> bool {
        self.sent_by_client(revision) || self.sent_by_server(revision)
    }

    /// Whether no revision that opens with a handshake has it.
    pub fn is_modern_only(self) -> bool {
        let mut legacy = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy);
        !legacy.any(|revision| self.exists_in(revision))
    }

    /// Whether clients send it in this revision.
    pub fn sent_by_client(self, revision: Revision) -> bool {
        self.row().client.is_some_and(|span| span.contains(revision))
    }

    /// Whether servers send it in this revision.
    pub fn sent_by_server(self, revision: Revision) -> bool {
        self.row().server.is_some_and(|span| span.contains(revision))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row a method: `Name = "name on the wire", Params => Result, { what is true of it };`
macro_rules! methods {
    (
        requests { $(
            $request:ident = $rname:literal, $rparams:ty => $result:ty, { $($rrow:tt)* };
        )+ }
        notifications { $(
            $note:ident = $nname:literal, $nparams:ty, { $($nrow:tt)* };
        )+ }
    ) => {
        /// A method of the protocol, in any revision.
        ///
        /// ```
        /// use turnbuckle_types::{Method, Revision};
        /// let method = Method::from_name("tools/call").unwrap();
        /// assert_eq!(method.row().mirrored, Some("name"));
        /// assert!(!Method::Ping.exists_in(Revision::V2026_07_28));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Method {
            $( #[doc = concat!("`", $rname, "`")] $request, )+
            $( #[doc = concat!("`", $nname, "`")] $note, )+
        }

        impl Method {
            /// Every method, requests first.
            pub const ALL: &'static [Method] = &[$( Method::$request, )+ $( Method::$note, )+];

            /// The method of this name.
            pub fn from_name(name: &str) -> Option<Method> {
                Some(match name {
                    $( $rname => Method::$request, )+
                    $( $nname => Method::$note, )+
                    _ => return None,
                })
            }
        }

        const ROWS: [Row; Method::ALL.len()] = [
            $( Row { name: $rname, $($rrow)* ..REQUEST }, )+
            $( Row { name: $nname, $($nrow)* ..NOTE }, )+
        ];

        /// A type for each method, which ties its name to its params and its result.
        pub mod methods {
            $(
                #[doc = concat!("`", $rname, "`")]
                #[derive(Clone, Copy, Debug)]
                pub struct $request;
            )+
            $(
                #[doc = concat!("`", $nname, "`")]
                #[derive(Clone, Copy, Debug)]
                pub struct $note;
            )+
        }

        $(
            impl Request for methods::$request {
                const METHOD: Method = Method::$request;
                type Params = $rparams;
                type Result = $result;
            }
        )+

        $(
            impl Notification for methods::$note {
                const METHOD: Method = Method::$note;
                type Params = $nparams;
            }
        )+
    };
}

methods! {
    requests {
        Initialize = "initialize", Initialize => InitializeResult,
            { client: LEGACY, abandonable: false, };
        Discover = "server/discover", Discover => DiscoverResult,
            { client: MODERN, abandonable: false, cacheable: true, };
        Ping = "ping", Ping => EmptyResult,
            { client: LEGACY, server: LEGACY, };
        ListTools = "tools/list", ListTools => ListToolsResult,
            { client: ALWAYS, cacheable: true, };
        CallTool = "tools/call", CallTool => CallToolResult,
            { client: ALWAYS, may_ask: true, mirrored: Some("name"), };
        ListResources = "resources/list", ListResources => ListResourcesResult,
            { client: ALWAYS, cacheable: true, };
        ListResourceTemplates = "resources/templates/list",
            ListResourceTemplates => ListResourceTemplatesResult,
            { client: ALWAYS, cacheable: true, };
        ReadResource = "resources/read", ReadResource => ReadResourceResult,
            { client: ALWAYS, cacheable: true, may_ask: true, mirrored: Some("uri"), };
        Subscribe = "resources/subscribe", Subscribe => EmptyResult,
            { client: LEGACY, };
        Unsubscribe = "resources/unsubscribe", Unsubscribe => EmptyResult,
            { client: LEGACY, };
        ListPrompts = "prompts/list", ListPrompts => ListPromptsResult,
            { client: ALWAYS, cacheable: true, };
        GetPrompt = "prompts/get", GetPrompt => GetPromptResult,
            { client: ALWAYS, may_ask: true, mirrored: Some("name"), };
        Complete = "completion/complete", Complete => CompleteResult,
            { client: ALWAYS, };
        SetLevel = "logging/setLevel", SetLevel => EmptyResult,
            { client: LEGACY, };
        Listen = "subscriptions/listen", Listen => ListenResult,
            { client: MODERN, long_lived: true, };
        CreateMessage = "sampling/createMessage", CreateMessage => CreateMessageResult,
            { server: LEGACY, input: MODERN, };
        ListRoots = "roots/list", ListRoots => ListRootsResult,
            { server: LEGACY, input: MODERN, };
        Elicit = "elicitation/create", Elicit => ElicitResult,
            { server: SINCE_ELICITATION, input: MODERN, };
        GetTask = "tasks/get", GetTask => Task,
            { client: TASKS, server: TASKS, };
        GetTaskPayload = "tasks/result", GetTaskPayload => Raw,
            { client: TASKS, server: TASKS, };
        ListTasks = "tasks/list", ListTasks => ListTasksResult,
            { client: TASKS, server: TASKS, };
        CancelTask = "tasks/cancel", CancelTask => Task,
            { client: TASKS, server: TASKS, };
    }
    notifications {
        Initialized = "notifications/initialized", Signal, { client: LEGACY, };
        Cancelled = "notifications/cancelled", Cancelled, { client: ALWAYS, server: ALWAYS, };
        Progress = "notifications/progress", Progress, { client: LEGACY, server: ALWAYS, };
        LogMessage = "notifications/message", LogMessage, { server: ALWAYS, };
        ToolListChanged = "notifications/tools/list_changed", Signal, { server: ALWAYS, };
        ResourceListChanged = "notifications/resources/list_changed", Signal, { server: ALWAYS, };
        ResourceUpdated = "notifications/resources/updated", ResourceUpdated, { server: ALWAYS, };
        PromptListChanged = "notifications/prompts/list_changed", Signal, { server: ALWAYS, };
        RootsListChanged = "notifications/roots/list_changed", Signal, { client: LEGACY, };
        Acknowledged = "notifications/subscriptions/acknowledged", Acknowledged,
            { server: MODERN, };
        ElicitationComplete = "notifications/elicitation/complete", ElicitationComplete,
            { server: TASKS, };
        TaskStatus = "notifications/tasks/status", Task, { client: TASKS, server: TASKS, };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_row() {
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.as_str()), Some(*method));
            assert!(Revision::ALL.iter().any(|revision| method.exists_in(*revision)), "{method}");
            let note = method.as_str().starts_with("notifications/");
            assert_eq!(note, method.row().kind == MethodKind::Notification, "{method}");
        }
        assert_eq!(Method::from_name("tools/Call"), None);
        assert_eq!(Method::from_name(""), None);
    }

    #[test]
    fn the_requests_that_open_a_connection_are_not_abandoned() {
        let requests = Method::ALL.iter().filter(|m| m.row().kind == MethodKind::Request);
        let kept: Vec<_> = requests.filter(|method| !method.row().abandonable).collect();
        assert_eq!(kept, [&Method::Initialize, &Method::Discover]);
    }

    #[test]
    fn what_is_mirrored_is_a_member_of_the_params() {
        let mirrored = |method: &Method| Some((method.as_str(), method.row().mirrored?));
        let table: Vec<_> = Method::ALL.iter().filter_map(mirrored).collect();
        let expected = [("tools/call", "name"), ("resources/read", "uri"), ("prompts/get", "name")];
        assert_eq!(table, expected);
    }

    #[test]
    fn an_input_request_is_a_message_of_the_older_revisions() {
        for method in Method::ALL.iter().filter(|method| method.row().input.is_some()) {
            assert!(method.sent_by_server(Revision::V2025_11_25), "{method}");
            assert!(!method.exists_in(Revision::V2026_07_28), "{method}");
        }
    }
}
