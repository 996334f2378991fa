//! The page that shows requirements and the tests that prove them.

use std::fmt::Write as _;

use super::{
    comments::Proofs,
    list::{Era, Line, List},
};
use crate::common::page;

const LEGEND: &str = "
Era: [L] for the revisions before 2026-07-28, [M] from then on, both if empty. Side: whose behaviour
it is. *Waits* gives the reason for a missing test, *decided* a deliberate difference.
";

/// A table for each group, in the order of the list: the same text for the same list and tests.
pub(crate) fn text(list: &List, proofs: &Proofs) -> String {
    let mut text = format!("# Requirements and their tests\n\n{}\n{LEGEND}", summary(list, proofs));
    for group in &list.groups {
        // Writing to a string does not fail.
        let _ = write!(text, "\n### {}\n\n", group.title);
        let head = ["id", "era", "side", "expectation", "shown by"];
        text.push_str(&page::table(&head, group.lines.iter().map(|line| row(line, proofs))));
    }
    text
}

/// How many lines have a test, of those that need one or a reason now.
pub(crate) fn summary(list: &List, proofs: &Proofs) -> String {
    let due: Vec<&Line> = list.due().collect();
    let proven = due.iter().filter(|line| proofs.of(&line.id).next().is_some()).count();
    let later = list.lines().count() - due.len();
    format!("{proven} of the {} lines that are due have a test; {later} are for later.", due.len())
}

fn row(line: &Line, proofs: &Proofs) -> Vec<String> {
    let era = match line.era {
        Era::Both => "",
        Era::Legacy => "[L]",
        Era::Modern => "[M]",
    };
    let mut shown: Vec<String> = proofs.of(&line.id).map(|test| format!("`{test}`")).collect();
    shown.extend(line.decided.as_ref().map(|decided| format!("Decided: {decided}")));
    shown.extend(line.waits.as_ref().map(|waits| format!("Waits: {waits}")));
    if shown.is_empty() {
        shown.push("–".to_owned());
    }
    let id = format!("`{}`", line.id);
    vec![id, era.to_owned(), line.side.to_string(), line.what.clone(), shown.join("<br>")]
}
