//! The registry of a server's items: immutable snapshots, found by name or URI, and the public
//! [`Registry`] that replaces them while the server runs.

mod definition;
mod handle;
pub(crate) mod lists;
mod live;
mod method_sets;
mod notifier;
mod section;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{
    items::{Group, PromptDef, ResourceDef, TemplateDef, ToolDef},
    uri::{UriRouter, Variables},
};
use crate::server::handler::extract::States;
pub(super) use definition::Definition;
pub use handle::{Handle, Registry};
pub(super) use live::LiveRegistry;
pub(super) use method_sets::{MethodSets, PROMPTS, RESOURCES};
pub(super) use section::{Entry, Section};
use section::{RegisteredItem, Switch};

/// All items of a server at one moment. A change makes a new snapshot.
#[derive(Clone)]
pub(crate) struct RegistrySnapshot {
    tools: Arc<Section<ToolDef>>,
    prompts: Arc<Section<PromptDef>>,
    resources: Arc<Section<ResourceDef>>,
    templates: Arc<Section<TemplateDef>>,
    /// Finds the template of a URI, if templates can be registered.
    routes: Option<Arc<dyn FindTemplate>>,
    /// The number of items on a page of a list.
    pub(super) page_size: usize,
}

/// The resource or template that a URI belongs to.
#[derive(Clone)]
pub(super) enum FoundResource {
    Resource(Arc<Entry<ResourceDef>>),
    Template(Arc<Entry<TemplateDef>>, Variables),
}

impl RegistrySnapshot {
    /// Checks all items. The error has one sentence per problem.
    pub(super) fn new(
        group: &Group,
        states: &States,
        page_size: usize,
    ) -> Result<RegistrySnapshot, Vec<String>> {
        let mut problems = group.missing.clone();
        let mut snapshot = RegistrySnapshot {
            tools: Arc::new(Section::new()),
            prompts: Arc::new(Section::new()),
            resources: Arc::new(Section::new()),
            templates: Arc::new(Section::new()),
            routes: None,
            page_size,
        };
        snapshot.register::<ToolDef>(&group.tools, states, &mut problems);
        for method_set in group.method_sets.iter() {
            (method_set.register)(&mut snapshot, group, states, &mut problems);
        }
        if problems.is_empty() { Ok(snapshot) } else { Err(problems) }
    }

    /// Adds all items of one kind, and one sentence per problem.
    pub(super) fn register<T: Definition>(
        &mut self,
        items: &[T],
        states: &States,
        problems: &mut Vec<String>,
    ) {
        let mut section = Section::new();
        for item in items {
            section.push(item.clone(), states, problems);
        }
        section.settle(self.page_size);
        *T::section_mut(self) = Arc::new(section);
    }

    pub(super) fn section<T: Definition>(&self) -> &Arc<Section<T>> {
        T::section(self)
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Arc<Entry<ToolDef>>> {
        self.tools.find(name)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Arc<Entry<PromptDef>>> {
        self.prompts.find(name)
    }

    /// Returns the template with this text.
    pub(super) fn template(&self, text: &str) -> Option<&Arc<Entry<TemplateDef>>> {
        self.templates.find(text)
    }

    /// Returns the templates that list their resources.
    pub(super) fn families(&self) -> impl Iterator<Item = &Arc<Entry<TemplateDef>>> {
        self.templates.listed().iter().filter(|template| template.list.is_some())
    }

    /// Finds the item that answers for a URI. A resource with this URI takes precedence over
    /// templates, even if it is disabled.
    pub(super) fn find(&self, uri: &str) -> Option<FoundResource> {
        if self.has_resource(uri) {
            return self.resources.find(uri).cloned().map(FoundResource::Resource);
        }
        self.routes.as_ref()?.find_template(uri)
    }

    /// Returns whether a resource has this URI, enabled or not.
    pub(super) fn has_resource(&self, uri: &str) -> bool {
        self.resources.number(uri).is_some()
    }

    pub(super) fn has_tools(&self) -> bool {
        !self.tools.listed().is_empty()
    }

    pub(super) fn has_prompts(&self) -> bool {
        !self.prompts.listed().is_empty()
    }

    pub(super) fn has_resources(&self) -> bool {
        !self.resources.listed().is_empty() || !self.templates.listed().is_empty()
    }

    pub(super) fn has_completers(&self) -> bool {
        self.prompts.listed().iter().any(|prompt| !prompt.completers.is_empty())
            || self.templates.listed().iter().any(|template| !template.completers.is_empty())
    }

    /// Rebuilds the routes after a change of the templates.
    pub(super) fn route(&mut self) {
        let route = |registered: &RegisteredItem<TemplateDef>| {
            let is_on = registered.switch == Switch::On;
            Some((registered.entry.uri.clone()?, is_on.then(|| registered.entry.clone())))
        };
        let routes: UriRouter<_> = self.templates.registered().iter().filter_map(route).collect();
        self.routes = Some(Arc::new(routes));
    }
}

/// Finds templates. Behind a trait, so that programs without templates do not link the router.
trait FindTemplate: Send + Sync {
    fn find_template(&self, uri: &str) -> Option<FoundResource>;
}

/// A disabled template keeps its URIs: a less specific one does not answer for it.
impl FindTemplate for UriRouter<Option<Arc<Entry<TemplateDef>>>> {
    fn find_template(&self, uri: &str) -> Option<FoundResource> {
        let (template, variables) = self.find(uri)?;
        Some(FoundResource::Template(template.clone()?, variables))
    }
}
