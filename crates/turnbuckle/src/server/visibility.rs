//! Owns who may know of what. Does not own the rules: authors write them.

use std::sync::Arc;

use super::{Server, catalogue::Item, context::Ctx};

/// The kinds of things that a server offers.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{Cache, OfferKind, Server};
/// let hour = Cache::new(Duration::from_secs(3_600));
/// let server = Server::new("demo", "1.0").cache_for(OfferKind::Tool, hour);
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OfferKind {
    /// What can be called.
    Tool,
    /// What can be asked for as messages.
    Prompt,
    /// What can be read under one URI.
    Resource,
    /// What can be read under a family of URIs.
    Template,
}

impl OfferKind {
    pub(super) const COUNT: usize = 4;

    /// As sentences have it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            OfferKind::Tool => "tool",
            OfferKind::Prompt => "prompt",
            OfferKind::Resource => "resource",
            OfferKind::Template => "template",
        }
    }
}

/// One thing that a server offers, as the rule of [`Server::visible`] sees it.
///
/// ```
/// use turnbuckle::{Ctx, OfferKind, Offered};
/// fn is_public(_: &Ctx, offered: &Offered<'_>) -> bool {
///     offered.kind != OfferKind::Resource || !offered.name.starts_with("internal://")
/// }
/// let server = turnbuckle::Server::new("demo", "1.0").visible(is_public);
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offered<'a> {
    /// What it is.
    pub kind: OfferKind,
    /// The name of a tool or a prompt, the URI of a resource, the text of a template.
    pub name: &'a str,
}

/// The rules for everything that a server offers.
#[derive(Clone, Default)]
pub(super) struct Rules(Vec<Rule>);

type Rule = Arc<dyn Fn(&Ctx, &Offered<'_>) -> bool + Send + Sync>;

impl Rules {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it takes a rule to tell who may know of this. Rules are not for the reader of a
    /// connection: they are an author's code.
    pub(super) fn concern<T: Item>(&self, item: &T) -> bool {
        !self.0.is_empty() || !item.rules().is_empty()
    }

    /// Whether whoever sends this request may know of this.
    pub(super) fn show<T: Item>(&self, item: &T, ctx: &Ctx) -> bool {
        let offered = Offered { kind: T::KIND, name: item.name() };
        self.0.iter().all(|rule| rule(ctx, &offered)) && item.rules().iter().all(|rule| rule(ctx))
    }
}

impl Server {
    /// Hides whatever the rule says no of from whoever sends a request: it is neither listed nor
    /// reachable for them, as if it did not exist. The rule runs for every request and everything
    /// that is listed, so it should be quick; with several, all must hold. Lists are then made
    /// for each caller.
    ///
    /// ```
    /// use turnbuckle::{Ctx, Offered, Server, tool};
    /// async fn stop() {}
    /// let server = Server::new("demo", "1.0").tool(tool("admin/stop", stop)).visible(
    ///     |ctx: &Ctx, offered: &Offered<'_>| {
    ///         let is_root = || ctx.principal::<()>().is_some_and(|who| who.name() == "root");
    ///         !offered.name.starts_with("admin/") || is_root()
    ///     },
    /// );
    /// # let _ = server;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn visible(
        self,
        rule: impl Fn(&Ctx, &Offered<'_>) -> bool + Send + Sync + 'static,
    ) -> Server {
        self.changed(|server| server.rules.0.push(Arc::new(rule)))
    }
}
