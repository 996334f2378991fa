//! Owns where a page begins and whose it is. Does not own how a client keeps that for us.

use turnbuckle_types::RpcError;

use crate::{
    principal::Principal,
    server::{cache::Audience, context::Ctx},
};

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// After what has this number; zero: at the beginning.
    After(u64),
    /// At a member of the family that has this number, or of those after it.
    Member {
        family: u64,
        offset: u64,
        /// Of the one before it, which the page before ended with.
        last: Mark,
    },
}

/// Tells one member of a family from the others.
pub(super) type Mark = [u8; 8];

/// Whose cursor it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The list is the same for everyone and nobody knows who asked for it, so that a page with its
    /// cursor may be shared.
    Anyone,
    /// The list is theirs, or it is known who they are; `None` if it is not.
    Caller(Option<String>),
}

impl Owner {
    /// Of a list that is the same for everyone.
    pub(super) fn sharing(ctx: &Ctx) -> Owner {
        // Whoever is at the other end of a wire of their own needs no name there.
        match ctx.extension::<Principal>() {
            Some(principal) => Owner::Caller(Some(principal.name().to_owned())),
            None => Owner::Anyone,
        }
    }

    /// Who may keep a page with such a cursor.
    pub(super) fn audience(&self) -> Audience {
        match self {
            Owner::Anyone => Audience::Everyone,
            Owner::Caller(_) => Audience::Caller,
        }
    }

    pub(super) fn of(ctx: &Ctx) -> Owner {
        Owner::Caller(ctx.principal::<()>().map(|principal| principal.name().to_owned()))
    }
}

/// Whatever is wrong with a cursor, the sentence is the same.
pub(super) fn no_cursor() -> RpcError {
    RpcError::invalid_params("`cursor` is not one that this server gave out for this list")
}
