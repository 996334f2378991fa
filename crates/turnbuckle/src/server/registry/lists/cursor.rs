//! Cursors: sealed texts that say where a page begins.

use ring::digest::{SHA256, digest};
use turnbuckle_types::RpcError;

use super::place::{CursorOwner, FamilyMember, PageStart, no_cursor};
use crate::{
    protocol::sealed::KeyRing,
    server::{items::ItemKind, shared::App},
};

/// The longest text that can be a cursor.
const LONGEST: usize = 128;

/// Returns the mark of a resource that a template lists, by its URI.
pub(super) fn mark(uri: &str) -> FamilyMember {
    digest(&SHA256, uri.as_bytes()).as_ref().first_chunk().copied().unwrap_or_default()
}

/// Returns the cursor for a place.
pub(super) fn seal(app: &App, kind: ItemKind, owner: &CursorOwner, place: PageStart) -> String {
    sealed(&app.keys, kind, owner, place)
}

/// Returns the place of a cursor.
pub(super) fn open(
    app: &App,
    kind: ItemKind,
    cursor: Option<&str>,
    caller: impl FnOnce() -> CursorOwner,
) -> Result<PageStart, RpcError> {
    opened(&app.keys, kind, cursor, caller)
}

fn sealed(keys: &KeyRing, kind: ItemKind, owner: &CursorOwner, place: PageStart) -> String {
    let (tag, one, two, three) = match place {
        PageStart::After(number) => (0, number, 0, FamilyMember::default()),
        PageStart::Member { family, offset, last } => (1, family, offset, last),
    };
    let mut text = vec![tag];
    text.extend_from_slice(&one.to_be_bytes());
    text.extend_from_slice(&two.to_be_bytes());
    text.extend_from_slice(&three);
    keys.seal(&purpose(kind, owner), &text).1
}

/// A list may have become one for everyone, or ceased to be, since a walk
/// began: either cursor is good then.
fn opened(
    keys: &KeyRing,
    kind: ItemKind,
    cursor: Option<&str>,
    caller: impl FnOnce() -> CursorOwner,
) -> Result<PageStart, RpcError> {
    let Some(cursor) = cursor else { return Ok(PageStart::After(0)) };
    if let Some(place) = open_as(keys, kind, &CursorOwner::Anyone, cursor) {
        return Ok(place);
    }
    open_as(keys, kind, &caller(), cursor).ok_or_else(no_cursor)
}

fn open_as(keys: &KeyRing, kind: ItemKind, owner: &CursorOwner, cursor: &str) -> Option<PageStart> {
    let (_, text) = keys.open_within(LONGEST, &purpose(kind, owner), cursor.as_bytes())?;
    read(&text)
}

fn read(text: &[u8]) -> Option<PageStart> {
    let (tag, numbers) = text.split_first()?;
    let (one, rest) = numbers.split_first_chunk::<8>()?;
    let (two, rest) = rest.split_first_chunk::<8>()?;
    let (one, two) = (u64::from_be_bytes(*one), u64::from_be_bytes(*two));
    let last = rest.try_into().ok()?;
    match tag {
        0 => Some(PageStart::After(one)),
        1 => Some(PageStart::Member { family: one, offset: two, last }),
        _ => None,
    }
}

/// Each list of each owner has cursors of its own.
fn purpose(kind: ItemKind, owner: &CursorOwner) -> Vec<u8> {
    let mut purpose = format!("cursor {}", kind.word()).into_bytes();
    // The words above have no such bytes, and a name comes last.
    match owner {
        CursorOwner::Anyone => purpose.push(0),
        CursorOwner::Caller(None) => purpose.push(1),
        CursorOwner::Caller(Some(name)) => {
            purpose.push(2);
            purpose.extend_from_slice(name.as_bytes());
        }
    }
    purpose
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_for_its_list_its_server_and_its_owner_if_it_has_one() {
        let keys = KeyRing::random();
        let named = |name: &str| CursorOwner::Caller(Some(name.to_owned()));
        let owners = [
            CursorOwner::Anyone,
            CursorOwner::Caller(None),
            named(""),
            named("alice"),
            named("bob"),
        ];
        let kinds = [ItemKind::Tool, ItemKind::Prompt, ItemKind::Resource, ItemKind::Template];
        let place = PageStart::Member { family: 7, offset: u64::MAX, last: [9; 8] };
        for kind in kinds {
            for owner in &owners {
                let cursor = sealed(&keys, kind, owner, place);
                for other_kind in kinds {
                    for other in &owners {
                        let caller = || other.clone();
                        let opened = opened(&keys, other_kind, Some(&cursor), caller).ok();
                        let same =
                            kind == other_kind && (owner == other || *owner == CursorOwner::Anyone);
                        assert_eq!(opened, same.then_some(place), "{other_kind:?} {other:?}");
                    }
                }
                let caller = || owner.clone();
                assert!(opened(&KeyRing::random(), kind, Some(&cursor), caller).is_err());
            }
        }
    }

    #[test]
    fn what_is_no_cursor_is_a_wrong_parameter() {
        let keys = KeyRing::random();
        let kind = ItemKind::Tool;
        let open = |cursor| opened(&keys, kind, cursor, || CursorOwner::Caller(None));
        assert_eq!(open(None), Ok(PageStart::After(0)));
        let purpose = purpose(kind, &CursorOwner::Anyone);
        let short = keys.seal(&purpose, &[0; 24]).1;
        let long = keys.seal(&purpose, &[0; 26]).1;
        let strange = keys.seal(&purpose, &[2; 25]).1;
        let endless = "A".repeat(1 << 20);
        for bad in ["", "0", "page-2", "null", &short, &long, &strange, &endless] {
            let error = open(Some(bad)).unwrap_err();
            assert_eq!(error.code, -32602, "{}", error.message);
        }
    }
}
