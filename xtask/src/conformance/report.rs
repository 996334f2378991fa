//! The table of verdicts, the sentences about unexpected results, and the page.

use std::{fmt::Write as _, path::Path};

use super::{
    suite::Status,
    verdict::{Row, Verdict},
};
use crate::common::page;

/// Between these lines the page has the table of the last run.
const MARKS: [&str; 2] =
    ["<!-- table: cargo xtask conformance --all --write -->", "<!-- end of table -->"];

const HEAD: [&str; 9] =
    ["role", "scenario", "revision", "success", "failure", "warning", "skipped", "info", "verdict"];

/// All rows as a table of Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = page::table(&HEAD, rows.iter().map(cells));
    let passed = rows.iter().filter(|row| is_pass(&row.verdict)).count();
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{passed} of {} pass.", rows.len());
    text
}

/// A line for each run that was repeated: how often it passed.
pub(crate) fn tally(rows: &[Row]) -> String {
    let mut text = String::new();
    for rows in rows.chunk_by(|one, next| one.run == next.run) {
        let passed = rows.iter().filter(|row| is_pass(&row.verdict)).count();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}: {passed} of {} passed", rows[0].run, rows.len());
    }
    text
}

fn is_pass(verdict: &Verdict) -> bool {
    !matches!(verdict, Verdict::NotYet(_) | Verdict::Failed(_))
}

fn cells(row: &Row) -> Vec<String> {
    let count = |status| {
        let checks = row.outcome.checks.iter().flatten();
        checks.filter(|check| check.status == status).count().to_string()
    };
    vec![
        row.run.role.to_string(),
        format!("`{}`", row.run.scenario),
        row.run.revision.clone(),
        count(Status::Success),
        count(Status::Failure),
        count(Status::Warning),
        count(Status::Skipped),
        count(Status::Info),
        word(&row.verdict),
    ]
}

/// The verdict in a few words.
pub(crate) fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => "pass".to_owned(),
        Verdict::PassedWithExcuses => "pass, with excuses".to_owned(),
        Verdict::NotYet(reason) => format!("not yet: {reason}"),
        Verdict::Failed(_) => "FAIL".to_owned(),
        Verdict::PassedAlready => "PASS, listed as not yet".to_owned(),
    }
}

/// A paragraph for each run that did not end as expected.
pub(crate) fn surprises(rows: &[Row]) -> Vec<String> {
    let sentence = |row: &Row| match &row.verdict {
        Verdict::Failed(problems) => {
            Some(format!("{} failed:\n  {}", row.run, problems.join("\n  ")))
        }
        Verdict::PassedAlready => {
            Some(format!("{} passes: take it out of conformance/not-yet.toml", row.run))
        }
        _ => None,
    };
    rows.iter().filter_map(sentence).collect()
}

/// Puts the table into the page.
pub(crate) fn write_page(path: &Path, rows: &[Row]) -> Result<(), String> {
    page::update(path, &MARKS, &table(rows))
}

#[cfg(test)]
mod tests {
    use super::{
        super::suite::{Check, Outcome, Role, Run},
        *,
    };

    fn row(scenario: &str, statuses: &[Status], verdict: Verdict) -> Row {
        let check =
            |status: &Status| Check { name: "c".to_owned(), status: *status, message: None };
        Row {
            run: Run {
                role: Role::Server,
                scenario: scenario.to_owned(),
                revision: "r".to_owned(),
            },
            outcome: Outcome {
                checks: Some(statuses.iter().map(check).collect()),
                exit: Some(0),
                client_complaint: None,
            },
            verdict,
        }
    }

    #[test]
    fn a_row_counts_each_status() {
        use Status::{Failure, Info, Skipped, Success, Warning};
        let statuses = [Success, Success, Success, Failure, Failure, Warning, Skipped, Info];
        let table = table(&[row("s", &statuses, Verdict::Failed(Vec::new()))]);
        let line = table.lines().nth(2).unwrap();
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(cells[1..10], ["server", "`s`", "r", "3", "2", "1", "1", "1", "FAIL"]);
        assert!(table.ends_with("\n0 of 1 pass.\n"));
    }
}
