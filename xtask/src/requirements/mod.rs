//! Owns: `cargo xtask requirements`: which expected behaviour which test proves, and the page that
//! says so. Does not own: what is expected; `docs/requirements.toml` does.

mod comments;
mod list;
mod report;
mod verdict;

use self::comments::Proofs;
use self::list::List;
use crate::common::files::{read, read_all, write};
use crate::common::page;
use crate::workspace;

const USAGE: &str = "\
usage: cargo xtask requirements [--check]

  --check   fail if a line that is due has neither a test nor a reason, or if docs/requirements.md
            is not what would be written, instead of writing it";

/// Where tests are looked for.
const PLACES: &[&str] = &["conformance", "contract", "crates", "examples", "interop"];
/// Between these lines the page has the tables.
const BEGIN: &str = "<!-- tables: cargo xtask requirements -->";
const END: &str = "<!-- end of tables -->";

/// Collects the comments and writes or checks the page; the error is a line a problem.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let page_is = match words[..] {
        [] => PageIs::Written,
        ["--check"] => PageIs::Checked,
        _ => return Err(USAGE.to_owned()),
    };
    let root = workspace::root();
    let list = List::read(&root.join("docs/requirements.toml"))?;
    let mut proofs = Proofs::default();
    for place in PLACES {
        for (path, text) in read_all(&root, place, "rs")? {
            proofs.collect(&path, &text);
        }
    }
    let path = root.join("docs/requirements.md");
    let now = read(&path)?;
    let wanted = page::replaced(&now, BEGIN, END, &report::text(&list, &proofs))
        .ok_or("docs/requirements.md has no place for the tables")?;
    let mut wrong = verdict::wrong(&list, &proofs);
    let missing = verdict::missing(&list, &proofs);
    match page_is {
        PageIs::Written => {
            write(&path, &wanted)?;
            missing.iter().for_each(|line| println!("{line}"));
        }
        PageIs::Checked => {
            wrong.extend(missing);
            if now != wanted {
                wrong.push(
                    "docs/requirements.md is not current: run `cargo xtask requirements`"
                        .to_owned(),
                );
            }
        }
    }
    println!("requirements: {}", report::summary(&list, &proofs));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// What happens to the page.
enum PageIs {
    Written,
    Checked,
}
