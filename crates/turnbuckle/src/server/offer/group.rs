//! Owns offers that are registered together, and what is true of all of them.
//! Does not own the offers.

use std::{panic::Location, sync::Arc};

use tower_service::Service;

use super::{
    IntoPrompt, IntoResource, IntoTemplate, IntoTool, Prompt, Resource, Template, Tool, Visible,
};
use crate::server::{
    context::Ctx,
    layer::{Next, Request, Response, Stack},
    ways::{PROMPTS, RESOURCES, Ways},
};

/// Tools, prompts and resources that belong together: registered at once, and told at once what
/// is true of all of them.
///
/// ```
/// use turnbuckle::{Ctx, Group, Server, tool};
/// async fn stop() {}
/// async fn restart() {}
/// let admin = Group::new()
///     .tool(tool("stop", stop))
///     .tool(tool("restart", restart))
///     .visible_to(|ctx: &Ctx| ctx.principal::<()>().is_some_and(|caller| caller.name() == "root"));
/// let server = Server::new("demo", "1.0").group(admin);
/// # let _ = server;
/// ```
#[derive(Clone, Default)]
#[must_use = "a group does nothing until a server has it"]
pub struct Group {
    pub(in crate::server) tools: Vec<Tool>,
    pub(in crate::server) prompts: Vec<Prompt>,
    pub(in crate::server) resources: Vec<Resource>,
    pub(in crate::server) templates: Vec<Template>,
    /// What a server needs for what is in it.
    pub(in crate::server) ways: Ways,
    /// What stands around all of them, also those that are added later.
    layers: Stack,
    /// Who sees them, also those that are added later.
    visible: Vec<Visible>,
}

/// What [`Server::group`](crate::Server::group) takes: a [`Group`], or a value whose `impl`
/// carries `#[tools]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a group",
    label = "not a group",
    note = "put `#[tools]` on its `impl` block, or make a `Group`"
)]
pub trait IntoGroup {
    /// Makes the group.
    fn into_group(self) -> Group;
}

impl IntoGroup for Group {
    fn into_group(self) -> Group {
        self
    }
}

impl Group {
    /// An empty one.
    pub fn new() -> Group {
        Group::default()
    }

    /// Adds a tool.
    #[track_caller]
    pub fn tool(mut self, tool: impl IntoTool) -> Group {
        self.tools.push(tool.into_tool().placed(Location::caller()));
        self
    }

    /// Adds a prompt.
    #[track_caller]
    pub fn prompt(mut self, prompt: impl IntoPrompt) -> Group {
        self.ways.prompts = Some(&PROMPTS);
        self.prompts.push(prompt.into_prompt().placed(Location::caller()));
        self
    }

    /// Adds a resource.
    #[track_caller]
    pub fn resource(mut self, resource: impl IntoResource) -> Group {
        self.ways.resources = Some(&RESOURCES);
        self.resources.push(resource.into_resource().placed(Location::caller()));
        self
    }

    /// Adds a family of resources.
    #[track_caller]
    pub fn template(mut self, template: impl IntoTemplate) -> Group {
        self.ways.resources = Some(&RESOURCES);
        self.templates.push(template.into_template().placed(Location::caller()));
        self
    }

    /// Adds everything of another group.
    #[track_caller]
    pub fn group(mut self, group: impl IntoGroup) -> Group {
        let Group { tools, prompts, resources, templates, ways, .. } = group.into_group().told();
        self.ways = self.ways.and(ways);
        self.tools.extend(tools);
        self.prompts.extend(prompts);
        self.resources.extend(resources);
        self.templates.extend(templates);
        self
    }

    /// Puts a layer around everything in it, whether it was added before or is added later: see
    /// [`layer`](mod@crate::layer). The first that is given sees a request first, after those of
    /// the server and of any group around this one.
    pub fn layer<L>(mut self, layer: L) -> Group
    where
        L: tower_layer::Layer<Next>,
        L::Service: Service<Request, Response = Response> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.layers.push(layer);
        self
    }

    /// Hides everything in it from whoever the rule says no of, whether it was added before or is
    /// added later; see [`Tool::visible_to`](crate::Tool::visible_to).
    pub fn visible_to(mut self, rule: impl Fn(&Ctx) -> bool + Send + Sync + 'static) -> Group {
        self.visible.push(Arc::new(rule));
        self
    }

    /// Everything in it, told what is true of all.
    fn told(mut self) -> Group {
        let (layers, visible) =
            (std::mem::take(&mut self.layers), std::mem::take(&mut self.visible));
        self.tools.iter_mut().for_each(|tool| tool.offer.join(&layers, &visible));
        self.prompts.iter_mut().for_each(|prompt| prompt.offer.join(&layers, &visible));
        self.resources.iter_mut().for_each(|resource| resource.offer.join(&layers, &visible));
        self.templates.iter_mut().for_each(|template| template.offer.join(&layers, &visible));
        self
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group")
            .field("tools", &self.tools)
            .field("prompts", &self.prompts)
            .field("resources", &self.resources)
            .field("templates", &self.templates)
            .finish_non_exhaustive()
    }
}
