//! The revisions of the protocol that a server serves.

use turnbuckle_types::{Era, Revision};

/// The revisions of the protocol that a server serves.
///
/// ```
/// use turnbuckle::{Server, server::Revisions};
/// let server = Server::new("demo", "1.0").revisions(Revisions::Modern);
/// # let _ = server;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revisions {
    /// Every revision of both eras.
    #[default]
    All,
    /// Only revisions without a handshake: 2026-07-28.
    Modern,
    /// Only revisions with a handshake: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Only these revisions.
    Only(Vec<Revision>),
}

impl Revisions {
    /// Returns the revisions, oldest first.
    pub(super) fn revisions(&self) -> Vec<Revision> {
        let is_served = |revision: &Revision| match self {
            Revisions::All => true,
            Revisions::Modern => revision.era() == Era::Modern,
            Revisions::Legacy => revision.era() == Era::Legacy,
            Revisions::Only(revisions) => revisions.contains(revision),
        };
        Revision::ALL.into_iter().filter(is_served).collect()
    }
}

/// Returns the revisions with a handshake.
#[cfg(feature = "http")]
pub(super) fn legacy(served: &[Revision]) -> Vec<Revision> {
    served.iter().copied().filter(|revision| revision.era() == Era::Legacy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revisions_are_in_order_and_distinct() {
        let (old, new) = (Revision::V2024_11_05, Revision::V2026_07_28);
        assert_eq!(Revisions::Only(vec![new, old, new]).revisions(), [old, new]);
        assert_eq!(Revisions::Modern.revisions(), [new]);
        assert_eq!(Revisions::Legacy.revisions().len() + 1, Revisions::All.revisions().len());
    }
}
