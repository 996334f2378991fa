#![cfg_attr(docsrs, feature(doc_cfg))]
//! An SDK for the Model Context Protocol: clients and servers in which abandoning a call really
//! cancels it.
//!
//! A server offers functions to clients of every protocol revision, over standard input and output,
//! any byte stream, and HTTP:
//!
//! ```no_run
//! # #[cfg(feature = "macros")]
//! # mod example {
//! use turnbuckle::{Server, tool};
//!
//! /// Add two integers.
//! #[tool]
//! async fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! #[tokio::main]
//! async fn main() -> turnbuckle::Result<()> {
//!     Server::new("calc", "1.0").tool(add).serve_stdio().await
//! }
//! # }
//! ```
//!
//! A client calls it. Dropping a call's future stops the work on the other side:
//!
//! ```no_run
//! # #[cfg(feature = "client")]
//! # async fn example() -> turnbuckle::Result<()> {
//! use std::{process::Command, time::Duration};
//! use turnbuckle::Client;
//!
//! let client = Client::spawn(Command::new("calc")).await?;
//! let sum = client.call_tool("add", serde_json::json!({"a": 1, "b": 2})).await?;
//! println!("{}", sum.to_text());
//! let slow = client.call_tool("ponder", ());
//! let _ = tokio::time::timeout(Duration::from_secs(1), slow).await; // cancelled there, too
//! # Ok(()) }
//! ```
//!
//! # Modules
//!
//! The root of the crate has the types of a first program. Each module has the rest of one subject:
//!
//! | module | contents |
//! |---|---|
//! | [`server`] | items and groups, extractors, replies, the registry, change notifications, schemas, URI templates |
//! | [`client`] | connection states, reconnecting, retries, pagination, call events, the wire log |
//! | [`elicit`] | elicitation, sampling and roots: requests of a handler to its client |
//! | [`subscribe`] | subscriptions of a client: changed lists and updated resources |
//! | [`cache`] | the response cache of a client |
//! | [`http`] | the HTTP service and listener of a server, sessions, the HTTP options of a client |
//! | [`middleware`] | layers around requests of both sides, metrics, spans, audit |
//! | [`transport`] | framing, standard input and output, child processes |
//! | `auth` | OAuth on both sides, with the feature `auth` |
//! | `testing` | test clients and transcripts, with the feature `testing` |
//! | [`types`] | the types of the protocol |
//!
//! A tool, prompt or resource is a function with an attribute (`#[tool]`, `#[prompt]`, `#[resource]`,
//! `#[tools]`) or one that is passed to [`tool()`](fn@tool), [`prompt()`](fn@prompt),
//! [`resource()`](fn@resource) or [`template()`](fn@template). A handler takes [`Args`], [`State`] and
//! [`Ctx`], and returns any type that implements [`IntoReply`](server::IntoReply).
//!
//! Two more crates build on this one: `turnbuckle-host` connects to many servers at once and reads
//! `mcp.json`, `turnbuckle-gateway` puts a server behind another transport.

#[cfg(feature = "client")]
pub mod client;
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    expect(dead_code, reason = "each side makes its own errors")
)]
mod error;
#[cfg(all(feature = "client", feature = "server"))]
mod in_process;
mod limits;
#[cfg(any(feature = "client", feature = "server"))]
pub mod middleware;
#[cfg(feature = "server")]
mod principal;
#[cfg(any(feature = "client", feature = "server"))]
mod protocol;
#[cfg(any(feature = "client", feature = "server"))]
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    expect(dead_code, reason = "a client alone, or a server alone, uses its half of the seam")
)]
mod rpc;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "client", feature = "server"))]
mod store;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(any(feature = "client", feature = "server"))]
pub mod transport;

#[cfg(feature = "client")]
pub use client::{builder::ClientBuilder, call::Call, handle::Client};
pub use error::{Error, ErrorKind, Result};
pub use limits::Limits;
#[cfg(feature = "server")]
pub use principal::Principal;
#[cfg(any(feature = "client", feature = "server"))]
pub use protocol::trace_context::TraceContext;
#[cfg(feature = "server")]
pub use server::{
    builder::Server,
    handler::{
        context::Ctx,
        extract::{Args, State},
        reply::{Json, NotFound, ToolError},
    },
    items::{prompt, resource, template, tool},
};
#[cfg(any(feature = "client", feature = "server"))]
pub use store::{StoreError, StoreFuture};
#[cfg(feature = "auth")]
pub use turnbuckle_auth as auth;
pub use turnbuckle_types as types;
pub use turnbuckle_types::{Revision, RpcError};

/// Elicitation, sampling and roots: what a handler asks its client with [`Ctx::ask`].
#[cfg(any(feature = "client", feature = "server"))]
pub mod elicit {
    pub use crate::protocol::elicitation::fits as field_fits;
    #[cfg(feature = "server")]
    pub use crate::server::elicit::{
        Action, Answered, AskError, Askable, Asking, ElicitFields, ElicitPage, Elicitation,
        Elicited, InputRequired, MemoryStates, Question, Roots, Sampling, StateStore, elicit,
        elicit_form, elicit_url, form_of, roots, sample,
    };
}

/// The cache of a client's lists and resources.
#[cfg(feature = "client")]
pub mod cache {
    pub use crate::client::cache::{
        CacheEntry, CacheKey, CacheMode, CacheStore, MemoryCache, ResponseCache,
    };
}

/// Subscriptions of a client: changed lists and updated resources.
#[cfg(feature = "client")]
pub mod subscribe {
    pub use crate::client::subscribe::{Event, Filter, ListenCall, Listening, LiveList};
}

/// Streamable HTTP: the service of a server, its listener, its sessions; the options of a client.
#[cfg(all(feature = "http", any(feature = "client", feature = "server")))]
pub mod http {
    #[cfg(feature = "client")]
    pub use crate::transport::http::client::{PostBody, Redirects};
    #[cfg(all(feature = "server", feature = "sse-2024"))]
    pub use crate::transport::http::http_sse::server::{SseFuture, SseService};
    #[cfg(all(feature = "auth", feature = "server"))]
    pub use crate::transport::http::server::MetadataService;
    #[cfg(feature = "server")]
    pub use crate::transport::http::{
        server::{
            BoundHttp, HttpAddress, HttpBody, HttpFuture, HttpReport, HttpService, ServingHttp,
        },
        session::{
            events::{EventStore, MemoryEvents, StoredEvent, StreamKey},
            store::{MemorySessions, SessionId, SessionRecord, SessionStore},
        },
    };
}

/// Makes a tool from a function with plain arguments.
///
/// ```
/// use turnbuckle::{Server, tool};
///
/// /// Add two integers.
/// #[tool(title = "Sum", read_only)]
/// async fn add(
///     /// The first number.
///     a: i64,
///     /// The second; zero if it is left out.
///     #[arg(min = 0, max = 100)]
///     b: Option<i64>,
/// ) -> i64 {
///     a + b.unwrap_or(0)
/// }
///
/// let server = Server::new("calc", "1.0").tool(add);
/// # server.check().unwrap();
/// ```
#[cfg(feature = "macros")]
pub use turnbuckle_macros::tool;

/// Makes a prompt from a function with plain arguments.
///
/// ```
/// use turnbuckle::{Server, prompt, server::Typed};
///
/// /// Ask for a code review.
/// #[prompt(title = "Code review")]
/// async fn review(
///     /// What is to be reviewed.
///     code: String,
///     /// The language it is written in.
///     #[arg(complete = languages)]
///     language: Option<String>,
/// ) -> String {
///     format!("Review this {} code:\n{code}", language.unwrap_or_default())
/// }
///
/// async fn languages(Typed(typed): Typed) -> Vec<&'static str> {
///     ["rust", "ruby", "python"].into_iter().filter(|name| name.starts_with(&typed)).collect()
/// }
///
/// let server = Server::new("demo", "1.0").prompt(review);
/// # server.check().unwrap();
/// ```
#[cfg(feature = "macros")]
pub use turnbuckle_macros::prompt;

/// Makes a resource from a function, or a family of them where the URI has variables.
///
/// ```
/// use turnbuckle::{NotFound, Server, resource};
///
/// /// How to begin.
/// #[resource("demo://readme", mime_type = "text/markdown")]
/// async fn readme() -> &'static str {
///     "# Read me"
/// }
///
/// /// One item.
/// #[resource("demo://items/{id}")]
/// async fn item(#[arg(complete = ["1", "2"])] id: u32) -> Result<String, NotFound> {
///     if id < 10 { Ok(format!("item {id}")) } else { Err(NotFound) }
/// }
///
/// let server = Server::new("demo", "1.0").resource(readme).template(item);
/// # server.check().unwrap();
/// ```
#[cfg(feature = "macros")]
pub use turnbuckle_macros::resource;

/// Makes a group of the methods of a type: tools, prompts and resources that share a value.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use turnbuckle::{NotFound, Server, server::Typed, tools};
///
/// #[derive(Default)]
/// struct Notes {
///     all: Mutex<Vec<String>>,
/// }
///
/// #[tools]
/// impl Notes {
///     /// Write a note.
///     #[tool]
///     async fn add(
///         &self,
///         /// What to write.
///         #[arg(min_length = 1)]
///         text: String,
///     ) -> String {
///         let mut all = self.all.lock().unwrap();
///         all.push(text);
///         format!("note://{}", all.len() - 1)
///     }
///
///     /// One note.
///     #[resource("note://{number}", mime_type = "text/plain")]
///     async fn note(
///         &self,
///         #[arg(complete = Self::numbers)] number: usize,
///     ) -> Result<String, NotFound> {
///         self.all.lock().unwrap().get(number).cloned().ok_or(NotFound)
///     }
///
///     /// Summarise all notes. It runs on a thread where it may block.
///     #[prompt]
///     fn summarise(&self, words: Option<u32>) -> String {
///         let all = self.all.lock().unwrap().join("\n");
///         format!("Summarise in {} words:\n{all}", words.unwrap_or(50))
///     }
///
///     async fn numbers(&self, Typed(typed): Typed) -> Vec<String> {
///         let numbers = (0..self.all.lock().unwrap().len()).map(|number| number.to_string());
///         numbers.filter(|number| number.starts_with(&typed)).collect()
///     }
/// }
///
/// let notes = Arc::new(Notes::default());
/// let server = Server::new("notes", "1.0").group(notes.clone());
/// # server.check().unwrap();
/// ```
#[cfg(feature = "macros")]
pub use turnbuckle_macros::tools;

#[doc(hidden)]
pub mod __seam;

/// What generated code refers to. Not for use by hand.
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;

    pub use crate::server::Description;
}
