//! Owns what a server offers at one moment: checked, and found by name. Does not own the offers
//! themselves, nor who is told that they changed.

mod check;

use std::{collections::HashMap, sync::Arc};

use super::{
    extract::States,
    offer::{Group, Prompt, Resource, Template, Tool},
    uri::Variables,
};

/// Everything that is offered.
#[derive(Clone, Default)]
pub(super) struct Catalogue {
    tools: Named<Tool>,
    prompts: Named<Prompt>,
    resources: Named<Resource>,
    templates: Vec<Arc<Template>>,
}

/// Offers in the order of their registration, found by name.
#[derive(Clone)]
struct Named<T> {
    order: Vec<Arc<T>>,
    by_name: HashMap<String, Arc<T>>,
}

/// Where a URI leads.
pub(super) enum Found {
    Resource(Arc<Resource>),
    Template(Arc<Template>, Variables),
}

impl Catalogue {
    /// Checks everything; the error is one sentence a problem.
    pub(super) fn new(group: &Group, states: &States) -> Result<Catalogue, Vec<String>> {
        let mut problems = Vec::new();
        let catalogue = Catalogue {
            tools: Named::new(check::tools(&group.tools, states, &mut problems), Tool::name),
            prompts: Named::new(
                check::prompts(&group.prompts, states, &mut problems),
                Prompt::name,
            ),
            resources: Named::new(
                check::resources(&group.resources, states, &mut problems),
                Resource::uri,
            ),
            templates: check::templates(&group.templates, states, &mut problems),
        };
        if problems.is_empty() { Ok(catalogue) } else { Err(problems) }
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.by_name.get(name)
    }

    pub(super) fn tools(&self) -> &[Arc<Tool>] {
        &self.tools.order
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        self.prompts.by_name.get(name)
    }

    pub(super) fn prompts(&self) -> &[Arc<Prompt>] {
        &self.prompts.order
    }

    pub(super) fn resources(&self) -> &[Arc<Resource>] {
        &self.resources.order
    }

    pub(super) fn templates(&self) -> &[Arc<Template>] {
        &self.templates
    }

    /// The template of this text.
    pub(super) fn template(&self, text: &str) -> Option<&Arc<Template>> {
        self.templates.iter().find(|template| template.uri_template() == text)
    }

    /// Where a URI leads: a resource of its own goes before a family.
    pub(super) fn find(&self, uri: &str) -> Option<Found> {
        if let Some(resource) = self.resources.by_name.get(uri) {
            return Some(Found::Resource(resource.clone()));
        }
        self.templates.iter().find_map(|template| {
            let variables = template.uri.as_ref()?.matches(uri)?;
            Some(Found::Template(template.clone(), variables))
        })
    }

    pub(super) fn has_resources(&self) -> bool {
        !self.resources.order.is_empty() || !self.templates.is_empty()
    }

    pub(super) fn has_completers(&self) -> bool {
        self.prompts.order.iter().any(|prompt| !prompt.completers.is_empty())
            || self.templates.iter().any(|template| !template.completers.is_empty())
    }
}

impl<T> Named<T> {
    fn new(order: Vec<Arc<T>>, name: fn(&T) -> &str) -> Named<T> {
        let by_name = order.iter().map(|item| (name(item).to_owned(), item.clone())).collect();
        Named { order, by_name }
    }
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named { order: Vec::new(), by_name: HashMap::new() }
    }
}
