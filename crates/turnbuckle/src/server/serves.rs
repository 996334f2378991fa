//! Owns which revisions a server speaks. Does not own which of them a message is in.

use turnbuckle_types::{Era, Revision};

/// Which revisions of the protocol a server serves.
///
/// ```
/// use turnbuckle::{Serves, Server};
/// let server = Server::new("demo", "1.0").serves(Serves::Modern);
/// # let _ = server;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Serves {
    /// Every revision of both eras.
    #[default]
    Everything,
    /// Only those in which each request stands for itself: 2026-07-28.
    Modern,
    /// Only those that open with a handshake: 2024-11-05 to 2025-11-25.
    Legacy,
    /// These.
    Only(Vec<Revision>),
}

impl Serves {
    /// Oldest first.
    pub(super) fn revisions(&self) -> Vec<Revision> {
        let is_served = |revision: &Revision| match self {
            Serves::Everything => true,
            Serves::Modern => revision.era() == Era::Modern,
            Serves::Legacy => revision.era() == Era::Legacy,
            Serves::Only(revisions) => revisions.contains(revision),
        };
        Revision::ALL.into_iter().filter(is_served).collect()
    }
}

/// Those of them that open with a handshake.
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
        assert_eq!(Serves::Only(vec![new, old, new]).revisions(), [old, new]);
        assert_eq!(Serves::Modern.revisions(), [new]);
        assert_eq!(Serves::Legacy.revisions().len() + 1, Serves::Everything.revisions().len());
    }
}
