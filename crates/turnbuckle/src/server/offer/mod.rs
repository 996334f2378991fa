//! Owns what can be registered with a server: a description, a handler, and what is true of it.
//! Does not own what a server makes of all its offers, nor how a request reaches one.

mod completer;
mod group;
mod prompt;
mod resource;
mod template;
mod tool;
mod toolset;

use std::{any::TypeId, panic::Location, sync::Arc, time::Duration};

use turnbuckle_types::Raw;

pub use group::{Group, IntoGroup};
pub use prompt::{IntoPrompt, Prompt, blocking_prompt, prompt};
pub use resource::{IntoResource, Resource, blocking_resource, resource};
pub use template::{IntoTemplate, Template, blocking_template, template};
pub use tool::{IntoTool, Tool, blocking_tool, tool};
pub use toolset::Toolset;

pub(super) use completer::{Completer, Completers};

use super::{
    context::Ctx,
    extract::Description,
    handler::{BlockingFn, Handle, HandlerFn, asynchronous, blocking},
    layer::{Questions, Stack},
    run::{Apart, apart},
    schema::{SchemaError, definition_name},
};

/// What every offer has besides its description; `R` is what its handler makes.
pub(crate) struct Offer<R> {
    pub(super) handler: Arc<dyn Handle<R>>,
    pub(super) on_cancel: OnCancel<R>,
    pub(super) needs: Vec<(TypeId, &'static str)>,
    /// What is wrong with it: told when the server starts.
    pub(super) problems: Vec<String>,
    /// Who sees it: those for whom all of these hold.
    pub(super) visible: Vec<Visible>,
    /// What the token of whoever wants it must be good for.
    #[cfg(all(feature = "auth", feature = "http"))]
    pub(super) scopes: turnbuckle_auth::Scopes,
    /// What stands around it.
    pub(super) layers: Stack,
    /// What stands around what its handler asks.
    pub(super) questions: Questions,
    /// Which of these it has from its groups: whatever takes its place has them too.
    inherited: Inherited,
    /// Where in the program it was registered.
    pub(super) place: Option<&'static Location<'static>>,
}

/// What is true of an offer because of the groups that it is in.
#[derive(Clone, Default)]
struct Inherited {
    layers: Stack,
    questions: Questions,
    visible: Vec<Visible>,
}

/// Says whether whoever sends a request may know of an offer.
pub(super) type Visible = Arc<dyn Fn(&Ctx) -> bool + Send + Sync>;

/// What happens to a handler whose request is cancelled.
pub(super) enum OnCancel<R> {
    /// Its future is dropped.
    Drop,
    /// It runs apart from its request. Its token fires, and it has this long to end by itself; a
    /// sync function, for which there is no such time, ends when it ends.
    ///
    /// What runs it is a pointer, so that only programs that have such handlers link it.
    Apart(Apart<R>, Option<Duration>),
}

impl<R: Send + 'static> OnCancel<R> {
    pub(super) fn apart(grace: Option<Duration>) -> OnCancel<R> {
        OnCancel::Apart(apart, grace)
    }
}

impl<R> Clone for OnCancel<R> {
    fn clone(&self) -> OnCancel<R> {
        *self
    }
}

impl<R> Copy for OnCancel<R> {}

impl<R: Send + 'static> Offer<R> {
    /// An `async fn`, and what its signature says.
    fn asynchronous<M: 'static, F: HandlerFn<R, M>>(function: F) -> (Offer<R>, Description) {
        Offer::new(asynchronous(function), OnCancel::Drop, F::describe)
    }

    /// A sync function, and what its signature says.
    fn blocking<M: 'static, F: BlockingFn<R, M>>(function: F) -> (Offer<R>, Description) {
        Offer::new(blocking(function), OnCancel::apart(None), F::describe)
    }

    fn new(
        handler: Arc<dyn Handle<R>>,
        on_cancel: OnCancel<R>,
        describe: fn(&mut Description),
    ) -> (Offer<R>, Description) {
        let mut description = Description::default();
        describe(&mut description);
        let needs = std::mem::take(&mut description.needs);
        let offer = Offer {
            handler,
            on_cancel,
            needs,
            problems: std::mem::take(&mut description.problems),
            visible: Vec::new(),
            #[cfg(all(feature = "auth", feature = "http"))]
            scopes: turnbuckle_auth::Scopes::none(),
            layers: Stack::default(),
            questions: Questions::default(),
            inherited: Inherited::default(),
            place: None,
        };
        (offer, description)
    }

    /// Is only for those whose tokens are good for all of these.
    #[cfg(all(feature = "auth", feature = "http"))]
    fn need(&mut self, scopes: impl Iterator<Item = String>) {
        match super::protect::read_scopes(scopes) {
            Ok(scopes) if scopes.is_empty() => {}
            Ok(scopes) => {
                self.scopes = self.scopes.union(&scopes);
                self.visible.push(Arc::new(move |ctx: &Ctx| ctx.is_granted(&scopes)));
            }
            Err(problem) => self.problems.push(problem),
        }
    }

    /// Becomes part of a group.
    fn join(&mut self, group: &Inherited) {
        let Inherited { layers, questions, visible } = group;
        if !layers.is_empty() {
            self.layers.within(layers);
            self.inherited.layers.within(layers);
        }
        if !questions.is_empty() {
            self.questions.within(questions);
            self.inherited.questions.within(questions);
        }
        self.visible.extend_from_slice(visible);
        self.inherited.visible.extend_from_slice(visible);
    }

    /// Takes the place of another, in the groups of that one.
    pub(super) fn succeed(&mut self, other: &Offer<R>) {
        self.join(&other.inherited);
    }

    /// A schema, unless there is something wrong with it.
    fn sound<T>(&mut self, schema: Option<Result<T, SchemaError>>) -> Option<T> {
        match schema? {
            Ok(schema) => Some(schema),
            Err(error) => {
                self.problems.push(error.to_string());
                None
            }
        }
    }
}

impl<R> Clone for Offer<R> {
    fn clone(&self) -> Offer<R> {
        Offer {
            handler: self.handler.clone(),
            on_cancel: self.on_cancel,
            needs: self.needs.clone(),
            problems: self.problems.clone(),
            visible: self.visible.clone(),
            #[cfg(all(feature = "auth", feature = "http"))]
            scopes: self.scopes.clone(),
            layers: self.layers.clone(),
            questions: self.questions.clone(),
            inherited: self.inherited.clone(),
            place: self.place,
        }
    }
}

/// What every offer can be told.
macro_rules! offered {
    ($kind:ident) => {
        impl $kind {
            /// Lets a cancelled handler end by itself: its [`Ctx`](crate::Ctx) says so, and after
            /// `grace` it is dropped as any other would have been at once.
            #[must_use]
            pub fn cooperative(mut self, grace: std::time::Duration) -> $kind {
                if let super::OnCancel::Drop = self.offer.on_cancel {
                    self.offer.on_cancel = super::OnCancel::apart(Some(grace));
                }
                self
            }

            /// Hides it from whoever the rule says no of: it is neither listed nor reachable for
            /// them. The rule runs for every request, so it should be quick; with several, all
            /// must hold.
            #[must_use]
            pub fn visible_to(
                mut self,
                rule: impl Fn(&crate::Ctx) -> bool + Send + Sync + 'static,
            ) -> $kind {
                self.offer.visible.push(std::sync::Arc::new(rule));
                self
            }

            /// Says what the token of whoever wants it must be good for, where the server is
            /// [protected](crate::Server::protect): others don't see it in lists, and are refused
            /// with a challenge that tells their client what to ask for, before anything runs. On
            /// wires that are one client's own there are no tokens, and this says nothing.
            #[cfg(all(feature = "auth", feature = "http"))]
            #[must_use]
            pub fn scopes<S: Into<String>>(
                mut self,
                scopes: impl IntoIterator<Item = S>,
            ) -> $kind {
                self.offer.need(scopes.into_iter().map(Into::into));
                self
            }

            /// Puts a layer around it: see [`layer`](mod@crate::layer). The first that is given
            /// sees a request first, after those of the server and of the group.
            #[must_use]
            pub fn layer<L>(mut self, layer: L) -> $kind
            where
                L: tower_layer::Layer<crate::layer::Next>,
                L::Service: tower_service::Service<
                        crate::layer::Request,
                        Response = crate::layer::Response,
                    > + Clone
                    + Send
                    + Sync
                    + 'static,
                <L::Service as tower_service::Service<crate::layer::Request>>::Error:
                    Into<Box<dyn std::error::Error + Send + Sync>>,
                <L::Service as tower_service::Service<crate::layer::Request>>::Future:
                    Send + 'static,
            {
                self.offer.layers.push(layer);
                self
            }

            /// Puts a layer around what its handler asks the client: the other direction, see
            /// [`Question`](crate::layer::Question). The first that is given sees a question first,
            /// before those of the group and of the server.
            #[must_use]
            pub fn ask_layer<L>(mut self, layer: L) -> $kind
            where
                L: tower_layer::Layer<crate::layer::NextQuestion>,
                L::Service: tower_service::Service<
                        crate::layer::Question,
                        Response = turnbuckle_types::Raw,
                    > + Clone
                    + Send
                    + Sync
                    + 'static,
                <L::Service as tower_service::Service<crate::layer::Question>>::Error:
                    Into<Box<dyn std::error::Error + Send + Sync>>,
                <L::Service as tower_service::Service<crate::layer::Question>>::Future:
                    Send + 'static,
            {
                self.offer.questions.push(layer);
                self
            }

            /// Adds an entry to the `_meta` of its description.
            #[must_use]
            pub fn meta(
                mut self,
                key: impl Into<String>,
                value: impl Into<turnbuckle_types::Raw>,
            ) -> $kind {
                self.spec.meta.insert(key.into(), value.into());
                self
            }

            /// Remembers where it was registered, unless that is known.
            pub(crate) fn placed(
                mut self,
                place: &'static std::panic::Location<'static>,
            ) -> $kind {
                self.offer.place.get_or_insert(place);
                self
            }
        }

        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($kind)).field("spec", &self.spec).finish_non_exhaustive()
            }
        }
    };
}

use offered;

/// Hosts send names to model APIs that take letters, digits, `_`, `-`, `.` and `/`, 64 or
/// 128 of them.
fn name_problem(kind: &str, name: &str) -> Option<String> {
    let fits = (1..=128).contains(&name.len());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
    (!fits || !plain).then(|| {
        format!("the {kind} name `{name}` must be 1 to 128 letters, digits, `_`, `-`, `.` or `/`")
    })
}

/// The members of an object's schema: name, schema, and whether it is needed.
fn members(schema: &Raw) -> Vec<(String, Member, bool)> {
    #[derive(serde::Deserialize)]
    struct Object {
        #[serde(default)]
        properties: turnbuckle_types::Named<Member>,
        #[serde(default)]
        required: Vec<String>,
        #[serde(default, rename = "$defs")]
        definitions: turnbuckle_types::Named<Member>,
    }
    let Ok(Object { properties, required, definitions }) = schema.decode() else {
        return Vec::new();
    };
    let needed = |name: &str| required.iter().any(|required| required == name);
    let defined = |member: &Member| {
        let name = definition_name(member.reference.as_deref()?)?;
        definitions.iter().find(|(known, _)| **known == name).map(|(_, defined)| defined)
    };
    properties
        .iter()
        .map(|(name, member)| (name.to_owned(), member.or(defined(member)), needed(name)))
        .collect()
}

/// What the schema of a member says that people and completers want to know.
#[derive(Clone, Debug, Default, serde::Deserialize)]
struct Member {
    title: Option<String>,
    description: Option<String>,
    #[serde(default, rename = "enum")]
    choices: Vec<serde_json::Value>,
    /// Where the rest is said, if many members share it.
    #[serde(default, rename = "$ref")]
    reference: Option<String>,
}

impl Member {
    /// With what is said elsewhere, where it says nothing itself.
    fn or(&self, defined: Option<&Member>) -> Member {
        let mut member = self.clone();
        let Some(defined) = defined else { return member };
        member.title = member.title.or_else(|| defined.title.clone());
        member.description = member.description.or_else(|| defined.description.clone());
        if member.choices.is_empty() {
            member.choices.clone_from(&defined.choices);
        }
        member
    }

    /// The texts it can be, if those are all there are.
    fn choices(&self) -> Option<Vec<String>> {
        let texts = self.choices.iter().map(|choice| choice.as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())
    }
}
