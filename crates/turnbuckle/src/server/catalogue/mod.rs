//! Owns what a server offers at one moment: checked, and found by name. Does not own the offers
//! themselves, nor who is told that they changed.

mod item;
mod live;
mod news;
mod registry;
mod shelf;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(super) use item::Item;
pub(super) use live::Live;
pub use registry::{Handle, Registry};
pub(super) use shelf::{Entry, Shelf};
use shelf::{Slot, Switch};

use super::{
    extract::States,
    offer::{Group, Prompt, Resource, Template, Tool},
    uri::{UriRouter, Variables},
};

/// Everything that is offered. It never changes: there will be another.
#[derive(Clone)]
pub(super) struct Catalogue {
    tools: Arc<Shelf<Tool>>,
    prompts: Arc<Shelf<Prompt>>,
    resources: Arc<Shelf<Resource>>,
    templates: Arc<Shelf<Template>>,
    /// Which template a URI leads to, if there may be any.
    routes: Option<Arc<dyn Routes>>,
    /// How many items a page of a list has.
    pub(super) page_size: usize,
}

/// Where a URI leads.
#[derive(Clone)]
pub(super) enum Found {
    Resource(Arc<Entry<Resource>>),
    Template(Arc<Entry<Template>>, Variables),
}

impl Catalogue {
    /// Checks everything; the error is one sentence a problem.
    pub(super) fn new(
        group: &Group,
        states: &States,
        page_size: usize,
    ) -> Result<Catalogue, Vec<String>> {
        let mut problems = group.missing.clone();
        let mut catalogue = Catalogue {
            tools: Arc::new(Shelf::new()),
            prompts: Arc::new(Shelf::new()),
            resources: Arc::new(Shelf::new()),
            templates: Arc::new(Shelf::new()),
            routes: None,
            page_size,
        };
        catalogue.stock::<Tool>(&group.tools, states, &mut problems);
        for way in group.ways.iter() {
            (way.stock)(&mut catalogue, group, states, &mut problems);
        }
        if problems.is_empty() { Ok(catalogue) } else { Err(problems) }
    }

    /// Fills a shelf. What is wrong is one sentence a problem.
    pub(super) fn stock<T: Item>(
        &mut self,
        items: &[T],
        states: &States,
        problems: &mut Vec<String>,
    ) {
        let mut shelf = Shelf::new();
        for item in items {
            shelf.push(item.clone(), states, problems);
        }
        shelf.settle(self.page_size);
        *T::shelf_mut(self) = Arc::new(shelf);
    }

    pub(super) fn shelf<T: Item>(&self) -> &Arc<Shelf<T>> {
        T::shelf(self)
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Arc<Entry<Tool>>> {
        self.tools.find(name)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Arc<Entry<Prompt>>> {
        self.prompts.find(name)
    }

    /// The template of this text.
    pub(super) fn template(&self, text: &str) -> Option<&Arc<Entry<Template>>> {
        self.templates.find(text)
    }

    /// The templates whose members are listed.
    pub(super) fn families(&self) -> impl Iterator<Item = &Arc<Entry<Template>>> {
        self.templates.listed().iter().filter(|template| template.list.is_some())
    }

    /// Where a URI leads: a resource of its own goes before a family, also one that is disabled.
    pub(super) fn find(&self, uri: &str) -> Option<Found> {
        if self.has_resource(uri) {
            return self.resources.find(uri).cloned().map(Found::Resource);
        }
        self.routes.as_ref()?.lead(uri)
    }

    /// Whether a resource of its own has this URI, enabled or not.
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
        let route = |slot: &Slot<Template>| {
            let is_on = slot.switch == Switch::On;
            Some((slot.entry.uri.clone()?, is_on.then(|| slot.entry.clone())))
        };
        let routes: UriRouter<_> = self.templates.slots().iter().filter_map(route).collect();
        self.routes = Some(Arc::new(routes));
    }
}

/// Leads to templates. Programs that have none link nothing of how.
trait Routes: Send + Sync {
    fn lead(&self, uri: &str) -> Option<Found>;
}

/// A disabled template has its URIs still, so that no less specific one answers for it.
impl Routes for UriRouter<Option<Arc<Entry<Template>>>> {
    fn lead(&self, uri: &str) -> Option<Found> {
        let (template, variables) = self.find(uri)?;
        Some(Found::Template(template.clone()?, variables))
    }
}
