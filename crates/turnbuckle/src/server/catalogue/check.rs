//! Owns what must be true of offers before a server has them. Does not own how they are found then.

use std::{collections::HashMap, panic::Location, sync::Arc};

#[cfg(feature = "http")]
use crate::envelope::annotations::Annotations;
use crate::server::{
    extract::States,
    offer::{Offer, Prompt, Resource, Template, Tool},
    structured::Structured,
};

pub(super) fn tools<'a>(
    tools: &'a [Tool],
    states: &States,
    problems: &mut Vec<String>,
) -> Vec<Arc<Tool>> {
    let mut names = Names::new("tool");
    let check = |tool: &'a Tool| {
        let about = format!("tool `{}`", tool.name());
        names.take(tool.name(), tool.offer.place, problems);
        sound(&about, &tool.offer, states, problems);
        let structured = Structured::of(tool.spec.output_schema.as_ref());
        let checked = Tool { structured, ..tool.clone() };
        #[cfg(feature = "http")]
        let checked = Tool {
            repeated: Annotations::of(tool.spec.input_schema.as_str()).unwrap_or_else(|why| {
                problems.push(format!("{about}: {why}"));
                Annotations::default()
            }),
            ..checked
        };
        Arc::new(checked)
    };
    tools.iter().map(check).collect()
}

pub(super) fn prompts<'a>(
    prompts: &'a [Prompt],
    states: &States,
    problems: &mut Vec<String>,
) -> Vec<Arc<Prompt>> {
    let mut names = Names::new("prompt");
    let check = |prompt: &'a Prompt| {
        let about = format!("prompt `{}`", prompt.name());
        names.take(prompt.name(), prompt.offer.place, problems);
        sound(&about, &prompt.offer, states, problems);
        for completer in prompt.completers.handlers() {
            sound(&about, completer, states, problems);
        }
        Arc::new(prompt.clone())
    };
    prompts.iter().map(check).collect()
}

pub(super) fn resources<'a>(
    resources: &'a [Resource],
    states: &States,
    problems: &mut Vec<String>,
) -> Vec<Arc<Resource>> {
    let mut names = Names::new("resource");
    let check = |resource: &'a Resource| {
        names.take(resource.uri(), resource.offer.place, problems);
        sound(&format!("resource `{}`", resource.uri()), &resource.offer, states, problems);
        Arc::new(resource.clone())
    };
    resources.iter().map(check).collect()
}

pub(super) fn templates(
    templates: &[Template],
    states: &States,
    problems: &mut Vec<String>,
) -> Vec<Arc<Template>> {
    for (index, template) in templates.iter().enumerate() {
        let about = format!("template `{}`", template.uri_template());
        sound(&about, &template.offer, states, problems);
        for completer in template.completers.handlers() {
            sound(&about, completer, states, problems);
        }
        if let Some(list) = &template.list {
            sound(&about, list, states, problems);
        }
        for other in &templates[..index] {
            let overlap = template.uri.as_ref().zip(other.uri.as_ref());
            if overlap.is_some_and(|(one, other)| one.overlaps(other)) {
                problems.push(format!(
                    "the templates `{}`{} and `{}`{} match the same URIs: only one can answer",
                    other.uri_template(),
                    at(other.offer.place),
                    template.uri_template(),
                    at(template.offer.place),
                ));
            }
        }
    }
    templates.iter().cloned().map(Arc::new).collect()
}

/// What is wrong with an offer itself, and what it needs that the server lacks.
fn sound<R>(about: &str, offer: &Offer<R>, states: &States, problems: &mut Vec<String>) {
    problems.extend(offer.problems.iter().map(|problem| format!("{about}: {problem}")));
    for (id, state) in &offer.needs {
        if !states.has(*id) {
            problems.push(format!(
                "{about} takes State<{state}>, which the server was not given: call .state(…)"
            ));
        }
    }
}

/// Names that must differ, and where each was taken.
struct Names<'a> {
    kind: &'static str,
    taken: HashMap<&'a str, Option<&'static Location<'static>>>,
}

impl<'a> Names<'a> {
    fn new(kind: &'static str) -> Names<'a> {
        Names { kind, taken: HashMap::new() }
    }

    fn take(
        &mut self,
        name: &'a str,
        place: Option<&'static Location<'static>>,
        problems: &mut Vec<String>,
    ) {
        if let Some(before) = self.taken.insert(name, place) {
            problems.push(format!(
                "there are two {}s named `{name}`: one{}, one{}",
                self.kind,
                at(before),
                at(place),
            ));
        }
    }
}

fn at(place: Option<&'static Location<'static>>) -> String {
    place.map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()))
}
