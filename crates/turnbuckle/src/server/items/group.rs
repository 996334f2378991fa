//! Groups of items that are registered together and share settings.

use std::{panic::Location, sync::Arc};

use super::{
    Inherited, IntoPrompt, IntoResource, IntoTemplate, IntoTool, PromptDef, ResourceDef,
    TemplateDef, ToolDef,
};
use crate::{
    middleware::{
        Middleware,
        server::{IncomingRequest, OutgoingInput},
    },
    server::{
        handler::context::Ctx,
        registry::{MethodSets, PROMPTS, RESOURCES},
    },
};

/// Tools, prompts and resources that are registered together and share settings.
///
/// ```
/// use turnbuckle::{Ctx, Server, server::Group, tool};
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
#[doc(alias = "ToolRouter")]
#[doc(alias = "tool_router")]
pub struct Group {
    pub(crate) tools: Vec<ToolDef>,
    pub(crate) prompts: Vec<PromptDef>,
    pub(crate) resources: Vec<ResourceDef>,
    pub(crate) templates: Vec<TemplateDef>,
    /// The methods that serve the items.
    pub(crate) method_sets: MethodSets,
    /// Settings of all items, also of those that are added later.
    all: Inherited,
    /// Changes of items that the group does not have, as sentences.
    pub(crate) missing: Vec<String>,
}

/// A value that [`Server::group`](crate::Server::group) takes: a [`Group`], or a type whose `impl`
/// has `#[tools]`.
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
    /// Creates an empty group.
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
        self.method_sets.prompts = Some(&PROMPTS);
        self.prompts.push(prompt.into_prompt().placed(Location::caller()));
        self
    }

    /// Adds a resource.
    #[track_caller]
    pub fn resource(mut self, resource: impl IntoResource) -> Group {
        self.method_sets.resources = Some(&RESOURCES);
        self.resources.push(resource.into_resource().placed(Location::caller()));
        self
    }

    /// Adds a family of resources.
    #[track_caller]
    pub fn template(mut self, template: impl IntoTemplate) -> Group {
        self.method_sets.resources = Some(&RESOURCES);
        self.templates.push(template.into_template().placed(Location::caller()));
        self
    }

    /// Adds all items of another group.
    #[track_caller]
    pub fn group(mut self, group: impl IntoGroup) -> Group {
        let Group { tools, prompts, resources, templates, method_sets, missing, .. } =
            group.into_group().with_shared_settings();
        self.method_sets = self.method_sets.and(method_sets);
        self.missing.extend(missing);
        self.tools.extend(tools);
        self.prompts.extend(prompts);
        self.resources.extend(resources);
        self.templates.extend(templates);
        self
    }

    /// Changes one tool that is in it already, such as a method of an `impl` that carries `#[tools]`:
    /// gives it a layer, a rule, another way to be cancelled. A server that is given a group without
    /// such a tool says so when it is checked.
    ///
    /// ```
    /// use std::time::Duration;
    /// use turnbuckle::{Server, middleware::server::Timeout, server::IntoGroup, tools};
    /// struct Backup;
    ///
    /// #[tools]
    /// impl Backup {
    ///     /// Write everything to tape.
    ///     #[tool]
    ///     async fn write(&self) -> &'static str { "written" }
    ///     /// How much there is.
    ///     #[tool]
    ///     async fn size(&self) -> u64 { 7 }
    /// }
    ///
    /// let backup = Backup
    ///     .into_group()
    ///     .change_tool("write", |tool| tool.cooperative(Duration::from_secs(30)))
    ///     .change_tool("size", |tool| tool.layer(Timeout::new(Duration::from_secs(1))));
    /// Server::new("backup", "1.0").group(backup).check()?;
    /// # Ok::<(), turnbuckle::Error>(())
    /// ```
    #[track_caller]
    pub fn change_tool(mut self, name: &str, change: impl FnOnce(ToolDef) -> ToolDef) -> Group {
        let missing = changed(&mut self.tools, ("tool", name, ToolDef::name), change);
        self.missing.extend(missing);
        self
    }

    /// Changes one prompt that is in it already; see [`change_tool`](Group::change_tool).
    #[track_caller]
    pub fn change_prompt(
        mut self,
        name: &str,
        change: impl FnOnce(PromptDef) -> PromptDef,
    ) -> Group {
        let missing = changed(&mut self.prompts, ("prompt", name, PromptDef::name), change);
        self.missing.extend(missing);
        self
    }

    /// Changes one resource that is in it already, found by its URI; see
    /// [`change_tool`](Group::change_tool).
    #[track_caller]
    pub fn change_resource(
        mut self,
        uri: &str,
        change: impl FnOnce(ResourceDef) -> ResourceDef,
    ) -> Group {
        let missing = changed(&mut self.resources, ("resource", uri, ResourceDef::uri), change);
        self.missing.extend(missing);
        self
    }

    /// Changes one template that is in it already, found by its text; see
    /// [`change_tool`](Group::change_tool).
    #[track_caller]
    pub fn change_template(
        mut self,
        uri_template: &str,
        change: impl FnOnce(TemplateDef) -> TemplateDef,
    ) -> Group {
        let which =
            ("template", uri_template, TemplateDef::uri_template as fn(&TemplateDef) -> &str);
        let missing = changed(&mut self.templates, which, change);
        self.missing.extend(missing);
        self
    }

    /// Adds middleware for everything in the group, whether it was added before or is added later:
    /// see [`middleware::server`](crate::middleware::server). The middleware that is added first
    /// sees a request first, after that of the server and of outer groups.
    pub fn layer(mut self, middleware: impl Middleware<IncomingRequest>) -> Group {
        self.all.layers.push(middleware);
        self
    }

    /// Adds middleware for the requests that the handlers of the group send to their clients,
    /// whether they were added before or are added later: see
    /// [`InputRequest`](crate::middleware::server::InputRequest). The middleware that is added
    /// first sees a request first, after that of the tool, prompt, resource or template, and before
    /// that of outer groups and of the server.
    ///
    /// ```
    /// use tower::ServiceExt as _;
    /// use turnbuckle::{
    ///     middleware::server::{InputNext, InputRequest},
    ///     server::Group,
    /// };
    /// let log = tower_layer::layer_fn(|next: InputNext| {
    ///     next.map_request(|request: InputRequest| {
    ///         eprintln!("request {} sends {}", request.ctx().request_id(), request.method());
    ///         request
    ///     })
    /// });
    /// let group = Group::new().input_request_layer(log);
    /// # let _ = group;
    /// ```
    pub fn input_request_layer(mut self, middleware: impl Middleware<OutgoingInput>) -> Group {
        self.all.input_layers.push(middleware);
        self
    }

    /// Hides all items from callers for whom the rule returns `false`, whether they were added
    /// before or are added later; see [`ToolDef::visible_to`](crate::server::ToolDef::visible_to).
    pub fn visible_to(mut self, rule: impl Fn(&Ctx) -> bool + Send + Sync + 'static) -> Group {
        self.all.visible.push(Arc::new(rule));
        self
    }

    /// Applies the shared settings to all items.
    fn with_shared_settings(mut self) -> Group {
        let all = std::mem::take(&mut self.all);
        self.tools.iter_mut().for_each(|tool| tool.registration.join(&all));
        self.prompts.iter_mut().for_each(|prompt| prompt.registration.join(&all));
        self.resources.iter_mut().for_each(|resource| resource.registration.join(&all));
        self.templates.iter_mut().for_each(|template| template.registration.join(&all));
        self
    }
}

/// Changes the first item of this name, or returns a sentence that there is none.
#[track_caller]
fn changed<T: Clone>(
    all: &mut [T],
    (kind, name, name_of): (&str, &str, impl Fn(&T) -> &str),
    change: impl FnOnce(T) -> T,
) -> Option<String> {
    match all.iter_mut().find(|one| name_of(one) == name) {
        Some(one) => {
            *one = change(one.clone());
            None
        }
        None => {
            let place = Location::caller();
            let (file, line) = (place.file(), place.line());
            Some(format!("the group has no {kind} `{name}` that could be changed at {file}:{line}"))
        }
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
