//! `interop/known.toml`: the checks that do not pass, the reason, and the symptom.

use std::path::Path;

use serde::Deserialize;

use super::{
    cells::{Cell, Era, Peer, Role, Wire},
    peers::Versions,
};
use crate::common::files::read;

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    #[serde(default)]
    pub(crate) known: Vec<Entry>,
}

/// One known failure. A missing list stands for all values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) who: Who,
    /// The version of the peer, if the fault is the peer's.
    pub(crate) version: Option<String>,
    #[serde(default)]
    peers: Vec<Peer>,
    #[serde(default)]
    roles: Vec<Role>,
    #[serde(default)]
    wires: Vec<Wire>,
    #[serde(default)]
    eras: Vec<Era>,
    /// The eras of the connection to the server.
    #[serde(default)]
    server_eras: Vec<Era>,
    /// The kinds of connection.
    #[serde(default)]
    ways: Vec<String>,
    checks: Vec<String>,
    /// What happens, in a sentence.
    pub(crate) what: String,
    /// A part of the client's output, so that no other failure is taken for this one.
    pub(crate) seen: String,
    #[serde(default)]
    pub(crate) when: When,
}

/// The side with the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Who {
    Us,
    Peer,
}

/// How often it happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum When {
    #[default]
    Always,
    /// The check may pass: it depends on timing.
    Sometimes,
}

impl Known {
    pub(crate) fn read(path: &Path, versions: &Versions) -> Result<Known, String> {
        let parsed = Known::parse(&read(path)?, versions);
        parsed.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str, versions: &Versions) -> Result<Known, String> {
        let known: Known = toml::from_str(text).map_err(|error| error.to_string())?;
        for entry in &known.known {
            entry.sound(versions).map_err(|problem| format!("`{}`: {problem}", entry.what))?;
        }
        for cell in Cell::all() {
            for check in cell.checks() {
                let covering = known.known.iter().filter(|entry| entry.covers(&cell, check));
                if covering.count() > 1 {
                    return Err(format!("`{check}` of `{cell}` is named more than once"));
                }
            }
        }
        Ok(known)
    }

    /// The entry for a check of a cell, with the number that it has in the file.
    pub(crate) fn of(&self, cell: &Cell, check: &str) -> Option<(usize, &Entry)> {
        let mut numbered = self.known.iter().enumerate().map(|(index, entry)| (index + 1, entry));
        numbered.find(|(_, entry)| entry.covers(cell, check))
    }
}

impl Entry {
    /// The peer with the fault; `None` if it is Turnbuckle's.
    pub(crate) fn culprit(&self) -> Option<Peer> {
        match self.who {
            Who::Us => None,
            Who::Peer => self.peers.first().copied(),
        }
    }

    fn covers(&self, cell: &Cell, check: &str) -> bool {
        fn named<T: PartialEq>(list: &[T], value: &T) -> bool {
            list.is_empty() || list.contains(value)
        }
        named(&self.ways, &cell.way.name().to_owned())
            && named(&self.server_eras, &cell.far_era())
            && named(&self.peers, &cell.peer)
            && named(&self.roles, &cell.role)
            && named(&self.wires, &cell.wire)
            && named(&self.eras, &cell.era)
            && self.checks.iter().any(|named| named == check)
            && cell.checks().contains(&check)
    }

    fn sound(&self, versions: &Versions) -> Result<(), String> {
        if self.what.trim().is_empty() || self.seen.trim().is_empty() {
            return Err("it does not say what happens".to_owned());
        }
        let cells = Cell::all();
        for check in &self.checks {
            if !cells.iter().any(|cell| cell.checks().contains(&check.as_str())) {
                return Err(format!("there is no check `{check}`"));
            }
            if !cells.iter().any(|cell| self.covers(cell, check)) {
                return Err("it names no cell".to_owned());
            }
        }
        match (self.who, &self.version, self.peers.as_slice()) {
            (Who::Us, None, _) => Ok(()),
            (Who::Us, Some(_), _) => Err("our own version is not cited".to_owned()),
            (Who::Peer, Some(version), [peer]) if *version == versions.of(*peer) => Ok(()),
            (Who::Peer, Some(version), [peer]) => Err(format!(
                "it cites version {version}, and {} is {} now: look again",
                peer,
                versions.of(*peer)
            )),
            (Who::Peer, ..) => Err("it must name one peer and cite its version".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::cells::Way, *};

    const FILE: &str = r#"
        [[known]]
        who = "us"
        roles = ["client"]
        checks = ["resource"]
        what = "We have none."
        seen = "declares no resources"

        [[known]]
        who = "peer"
        version = "1.0"
        peers = ["python-1"]
        wires = ["stdio"]
        checks = ["abandon"]
        what = "It says nothing."
        seen = "holding"
    "#;

    fn parse(text: &str) -> Result<Known, String> {
        Known::parse(text, &Versions::fixed("1.0"))
    }

    fn cell(peer: Peer, role: Role, wire: Wire) -> Cell {
        Cell { peer, role, wire, era: Era::Legacy, way: Way::Direct }
    }

    #[test]
    fn an_entry_may_be_about_a_bridge_or_about_none() {
        let bridged =
            Cell { way: Way::Bridge(Era::Modern), ..cell(Peer::Rmcp, Role::Client, Wire::Http) };
        let direct = Cell { way: Way::Direct, ..bridged };
        for (line, cells) in [
            ("", [true, true]),
            ("ways = [\"bridge\"]", [true, false]),
            ("ways = [\"direct\"]", [false, true]),
            ("server_eras = [\"modern\"]", [true, false]),
            ("server_eras = [\"legacy\"]", [false, true]),
        ] {
            let known = parse(&FILE.replacen("roles", &format!("{line}\nroles"), 1)).unwrap();
            let found = [bridged, direct].map(|cell| known.of(&cell, "resource").is_some());
            assert_eq!(found, cells, "{line}");
        }
    }

    #[test]
    fn a_list_that_is_left_out_stands_for_everything() {
        let known = parse(FILE).unwrap();
        let number = |cell: Cell, check| known.of(&cell, check).map(|(number, _)| number);
        assert_eq!(number(cell(Peer::Rmcp, Role::Client, Wire::Http), "resource"), Some(1));
        assert_eq!(number(cell(Peer::Rmcp, Role::Server, Wire::Http), "resource"), None);
        assert_eq!(number(cell(Peer::Python1, Role::Server, Wire::Stdio), "abandon"), Some(2));
        assert_eq!(number(cell(Peer::Python1, Role::Server, Wire::Http), "abandon"), None);
        assert_eq!(number(cell(Peer::Python2, Role::Server, Wire::Stdio), "abandon"), None);
    }

    #[test]
    fn an_entry_about_a_peer_cites_the_version_that_is_installed() {
        assert!(parse(&FILE.replace("\"1.0\"", "\"0.9\"")).unwrap_err().contains("look again"));
        assert!(parse(&FILE.replace("version = \"1.0\"", "")).is_err());
        assert!(parse(&FILE.replace("peers = [\"python-1\"]", "")).is_err());
        assert!(parse(&FILE.replacen("\"us\"", "\"us\"\nversion = \"1.0\"", 1)).is_err());
    }

    #[test]
    fn entries_name_checks_that_exist_and_no_check_twice() {
        let root = crate::workspace::root();
        let versions = Versions::read(&root).unwrap();
        assert!(
            !Known::read(&root.join("interop/known.toml"), &versions).unwrap().known.is_empty()
        );
        assert!(parse(&FILE.replace("\"abandon\"", "\"give up\"")).is_err());
        assert!(parse(&FILE.replace("We have none.", " ")).is_err());
        let twice = FILE.replace("\"abandon\"", "\"resource\"");
        assert!(parse(&twice).unwrap_err().contains("more than once"));
        let nothing =
            FILE.replace("wires = [\"stdio\"]", "eras = [\"modern\"]\nroles = [\"client\"]");
        assert!(parse(&nothing).unwrap_err().contains("no cell"));
    }
}
