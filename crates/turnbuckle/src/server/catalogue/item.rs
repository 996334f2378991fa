//! Owns what the kinds of offers have in common: a name, rules, how each is checked before a server
//! has it, and how it is listed. Does not own how many there are of them.

use std::{panic::Location, sync::Arc};

use turnbuckle_types::{Raw, Revision};

use super::{
    Catalogue,
    shelf::{Shelf, at},
};
#[cfg(feature = "http")]
use crate::envelope::annotations::Annotations;
use crate::{
    dispatch::BoxFuture,
    server::{
        calls::Visit,
        extract::States,
        listing::listed,
        lists::{Filling, Place, fill_with_members},
        offer::{Completers, Offer, Prompt, Resource, Template, Tool, Visible},
        structured::Structured,
        visibility::OfferKind,
    },
};

/// Something that a server can offer.
pub(crate) trait Item: Clone + Send + Sync + 'static {
    const KIND: OfferKind;
    fn name(&self) -> &str;
    /// Who may know of it: those for whom all of these hold.
    fn rules(&self) -> &[Visible];
    /// What the token of whoever wants it must be good for.
    #[cfg(all(feature = "auth", feature = "http"))]
    fn demands(&self) -> &turnbuckle_auth::Scopes;
    fn place(&self) -> Option<&'static Location<'static>>;
    /// Takes the place of another: what holds for that one because of its groups holds on.
    fn succeed(&mut self, other: &Self);
    /// Itself, as a server has it. What is wrong with it is one sentence a problem.
    fn checked(self, states: &States, problems: &mut Vec<String>) -> Self;
    /// Why it can't stand beside another of a different name.
    fn clash(&self, other: &Self) -> Option<String> {
        let _ = other;
        None
    }
    /// As it is listed.
    fn text(&self, revision: Revision) -> Raw;
    /// Whether both are listed alike, for everyone.
    fn is_listed_like(&self, other: &Self) -> bool;
    /// Adds what its families list to a page. Only resources have families, and only programs that
    /// have resources link how they are listed.
    fn fill<'a>(
        filling: &'a mut Filling,
        visit: &'a Visit,
        catalogue: &'a Catalogue,
        place: Place,
    ) -> BoxFuture<'a, ()> {
        let _ = (filling, visit, catalogue, place);
        Box::pin(async {})
    }
    fn shelf(catalogue: &Catalogue) -> &Arc<Shelf<Self>>;
    fn shelf_mut(catalogue: &mut Catalogue) -> &mut Arc<Shelf<Self>>;
}

macro_rules! common {
    ($kind:ident $name:ident $shelf:ident) => {
        const KIND: OfferKind = OfferKind::$kind;

        fn name(&self) -> &str {
            $kind::$name(self)
        }

        fn rules(&self) -> &[Visible] {
            &self.offer.visible
        }

        #[cfg(all(feature = "auth", feature = "http"))]
        fn demands(&self) -> &turnbuckle_auth::Scopes {
            &self.offer.scopes
        }

        fn place(&self) -> Option<&'static Location<'static>> {
            self.offer.place
        }

        fn succeed(&mut self, other: &$kind) {
            self.offer.succeed(&other.offer);
        }

        fn shelf(catalogue: &Catalogue) -> &Arc<Shelf<$kind>> {
            &catalogue.$shelf
        }

        fn shelf_mut(catalogue: &mut Catalogue) -> &mut Arc<Shelf<$kind>> {
            &mut catalogue.$shelf
        }
    };
}

impl Item for Tool {
    common!(Tool name tools);

    fn checked(self, states: &States, problems: &mut Vec<String>) -> Tool {
        let about = format!("tool `{}`", Tool::name(&self));
        sound(&about, &self.offer, states, problems);
        let structured = Structured::of(self.spec.output_schema.as_ref());
        #[cfg(feature = "http")]
        let repeated = Annotations::of(self.spec.input_schema.as_str()).unwrap_or_else(|why| {
            problems.push(format!("{about}: {why}"));
            Annotations::default()
        });
        Tool {
            structured,
            #[cfg(feature = "http")]
            repeated,
            ..self
        }
    }

    fn text(&self, revision: Revision) -> Raw {
        Raw::at(&listed(self, revision), revision)
    }

    fn is_listed_like(&self, other: &Tool) -> bool {
        self.spec == other.spec && alike(&self.offer, &other.offer)
    }
}

impl Item for Prompt {
    common!(Prompt name prompts);

    fn checked(self, states: &States, problems: &mut Vec<String>) -> Prompt {
        let about = format!("prompt `{}`", Prompt::name(&self));
        sound(&about, &self.offer, states, problems);
        complete(&about, &self.completers, states, problems);
        self
    }

    fn text(&self, revision: Revision) -> Raw {
        Raw::at(&self.spec, revision)
    }

    fn is_listed_like(&self, other: &Prompt) -> bool {
        self.spec == other.spec && alike(&self.offer, &other.offer)
    }
}

impl Item for Resource {
    common!(Resource uri resources);

    fn fill<'a>(
        filling: &'a mut Filling,
        visit: &'a Visit,
        catalogue: &'a Catalogue,
        place: Place,
    ) -> BoxFuture<'a, ()> {
        Box::pin(fill_with_members(filling, visit, catalogue, place))
    }

    fn checked(self, states: &States, problems: &mut Vec<String>) -> Resource {
        sound(&format!("resource `{}`", self.uri()), &self.offer, states, problems);
        self
    }

    fn text(&self, revision: Revision) -> Raw {
        Raw::at(&self.spec, revision)
    }

    fn is_listed_like(&self, other: &Resource) -> bool {
        self.spec == other.spec && alike(&self.offer, &other.offer)
    }
}

impl Item for Template {
    common!(Template uri_template templates);

    fn checked(self, states: &States, problems: &mut Vec<String>) -> Template {
        let about = format!("template `{}`", self.uri_template());
        sound(&about, &self.offer, states, problems);
        complete(&about, &self.completers, states, problems);
        if let Some(list) = &self.list {
            sound(&about, list, states, problems);
        }
        self
    }

    fn clash(&self, other: &Template) -> Option<String> {
        let (one, two) = self.uri.as_ref().zip(other.uri.as_ref())?;
        one.has_shape_of(two).then(|| {
            format!(
                "the templates `{}`{} and `{}`{} match the same URIs: remove one",
                other.uri_template(),
                at(other.offer.place),
                self.uri_template(),
                at(self.offer.place),
            )
        })
    }

    fn text(&self, revision: Revision) -> Raw {
        Raw::at(&self.spec, revision)
    }

    fn is_listed_like(&self, other: &Template) -> bool {
        let nobody_lists = self.list.is_none() && other.list.is_none();
        self.spec == other.spec && nobody_lists && alike(&self.offer, &other.offer)
    }
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

/// What is wrong with what completes the arguments of an offer.
fn complete(about: &str, completers: &Completers, states: &States, problems: &mut Vec<String>) {
    problems.extend(completers.problems().map(|problem| format!("{about}: {problem}")));
    for completer in completers.handlers() {
        sound(about, completer, states, problems);
    }
}

/// Whether no rule tells them apart.
fn alike<R>(one: &Offer<R>, other: &Offer<R>) -> bool {
    one.visible.is_empty() && other.visible.is_empty()
}
