//! Compares the checks of a cell with the known failures.

use super::{
    cells::Cell,
    conversation::{Line, Outcome},
    known::{Known, When},
};

/// A cell and the verdict on each check.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    /// One for each of the cell's checks.
    pub(crate) verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Passed,
    /// The entry with this number covers it.
    Known(usize),
    /// The check was not reached because the connection failed.
    NotReached,
    /// A sentence about the unexpected result.
    Surprise(String),
}

/// Compares the output of a client with the known failures.
pub(crate) fn judge(cell: Cell, lines: &[Line], known: &Known) -> Row {
    let mut connected = true;
    let verdict = |check: &&str| {
        let line = lines.iter().find(|line| line.check == *check);
        if !connected && line.is_none() {
            return Verdict::NotReached;
        }
        if *check == "connect" {
            connected = line.is_some_and(|line| line.outcome == Outcome::Pass);
        }
        judge_check(cell, check, line, known)
    };
    Row { cell, verdicts: cell.checks().iter().map(verdict).collect() }
}

fn judge_check(cell: Cell, check: &str, line: Option<&Line>, known: &Known) -> Verdict {
    let Some(line) = line else {
        return Verdict::Surprise("the client said nothing about it".to_owned());
    };
    let wrong_revision =
        check == "connect" && line.outcome == Outcome::Pass && line.detail != cell.revision();
    if wrong_revision {
        return Verdict::Surprise(format!("they agreed on {}", line.detail));
    }
    match (known.of(&cell, check), line.outcome) {
        (None, Outcome::Pass) => Verdict::Passed,
        (None, _) => Verdict::Surprise(line.detail.clone()),
        (Some((number, entry)), Outcome::Pass) => match entry.when {
            When::Sometimes => Verdict::Known(number),
            When::Always => Verdict::Surprise(format!(
                "it passes: take it out of entry {number} of interop/known.toml"
            )),
        },
        (Some((number, entry)), _) if line.detail.contains(&entry.seen) => Verdict::Known(number),
        (Some((number, _)), _) => Verdict::Surprise(format!(
            "it is not what entry {number} of interop/known.toml says: {}",
            line.detail
        )),
    }
}

/// A sentence for each check that did not end as expected.
pub(crate) fn surprises(rows: &[Row]) -> Vec<String> {
    let mut sentences = Vec::new();
    for row in rows {
        for (check, verdict) in row.cell.checks().iter().zip(&row.verdicts) {
            if let Verdict::Surprise(sentence) = verdict {
                sentences.push(format!("{}: {check}: {sentence}", row.cell));
            }
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::{
        super::cells::{Era, Peer, Role, Way, Wire},
        *,
    };

    const CELL: Cell = Cell {
        peer: Peer::Rmcp,
        role: Role::Server,
        wire: Wire::Stdio,
        era: Era::Legacy,
        way: Way::Direct,
    };

    fn known(check: &str, when: &str) -> Known {
        let text = format!(
            "[[known]]\nwho = \"us\"\nchecks = [\"{check}\"]\nwhat = \"w\"\nseen = \"seen\"\nwhen = \"{when}\"\n"
        );
        toml::from_str(&text).unwrap()
    }

    fn line(check: &str, outcome: Outcome, detail: &str) -> Line {
        Line { check: check.to_owned(), outcome, detail: detail.to_owned() }
    }

    fn verdict(check: &str, lines: &[Line], known: &Known) -> Verdict {
        let row = judge(CELL, lines, known);
        let index = CELL.checks().iter().position(|other| *other == check).unwrap();
        row.verdicts[index].clone()
    }

    fn surprised(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Surprise(_))
    }

    #[test]
    fn a_connection_counts_only_in_the_revision_of_its_cell() {
        let at = |revision| [line("connect", Outcome::Pass, revision)];
        let nothing = Known::default();
        assert_eq!(verdict("connect", &at("2025-11-25"), &nothing), Verdict::Passed);
        assert!(surprised(&verdict("connect", &at("2025-06-18"), &nothing)));
    }

    #[test]
    fn a_check_that_is_missing_is_excused_only_without_a_connection() {
        let nothing = Known::default();
        let connected = [line("connect", Outcome::Pass, "2025-11-25")];
        assert!(surprised(&verdict("call", &connected, &nothing)));
        let not = [line("connect", Outcome::Fail, "seen")];
        assert_eq!(verdict("call", &not, &nothing), Verdict::NotReached);
        assert!(surprised(&verdict("connect", &not, &nothing)));
        assert_eq!(verdict("connect", &not, &known("connect", "always")), Verdict::Known(1));
        assert!(surprised(&verdict("connect", &[], &nothing)));
    }

    #[test]
    fn a_known_failure_must_happen_and_no_other() {
        let came = |outcome, detail| {
            [line("connect", Outcome::Pass, "2025-11-25"), line("call", outcome, detail)]
        };
        let always = known("call", "always");
        let sometimes = known("call", "sometimes");
        let failed = came(Outcome::Fail, "it was seen");
        assert_eq!(verdict("call", &failed, &always), Verdict::Known(1));
        assert!(surprised(&verdict("call", &failed, &Known::default())));
        assert!(surprised(&verdict("call", &came(Outcome::Fail, "other"), &always)));
        assert!(surprised(&verdict("call", &came(Outcome::Fail, "other"), &sometimes)));
        assert!(surprised(&verdict("call", &came(Outcome::Pass, ""), &always)));
        assert_eq!(verdict("call", &came(Outcome::Pass, ""), &sometimes), Verdict::Known(1));
        let absent = came(Outcome::Absent, "it was seen");
        assert_eq!(verdict("call", &absent, &always), Verdict::Known(1));
        assert!(surprised(&verdict("call", &absent, &Known::default())));
    }

    #[test]
    fn a_surprise_names_its_cell_and_check() {
        let row = judge(CELL, &[line("connect", Outcome::Fail, "refused")], &Known::default());
        assert_eq!(surprises(&[row]), ["rmcp server stdio legacy direct: connect: refused"]);
    }
}
