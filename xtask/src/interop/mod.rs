//! `cargo xtask interop`: runs real peers against Turnbuckle in both roles and compares the results
//! with the expected ones.

mod authorized;
mod bridge;
mod cells;
mod conversation;
mod known;
mod peers;
mod report;
mod verdict;

use std::{
    fs,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use self::{
    cells::Cell,
    known::Known,
    peers::{Programs, Versions},
    verdict::{Row, Verdict, judge, surprises},
};
use crate::{common::page, workspace};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Run only cells whose name has this word, and do not write the page
    ///
    /// A name has the peer (python-2, python-1, python-1.8, python-1.0, typescript-2, typescript-1, rmcp,
    /// oidc-provider), its role (server, client, provider), the client's wire (stdio, http) and era
    /// (modern, legacy), and the connection (direct; bridge and the server's era, to-modern or to-legacy;
    /// or authorized).
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// Fail if docs/interop.md is not current, instead of writing it
    #[arg(long, conflicts_with = "only")]
    check: bool,
}

impl Options {
    fn chooses(&self, cell: &Cell) -> bool {
        let name = cell.to_string();
        self.only.iter().all(|word| name.split(' ').any(|part| part == word))
    }
}

/// How many cells run at a time.
const AT_A_TIME: usize = 2;

/// Runs the matrix; the error says which checks did not end as expected.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let root = workspace::root();
    let versions = Versions::read(&root)?;
    let known = Known::read(&root.join("interop/known.toml"), &versions)?;
    let cells: Vec<Cell> = Cell::all().into_iter().filter(|cell| options.chooses(cell)).collect();
    if cells.is_empty() {
        return Err("the matrix has no such cell".to_owned());
    }
    let programs = Programs::prepare(&root, &cells)?;
    let results = programs.home.join("results");
    // The folder may not exist yet.
    let _ = fs::remove_dir_all(&results);
    let rows = run_all(&programs, &cells, &known)?;
    let text = report::text(&rows, &known, &versions);
    print!("{text}");
    let mut surprises = surprises(&rows);
    let path = root.join("docs/interop.md");
    if options.check {
        if !page::is_current(&path, &report::MARKS, &text)? {
            surprises.push("docs/interop.md is not current: run `cargo xtask interop`".to_owned());
        }
    } else if options.only.is_empty() {
        page::update(&path, &report::MARKS, &text)?;
    }
    if surprises.is_empty() {
        return Ok(());
    }
    Err(format!("{}\nresults: {}", surprises.join("\n"), results.display()))
}

/// Runs some cells at a time; the rows come in the order of the cells.
fn run_all(programs: &Programs, cells: &[Cell], known: &Known) -> Result<Vec<Row>, String> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row =
                        conversation::run(programs, cell).map(|lines| judge(*cell, &lines, known));
                    let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    done.push(row);
                    eprintln!("[{}/{}] {cell}: {}", done.len(), cells.len(), summary(done.last()));
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut rows = done.into_iter().collect::<Result<Vec<Row>, String>>()?;
    rows.sort_by_key(|row| cells.iter().position(|cell| *cell == row.cell));
    Ok(rows)
}

fn summary(row: Option<&Result<Row, String>>) -> String {
    let Some(Ok(row)) = row else { return "it could not be run".to_owned() };
    let passed = row.verdicts.iter().filter(|verdict| **verdict == Verdict::Passed).count();
    match row.verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Surprise(_))).count() {
        0 => format!("{passed} pass"),
        surprises => format!("{passed} pass, {surprises} NOT AS EXPECTED"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_cells() {
        let chosen = |line: &str| {
            let only = line.split_whitespace().map(str::to_owned).collect();
            let options = Options { only, check: false };
            Cell::all().iter().filter(|cell| options.chooses(cell)).count()
        };
        assert_eq!(chosen(""), Cell::all().len());
        assert_eq!(chosen("rmcp http direct"), 4);
        assert_eq!(chosen("rmcp bridge to-legacy"), 4);
        assert_eq!(chosen("authorized"), 8);
        assert_eq!(chosen("python"), 0);
    }
}
