//! The start of a page, and the owner of a cursor.

use crate::{
    principal::Principal,
    server::{handler::context::Ctx, methods::cache_hints::ListAudience},
};
use turnbuckle_types::RpcError;

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageStart {
    /// After the item with this number; zero is the beginning.
    After(u64),
    /// At a member of the family that has this number, or of those after it.
    Member {
        family: u64,
        offset: u64,
        /// Of the one before it, which the page before ended with.
        last: FamilyMember,
    },
}

/// Tells one member of a family from the others.
pub(super) type FamilyMember = [u8; 8];

/// Whose cursor it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CursorOwner {
    /// The list is the same for all callers and the caller is unknown, so a page with its cursor may
    /// be shared.
    Anyone,
    /// The list is made for the caller, or the caller is known; `None` for an unknown caller.
    Caller(Option<String>),
}

impl CursorOwner {
    /// Returns the owner of the cursors of a list that is the same for all callers.
    pub(super) fn sharing(ctx: &Ctx) -> CursorOwner {
        // The only client of a connection such as stdio needs no name.
        match ctx.extension::<Principal>() {
            Some(principal) => CursorOwner::Caller(Some(principal.name().to_owned())),
            None => CursorOwner::Anyone,
        }
    }

    /// Returns who may cache a page with such a cursor.
    pub(super) fn audience(&self) -> ListAudience {
        match self {
            CursorOwner::Anyone => ListAudience::Everyone,
            CursorOwner::Caller(_) => ListAudience::Caller,
        }
    }

    pub(super) fn of(ctx: &Ctx) -> CursorOwner {
        CursorOwner::Caller(ctx.principal::<()>().map(|principal| principal.name().to_owned()))
    }
}

/// The error for any invalid cursor.
pub(super) fn no_cursor() -> RpcError {
    RpcError::invalid_params("`cursor` is not one that this server gave out for this list")
}
