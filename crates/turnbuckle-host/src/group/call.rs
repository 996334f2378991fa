//! Calls a tool or prompt of a group by its name.

use std::{future::IntoFuture, pin::Pin, time::Duration};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use turnbuckle::{
    __seam::{error as new_error, with_source},
    Call, Client, Error, ErrorKind, Result,
    types::{CallToolResult, GetPromptResult, Progress, ReadResourceResult},
};

use super::{
    ClientGroup,
    list::Kind,
    members::{Offers, Phase, failed, unknown},
    names::{Found, Names, Origin},
    refused,
};

/// The server of a name in a group.
///
/// ```
/// # async fn example(group: turnbuckle_host::ClientGroup) -> turnbuckle::Result<()> {
/// let routed = group.tool("notes_search").await?;
/// println!("{} of {}", routed.name, routed.server);
/// let call = routed.client.call_tool(&routed.name, serde_json::json!({"text": "milk"}));
/// # let _ = call; Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Routed {
    /// The server.
    pub server: String,
    /// The name that the server knows.
    pub name: String,
    /// The client of the server.
    pub client: Client,
}

/// A call to a server of a group. `.await` finds the server and sends the request; dropping that future
/// cancels it.
///
/// ```
/// # use turnbuckle::{Client, Server, tool};
/// # use turnbuckle_host::ClientGroup;
/// # /// Say it back.
/// # #[tool]
/// # async fn echo(text: String) -> String { text }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> turnbuckle::Result<()> {
/// # let client = Client::in_process(&Server::new("demo", "1.0").tool(echo)).await?;
/// use std::time::Duration;
/// let group = ClientGroup::new();
/// group.add("demo", client)?;
/// let said = group
///     .call_tool("echo", serde_json::json!({"text": "hello"}))
///     .timeout(Duration::from_secs(5))
///     .await?;
/// assert_eq!(said.to_text(), "hello");
/// # Ok(()) }
/// ```
#[must_use = "a call does nothing until it is awaited"]
pub struct GroupCall<T> {
    group: ClientGroup,
    target: Target,
    make: Make<T>,
}

/// How many names an error lists.
const SHOWN: usize = 5;

type Make<T> = Box<dyn FnOnce(&Routed) -> Result<Call<T>> + Send>;

enum Target {
    Named(Kind, String),
    Server(String),
}

impl ClientGroup {
    /// Calls a tool by its name from [`tools`](ClientGroup::tools). The tools are listed first if they never
    /// were. Otherwise it is like [`Client::call_tool`]. Dropping the future cancels it.
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> GroupCall<CallToolResult> {
        let arguments = encoded(&arguments);
        self.to(Target::Named(Kind::Tool, name.to_owned()), |routed| {
            Ok(routed.client.call_tool(&routed.name, arguments?))
        })
    }

    /// Gets a prompt by its name from [`prompts`](ClientGroup::prompts); otherwise like
    /// [`Client::get_prompt`]. Dropping the future cancels it.
    pub fn get_prompt(&self, name: &str, arguments: impl Serialize) -> GroupCall<GetPromptResult> {
        let arguments = encoded(&arguments);
        self.to(Target::Named(Kind::Prompt, name.to_owned()), |routed| {
            Ok(routed.client.get_prompt(&routed.name, arguments?))
        })
    }

    /// Reads a resource of a server, like [`Client::read_resource`]. Dropping the future cancels it.
    pub fn read_resource(
        &self,
        server: &str,
        uri: impl Into<String>,
    ) -> GroupCall<ReadResourceResult> {
        let uri = uri.into();
        self.to(Target::Server(server.to_owned()), |routed| Ok(routed.client.read_resource(uri)))
    }

    /// Finds the server of a tool, for calls that need its client. Dropping the future loses nothing.
    pub async fn tool(&self, name: &str) -> Result<Routed> {
        self.route(Kind::Tool, name).await
    }

    /// Finds the server of a prompt. Dropping the future loses nothing.
    pub async fn prompt(&self, name: &str) -> Result<Routed> {
        self.route(Kind::Prompt, name).await
    }

    fn to<T>(
        &self,
        target: Target,
        make: impl FnOnce(&Routed) -> Result<Call<T>> + Send + 'static,
    ) -> GroupCall<T> {
        GroupCall { group: self.clone(), target, make: Box::new(make) }
    }

    async fn route(&self, kind: Kind, name: &str) -> Result<Routed> {
        let origin = match self.look_up(kind, name) {
            LookUp::Found(origin) => origin,
            LookUp::Refused(error) => return Err(error),
            LookUp::Unlisted => self.list_and_look_up(kind, name).await?,
        };
        let client = self.running(&origin.server).await?;
        Ok(Routed { server: origin.server, name: origin.name, client })
    }

    /// Lists and looks up; concurrent calls wait for one listing.
    async fn list_and_look_up(&self, kind: Kind, name: &str) -> Result<Origin> {
        let listing = self.shared().listing.lock().await;
        if let LookUp::Found(origin) = self.look_up(kind, name) {
            return Ok(origin);
        }
        match kind {
            Kind::Tool => drop(self.tools().await),
            Kind::Prompt => drop(self.prompts().await),
        }
        drop(listing);
        match self.look_up(kind, name) {
            LookUp::Found(origin) => Ok(origin),
            LookUp::Refused(error) => Err(error),
            // A server was added in between; the next call lists it.
            LookUp::Unlisted => Err(nothing(kind, name, &Names::default())),
        }
    }

    fn look_up(&self, kind: Kind, name: &str) -> LookUp {
        let state = self.shared().state();
        let unlisted = state.members.iter().any(|member| {
            matches!(member.offers[kind as usize], Offers::Unknown)
                && matches!(member.phase, Phase::Starting(_) | Phase::Ready(..))
        });
        let none = Names::default();
        let names = state.names[kind as usize].as_ref().unwrap_or(&none);
        match names.find(name) {
            Found::One(origin) => LookUp::Found(origin.clone()),
            Found::Several(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                let word = kind.word();
                LookUp::Refused(refused(format!(
                    "more than one server has a {word} `{name}`: {} are there",
                    names.join(", ")
                )))
            }
            Found::None if unlisted => LookUp::Unlisted,
            Found::None => LookUp::Refused(nothing(kind, name, names)),
        }
    }

    /// Returns the client of a server, and waits for its start.
    async fn running(&self, server: &str) -> Result<Client> {
        let patience = self.shared().options.patience;
        match tokio::time::timeout(patience, self.ready(server)).await {
            Ok(client) => client,
            Err(_) => {
                let message = format!(
                    "the server `{server}` has not started: {}",
                    super::timed_out(patience)
                );
                Err(new_error(ErrorKind::Timeout, message))
            }
        }
    }

    /// Returns the result of [`ready`](ClientGroup::ready); `None` while the server is starting.
    pub(super) fn ready_now(&self, server: &str) -> Option<Result<Client>> {
        let state = self.shared().state();
        let Some(member) = state.member(server) else { return Some(Err(unknown(server))) };
        match &member.phase {
            Phase::Starting(_) => None,
            Phase::Ready(client, _) => Some(Ok(client.clone())),
            Phase::Failed(error) => Some(Err(failed(server, error))),
            Phase::Stopped => {
                let message = format!("the server `{server}` is stopped");
                Some(Err(new_error(ErrorKind::Closed, message)))
            }
        }
    }
}

/// The result of looking up a name.
enum LookUp {
    Found(Origin),
    Refused(Error),
    /// Nothing, but there is a server that was never listed.
    Unlisted,
}

impl<T: Send + 'static> GroupCall<T> {
    /// Sets options of the [`Call`].
    pub fn with(self, options: impl FnOnce(Call<T>) -> Call<T> + Send + 'static) -> GroupCall<T> {
        let make = self.make;
        GroupCall { make: Box::new(|routed| make(routed).map(options)), ..self }
    }

    /// Sets the timeout of the call in all its rounds, once its server is found: see [`Call::timeout`].
    ///
    /// ```no_run
    /// # async fn example(group: turnbuckle_host::ClientGroup) -> turnbuckle::Result<()> {
    /// use std::time::Duration;
    /// let rendered = group
    ///     .call_tool("render", serde_json::json!({"scene": 3}))
    ///     .timeout(Duration::from_secs(60))
    ///     .on_progress(|progress| eprintln!("{} done", progress.progress))
    ///     .await?;
    /// # let _ = rendered; Ok(()) }
    /// ```
    pub fn timeout(self, total: Duration) -> GroupCall<T> {
        self.with(move |call| call.timeout(total))
    }

    /// Calls `callback` for each progress notification, in order, before the call returns. A panic of the
    /// callback is caught and logged.
    ///
    /// ```no_run
    /// # async fn example(group: turnbuckle_host::ClientGroup) -> turnbuckle::Result<()> {
    /// let rendered = group
    ///     .call_tool("render", serde_json::json!({"scene": 3}))
    ///     .on_progress(|progress| eprintln!("{} done", progress.progress))
    ///     .await?;
    /// # let _ = rendered; Ok(()) }
    /// ```
    pub fn on_progress(self, callback: impl FnMut(Progress) + Send + 'static) -> GroupCall<T> {
        self.with(move |call| call.on_progress(callback))
    }

    async fn run(self) -> Result<T> {
        let routed = match self.target {
            Target::Named(kind, name) => self.group.route(kind, &name).await?,
            Target::Server(server) => {
                let client = self.group.running(&server).await?;
                Routed { server, name: String::new(), client }
            }
        };
        (self.make)(&routed)?.await
    }
}

impl<T: Send + 'static> IntoFuture for GroupCall<T> {
    type Output = Result<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<T> std::fmt::Debug for GroupCall<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let target = match &self.target {
            Target::Named(_, name) | Target::Server(name) => name,
        };
        f.debug_struct("GroupCall").field("target", target).finish_non_exhaustive()
    }
}

fn nothing(kind: Kind, name: &str, names: &Names) -> Error {
    let word = kind.word();
    let quoted =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| format!("`{name}`")).collect() };
    let known: Vec<&str> = names.all().take(SHOWN).collect();
    let hint = match quoted(&names.near(name)).as_slice() {
        [] if known.is_empty() => String::new(),
        [] => {
            let more = match names.all().len() - known.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("; its {word}s: {}{more}", quoted(&known).join(", "))
        }
        [near @ .., last] if !near.is_empty() => {
            format!("; did you mean {} or {last}?", near.join(", "))
        }
        near => format!("; did you mean {}?", near.concat()),
    };
    refused(format!("no server of this group has a {word} `{name}`{hint}"))
}

/// Encodes arguments.
fn encoded(arguments: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(arguments).map_err(|error| {
        let message = format!("the value can't be encoded: {error}");
        with_source(new_error(ErrorKind::Codec, message), error)
    })
}
