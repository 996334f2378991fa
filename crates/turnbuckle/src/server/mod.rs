//! Servers: tools, resources, prompts and their handlers.
//!
//! [`Server`] is at the root of the crate, as are [`Ctx`] and the extractors
//! that most handlers take. This module has the rest: registration, replies, notifications of changes.
//!
//! ```
//! use turnbuckle::{
//!     Server,
//!     server::{Group, Image},
//!     tool,
//! };
//!
//! async fn dot() -> Image {
//!     Image::new("image/png", [0x89, b'P', b'N', b'G'])
//! }
//!
//! let pictures = Group::new().tool(tool("dot", dot));
//! let server = Server::new("pictures", "1.0").group(pictures);
//! # server.check().unwrap();
//! ```

#[cfg(feature = "http")]
pub(crate) mod auth;
pub(crate) mod builder;
pub(crate) mod connection;
pub(crate) mod elicit;
pub(crate) mod handler;
pub(crate) mod items;
mod methods;
pub(crate) mod notify;
mod registry;
mod revisions;
pub mod schema;
mod serve;
mod shared;
mod uri;

pub use crate::protocol::sealed::KeyRing;
#[cfg(feature = "http")]
pub use handler::extract::{Header, HttpHeader};
pub use handler::{
    extract::{Arguments, Extension, FromCall, Invocation, RawArgs, Typed},
    function::{BlockingFn, HandlerFn},
    notifications::{Amount, ProgressUpdate},
    reply::{Audio, Failure, Image, IntoReply, Streaming},
};
pub use items::{
    Group, IntoGroup, IntoPrompt, IntoResource, IntoTemplate, IntoTool, Item, ItemKind, PromptDef,
    ResourceDef, TemplateDef, ToolDef, Toolset, blocking_prompt, blocking_resource,
    blocking_template, blocking_tool,
};
pub use methods::cache_hints::Cache;
pub use notify::{
    bus::{Change, MemoryBus, SubscriptionBus},
    changes::Changes,
    listeners::Listeners,
    roots::RootsChanged,
};
pub use registry::{Handle, Registry};
pub use revisions::Revisions;
pub use serve::Serving;
pub use uri::{
    PathError, PathSegment, SafePath, TemplateError, TextValue, UriTemplate, Variables, safe_join,
};

#[doc(hidden)]
pub use handler::extract::Description;

pub(crate) use builder::Server;
pub(crate) use handler::{
    context::{Ctx, Lent},
    reply::{NotFound, ToolError},
};
pub(crate) use methods::HandlerRequest;
pub(crate) use shared::App;
