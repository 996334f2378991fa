//! Owns: the matrix: which peers there are, what each speaks, and the cells that follow from it.
//! Does not own: how a cell is run.

use std::fmt;

use serde::Deserialize;

/// A real peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Peer {
    #[serde(rename = "python-2")]
    Python2,
    #[serde(rename = "python-1")]
    Python1,
    #[serde(rename = "typescript-2")]
    TypeScript2,
    #[serde(rename = "typescript-1")]
    TypeScript1,
    Rmcp,
}

impl Peer {
    pub(crate) const ALL: [Peer; 5] =
        [Peer::Python2, Peer::Python1, Peer::TypeScript2, Peer::TypeScript1, Peer::Rmcp];

    /// Also the name of its folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Python2 => "python-2",
            Peer::Python1 => "python-1",
            Peer::TypeScript2 => "typescript-2",
            Peer::TypeScript1 => "typescript-1",
            Peer::Rmcp => "rmcp",
        }
    }

    fn speaks(self) -> &'static [Era] {
        match self {
            Peer::Python2 | Peer::TypeScript2 | Peer::Rmcp => &[Era::Modern, Era::Legacy],
            Peer::Python1 | Peer::TypeScript1 => &[Era::Legacy],
        }
    }
}

/// What the peer is; we are the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Server,
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wire {
    Stdio,
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    Modern,
    Legacy,
}

impl Era {
    /// What two programs of this era agree on: the newest revision that it has.
    pub(crate) fn revision(self) -> &'static str {
        match self {
            Era::Modern => "2026-07-28",
            Era::Legacy => "2025-11-25",
        }
    }
}

/// One conversation with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) peer: Peer,
    pub(crate) role: Role,
    pub(crate) wire: Wire,
    pub(crate) era: Era,
}

impl Cell {
    /// The whole matrix.
    pub(crate) fn all() -> Vec<Cell> {
        let mut cells = Vec::new();
        for peer in Peer::ALL {
            for role in [Role::Server, Role::Client] {
                for wire in [Wire::Stdio, Wire::Http] {
                    for era in peer.speaks() {
                        cells.push(Cell { peer, role, wire, era: *era });
                    }
                }
            }
        }
        cells
    }

    /// What the client is told to speak. Where two programs meet on the newest that both have, it
    /// has to find out by itself.
    pub(crate) fn pinned(&self) -> Option<&'static str> {
        let newest = self.peer.speaks().first() == Some(&self.era);
        (!newest).then(|| self.era.revision())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.peer.name(), self.role, self.wire, self.era)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Server => "server",
            Role::Client => "client",
        })
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wire::Stdio => "stdio",
            Wire::Http => "http",
        })
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Era::Modern => "modern",
            Era::Legacy => "legacy",
        })
    }
}

/// Everything that is checked in a cell, in the order in which it is shown.
pub(crate) const CHECKS: [&str; 10] = [
    "connect",
    "list",
    "call",
    "structured",
    "progress",
    "tool-error",
    "abandon",
    "elicit",
    "resource",
    "shutdown",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_is_met_in_both_roles_on_both_wires_in_each_era_it_speaks() {
        let cells = Cell::all();
        let count = |peer| cells.iter().filter(|cell| cell.peer == peer).count();
        assert_eq!(Peer::ALL.map(count), [8, 4, 8, 4, 8]);
    }

    #[test]
    fn the_newest_era_of_a_pair_is_not_dictated() {
        let cell = |peer, era| Cell { peer, role: Role::Server, wire: Wire::Http, era };
        assert_eq!(cell(Peer::Python2, Era::Modern).pinned(), None);
        assert_eq!(cell(Peer::Python2, Era::Legacy).pinned(), Some("2025-11-25"));
        assert_eq!(cell(Peer::Python1, Era::Legacy).pinned(), None);
    }
}
