//! What stands in the place of `cursor` without the feature `ask`: cursors are sealed, so that there
//! are none, and each list is one page.
//!
//! Owns: that no cursor is taken. Does not own: pages.

use turnbuckle_types::RpcError;

use super::place::{Mark, Owner, Place, no_cursor};
use crate::server::{app::App, visibility::OfferKind};

/// What would tell members apart where a page ends among them.
pub(super) fn mark(_: &str) -> Mark {
    Mark::default()
}

/// Nobody comes here: the page has room for all.
pub(super) fn seal(_: &App, _: OfferKind, _: &Owner, _: Place) -> String {
    String::new()
}

/// The beginning, unless there is a cursor.
pub(super) fn open(
    _: &App,
    _: OfferKind,
    cursor: Option<&str>,
    _: impl FnOnce() -> Owner,
) -> Result<Place, RpcError> {
    cursor.map_or(Ok(Place::After(0)), |_| Err(no_cursor()))
}
