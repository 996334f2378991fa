//! The matrix: the peers, the protocol eras of each, and the resulting cells.

use std::fmt;

use crate::common::named;

named! {
    /// A real peer. The name is also that of its folder.
    Peer {
        Python2 = "python-2",
        Python1 = "python-1",
        /// The last version whose servers the probe breaks over stdio.
        Python18 = "python-1.8",
        /// The first version.
        Python10 = "python-1.0",
        TypeScript2 = "typescript-2",
        TypeScript1 = "typescript-1",
        Rmcp = "rmcp",
        /// A certified OpenID provider, not an SDK.
        Provider = "oidc-provider",
    }
}

named! {
    /// The role of the peer. Turnbuckle has the other roles.
    Role {
        Server = "server",
        Client = "client",
        Provider = "provider",
    }
}

named! {
    Wire {
        Stdio = "stdio",
        Http = "http",
    }
}

named! {
    Era {
        Modern = "modern",
        Legacy = "legacy",
    }
}

impl Peer {
    pub(crate) const ALL: [Peer; 8] = [
        Peer::Python2,
        Peer::Python1,
        Peer::Python18,
        Peer::Python10,
        Peer::TypeScript2,
        Peer::TypeScript1,
        Peer::Rmcp,
        Peer::Provider,
    ];

    /// Those that speak the protocol, in all cells.
    fn sdks() -> impl Iterator<Item = Peer> {
        Peer::ALL.into_iter().filter(|peer| *peer != Peer::Provider && !peer.is_old())
    }

    /// Those of which only a small server is run, over stdio.
    const OLD: [Peer; 2] = [Peer::Python18, Peer::Python10];

    pub(crate) fn is_old(self) -> bool {
        Peer::OLD.contains(&self)
    }

    /// Those whose clients log in.
    const LOG_IN: [Peer; 4] = [Peer::Python2, Peer::Python1, Peer::TypeScript2, Peer::TypeScript1];

    fn speaks(self) -> &'static [Era] {
        match self {
            Peer::Python2 | Peer::TypeScript2 | Peer::Rmcp => &[Era::Modern, Era::Legacy],
            Peer::Python1 | Peer::Python18 | Peer::Python10 | Peer::TypeScript1 => &[Era::Legacy],
            // It does not speak MCP; both sides are Turnbuckle.
            Peer::Provider => &Era::BOTH,
        }
    }
}

impl Era {
    /// The eras of Turnbuckle, the newest first.
    const BOTH: [Era; 2] = [Era::Modern, Era::Legacy];

    /// The newest revision of the era, on which two programs agree.
    pub(crate) fn revision(self) -> &'static str {
        match self {
            Era::Modern => "2026-07-28",
            Era::Legacy => "2025-11-25",
        }
    }
}

impl Wire {
    fn other(self) -> Wire {
        match self {
            Wire::Stdio => Wire::Http,
            Wire::Http => Wire::Stdio,
        }
    }
}

/// The connection between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// Through `turnbuckle bridge`, which speaks this era with the server, over the other wire.
    Bridge(Era),
    /// Direct, and the server requires a token of the provider.
    Authorized,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Bridge(_) => "bridge",
            Way::Authorized => "authorized",
        }
    }
}

/// One conversation with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) peer: Peer,
    pub(crate) role: Role,
    /// The client's.
    pub(crate) wire: Wire,
    /// The client's.
    pub(crate) era: Era,
    pub(crate) way: Way,
}

impl Cell {
    /// The whole matrix.
    pub(crate) fn all() -> Vec<Cell> {
        let mut cells = Vec::new();
        for peer in Peer::sdks() {
            for role in [Role::Server, Role::Client] {
                for wire in [Wire::Stdio, Wire::Http] {
                    for era in peer.speaks() {
                        cells.push(Cell { peer, role, wire, era: *era, way: Way::Direct });
                    }
                }
            }
        }
        for peer in Peer::sdks() {
            for role in [Role::Server, Role::Client] {
                cells.extend(bridged(peer, role));
            }
        }
        cells.extend(Peer::OLD.into_iter().flat_map(old));
        cells.extend(authorized(Peer::Provider, Role::Provider));
        cells.extend(Peer::LOG_IN.into_iter().flat_map(|peer| authorized(peer, Role::Client)));
        cells
    }

    /// The checks of the cell, in the order of the table.
    pub(crate) fn checks(&self) -> Vec<&'static str> {
        let checks = match (self.way, self.role) {
            (Way::Authorized, Role::Provider) => PROVIDER_CHECKS,
            (Way::Authorized, _) => LOGIN_CHECKS,
            _ if self.peer.is_old() => OLD_CHECKS,
            _ => CHECKS,
        };
        checks.split(' ').collect()
    }

    /// The revision that the client is told to speak; `None` if it has to negotiate the newest one
    /// that both sides have.
    pub(crate) fn pinned(&self) -> Option<&'static str> {
        let newest = match (self.way, self.role) {
            (Way::Bridge(_), Role::Server) => Era::BOTH[0],
            _ => self.peer.speaks()[0],
        };
        (newest != self.era).then(|| self.era.revision())
    }

    /// The revision that a bridge is told to speak with the server.
    pub(crate) fn pinned_far(&self) -> Option<&'static str> {
        let Way::Bridge(far) = self.way else { return None };
        let newest = match self.role {
            Role::Server => self.peer.speaks()[0],
            Role::Client | Role::Provider => Era::BOTH[0],
        };
        (newest != far).then(|| far.revision())
    }

    /// The revision on which the client agrees.
    pub(crate) fn revision(&self) -> &'static str {
        match self.way {
            Way::Direct if self.peer.is_old() => OLD_REVISION,
            _ => self.era.revision(),
        }
    }

    /// The revision of the connection to the server.
    pub(crate) fn far_revision(&self) -> &'static str {
        if self.peer.is_old() { OLD_REVISION } else { self.far_era().revision() }
    }

    /// The era of the connection to the server.
    pub(crate) fn far_era(&self) -> Era {
        match self.way {
            Way::Direct | Way::Authorized => self.era,
            Way::Bridge(far) => far,
        }
    }

    /// The wire to the server.
    pub(crate) fn far_wire(&self) -> Wire {
        match self.way {
            Way::Direct | Way::Authorized => self.wire,
            Way::Bridge(_) => self.wire.other(),
        }
    }
}

/// Every pair of eras, each over one of the two pairs of wires. The other role has the other pair, so
/// that each pair of eras occurs over both.
fn bridged(peer: Peer, role: Role) -> Vec<Cell> {
    let (near, far) = match role {
        Role::Server => (Era::BOTH.as_slice(), peer.speaks()),
        Role::Client | Role::Provider => (peer.speaks(), Era::BOTH.as_slice()),
    };
    let mut cells = Vec::new();
    for era in near {
        for far in far {
            let wire =
                if (role == Role::Server) == (era == far) { Wire::Stdio } else { Wire::Http };
            cells.push(Cell { peer, role, wire, era: *era, way: Way::Bridge(*far) });
        }
    }
    cells
}

/// A server over stdio: direct, and through a bridge from each era.
fn old(peer: Peer) -> impl Iterator<Item = Cell> {
    let cell = move |wire, era, way| Cell { peer, role: Role::Server, wire, era, way };
    let bridged = move |era| cell(Wire::Http, era, Way::Bridge(Era::Legacy));
    let direct = cell(Wire::Stdio, Era::Legacy, Way::Direct);
    [direct].into_iter().chain(Era::BOTH.into_iter().map(bridged))
}

/// Authorization exists over HTTP only.
fn authorized(peer: Peer, role: Role) -> impl Iterator<Item = Cell> {
    let cell =
        move |era: &Era| Cell { peer, role, wire: Wire::Http, era: *era, way: Way::Authorized };
    peer.speaks().iter().map(cell)
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { peer, role, wire, era, way } = self;
        write!(f, "{peer} {role} {wire} {era} {}", way.name())?;
        if let Way::Bridge(far) = way { write!(f, " to-{far}") } else { Ok(()) }
    }
}

/// The checks without authorization.
const CHECKS: &str = "connect list call structured progress tool-error abandon \
    elicit sample roots resource template prompt complete listen changed shutdown";

/// The checks of a server with a single tool.
const OLD_CHECKS: &str = "connect call shutdown";

/// The newest revision of the old peers.
const OLD_REVISION: &str = "2024-11-05";

/// The checks of Turnbuckle with the provider.
const PROVIDER_CHECKS: &str = "connect register document code audience step-up renew reuse \
    dpop introspect secret signature log-out shutdown";

/// The checks of a client that logs in.
const LOGIN_CHECKS: &str = "connect list call step-up renew shutdown";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_is_met_in_both_roles_on_both_wires_in_each_era_it_speaks() {
        let cells = Cell::all();
        let direct = || cells.iter().filter(|cell| cell.way == Way::Direct);
        let count = |peer| direct().filter(|cell| cell.peer == peer).count();
        assert_eq!(Peer::ALL.map(count), [8, 4, 1, 1, 8, 4, 8, 0]);
    }

    #[test]
    fn a_bridge_stands_between_each_pair_of_eras_and_wires() {
        let cells = Cell::all();
        let bridged = || cells.iter().filter(|cell| matches!(cell.way, Way::Bridge(_)));
        let count = |peer| bridged().filter(|cell| cell.peer == peer).count();
        assert_eq!(Peer::ALL.map(count), [8, 4, 2, 2, 8, 4, 8, 0]);
        for wire in [Wire::Stdio, Wire::Http] {
            for near in Era::BOTH {
                for far in Era::BOTH {
                    let found =
                        bridged().any(|c| (c.wire, c.era, c.way) == (wire, near, Way::Bridge(far)));
                    assert!(found, "{wire} {near} {far}");
                }
            }
            for peer in Peer::sdks() {
                for role in [Role::Server, Role::Client] {
                    let found = bridged().any(|c| (c.peer, c.role, c.wire) == (peer, role, wire));
                    assert!(found, "{} {role} {wire}", peer);
                }
            }
        }
    }

    #[test]
    fn a_revision_is_pinned_unless_it_is_the_newest() {
        let pins = |peer, role, era, far| {
            let cell = Cell { peer, role, wire: Wire::Http, era, way: Way::Bridge(far) };
            (cell.pinned().is_some(), cell.pinned_far().is_some())
        };
        use Era::{Legacy, Modern};
        assert_eq!(pins(Peer::Python1, Role::Server, Modern, Legacy), (false, false));
        assert_eq!(pins(Peer::Python1, Role::Server, Legacy, Legacy), (true, false));
        assert_eq!(pins(Peer::Python1, Role::Client, Legacy, Modern), (false, false));
        assert_eq!(pins(Peer::Python1, Role::Client, Legacy, Legacy), (false, true));
        assert_eq!(pins(Peer::Python2, Role::Client, Legacy, Legacy), (true, true));
    }

    #[test]
    fn the_newest_era_of_a_pair_is_not_dictated() {
        let cell =
            |peer, era| Cell { peer, role: Role::Server, wire: Wire::Http, era, way: Way::Direct };
        assert_eq!(cell(Peer::Python2, Era::Modern).pinned(), None);
        assert_eq!(cell(Peer::Python2, Era::Legacy).pinned(), Some("2025-11-25"));
        assert_eq!(cell(Peer::Python1, Era::Legacy).pinned(), None);
    }
}
