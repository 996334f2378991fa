//! Rules about which caller may see which item.

use crate::server::{Server, handler::context::Ctx, registry::Definition};
use std::sync::Arc;

/// A kind of item that a server has.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{
///     Server,
///     server::{Cache, ItemKind},
/// };
/// let hour = Cache::new(Duration::from_secs(3_600));
/// let server = Server::new("demo", "1.0").cache_for(ItemKind::Tool, hour);
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource with one URI.
    Resource,
    /// A resource template.
    Template,
}

impl ItemKind {
    pub(crate) const COUNT: usize = 4;

    /// Returns the word for it in messages.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Prompt => "prompt",
            ItemKind::Resource => "resource",
            ItemKind::Template => "template",
        }
    }
}

/// An item of a server, as the rule of [`Server::visible`] sees it.
///
/// ```
/// use turnbuckle::{
///     Ctx,
///     server::{Item, ItemKind},
/// };
/// fn is_public(_: &Ctx, item: &Item<'_>) -> bool {
///     item.kind != ItemKind::Resource || !item.name.starts_with("internal://")
/// }
/// let server = turnbuckle::Server::new("demo", "1.0").visible(is_public);
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item<'a> {
    /// The kind of the item.
    pub kind: ItemKind,
    /// The name of a tool or a prompt, the URI of a resource, the text of a template.
    pub name: &'a str,
}

/// The rules for all items of a server.
#[derive(Clone, Default)]
pub(crate) struct Rules(Vec<Rule>);

type Rule = Arc<dyn Fn(&Ctx, &Item<'_>) -> bool + Send + Sync>;

impl Rules {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a rule decides who may see this item. Rules are user code and do not run in
    /// the reader of a connection.
    pub(crate) fn concern<T: Definition>(&self, item: &T) -> bool {
        !self.0.is_empty() || !item.rules().is_empty()
    }

    /// Returns whether the item is visible to the sender of this request.
    pub(crate) fn show<T: Definition>(&self, item: &T, ctx: &Ctx) -> bool {
        let shown = Item { kind: T::KIND, name: item.name() };
        self.0.iter().all(|rule| rule(ctx, &shown)) && item.rules().iter().all(|rule| rule(ctx))
    }
}

impl Server {
    /// Hides the items for which the rule returns `false` from the sender of a request: they are
    /// neither listed nor reachable. The rule runs for every request and every listed item, so it
    /// should be quick. With several rules, all must hold. Lists are then made for each caller.
    ///
    /// ```
    /// use turnbuckle::{Ctx, Server, server::Item, tool};
    /// async fn stop() {}
    /// let server = Server::new("demo", "1.0").tool(tool("admin/stop", stop)).visible(
    ///     |ctx: &Ctx, item: &Item<'_>| {
    ///         let is_root = || ctx.principal::<()>().is_some_and(|who| who.name() == "root");
    ///         !item.name.starts_with("admin/") || is_root()
    ///     },
    /// );
    /// # let _ = server;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn visible(self, rule: impl Fn(&Ctx, &Item<'_>) -> bool + Send + Sync + 'static) -> Server {
        self.changed(|server| server.rules.0.push(Arc::new(rule)))
    }
}
