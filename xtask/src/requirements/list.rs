//! Reads `docs/requirements.toml`.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;

use crate::common::{files::read, named};

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    #[serde(rename = "group")]
    pub(crate) groups: Vec<Group>,
}

/// Lines that belong together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) title: String,
    /// Whether its lines may have a test, but need none yet.
    #[serde(default)]
    pub(crate) later: bool,
    pub(crate) lines: Vec<Line>,
}

/// One requirement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) era: Era,
    pub(crate) side: Side,
    pub(crate) what: String,
    /// Why there is no test yet.
    pub(crate) waits: Option<String>,
    /// A deliberate difference.
    pub(crate) decided: Option<String>,
}

/// The revisions that a line is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    #[default]
    Both,
    Legacy,
    Modern,
}

named! {
    /// The side that a requirement is about.
    Side {
        Server = "server",
        Client = "client",
        Both = "both",
    }
}

impl List {
    pub(crate) fn read(path: &Path) -> Result<List, String> {
        List::parse(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(crate) fn parse(text: &str) -> Result<List, String> {
        let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut seen = BTreeSet::new();
        for line in list.lines() {
            if !seen.insert(&line.id) {
                return Err(format!("`{}` occurs twice", line.id));
            }
            let texts = [Some(&line.what), line.waits.as_ref(), line.decided.as_ref()];
            if texts.into_iter().flatten().any(|text| text.trim().is_empty() || text.contains('|'))
            {
                return Err(format!("`{}` has a text that cannot be shown in a table", line.id));
            }
        }
        Ok(list)
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.groups.iter().flat_map(|group| &group.lines)
    }

    /// The lines that need a test or a reason now.
    pub(crate) fn due(&self) -> impl Iterator<Item = &Line> {
        self.groups.iter().filter(|group| !group.later).flat_map(|group| &group.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[group]]
        title = "Tools"
        lines = [
            { id = "a:b", era = "modern", side = "server", what = "It is." },
            { id = "a:c", side = "client", what = "It is not.", waits = "Not yet." },
        ]
        [[group]]
        title = "Tasks"
        later = true
        lines = [{ id = "a:d", side = "both", what = "It will be." }]
    "#;

    #[test]
    fn ids_are_there_once_and_words_are_known() {
        assert!(List::parse(&FILE.replace("a:c", "a:b")).unwrap_err().contains("twice"));
        assert!(List::parse(&FILE.replace("It is.", " ")).is_err());
        assert!(List::parse(&FILE.replace("It is.", "a | b")).is_err());
        assert!(List::parse(&FILE.replace("modern", "future")).is_err());
        assert!(List::parse(&FILE.replace("waits", "wait")).is_err());
    }
}
