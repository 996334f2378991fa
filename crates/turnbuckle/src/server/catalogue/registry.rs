//! Owns how a program changes what its server offers while it runs. Does not own the snapshots that
//! this makes, nor how clients are told.

use std::{
    marker::PhantomData,
    panic::Location,
    sync::{Arc, Weak},
};

use super::{Item, shelf::Switch};
use crate::{
    error::{Error, ErrorKind, Result},
    server::{
        Server,
        app::App,
        cache::Nature,
        context::Ctx,
        extract::{FromCall, Invocation},
        offer::{
            IntoPrompt, IntoResource, IntoTemplate, IntoTool, Prompt, Resource, Template, Tool,
        },
        reply::Failure,
    },
};

impl Server {
    /// The way to add, replace, hide and remove what the server offers while it runs, on all its
    /// connections. Take it when everything else is said, and before the server serves.
    ///
    /// From then on the server says that it has tools, prompts, resources and completions, even if
    /// there are none yet. What is registered now comes first in every list.
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
    /// The registry of the server, if its program has taken that before it served.
    ///
    /// ```
    /// use turnbuckle::{Ctx, Registry, Server, tool};
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

/// Changes what a server offers while it runs; see [`Server::registry`]. Cheap to clone.
///
/// It does not keep the server alive, so that something that the server offers may hold it. Once the
/// last clone of the server and its last connection are gone, there is nothing left to change.
///
/// Every change is checked as everything is when a server starts, and is refused if something is
/// wrong; then nothing has changed. Clients that listen are told once for every burst of changes,
/// and not at all if their lists are what they were.
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

/// One thing that a server offers while it runs: `T` is [`Tool`], [`Prompt`], [`Resource`] or
/// [`Template`]. Dropping it changes nothing.
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
    /// Of a server that has said that it may change.
    fn of(app: &Arc<App>) -> Registry {
        Registry { app: Arc::downgrade(app) }
    }

    fn add<T: Item>(&self, item: T) -> Result<Handle<T>> {
        let app = self.app.upgrade().ok_or_else(gone)?;
        let added =
            app.live.change(|draft| Some(draft.shelf.push(item, draft.states, draft.problems)));
        match added.map_err(refused)? {
            Some(number) => Ok(self.handle(number)),
            None => Err(Error::refused("nothing was added")),
        }
    }

    #[cfg(test)]
    pub(super) fn catalogue(&self) -> Arc<super::Catalogue> {
        self.app.upgrade().expect("the test holds its server").catalogue()
    }

    fn find<T: Item>(&self, name: &str) -> Option<Handle<T>> {
        let app = self.app.upgrade()?;
        app.catalogue().shelf::<T>().number(name).map(|number| self.handle(number))
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

/// What a handle of any kind does.
fn replace<T: Item>(handle: &Handle<T>, item: T) -> Result<()> {
    let number = handle.number;
    // Stays out here if there is no place for it, so that it is dropped when nobody waits.
    let mut item = Some(item);
    let app = handle.app.upgrade().ok_or_else(gone)?;
    let replaced = app.live.change(|draft| {
        draft.shelf.slot(number)?;
        draft.shelf.replace(number, item.take()?, draft.states, draft.problems);
        Some(())
    });
    match replaced.map_err(refused)? {
        Some(()) => Ok(()),
        None => Err(Error::refused(format!(
            "the {} was removed, so nothing can take its place: add it anew",
            T::KIND.word()
        ))),
    }
}

fn turn<T: Item>(handle: &Handle<T>, switch: Switch) {
    let number = handle.number;
    let Some(app) = handle.app.upgrade() else { return };
    // Nothing that is there already can be wrong.
    let _ = app.live.change::<T, _>(|draft| {
        draft.shelf.slot(number).filter(|slot| slot.switch != switch)?;
        draft.shelf.switch(number, switch);
        Some(())
    });
}

fn remove<T: Item>(handle: &Handle<T>) {
    let number = handle.number;
    let Some(app) = handle.app.upgrade() else { return };
    let _ = app.live.change::<T, _>(|draft| {
        draft.shelf.slot(number)?;
        draft.shelf.remove(number);
        Some(())
    });
}

fn is_enabled<T: Item>(handle: &Handle<T>) -> bool {
    let Some(app) = handle.app.upgrade() else { return false };
    let catalogue = app.catalogue();
    catalogue.shelf::<T>().slot(handle.number).is_some_and(|slot| slot.switch == Switch::On)
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
            #[doc = concat!("Offers ", $what, " more, after all others.")]
            #[track_caller]
            pub fn $add(&self, item: impl $into) -> Result<Handle<$kind>> {
                self.add(item.$into_it().placed(Location::caller()))
            }

            #[doc = concat!("What is registered under this ", $name, ", enabled or not.")]
            pub fn $find(&self, name: &str) -> Option<Handle<$kind>> {
                self.find(name)
            }
        }

        impl Handle<$kind> {
            /// Puts another in its place: the same in every list, enabled or not as it was, with
            /// the rules and layers of the groups that it was registered in, but not its own.
            /// Refused if it was removed, or if something is wrong with the other.
            #[track_caller]
            pub fn replace(&self, item: impl $into) -> Result<()> {
                replace(self, item.$into_it().placed(Location::caller()))
            }

            /// Offers it again.
            pub fn enable(&self) {
                turn(self, Switch::On);
            }

            /// Hides it from everyone: it is neither listed nor reachable until it is enabled.
            pub fn disable(&self) {
                turn(self, Switch::Off);
            }

            /// Takes it away for good. Calls that run go on.
            pub fn remove(&self) {
                remove(self);
            }

            /// Whether it is offered now.
            pub fn is_enabled(&self) -> bool {
                is_enabled(self)
            }
        }
    };
}

registered!(Tool IntoTool into_tool add_tool tool "a tool" "name");
registered!(Prompt IntoPrompt into_prompt add_prompt prompt "a prompt" "name");
registered!(Resource IntoResource into_resource add_resource resource "a resource" "URI");
registered!(Template IntoTemplate into_template add_template template "a family of resources" "text");
