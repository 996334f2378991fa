//! The generated part of the page: versions, matrix and notes.

use std::fmt::Write as _;

use super::{
    cells::{Cell, Peer, Role, Way, Wire},
    known::{Entry, Known, When},
    peers::Versions,
    verdict::{Row, Verdict},
};
use crate::common::page;

/// Between these lines the page has the results of the last run.
pub(crate) const MARKS: [&str; 2] =
    ["<!-- matrix: cargo xtask interop -->", "<!-- end of matrix -->"];

const DIRECT: [&str; 3] = ["peer", "wire", "revision"];
const BRIDGED: [&str; 3] = ["peer, through a bridge", "client's side", "server's side"];

/// Versions, matrix and notes: the same text for the same verdicts.
pub(crate) fn text(rows: &[Row], known: &Known, versions: &Versions) -> String {
    let packages = Peer::ALL.map(|peer| vec![title(peer).to_owned(), packages(versions, peer)]);
    let mut text = page::table(&["peer", "packages"], packages);
    text.push('\n');
    text.push_str(&matrix(rows));
    text.push('\n');
    for (index, entry) in known.known.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}. {}", index + 1, note(entry, versions));
    }
    text
}

/// A row for each cell, a column for each check: direct, through a bridge, and with authorization,
/// first of Turnbuckle, then of the peers.
pub(crate) fn matrix(rows: &[Row]) -> String {
    let those = |chosen: fn(&Cell) -> bool| rows.iter().filter(move |row| chosen(&row.cell));
    let tables = [
        table(&DIRECT, those(|cell| cell.way == Way::Direct && !cell.peer.is_old())),
        table(&BRIDGED, those(|cell| matches!(cell.way, Way::Bridge(_)) && !cell.peer.is_old())),
        table(&DIRECT, those(|cell| cell.way == Way::Direct && cell.peer.is_old())),
        table(&BRIDGED, those(|cell| matches!(cell.way, Way::Bridge(_)) && cell.peer.is_old())),
        table(&["provider", "revision"], those(|cell| cell.role == Role::Provider)),
        table(
            &["peer, with the provider", "revision"],
            those(|cell| cell.way == Way::Authorized && cell.role != Role::Provider),
        ),
    ];
    tables.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// The rows of a table have the same checks.
fn table<'a>(heads: &[&str], rows: impl Iterator<Item = &'a Row>) -> Option<String> {
    let mut rows = rows.peekable();
    let checks = rows.peek()?.cell.checks();
    let head = [heads, &checks].concat();
    Some(page::table(
        &head,
        rows.map(|row| {
            let mut line = titles(&row.cell);
            line.extend(row.verdicts.iter().map(word));
            line
        }),
    ))
}

fn titles(cell: &Cell) -> Vec<String> {
    let role = match (cell.role, cell.way) {
        (Role::Server, _) => "serves",
        (Role::Client, Way::Authorized) => "logs in",
        (Role::Client, _) => "calls",
        (Role::Provider, _) => "lets us in",
    };
    let who = format!("{} {role}", title(cell.peer));
    let (wire, revision) = (name(cell.wire), cell.revision());
    match cell.way {
        Way::Direct => vec![who, wire.to_owned(), revision.to_owned()],
        Way::Bridge(_) => {
            let far = format!("{}, {}", name(cell.far_wire()), cell.far_revision());
            vec![who, format!("{wire}, {revision}"), far]
        }
        Way::Authorized => vec![who, revision.to_owned()],
    }
}

fn name(wire: Wire) -> &'static str {
    match wire {
        Wire::Stdio => "stdio",
        Wire::Http => "HTTP",
    }
}

fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => "yes".to_owned(),
        Verdict::Known(number) => format!("({number})"),
        Verdict::NotReached => "–".to_owned(),
        Verdict::Surprise(_) => "FAIL".to_owned(),
    }
}

fn title(peer: Peer) -> &'static str {
    match peer {
        Peer::Python2 => "Python SDK 2",
        Peer::Python1 => "Python SDK 1",
        Peer::Python18 => "Python SDK 1.8",
        Peer::Python10 => "Python SDK 1.0",
        Peer::TypeScript2 => "TypeScript SDK 2",
        Peer::TypeScript1 => "TypeScript SDK 1",
        Peer::Rmcp => "rmcp",
        Peer::Provider => "oidc-provider",
    }
}

fn packages(versions: &Versions, peer: Peer) -> String {
    let packages = versions.packages(peer).iter();
    let named: Vec<String> =
        packages.map(|(name, version)| format!("`{name}` {version}")).collect();
    named.join(", ")
}

fn note(entry: &Entry, versions: &Versions) -> String {
    let who = match entry.culprit() {
        None => "Turnbuckle".to_owned(),
        Some(peer) => format!("{} ({})", title(peer), versions.of(peer)),
    };
    let often = match entry.when {
        When::Always => "",
        When::Sometimes => " Not every time.",
    };
    format!("{who}: {}{often}", entry.what)
}

#[cfg(test)]
mod tests {
    use super::{super::cells::Era, *};

    #[test]
    fn the_matrix_shows_each_verdict_and_the_notes_name_the_culprit() {
        let (peer, role, wire, era) = (Peer::Rmcp, Role::Client, Wire::Http, Era::Modern);
        let cell = Cell { peer, role, wire, era, way: Way::Direct };
        let mut verdicts = vec![Verdict::Passed; cell.checks().len()];
        verdicts[1] = Verdict::Known(1);
        verdicts[2] = Verdict::NotReached;
        verdicts[3] = Verdict::Surprise("boom".to_owned());
        let known: Known = toml::from_str(
            "[[known]]\nwho = \"peer\"\nversion = \"1.0\"\npeers = [\"rmcp\"]\nchecks = [\"list\"]\n\
             what = \"It lists nothing.\"\nseen = \"s\"\nwhen = \"sometimes\"\n",
        )
        .unwrap();
        let bridged = Cell { way: Way::Bridge(Era::Legacy), ..cell };
        let authorized = Cell { way: Way::Authorized, ..cell };
        let rows = [cell, bridged, authorized].map(|cell| {
            let verdicts = verdicts[..cell.checks().len()].to_vec();
            Row { cell, verdicts }
        });
        let text = text(&rows, &known, &Versions::fixed("1.0"));
        let row = text.lines().find(|line| line.contains("rmcp calls")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1..8], ["rmcp calls", "HTTP", "2026-07-28", "yes", "(1)", "–", "FAIL"]);
        let row = text.lines().filter(|line| line.contains("rmcp calls")).nth(1).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1..4], ["rmcp calls", "HTTP, 2026-07-28", "stdio, 2025-11-25"]);
        let row = text.lines().find(|line| line.contains("rmcp logs in")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(
            cells[1..],
            ["rmcp logs in", "2026-07-28", "yes", "(1)", "–", "FAIL", "yes", "yes", ""]
        );
        assert!(text.ends_with("1. rmcp (1.0): It lists nothing. Not every time.\n"), "{text}");
        assert!(text.contains("| `package` 1.0 |"));
    }
}
