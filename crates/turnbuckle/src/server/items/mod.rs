//! The items that can be registered with a server: tools, prompts, resources, templates and groups.

mod completer;
mod directory;
mod group;
mod prompt;
mod resource;
mod template;
mod tool;
mod toolset;
mod visibility;

use std::{any::TypeId, panic::Location, sync::Arc, time::Duration};

use turnbuckle_types::{Named, Raw};

pub use group::{Group, IntoGroup};
pub use prompt::{IntoPrompt, PromptDef, blocking_prompt, prompt};
pub use resource::{IntoResource, ResourceDef, blocking_resource, resource};
pub use template::{IntoTemplate, TemplateDef, blocking_template, template};
pub use tool::{IntoTool, ToolDef, blocking_tool, tool};
pub use toolset::Toolset;
pub use visibility::{Item, ItemKind};

use super::schema::{SchemaError, definition_name};
use crate::{
    middleware::{
        Stack,
        server::{IncomingRequest, OutgoingInput},
    },
    server::handler::{
        context::Ctx,
        extract::Description,
        function::{BlockingFn, ErasedHandler, HandlerFn, asynchronous, blocking},
        run::{Apart, apart},
    },
};
pub(super) use completer::{Completer, Completers};
pub(super) use visibility::Rules;

/// A handler and the settings of its registration; `R` is the result of the handler.
pub(crate) struct Registration<R> {
    pub(super) handler: Arc<dyn ErasedHandler<R>>,
    pub(super) on_cancel: OnCancel<R>,
    pub(super) needs: Vec<(TypeId, &'static str)>,
    /// Problems, reported when the server starts.
    pub(super) problems: Vec<String>,
    /// The item is visible to callers for whom all of these hold.
    pub(super) visible: Vec<Visible>,
    /// The scopes that the caller's token needs.
    #[cfg(all(feature = "auth", feature = "http"))]
    pub(super) scopes: turnbuckle_auth::Scopes,
    pub(super) layers: Stack<IncomingRequest>,
    /// For the requests that its handler sends to the client.
    pub(super) input_layers: Stack<OutgoingInput>,
    /// Which of these it has from its groups: whatever takes its place has them too.
    inherited: Inherited,
    /// Where in the program it was registered.
    pub(super) place: Option<&'static Location<'static>>,
}

/// Settings that an item has from its groups.
#[derive(Clone, Default)]
struct Inherited {
    layers: Stack<IncomingRequest>,
    input_layers: Stack<OutgoingInput>,
    visible: Vec<Visible>,
}

/// Returns whether an item is visible to the sender of a request.
pub(super) type Visible = Arc<dyn Fn(&Ctx) -> bool + Send + Sync>;

/// The way in which a handler is cancelled.
pub(super) enum OnCancel<R> {
    /// Its future is dropped.
    Drop,
    /// It runs apart from its request. Its token fires, and it has this long to end by itself; a
    /// sync function, for which there is no such time, ends when it ends.
    ///
    /// The function that runs it is a pointer, so that only programs with such handlers link it.
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

impl<R: Send + 'static> Registration<R> {
    /// Registers an `async fn` and describes its signature.
    fn asynchronous<M: 'static, F: HandlerFn<R, M>>(function: F) -> (Registration<R>, Description) {
        Registration::new(asynchronous(function), OnCancel::Drop, F::describe)
    }

    /// Registers a sync function and describes its signature.
    fn blocking<M: 'static, F: BlockingFn<R, M>>(function: F) -> (Registration<R>, Description) {
        Registration::new(blocking(function), OnCancel::apart(None), F::describe)
    }

    fn new(
        handler: Arc<dyn ErasedHandler<R>>,
        on_cancel: OnCancel<R>,
        describe: fn(&mut Description),
    ) -> (Registration<R>, Description) {
        let mut description = Description::default();
        describe(&mut description);
        let needs = std::mem::take(&mut description.needs);
        let registration = Registration {
            handler,
            on_cancel,
            needs,
            problems: std::mem::take(&mut description.problems),
            visible: Vec::new(),
            #[cfg(all(feature = "auth", feature = "http"))]
            scopes: turnbuckle_auth::Scopes::none(),
            layers: Stack::default(),
            input_layers: Stack::default(),
            inherited: Inherited::default(),
            place: None,
        };
        (registration, description)
    }

    /// Requires tokens with all of these scopes.
    #[cfg(all(feature = "auth", feature = "http"))]
    fn need(&mut self, scopes: impl Iterator<Item = String>) {
        match crate::server::auth::protect::read_scopes(scopes) {
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
        let Inherited { layers, input_layers, visible } = group;
        if !layers.is_empty() {
            self.layers.wrap_in(layers);
            self.inherited.layers.wrap_in(layers);
        }
        // Requests to the client go outwards: the group's middleware comes after its own.
        self.input_layers.extend(input_layers);
        self.inherited.input_layers.extend(input_layers);
        self.visible.extend_from_slice(visible);
        self.inherited.visible.extend_from_slice(visible);
    }

    /// Takes the place of another registration and inherits from its groups.
    pub(super) fn succeed(&mut self, other: &Registration<R>) {
        self.join(&other.inherited);
    }

    /// Returns a schema, or records why it is invalid.
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

impl<R> Clone for Registration<R> {
    fn clone(&self) -> Registration<R> {
        Registration {
            handler: self.handler.clone(),
            on_cancel: self.on_cancel,
            needs: self.needs.clone(),
            problems: self.problems.clone(),
            visible: self.visible.clone(),
            #[cfg(all(feature = "auth", feature = "http"))]
            scopes: self.scopes.clone(),
            layers: self.layers.clone(),
            input_layers: self.input_layers.clone(),
            inherited: self.inherited.clone(),
            place: self.place,
        }
    }
}

/// Implements the settings that all items share.
macro_rules! registration_methods {
    ($kind:ident) => {
        impl $kind {
            /// Lets a cancelled handler end by itself: its [`Ctx`](crate::Ctx) says so, and after
            /// `grace` it is dropped as any other would have been at once.
            #[must_use]
            pub fn cooperative(mut self, grace: std::time::Duration) -> $kind {
                if let super::OnCancel::Drop = self.registration.on_cancel {
                    self.registration.on_cancel = super::OnCancel::apart(Some(grace));
                }
                self
            }

            /// Hides the item from callers for whom the rule returns `false`: it is neither listed
            /// nor reachable for them. The rule runs for every request, so it should be quick. With
            /// several rules, all must hold.
            #[must_use]
            pub fn visible_to(
                mut self,
                rule: impl Fn(&crate::Ctx) -> bool + Send + Sync + 'static,
            ) -> $kind {
                self.registration.visible.push(std::sync::Arc::new(rule));
                self
            }

            /// Sets the scopes that a caller's token needs, where the server is
            /// [protected](crate::Server::protect). Other callers do not see the item in lists, and
            /// are refused with a challenge that names the scopes, before anything runs. This has no
            /// effect on transports without tokens, such as stdio.
            #[cfg(all(feature = "auth", feature = "http"))]
            #[must_use]
            pub fn scopes<S: Into<String>>(
                mut self,
                scopes: impl IntoIterator<Item = S>,
            ) -> $kind {
                self.registration.need(scopes.into_iter().map(Into::into));
                self
            }

            /// Adds middleware for requests for it: see
            /// [`middleware::server`](crate::middleware::server). The middleware that is added
            /// first sees a request first, after that of the server and of the group.
            #[must_use]
            pub fn layer(
                mut self,
                middleware: impl crate::middleware::Middleware<crate::middleware::server::IncomingRequest>,
            ) -> $kind {
                self.registration.layers.push(middleware);
                self
            }

            /// Adds middleware for the requests that its handler sends to the client: see
            /// [`InputRequest`](crate::middleware::server::InputRequest). The middleware that is
            /// added first sees a request first, before that of the group and of the server.
            #[must_use]
            pub fn input_request_layer(
                mut self,
                middleware: impl crate::middleware::Middleware<crate::middleware::server::OutgoingInput>,
            ) -> $kind {
                self.registration.input_layers.push(middleware);
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
                self.registration.place.get_or_insert(place);
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

use registration_methods;

/// Hosts send names to model APIs that take letters, digits, `_`, `-`, `.` and `/`, 64 or
/// 128 of them.
fn name_problem(kind: &str, name: &str) -> Option<String> {
    let fits = (1..=128).contains(&name.len());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
    (!fits || !plain).then(|| {
        format!("the {kind} name `{name}` must be 1 to 128 letters, digits, `_`, `-`, `.` or `/`")
    })
}

/// Returns the members of an object's schema: name, schema, and whether it is required.
fn members(schema: &Raw) -> Vec<(String, Member, bool)> {
    read_members(schema).unwrap_or_default()
}

fn read_members(schema: &Raw) -> serde_json::Result<Vec<(String, Member, bool)>> {
    let object = schema.members()?;
    let part = |name: &str| object.value(name).map_or(Ok(Named::new()), Raw::members);
    let (properties, definitions) = (part("properties")?, part("$defs")?);
    let required: Vec<String> = object.value("required").map_or(Ok(Vec::new()), Raw::decode)?;
    let mut members = Vec::new();
    for (name, schema) in properties.iter() {
        let mut member = Member::default();
        let reference = member.fill_in(schema)?;
        let defined = reference.and_then(|reference| definition_name(&reference));
        if let Some(defined) = defined.and_then(|name| definitions.value(&name)) {
            member.fill_in(defined)?;
        }
        let is_required = required.iter().any(|required| required == name);
        members.push((name.to_owned(), member, is_required));
    }
    Ok(members)
}

/// The parts of a member's schema that descriptions and completers need.
#[derive(Clone, Debug, Default)]
struct Member {
    title: Option<String>,
    description: Option<String>,
    choices: Vec<Raw>,
}

impl Member {
    /// Fills in missing parts from a schema. Returns the reference to a definition that has the rest.
    fn fill_in(&mut self, schema: &Raw) -> serde_json::Result<Option<String>> {
        let members = schema.members()?;
        let text = |name: &str| members.value(name).map(Raw::decode).transpose();
        if self.title.is_none() {
            self.title = text("title")?;
        }
        if self.description.is_none() {
            self.description = text("description")?;
        }
        if self.choices.is_empty() {
            self.choices = members.value("enum").map_or(Ok(Vec::new()), Raw::decode)?;
        }
        text("$ref")
    }

    /// Returns the allowed values, if all of them are texts.
    fn choices(&self) -> Option<Vec<String>> {
        let texts = self.choices.iter().map(|choice| choice.decode().ok());
        texts.collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())
    }
}
