//! [`Definition`]: the interface that the registry needs of each kind of items.

use std::{any::TypeId, panic::Location, sync::Arc};

use turnbuckle_types::{Raw, Revision};

use super::{
    RegistrySnapshot,
    section::{Section, at},
};
#[cfg(feature = "http")]
use crate::protocol::param_headers::Annotations;
use crate::{
    rpc::BoxFuture,
    server::{
        handler::extract::States,
        items::{
            Completers, ItemKind, PromptDef, Registration, ResourceDef, TemplateDef, ToolDef,
            Visible,
        },
        methods::HandlerRequest,
        registry::lists::{PageBuilder, PageStart, fill_with_members, listed},
        schema::structured::Structured,
    },
};

/// An item that can be registered.
pub(crate) trait Definition: Clone + Send + Sync + 'static {
    const KIND: ItemKind;
    fn name(&self) -> &str;
    /// Returns the rules; the item is visible to callers for whom all hold.
    fn rules(&self) -> &[Visible];
    /// Returns the scopes that the caller's token needs.
    #[cfg(all(feature = "auth", feature = "http"))]
    fn demands(&self) -> &turnbuckle_auth::Scopes;
    fn place(&self) -> Option<&'static Location<'static>>;
    /// Takes the place of another item and inherits from its groups.
    fn succeed(&mut self, other: &Self);
    /// Checks the item and prepares it for a server. Adds one sentence per problem.
    fn checked(self, states: &States, problems: &mut Vec<String>) -> Self;
    /// Returns why it conflicts with another item of a different name.
    fn clash(&self, other: &Self) -> Option<String> {
        let _ = other;
        None
    }
    /// Returns the description in lists.
    fn text(&self, revision: Revision) -> Raw;
    /// Returns whether both are listed alike for all callers.
    fn is_listed_like(&self, other: &Self) -> bool;
    /// Adds the resources that templates list to a page. Only resources implement it, so that only
    /// programs with resources link it.
    fn fill<'a>(
        filling: &'a mut PageBuilder,
        visit: &'a HandlerRequest,
        snapshot: &'a RegistrySnapshot,
        place: PageStart,
    ) -> BoxFuture<'a, ()> {
        let _ = (filling, visit, snapshot, place);
        Box::pin(async {})
    }
    fn section(snapshot: &RegistrySnapshot) -> &Arc<Section<Self>>;
    fn section_mut(snapshot: &mut RegistrySnapshot) -> &mut Arc<Section<Self>>;
}

macro_rules! common {
    ($kind:ident $definition:ident $name:ident $section:ident) => {
        const KIND: ItemKind = ItemKind::$kind;

        fn name(&self) -> &str {
            $definition::$name(self)
        }

        fn rules(&self) -> &[Visible] {
            &self.registration.visible
        }

        #[cfg(all(feature = "auth", feature = "http"))]
        fn demands(&self) -> &turnbuckle_auth::Scopes {
            &self.registration.scopes
        }

        fn place(&self) -> Option<&'static Location<'static>> {
            self.registration.place
        }

        fn succeed(&mut self, other: &$definition) {
            self.registration.succeed(&other.registration);
        }

        fn section(snapshot: &RegistrySnapshot) -> &Arc<Section<$definition>> {
            &snapshot.$section
        }

        fn section_mut(snapshot: &mut RegistrySnapshot) -> &mut Arc<Section<$definition>> {
            &mut snapshot.$section
        }
    };
}

impl Definition for ToolDef {
    common!(Tool ToolDef name tools);

    fn checked(self, states: &States, problems: &mut Vec<String>) -> ToolDef {
        let about = format!("tool `{}`", ToolDef::name(&self));
        sound(&about, &self.registration, states, problems);
        let structured = Structured::of(self.spec.output_schema.as_ref());
        #[cfg(feature = "http")]
        let repeated = Annotations::of(self.spec.input_schema.as_str()).unwrap_or_else(|why| {
            problems.push(format!("{about}: {why}"));
            Annotations::default()
        });
        ToolDef {
            structured,
            #[cfg(feature = "http")]
            repeated,
            ..self
        }
    }

    fn text(&self, revision: Revision) -> Raw {
        Raw::at(&listed(self, revision), revision)
    }

    fn is_listed_like(&self, other: &ToolDef) -> bool {
        self.spec == other.spec && alike(&self.registration, &other.registration)
    }
}

impl Definition for PromptDef {
    common!(Prompt PromptDef name prompts);

    fn checked(self, states: &States, problems: &mut Vec<String>) -> PromptDef {
        let about = format!("prompt `{}`", PromptDef::name(&self));
        sound(&about, &self.registration, states, problems);
        complete(&about, &self.completers, states, problems);
        self
    }

    fn text(&self, revision: Revision) -> Raw {
        Raw::at(&self.spec, revision)
    }

    fn is_listed_like(&self, other: &PromptDef) -> bool {
        self.spec == other.spec && alike(&self.registration, &other.registration)
    }
}

impl Definition for ResourceDef {
    common!(Resource ResourceDef uri resources);

    fn fill<'a>(
        filling: &'a mut PageBuilder,
        visit: &'a HandlerRequest,
        snapshot: &'a RegistrySnapshot,
        place: PageStart,
    ) -> BoxFuture<'a, ()> {
        Box::pin(fill_with_members(filling, visit, snapshot, place))
    }

    fn checked(self, states: &States, problems: &mut Vec<String>) -> ResourceDef {
        sound(&format!("resource `{}`", self.uri()), &self.registration, states, problems);
        self
    }

    fn text(&self, revision: Revision) -> Raw {
        Raw::at(&self.spec, revision)
    }

    fn is_listed_like(&self, other: &ResourceDef) -> bool {
        self.spec == other.spec && alike(&self.registration, &other.registration)
    }
}

impl Definition for TemplateDef {
    common!(Template TemplateDef uri_template templates);

    fn checked(self, states: &States, problems: &mut Vec<String>) -> TemplateDef {
        let about = format!("template `{}`", self.uri_template());
        sound(&about, &self.registration, states, problems);
        complete(&about, &self.completers, states, problems);
        if let Some(list) = &self.list {
            sound(&about, list, states, problems);
        }
        self
    }

    fn clash(&self, other: &TemplateDef) -> Option<String> {
        let (one, two) = self.uri.as_ref().zip(other.uri.as_ref())?;
        one.has_shape_of(two).then(|| {
            format!(
                "the templates `{}`{} and `{}`{} match the same URIs: remove one",
                other.uri_template(),
                at(other.registration.place),
                self.uri_template(),
                at(self.registration.place),
            )
        })
    }

    fn text(&self, revision: Revision) -> Raw {
        Raw::at(&self.spec, revision)
    }

    fn is_listed_like(&self, other: &TemplateDef) -> bool {
        let nobody_lists = self.list.is_none() && other.list.is_none();
        self.spec == other.spec && nobody_lists && alike(&self.registration, &other.registration)
    }
}

/// Adds the problems of a registration, and the states that the server does not have.
fn sound<R>(
    about: &str,
    registration: &Registration<R>,
    states: &States,
    problems: &mut Vec<String>,
) {
    add_problems(about, &registration.problems, &registration.needs, states, problems);
}

/// The same for every kind of registrations.
fn add_problems(
    about: &str,
    own: &[String],
    needs: &[(TypeId, &'static str)],
    states: &States,
    problems: &mut Vec<String>,
) {
    problems.extend(own.iter().map(|problem| format!("{about}: {problem}")));
    for (id, state) in needs {
        if !states.has(*id) {
            problems.push(format!(
                "{about} takes State<{state}>, which the server was not given: call .state(…)"
            ));
        }
    }
}

/// Adds the problems of completers.
fn complete(about: &str, completers: &Completers, states: &States, problems: &mut Vec<String>) {
    problems.extend(completers.problems().map(|problem| format!("{about}: {problem}")));
    for completer in completers.handlers() {
        sound(about, completer, states, problems);
    }
}

/// Returns whether both are visible to all callers.
fn alike<R>(one: &Registration<R>, other: &Registration<R>) -> bool {
    one.visible.is_empty() && other.visible.is_empty()
}
