//! Owns how a list is answered: which page, for whom, from what was written before. Does not own
//! what is listed, nor the text of each item.

mod cursor;
mod members;
mod place;

use std::sync::Arc;

use turnbuckle_types::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Raw,
    Revision, RpcError,
};

use super::{
    app::App,
    cache::{Audience, Hint, Nature},
    calls::Visit,
    catalogue::{Catalogue, Item, Shelf},
    offer::Resource,
    run::FireOnDrop,
    visibility::OfferKind,
};
use crate::dispatch::{Outcome, Reply};
pub(super) use members::fill as fill_with_members;
use place::Owner;
pub(super) use place::Place;

/// What a list that was asked for is about.
pub(super) struct Asked {
    pub(super) cursor: Option<String>,
    pub(super) revision: Revision,
}

/// Answers a list. What is the same for everyone is answered at once, mostly with text that was
/// written before; a rule or a lister is an author's code, and runs as handlers do.
pub(super) fn list<T: Item>(
    app: &Arc<App>,
    asked: Asked,
    visit: impl FnOnce() -> Result<Visit, RpcError>,
) -> Result<Reply, RpcError> {
    let catalogue = app.catalogue();
    let audience = audience::<T>(app, &catalogue);
    if audience == Audience::Everyone && !has_members::<T>(&catalogue) {
        return plain::<T>(app, &catalogue, &asked, visit).map(|page| Reply::Now(Ok(page)));
    }
    let visit = visit()?;
    Ok(Reply::Later(Box::pin(assembled::<T>(visit, catalogue, asked, audience))))
}

/// A page whose items are the same for everyone. So is its text, unless it has a cursor and it is
/// known who asks: then the page is put together for them, from items that were written before.
fn plain<T: Item>(
    app: &App,
    catalogue: &Catalogue,
    asked: &Asked,
    visit: impl FnOnce() -> Result<Visit, RpcError>,
) -> Result<Raw, RpcError> {
    let Asked { cursor, revision } = asked;
    let (shelf, size) = (catalogue.shelf::<T>(), catalogue.page_size);
    let is_one_page = cursor.is_none() && shelf.listed().len() <= size;
    let ctx = if is_one_page { None } else { Some(visit()?.ctx) };
    let caller = || ctx.as_ref().map_or(Owner::Anyone, Owner::of);
    let place = cursor::open(app, T::KIND, cursor.as_deref(), caller)?;
    let start = shelf.after(match place {
        Place::After(number) => number,
        // It was given out while there were members to list.
        Place::Member { .. } => u64::MAX,
    });
    let owner = ctx.as_ref().map_or(Owner::Anyone, Owner::sharing);
    let make = || {
        let rest = &shelf.listed()[start..];
        let items = &rest[..rest.len().min(size)];
        let next = (rest.len() > size).then(|| items.last()).flatten();
        let next = next.map(|last| cursor::seal(app, T::KIND, &owner, Place::After(last.number)));
        let hint = app.caching.of_list(T::KIND, app.nature(), owner.audience());
        let texts: Vec<&Raw> = items.iter().map(|entry| entry.text(*revision)).collect();
        page(&frame(app, T::KIND, next, hint, *revision), &texts)
    };
    // A page that starts anywhere else was begun before something was removed.
    let is_regular = start.is_multiple_of(size) && (start == 0 || start < shelf.listed().len());
    if is_regular && owner == Owner::Anyone {
        return Ok(shelf.page(start / size, *revision, make));
    }
    Ok(make())
}

/// A page for one caller.
async fn assembled<T: Item>(
    visit: Visit,
    catalogue: Arc<Catalogue>,
    asked: Asked,
    audience: Audience,
) -> Outcome {
    let (app, ctx, revision) = (visit.app.clone(), visit.ctx.clone(), asked.revision);
    let owner = match audience {
        Audience::Everyone => Owner::sharing(&ctx),
        Audience::Caller => Owner::of(&ctx),
    };
    let place = cursor::open(&app, T::KIND, asked.cursor.as_deref(), || Owner::of(&ctx))?;
    let armed = FireOnDrop::new(&ctx);
    let mut filling = Filling { texts: Vec::new(), size: catalogue.page_size, next: None };
    if let Place::After(number) = place {
        filling.fill(&visit, catalogue.shelf::<T>(), number, revision);
    }
    let mut nature = app.nature();
    if has_members::<T>(&catalogue) {
        nature = Nature::Made;
        T::fill(&mut filling, &visit, &catalogue, place).await;
    }
    armed.disarm();
    let next = filling.next.map(|place| cursor::seal(&app, T::KIND, &owner, place));
    let is_one_page = next.is_none() && asked.cursor.is_none();
    let audience = if is_one_page { audience } else { owner.audience() };
    let hint = app.caching.of_list(T::KIND, nature, audience);
    let texts: Vec<&Raw> = filling.texts.iter().collect();
    Ok(page(&frame(&app, T::KIND, next, hint, revision), &texts))
}

/// A page that is being filled.
pub(super) struct Filling {
    texts: Vec<Raw>,
    size: usize,
    /// Where the next page begins, once this one is full.
    next: Option<Place>,
}

impl Filling {
    fn is_full(&self) -> bool {
        self.texts.len() >= self.size
    }

    /// Adds what the caller may know of.
    fn fill<T: Item>(&mut self, visit: &Visit, shelf: &Shelf<T>, after: u64, revision: Revision) {
        let mut last = after;
        for entry in &shelf.listed()[shelf.after(after)..] {
            if !visit.app.rules.show(&***entry, &visit.ctx) {
                continue;
            }
            if self.is_full() {
                self.next = Some(Place::After(last));
                return;
            }
            self.texts.push(entry.text(revision).clone());
            last = entry.number;
        }
    }
}

/// Whether a rule decides who sees what of a list.
fn audience<T: Item>(app: &App, catalogue: &Catalogue) -> Audience {
    let families_have_rules = || catalogue.families().any(|family| !family.rules().is_empty());
    let has_rules = !app.rules.is_empty()
        || catalogue.shelf::<T>().has_rules()
        || T::KIND == Resource::KIND && families_have_rules();
    if has_rules { Audience::Caller } else { Audience::Everyone }
}

/// Whether something has to be asked what it has.
fn has_members<T: Item>(catalogue: &Catalogue) -> bool {
    T::KIND == Resource::KIND && catalogue.families().next().is_some()
}

/// A page without items.
fn frame(
    app: &App,
    kind: OfferKind,
    next_cursor: Option<String>,
    hint: Hint,
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
        OfferKind::Tool => empty!(ListToolsResult),
        OfferKind::Prompt => empty!(ListPromptsResult),
        OfferKind::Resource => empty!(ListResourcesResult),
        OfferKind::Template => empty!(ListResourceTemplatesResult),
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
