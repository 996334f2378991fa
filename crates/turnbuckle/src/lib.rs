//! An SDK for the Model Context Protocol.

#[cfg(feature = "client")]
mod client;
#[cfg(any(feature = "client", feature = "server"))]
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    expect(dead_code, reason = "a client alone, or a server alone, uses its half of the seam")
)]
mod dispatch;
#[cfg(any(feature = "client", feature = "server"))]
mod envelope;
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    expect(dead_code, reason = "each side makes its own errors")
)]
mod error;
#[cfg(any(feature = "client", feature = "server"))]
mod form;
#[cfg(all(feature = "client", feature = "server"))]
mod in_process;
mod limits;
#[cfg(feature = "server")]
mod principal;
#[cfg(feature = "server")]
mod seal;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;
#[cfg(feature = "server")]
mod store;
#[cfg(any(feature = "client", feature = "server"))]
pub mod transport;

#[cfg(all(feature = "client", feature = "http"))]
pub use client::Prior;
#[cfg(feature = "client")]
pub use client::{
    Call, Client, ClientBuilder, Happened, IntoSpawn, Listed, Listening, ServerRequest, Tools,
    Watch,
};
#[cfg(any(feature = "client", feature = "server"))]
pub use dispatch::Counters;
pub use error::{Error, ErrorKind, Result};
pub use limits::Limits;
#[cfg(feature = "server")]
pub use principal::Principal;
#[cfg(feature = "server")]
pub use seal::KeyRing;
#[cfg(feature = "logs")]
pub use server::ForwardLogs;
#[cfg(feature = "server")]
pub use server::{
    Amount, Args, Arguments, Audio, BlockingFn, Change, Changes, Ctx, Ended, Extension, Failure,
    Finished, FromCall, Group, HandlerFn, Image, IntoGroup, IntoPrompt, IntoReply, IntoResource,
    IntoTemplate, IntoTool, Invocation, Json, Listeners, MemoryBus, Metrics, NotFound, PathError,
    PathSegment, Prompt, RawArgs, Report, Resource, SafePath, Server, Serves, Serving, Started,
    State, Streaming, SubscriptionBus, Template, TemplateError, TextValue, Tool, ToolError, Typed,
    UriTemplate, Variables, blocking_prompt, blocking_resource, blocking_template, blocking_tool,
    layer, prompt, resource, safe_join, schema, template, tool,
};
#[cfg(all(feature = "http", feature = "server"))]
pub use server::{Header, HttpHeader};
#[cfg(feature = "server")]
pub use server::{
    Action, Ask, AskError, Asked, Asking, Elicit, ElicitFields, ElicitPage, Elicited,
    InputRequired, MemoryStates, Question, Roots, Sampling, StateStore, elicit, elicit_form,
    elicit_url, form_of, roots, sample,
};
#[cfg(feature = "server")]
pub use store::{StoreError, StoreFuture};
#[cfg(all(feature = "client", feature = "http"))]
pub use transport::http::client::{PostBody, Redirects};
#[cfg(all(feature = "http", feature = "server"))]
pub use transport::http::legacy::{
    events::{EventStore, MemoryEvents, StoredEvent, StreamKey},
    sessions::{MemorySessions, SessionId, SessionRecord, SessionStore},
    sse_2024::server::{SseFuture, SseService},
};
#[cfg(all(feature = "http", feature = "server"))]
pub use transport::http::server::{
    BoundHttp, HttpAddress, HttpBody, HttpFuture, HttpReport, HttpService, ServingHttp,
};
pub use trace::{InvalidTraceParent, TraceContext, TraceParent};
pub use turnbuckle_types as types;
pub use turnbuckle_types::{Revision, RpcError};

/// Makes a tool from a function with plain arguments.
///
/// ```
/// use turnbuckle::{Server, tool};
///
/// /// Add two integers.
/// #[tool]
/// async fn add(
///     /// The first number.
///     a: i64,
///     /// The second; zero if it is left out.
///     b: Option<i64>,
/// ) -> i64 {
///     a + b.unwrap_or(0)
/// }
///
/// let server = Server::new("calc", "1.0").tool(add);
/// # let _ = server;
/// ```
#[cfg(feature = "macros")]
pub use turnbuckle_macros::tool;

/// What generated code refers to. Not for use by hand.
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;

    pub use crate::server::Description;
}
