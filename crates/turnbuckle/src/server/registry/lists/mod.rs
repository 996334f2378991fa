//! Answers the list methods: pages, cursors, and the text of each item, which is written once.

mod cursor;
mod listed_tool;
mod members;
mod place;

use std::sync::Arc;

use crate::{
    rpc::{BoxFuture, Outcome, Reply},
    server::{
        handler::run::FireOnDrop,
        items::{ItemKind, ResourceDef},
        methods::{
            HandlerRequest,
            cache_hints::{CacheHint, ListAudience, Nature},
        },
        registry::{Definition, RegistrySnapshot, Section},
        shared::App,
    },
};
pub(crate) use listed_tool::listed;
pub(crate) use members::fill as fill_with_members;
use place::CursorOwner;
pub(crate) use place::PageStart;
use turnbuckle_types::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Raw,
    Revision, RpcError,
};

/// The parameters of a list request.
pub(crate) struct ListRequest {
    pub(crate) cursor: Option<String>,
    pub(crate) revision: Revision,
}

/// Answers a list request. A list that is the same for all callers is answered at once, mostly with
/// cached text. Rules and listers are user code and run like handlers.
pub(crate) fn list<T: Definition>(
    app: &Arc<App>,
    asked: ListRequest,
    visit: impl FnOnce() -> Result<HandlerRequest, RpcError>,
) -> Result<Reply, RpcError> {
    let snapshot = app.snapshot();
    let audience = audience::<T>(app, &snapshot);
    if audience == ListAudience::Everyone && !has_members::<T>(&snapshot) {
        return plain::<T>(app, &snapshot, &asked, visit).map(|page| Reply::Now(Ok(page)));
    }
    let visit = visit()?;
    let parts = ListParts {
        kind: T::KIND,
        fill: |page, visit, snapshot, after, revision| {
            page.fill(visit, snapshot.section::<T>(), after, revision);
        },
        fill_with_members: if has_members::<T>(&snapshot) { Some(T::fill) } else { None },
    };
    Ok(Reply::Later(Box::pin(assembled(visit, snapshot, asked, audience, parts))))
}

/// The parts of a list that depend on the kind of its items.
struct ListParts {
    kind: ItemKind,
    /// Adds the items after a number that are visible to the caller.
    fill: fn(&mut PageBuilder, &HandlerRequest, &RegistrySnapshot, u64, Revision),
    /// [`Definition::fill`], if templates list items of this kind.
    fill_with_members: Option<FillWithMembers>,
}

type FillWithMembers = for<'a> fn(
    &'a mut PageBuilder,
    &'a HandlerRequest,
    &'a RegistrySnapshot,
    PageStart,
) -> BoxFuture<'a, ()>;

/// A page whose items are the same for everyone. So is its text, unless it has a cursor and it is
/// known who asks: then the page is put together for them, from items that were written before.
fn plain<T: Definition>(
    app: &App,
    snapshot: &RegistrySnapshot,
    asked: &ListRequest,
    visit: impl FnOnce() -> Result<HandlerRequest, RpcError>,
) -> Result<Raw, RpcError> {
    let ListRequest { cursor, revision } = asked;
    let (section, size) = (snapshot.section::<T>(), snapshot.page_size);
    let is_one_page = cursor.is_none() && section.listed().len() <= size;
    let ctx = if is_one_page { None } else { Some(visit()?.ctx) };
    let caller = || ctx.as_ref().map_or(CursorOwner::Anyone, CursorOwner::of);
    let place = cursor::open(app, T::KIND, cursor.as_deref(), caller)?;
    let start = section.after(match place {
        PageStart::After(number) => number,
        // It was given out while there were members to list.
        PageStart::Member { .. } => u64::MAX,
    });
    let owner = ctx.as_ref().map_or(CursorOwner::Anyone, CursorOwner::sharing);
    let make = || {
        let rest = &section.listed()[start..];
        let items = &rest[..rest.len().min(size)];
        let next = (rest.len() > size).then(|| items.last()).flatten();
        let next =
            next.map(|last| cursor::seal(app, T::KIND, &owner, PageStart::After(last.number)));
        let hint = app.caching.of_list(T::KIND, app.nature(), owner.audience());
        let texts: Vec<&Raw> = items.iter().map(|entry| entry.text(*revision)).collect();
        page(&frame(app, T::KIND, next, hint, *revision), &texts)
    };
    // A page that starts anywhere else was begun before something was removed.
    let is_regular = start.is_multiple_of(size) && (start == 0 || start < section.listed().len());
    if is_regular && owner == CursorOwner::Anyone {
        return Ok(section.page(start / size, *revision, &make));
    }
    Ok(make())
}

/// A page for one caller.
async fn assembled(
    visit: HandlerRequest,
    snapshot: Arc<RegistrySnapshot>,
    asked: ListRequest,
    audience: ListAudience,
    parts: ListParts,
) -> Outcome {
    let ListParts { kind, fill, fill_with_members } = parts;
    let (app, ctx, revision) = (visit.app.clone(), visit.ctx.clone(), asked.revision);
    let owner = match audience {
        ListAudience::Everyone => CursorOwner::sharing(&ctx),
        ListAudience::Caller => CursorOwner::of(&ctx),
    };
    let place = cursor::open(&app, kind, asked.cursor.as_deref(), || CursorOwner::of(&ctx))?;
    let armed = FireOnDrop::new(&ctx);
    let mut filling = PageBuilder { texts: Vec::new(), size: snapshot.page_size, next: None };
    if let PageStart::After(number) = place {
        fill(&mut filling, &visit, &snapshot, number, revision);
    }
    let mut nature = app.nature();
    if let Some(fill) = fill_with_members {
        nature = Nature::Made;
        fill(&mut filling, &visit, &snapshot, place).await;
    }
    armed.disarm();
    let next = filling.next.map(|place| cursor::seal(&app, kind, &owner, place));
    let is_one_page = next.is_none() && asked.cursor.is_none();
    let audience = if is_one_page { audience } else { owner.audience() };
    let hint = app.caching.of_list(kind, nature, audience);
    let texts: Vec<&Raw> = filling.texts.iter().collect();
    Ok(page(&frame(&app, kind, next, hint, revision), &texts))
}

/// A page that is being filled.
pub(crate) struct PageBuilder {
    texts: Vec<Raw>,
    size: usize,
    /// Where the next page begins, once this one is full.
    next: Option<PageStart>,
}

impl PageBuilder {
    fn is_full(&self) -> bool {
        self.texts.len() >= self.size
    }

    /// Adds the items that are visible to the caller.
    fn fill<T: Definition>(
        &mut self,
        visit: &HandlerRequest,
        section: &Section<T>,
        after: u64,
        revision: Revision,
    ) {
        let mut last = after;
        for entry in &section.listed()[section.after(after)..] {
            if !visit.app.rules.show(&***entry, &visit.ctx) {
                continue;
            }
            if self.is_full() {
                self.next = Some(PageStart::After(last));
                return;
            }
            self.texts.push(entry.text(revision).clone());
            last = entry.number;
        }
    }
}

/// Returns whether a rule decides who sees which items.
fn audience<T: Definition>(app: &App, snapshot: &RegistrySnapshot) -> ListAudience {
    let families_have_rules = || snapshot.families().any(|family| !family.rules().is_empty());
    let has_rules = !app.rules.is_empty()
        || snapshot.section::<T>().has_rules()
        || T::KIND == ResourceDef::KIND && families_have_rules();
    if has_rules { ListAudience::Caller } else { ListAudience::Everyone }
}

/// Returns whether templates list resources.
fn has_members<T: Definition>(snapshot: &RegistrySnapshot) -> bool {
    T::KIND == ResourceDef::KIND && snapshot.families().next().is_some()
}

/// A page without items.
fn frame(
    app: &App,
    kind: ItemKind,
    next_cursor: Option<String>,
    hint: CacheHint,
    revision: Revision,
) -> Raw {
    macro_rules! empty {
        ($result:ident) => {{
            let mut result = $result::new(Vec::new());
            result.next_cursor = next_cursor;
            result.ttl_ms = Some(hint.ttl_ms);
            result.cache_scope = Some(hint.scope);
            app.finish(&result, revision)
        }};
    }
    match kind {
        ItemKind::Tool => empty!(ListToolsResult),
        ItemKind::Prompt => empty!(ListPromptsResult),
        ItemKind::Resource => empty!(ListResourcesResult),
        ItemKind::Template => empty!(ListResourceTemplatesResult),
    }
}

/// Puts items, as they were written before, where the frame has none.
fn page(frame: &Raw, items: &[&Raw]) -> Raw {
    // The list is the first member of each.
    let Some((before, after)) = frame.as_str().split_once("[]") else { return frame.clone() };
    let size: usize = items.iter().map(|item| item.as_str().len() + 1).sum();
    let mut text = Vec::with_capacity(frame.as_str().len() + size);
    text.extend_from_slice(before.as_bytes());
    text.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item.as_str().as_bytes());
    }
    text.push(b']');
    text.extend_from_slice(after.as_bytes());
    Raw::from_encoded(text).unwrap_or_else(|| frame.clone())
}

#[cfg(all(test, feature = "http", feature = "client"))]
mod tests;
