//! `cargo xtask interop`: real peers against us, in both roles, and whether what came out is what
//! was expected.

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
    report::Page,
    verdict::{Row, Verdict, judge, surprises},
};
use crate::workspace;

const USAGE: &str = "\
usage: cargo xtask interop [--only WORD]… [--check]

  --only WORD   only cells whose name has this word, and does not write the page; a name is a peer
                (python-2, python-1, typescript-2, typescript-1, rmcp, oidc-provider), what the peer
                is (server, client, provider), the client's wire (stdio, http) and era (modern,
                legacy), and what is between the two (direct; bridge and the server's era, to-modern
                or to-legacy; or authorized)
  --check       fail if docs/interop.md is not what would be written, instead of writing it";

/// How many cells run at a time.
const AT_A_TIME: usize = 2;

/// Runs the matrix; the error says which checks did not end as expected.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let root = workspace::root();
    let versions = Versions::read(&root)?;
    let known = Known::read(&root.join("interop/known.toml"), &versions)?;
    let cells: Vec<Cell> = Cell::all().into_iter().filter(|cell| options.chooses(cell)).collect();
    if cells.is_empty() {
        return Err("the matrix has no such cell".to_owned());
    }
    let programs = Programs::prepare(&root, &cells)?;
    let results = programs.home.join("results");
    // It may not be there yet.
    let _ = fs::remove_dir_all(&results);
    let rows = run_all(&programs, &cells, &known)?;
    let text = report::text(&rows, &known, &versions);
    print!("{text}");
    let mut surprises = surprises(&rows);
    let page = root.join("docs/interop.md");
    match options.page() {
        PageIs::LeftAlone => {}
        PageIs::Written => Page::read(&page, &text)?.write(&page)?,
        PageIs::Checked => {
            if !Page::read(&page, &text)?.is_current() {
                surprises
                    .push("docs/interop.md is not current: run `cargo xtask interop`".to_owned());
            }
        }
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

#[derive(Debug, Default, PartialEq)]
struct Options {
    only: Vec<String>,
    check: bool,
}

/// What happens to the page.
#[derive(Debug, PartialEq)]
enum PageIs {
    LeftAlone,
    Written,
    Checked,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--only" => options.only.push(words.next().ok_or(USAGE)?.to_owned()),
                "--check" => options.check = true,
                _ => return Err(USAGE.to_owned()),
            }
        }
        if options.check && !options.only.is_empty() {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    fn chooses(&self, cell: &Cell) -> bool {
        let name = cell.to_string();
        self.only.iter().all(|word| name.split(' ').any(|part| part == word))
    }

    fn page(&self) -> PageIs {
        match (self.only.is_empty(), self.check) {
            (false, _) => PageIs::LeftAlone,
            (true, false) => PageIs::Written,
            (true, true) => PageIs::Checked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn words_choose_cells_and_only_the_whole_matrix_is_a_page() {
        let chosen = |line: &str| {
            let options = options(line).unwrap();
            Cell::all().iter().filter(|cell| options.chooses(cell)).count()
        };
        assert_eq!(chosen(""), Cell::all().len());
        assert_eq!(chosen("--only rmcp --only http --only direct"), 4);
        assert_eq!(chosen("--only rmcp --only bridge --only to-legacy"), 4);
        assert_eq!(chosen("--only authorized"), 8);
        assert_eq!(chosen("--only python"), 0);
        assert_eq!(options("").unwrap().page(), PageIs::Written);
        assert_eq!(options("--check").unwrap().page(), PageIs::Checked);
        assert_eq!(options("--only rmcp").unwrap().page(), PageIs::LeftAlone);
        for line in ["--only", "--all", "--check --only rmcp"] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
