//! [`Registry`] and [`Handle`]: changing the items of a server while it runs.

use std::{
    marker::PhantomData,
    panic::Location,
    sync::{Arc, Weak},
};

use super::{Definition, section::Switch};
use crate::{
    error::{Error, ErrorKind, Result},
    server::{
        Server,
        handler::{
            context::Ctx,
            extract::{FromCall, Invocation},
            reply::Failure,
        },
        items::{
            IntoPrompt, IntoResource, IntoTemplate, IntoTool, PromptDef, ResourceDef, TemplateDef,
            ToolDef,
        },
        methods::cache_hints::Nature,
        shared::App,
    },
};

impl Server {
    /// Returns the registry, which adds, replaces, hides and removes items while the server runs, on
    /// all its connections. Call it after all other settings, and before the server serves.
    ///
    /// The server then declares the capabilities of tools, prompts, resources and completions, even
    /// if it has none yet. Items that are registered before come first in every list.
    ///
    /// A handler takes it as an argument, or asks [`Ctx::registry`](crate::Ctx::registry).
    ///
    /// ```
    /// use turnbuckle::{Server, tool};
    /// # fn main() -> turnbuckle::Result<()> {
    /// let server = Server::new("demo", "1.0");
    /// let registry = server.registry()?;
    /// let echo = registry.add_tool(tool("echo", async || "echo"))?;
    /// echo.disable();
    /// assert!(!registry.tool("echo").unwrap().is_enabled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn registry(&self) -> Result<Registry> {
        let app = self.app()?;
        app.open_registry()?;
        Ok(Registry::of(&app))
    }
}

impl Ctx {
    /// Returns the registry of the server, if [`Server::registry`] was called before it served.
    ///
    /// ```
    /// use turnbuckle::{Ctx, Server, server::Registry, tool};
    /// async fn learn(ctx: Ctx) -> &'static str {
    ///     let learned = ctx.registry().map(|registry| registry.add_tool(tool("new", async || ())));
    ///     if matches!(learned, Some(Ok(_))) { "learned" } else { "not now" }
    /// }
    /// async fn forget(registry: Registry) -> &'static str {
    ///     registry.tool("new").map(|new| new.remove()).map_or("never heard of it", |()| "forgotten")
    /// }
    /// # fn main() -> turnbuckle::Result<()> {
    /// let server =
    ///     Server::new("demo", "1.0").tool(tool("learn", learn)).tool(tool("forget", forget));
    /// server.registry()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn registry(&self) -> Option<Registry> {
        let app = self.0.app.as_ref()?;
        (app.nature() == Nature::Changing).then(|| Registry::of(app))
    }
}

impl FromCall for Registry {
    async fn from_call(call: &Invocation) -> std::result::Result<Registry, Failure> {
        let missing = "the server's registry was not taken before it served: call .registry()";
        call.ctx().registry().ok_or_else(|| Failure::internal(missing))
    }
}

/// Changes the items of a server while it runs; see [`Server::registry`]. Cheap to clone.
///
/// It does not keep the server alive, so handlers may hold it. Changes fail once the last clone of the
/// server and its last connection are dropped.
///
/// Every change is checked like the items of a server that starts; a change that is refused has no
/// effect. Clients that subscribe are notified once for every burst of changes, and not at all if
/// their lists stay the same.
///
/// ```
/// use turnbuckle::{Server, resource};
/// # fn main() -> turnbuckle::Result<()> {
/// let server = Server::new("demo", "1.0");
/// let registry = server.registry()?;
/// registry.add_resource(resource("demo://now", async || "noon"))?;
/// let again = registry.add_resource(resource("demo://now", async || "one o'clock"));
/// assert!(again.unwrap_err().to_string().contains("there are two resources named `demo://now`"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Registry {
    app: Weak<App>,
}

/// A handle of a registered item: `T` is [`ToolDef`], [`PromptDef`], [`ResourceDef`] or
/// [`TemplateDef`]. Dropping it changes nothing.
///
/// ```
/// use turnbuckle::{Server, tool};
/// # fn main() -> turnbuckle::Result<()> {
/// let server = Server::new("demo", "1.0");
/// let registry = server.registry()?;
/// let clock = registry.add_tool(tool("clock", async || "half past two"))?;
/// clock.replace(tool("clock", async || "a quarter to three").description("Tells the time."))?;
/// clock.remove();
/// assert!(registry.tool("clock").is_none());
/// assert!(clock.replace(tool("clock", async || "three")).is_err());
/// # Ok(())
/// # }
/// ```
pub struct Handle<T> {
    app: Weak<App>,
    number: u64,
    kind: PhantomData<fn() -> T>,
}

impl Registry {
    /// Returns the registry of a server whose items may change.
    fn of(app: &Arc<App>) -> Registry {
        Registry { app: Arc::downgrade(app) }
    }

    fn add<T: Definition>(&self, item: T) -> Result<Handle<T>> {
        let app = self.app.upgrade().ok_or_else(gone)?;
        let added =
            app.live.change(|draft| Some(draft.section.push(item, draft.states, draft.problems)));
        match added.map_err(refused)? {
            Some(number) => Ok(self.handle(number)),
            None => Err(Error::refused("nothing was added")),
        }
    }

    #[cfg(test)]
    pub(super) fn snapshot(&self) -> Arc<super::RegistrySnapshot> {
        self.app.upgrade().expect("the test holds its server").snapshot()
    }

    fn find<T: Definition>(&self, name: &str) -> Option<Handle<T>> {
        let app = self.app.upgrade()?;
        app.snapshot().section::<T>().number(name).map(|number| self.handle(number))
    }

    fn handle<T>(&self, number: u64) -> Handle<T> {
        Handle { app: self.app.clone(), number, kind: PhantomData }
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle { app: self.app.clone(), number: self.number, kind: PhantomData }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("number", &self.number).finish_non_exhaustive()
    }
}

fn replace<T: Definition>(handle: &Handle<T>, item: T) -> Result<()> {
    let number = handle.number;
    // Stays here if it is not used, so that it is dropped without the lock.
    let mut item = Some(item);
    let app = handle.app.upgrade().ok_or_else(gone)?;
    let replaced = app.live.change(|draft| {
        draft.section.registered_item(number)?;
        draft.section.replace(number, item.take()?, draft.states, draft.problems);
        Some(())
    });
    match replaced.map_err(refused)? {
        Some(()) => Ok(()),
        None => Err(Error::refused(format!(
            "the {} was removed, so it cannot be replaced: add it again",
            T::KIND.word()
        ))),
    }
}

fn turn<T: Definition>(handle: &Handle<T>, switch: Switch) {
    let number = handle.number;
    let Some(app) = handle.app.upgrade() else { return };
    // Nothing that is there already can be wrong.
    let _ = app.live.change::<T, _>(|draft| {
        draft.section.registered_item(number).filter(|item| item.switch != switch)?;
        draft.section.switch(number, switch);
        Some(())
    });
}

fn remove<T: Definition>(handle: &Handle<T>) {
    let number = handle.number;
    let Some(app) = handle.app.upgrade() else { return };
    let _ = app.live.change::<T, _>(|draft| {
        draft.section.registered_item(number)?;
        draft.section.remove(number);
        Some(())
    });
}

fn is_enabled<T: Definition>(handle: &Handle<T>) -> bool {
    let Some(app) = handle.app.upgrade() else { return false };
    let snapshot = app.snapshot();
    snapshot
        .section::<T>()
        .registered_item(handle.number)
        .is_some_and(|item| item.switch == Switch::On)
}

fn gone() -> Error {
    Error::refused("the server is gone, so nothing can be offered")
}

fn refused(problems: Vec<String>) -> Error {
    Error::new(ErrorKind::Refused, problems.join("; "))
}

macro_rules! registered {
    ($kind:ident $into:ident $into_it:ident $add:ident $find:ident $what:literal $name:literal) => {
        impl Registry {
            #[doc = concat!("Adds ", $what, " after all others.")]
            #[track_caller]
            pub fn $add(&self, item: impl $into) -> Result<Handle<$kind>> {
                self.add(item.$into_it().placed(Location::caller()))
            }

            #[doc = concat!("Returns the handle for this ", $name, ", enabled or not.")]
            pub fn $find(&self, name: &str) -> Option<Handle<$kind>> {
                self.find(name)
            }
        }

        impl Handle<$kind> {
            /// Replaces the item. The new one keeps the place in lists, whether it is enabled, and
            /// the rules and layers of the groups of the old one, but not the old one's own. Fails if
            /// the item was removed, or if the new one is invalid.
            #[track_caller]
            pub fn replace(&self, item: impl $into) -> Result<()> {
                replace(self, item.$into_it().placed(Location::caller()))
            }

            /// Enables the item again.
            pub fn enable(&self) {
                turn(self, Switch::On);
            }

            /// Disables the item: it is neither listed nor reachable until it is enabled.
            pub fn disable(&self) {
                turn(self, Switch::Off);
            }

            /// Removes the item for good. Running calls continue.
            pub fn remove(&self) {
                remove(self);
            }

            /// Returns `true` if the item is registered and enabled.
            pub fn is_enabled(&self) -> bool {
                is_enabled(self)
            }
        }
    };
}

registered!(ToolDef IntoTool into_tool add_tool tool "a tool" "name");
registered!(PromptDef IntoPrompt into_prompt add_prompt prompt "a prompt" "name");
registered!(ResourceDef IntoResource into_resource add_resource resource "a resource" "URI");
registered!(TemplateDef IntoTemplate into_template add_template template "a family of resources" "text");
