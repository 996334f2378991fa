//! Lists the tools, prompts and resources of all servers of a group.

use std::{collections::HashSet, future::poll_fn, task::Poll};

use turnbuckle::{
    __seam::error as new_error,
    Client, Error, ErrorKind, Result,
    types::{Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool, code},
};

use super::{
    ClientGroup,
    members::{Offers, Phase},
    names::{Names, Origin},
};
use crate::BoxFuture;

/// The kinds of items that have a name for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tool = 0,
    Prompt = 1,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Tool => "tool",
            Kind::Prompt => "prompt",
        }
    }
}

/// The tools of all servers of a group.
///
/// ```
/// use turnbuckle_host::GroupTools;
/// fn show(listed: &GroupTools) {
///     listed.tools.iter().for_each(|tool| println!("{} of {}", tool.name, tool.server));
///     listed.failed.iter().for_each(|(server, error)| eprintln!("{server}: {error}"));
/// }
/// # let _ = show;
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct GroupTools {
    /// The tools, in the order of their servers in the group.
    pub tools: Vec<GroupTool>,
    /// The servers that could not be listed, and their errors.
    pub failed: Vec<(String, Error)>,
}

/// A tool of a server of a group.
///
/// ```
/// use turnbuckle_host::GroupTool;
/// fn for_a_model(tool: &GroupTool) -> (&str, &str) {
///     (&tool.name, tool.tool.description.as_deref().unwrap_or_default())
/// }
/// # let _ = for_a_model;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GroupTool {
    /// The name for a model: at most 64 characters of `A-Z a-z 0-9 _ -`, unique in the group.
    pub name: String,
    /// The server that offers it.
    pub server: String,
    /// The tool, with the name that its server gave it.
    pub tool: Tool,
}

/// The prompts of all servers of a group.
///
/// ```
/// use turnbuckle_host::GroupPrompts;
/// fn menu(listed: GroupPrompts) -> Vec<String> {
///     listed.prompts.into_iter().map(|prompt| prompt.name).collect()
/// }
/// # let _ = menu;
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct GroupPrompts {
    /// The prompts, in the order of their servers in the group.
    pub prompts: Vec<GroupPrompt>,
    /// The servers that could not be listed, and their errors.
    pub failed: Vec<(String, Error)>,
}

/// A prompt of a server of a group.
///
/// ```
/// use turnbuckle_host::GroupPrompt;
/// fn entry(prompt: &GroupPrompt) -> String {
///     format!("{} ({})", prompt.name, prompt.server)
/// }
/// # let _ = entry;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GroupPrompt {
    /// The name in the group, unique among its prompts.
    pub name: String,
    /// The server that offers it.
    pub server: String,
    /// The prompt, with the name that its server gave it.
    pub prompt: Prompt,
}

/// The resources of all servers of a group. A URI belongs to its server, so two servers may have the same.
///
/// ```
/// use turnbuckle_host::GroupResources;
/// fn uris(listed: &GroupResources) -> Vec<(&str, &str)> {
///     listed.resources.iter().map(|(server, one)| (server.as_str(), one.uri.as_str())).collect()
/// }
/// # let _ = uris;
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct GroupResources {
    /// Servers and their resources.
    pub resources: Vec<(String, Resource)>,
    /// Servers and their resource templates.
    pub templates: Vec<(String, ResourceTemplate)>,
    /// The servers that could not be listed, and their errors.
    pub failed: Vec<(String, Error)>,
}

/// The list of each server, and the servers that failed.
type Listings<T> = (Vec<(String, T)>, Vec<(String, Error)>);

impl ClientGroup {
    /// Lists the tools of all servers concurrently, and waits for starting servers. A server that fails, or
    /// takes longer than [`GroupOptions::patience`](super::GroupOptions::patience), is in
    /// [`GroupTools::failed`]. Stopped servers are skipped.
    ///
    /// A tool keeps its name unless another tool has the same, or models do not accept it. Then
    /// [`call_tool`](ClientGroup::call_tool) uses the names that are returned here. Dropping the future
    /// cancels the requests.
    pub async fn tools(&self) -> GroupTools {
        let (listings, failed) = self.each("tools", |client| Box::pin(tools_of(client))).await;
        let named = self.name_all(Kind::Tool, listings, &failed, |tool: &Tool| &tool.name);
        let tools = named.into_iter().map(|(name, server, tool)| GroupTool { name, server, tool });
        GroupTools { tools: tools.collect(), failed }
    }

    /// Lists the prompts of all servers, like [`tools`](ClientGroup::tools). Dropping the future cancels the
    /// requests.
    pub async fn prompts(&self) -> GroupPrompts {
        let (listings, failed) = self.each("prompts", |client| Box::pin(prompts_of(client))).await;
        let named = self.name_all(Kind::Prompt, listings, &failed, |prompt: &Prompt| &prompt.name);
        let prompts =
            named.into_iter().map(|(name, server, prompt)| GroupPrompt { name, server, prompt });
        GroupPrompts { prompts: prompts.collect(), failed }
    }

    /// Lists the resources and resource templates of all servers, like [`tools`](ClientGroup::tools).
    /// Dropping the future cancels the requests.
    pub async fn resources(&self) -> GroupResources {
        let (listings, failed) =
            self.each("resources", |client| Box::pin(resources_of(client))).await;
        let (mut resources, mut templates) = (Vec::new(), Vec::new());
        for (server, (some, patterns)) in listings {
            resources.extend(some.into_iter().map(|resource| (server.clone(), resource)));
            templates.extend(patterns.into_iter().map(|template| (server.clone(), template)));
        }
        GroupResources { resources, templates, failed }
    }

    /// Calls `list` for every server that is not stopped, concurrently and with a timeout.
    async fn each<T>(
        &self,
        what: &str,
        list: impl Fn(Client) -> BoxFuture<'static, Result<T>>,
    ) -> Listings<T> {
        let patience = self.shared().options.patience;
        let servers: Vec<String> = {
            let state = self.shared().state();
            let members = state.members.iter();
            let running = members.filter(|member| !matches!(member.phase, Phase::Stopped));
            running.map(|member| member.name.clone()).collect()
        };
        let list = &list;
        let asked = servers.iter().map(|server| async move {
            let listing = async { list(self.ready(server).await?).await };
            tokio::time::timeout(patience, listing).await.unwrap_or_else(|_| {
                let reason = super::timed_out(patience);
                let message = format!("the server `{server}` did not list its {what}: {reason}");
                Err(new_error(ErrorKind::Timeout, message))
            })
        });
        let answers = all(asked).await;
        let (mut listings, mut failed) = (Vec::new(), Vec::new());
        for (server, answer) in servers.into_iter().zip(answers) {
            match answer {
                Ok(listing) => listings.push((server, listing)),
                Err(error) => failed.push((server, error)),
            }
        }
        (listings, failed)
    }

    /// Names the listed items, and stores the names.
    fn name_all<T>(
        &self,
        kind: Kind,
        listings: Vec<(String, Vec<T>)>,
        failed: &[(String, Error)],
        own_name: fn(&T) -> &String,
    ) -> Vec<(String, String, T)> {
        let mut state = self.shared().state();
        for (server, listing) in &listings {
            let Some(member) = state.member_mut(server) else { continue };
            let names = listing.iter().map(|one| own_name(one).clone()).collect();
            member.offers[kind as usize] = Offers::Listed(names);
        }
        for (server, _) in failed {
            let Some(member) = state.member_mut(server) else { continue };
            // Its earlier list still counts: names must not change because a server is slow.
            if matches!(member.offers[kind as usize], Offers::Unknown) {
                member.offers[kind as usize] = Offers::Unsaid;
            }
        }
        let mut origins = Vec::new();
        for member in &state.members {
            if let (Offers::Listed(names), false) =
                (&member.offers[kind as usize], matches!(member.phase, Phase::Stopped))
            {
                let origin =
                    |name: &String| Origin { server: member.name.clone(), name: name.clone() };
                origins.extend(names.iter().map(origin));
            }
        }
        let names = Names::of(origins);
        let named = named(&names, listings, own_name);
        state.names[kind as usize] = Some(names);
        named
    }
}

fn named<T>(
    names: &Names,
    listings: Vec<(String, Vec<T>)>,
    own_name: fn(&T) -> &String,
) -> Vec<(String, String, T)> {
    let (mut named, mut seen) = (Vec::new(), HashSet::new());
    for (server, listing) in listings {
        for one in listing {
            let origin = Origin { server: server.clone(), name: own_name(&one).clone() };
            // A server that has been stopped has no names.
            let Some(name) = names.name(&origin) else { continue };
            if seen.insert(name.to_owned()) {
                named.push((name.to_owned(), server.clone(), one));
            } else {
                tracing::debug!(server, name = origin.name, "is listed twice; the first counts");
            }
        }
    }
    named
}

/// Returns whether the server has declared its capabilities, and this one is not among them.
fn lacks(client: &Client, has: fn(&ServerCapabilities) -> bool) -> bool {
    client.server_capabilities().is_some_and(|capabilities| !has(&capabilities))
}

async fn tools_of(client: Client) -> Result<Vec<Tool>> {
    if lacks(&client, |capabilities| capabilities.tools.is_some()) {
        return Ok(Vec::new());
    }
    client.tools().all().await
}

async fn prompts_of(client: Client) -> Result<Vec<Prompt>> {
    if lacks(&client, |capabilities| capabilities.prompts.is_some()) {
        return Ok(Vec::new());
    }
    client.prompts().all().await
}

async fn resources_of(client: Client) -> Result<(Vec<Resource>, Vec<ResourceTemplate>)> {
    if lacks(&client, |capabilities| capabilities.resources.is_some()) {
        return Ok((Vec::new(), Vec::new()));
    }
    let resources = client.resources().all().await?;
    let templates = match client.resource_templates().all().await {
        // Many servers with resources do not implement templates.
        Err(error) if error.as_rpc().is_some_and(|rpc| rpc.code == code::METHOD_NOT_FOUND) => {
            Vec::new()
        }
        templates => templates?,
    };
    Ok((resources, templates))
}

/// Runs all futures concurrently.
pub(super) async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut waits = false;
        for (future, output) in &mut futures {
            if output.is_some() {
                continue;
            }
            match future.as_mut().poll(context) {
                Poll::Ready(ready) => *output = Some(ready),
                Poll::Pending => waits = true,
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    futures.into_iter().filter_map(|(_, output)| output).collect()
}
