//! `cargo xtask requirements`: which test proves which line of `docs/requirements.toml`.

mod comments;
mod list;
mod report;
mod verdict;

use self::{comments::Proofs, list::List};
use crate::{
    common::files::{create, read_all, write},
    workspace,
};

/// Where tests are looked for.
const PLACES: &[&str] = &["conformance", "contract", "crates", "examples", "interop"];

/// Collects the comments and writes the page; the error has one line for each problem.
pub(crate) fn run(is_check: bool) -> Result<(), String> {
    let root = workspace::root();
    let list = List::read(&root.join("docs/requirements.toml"))?;
    let mut proofs = Proofs::default();
    for place in PLACES {
        for (path, text) in read_all(&root, place, "rs")? {
            proofs.collect(&path, &text);
        }
    }
    let target = workspace::target();
    create(&target)?;
    let page = target.join("requirements.md");
    write(&page, &report::text(&list, &proofs))?;
    let mut wrong = verdict::wrong(&list, &proofs);
    let missing = verdict::missing(&list, &proofs);
    if is_check {
        wrong.extend(missing);
    } else {
        missing.iter().for_each(|line| println!("{line}"));
    }
    println!("requirements: {} See {}", report::summary(&list, &proofs), page.display());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
