//! Everything a server author needs.
//!
//! Owns: what a server offers and how a request for it is answered, in both eras. Does
//! not own: wires, framing, which requests are in flight.

mod app;
mod bus;
mod changes;
mod context;
mod extract;
#[cfg(feature = "http")]
mod http;
mod kernel;
mod legacy;
mod listen;
mod listeners;
mod listing;
mod reply;
mod run;
mod say;
pub mod schema;
mod serves;
mod serving;
mod structured;
mod subscriptions;
mod tool;

use std::sync::{Arc, OnceLock};

use turnbuckle_types::Implementation;

pub use bus::{Change, MemoryBus, SubscriptionBus};
pub use changes::Changes;
pub use context::Ctx;
pub use extract::{Args, FromCall, RawArgs, State};
pub use listeners::Listeners;
pub use reply::{IntoReply, Json, ToolError};
pub use say::{Amount, Report};
pub use serves::Serves;
pub use serving::Serving;
pub use tool::{BlockingFn, IntoTool, Tool, ToolFn, blocking_tool, tool};

#[doc(hidden)]
pub use extract::{Call, Description};
#[doc(hidden)]
pub use reply::Failure;

use crate::{
    dispatch::Serve,
    error::{Error, ErrorKind, Result},
    limits::Limits,
};
use app::App;
use extract::States;
use kernel::Kernel;

/// A server: a name, and the tools it offers.
///
/// It serves both eras of the protocol at once, on any number of connections.
///
/// ```no_run
/// use turnbuckle::{Args, Server, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// async fn add(Args(add): Args<Add>) -> i64 { add.a + add.b }
///
/// #[tokio::main]
/// async fn main() -> turnbuckle::Result<()> {
///     Server::new("calc", "1.0")
///         .tool(tool("add", add).description("Add two integers."))
///         .serve_stdio()
///         .await
/// }
/// ```
#[derive(Clone)]
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    tools: Vec<Tool>,
    states: States,
    limits: Limits,
    changes: Changes,
    serves: Serves,
    /// Made when the first connection needs it.
    app: OnceLock<Arc<App>>,
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Server {
        Server {
            info: Implementation::new(name, version),
            instructions: None,
            tools: Vec::new(),
            states: States::default(),
            limits: Limits::default(),
            changes: Changes::default(),
            serves: Serves::default(),
            app: OnceLock::new(),
        }
    }

    /// Offers a tool: a function that carries `#[tool]`, or a [`tool`](crate::tool()).
    #[must_use]
    pub fn tool(self, tool: impl IntoTool) -> Server {
        let tool = tool.into_tool();
        self.changed(|server| server.tools.push(tool))
    }

    /// Offers several tools of one kind, as a loop would make them.
    #[must_use]
    pub fn tools<T: IntoTool>(self, tools: impl IntoIterator<Item = T>) -> Server {
        self.changed(|server| server.tools.extend(tools.into_iter().map(IntoTool::into_tool)))
    }

    /// Gives handlers a value that they take as [`State`].
    #[must_use]
    pub fn state<S: Clone + Send + Sync + 'static>(self, state: S) -> Server {
        self.changed(|server| server.states.insert(state))
    }

    /// What a model should know about using this server.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<String>) -> Server {
        self.changed(|server| server.instructions = Some(instructions.into()))
    }

    /// The server's description of itself: title, website, icons.
    #[must_use]
    pub fn info(self, info: Implementation) -> Server {
        self.changed(|server| server.info = info)
    }

    /// Limits of each connection.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Server {
        self.changed(|server| server.limits = limits)
    }

    /// Which revisions of the protocol are served: all, unless told otherwise. A client that
    /// speaks none of them is told which there are.
    #[must_use]
    pub fn serves(self, serves: Serves) -> Server {
        self.changed(|server| server.serves = serves)
    }

    /// Carries changes to every replica of this server, instead of the [`MemoryBus`] that it
    /// has unless told otherwise. The bus is handed this replica's listeners at once; handles
    /// from [`changes`](Server::changes) use it whether they were taken before or after.
    #[must_use]
    pub fn bus(self, bus: impl SubscriptionBus) -> Server {
        self.changes.go_by(bus);
        self
    }

    /// The way to tell clients that something changed.
    pub fn changes(&self) -> Changes {
        self.changes.clone()
    }

    /// Looks whether everything that was registered fits together: names, schemas, state.
    /// Serving does this first.
    pub fn check(&self) -> Result<()> {
        self.app().map(drop)
    }

    fn changed(mut self, change: impl FnOnce(&mut Server)) -> Server {
        change(&mut self);
        self.app = OnceLock::new();
        self
    }

    fn app(&self) -> Result<Arc<App>> {
        if let Some(app) = self.app.get() {
            return Ok(app.clone());
        }
        let app =
            Arc::new(App::new(self).map_err(|problem| Error::new(ErrorKind::Refused, problem))?);
        Ok(self.app.get_or_init(|| app).clone())
    }

    /// What serves one connection.
    pub(crate) fn connection(&self) -> Result<Arc<dyn Serve>> {
        Ok(Arc::new(Kernel::new(self.app()?, self.serves.revisions())))
    }

    pub(crate) fn connection_limits(&self) -> Limits {
        self.limits.clone()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("info", &self.info)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
