//! `cargo xtask tidy`: the rules of this project that neither the compiler nor clippy checks. Each
//! rule is a pure function in one of the modules.

mod code;
mod docs;
mod layers;
mod limits;
mod source;

use std::path::Path;

use self::source::{Finding, Source};
use crate::{
    common::files::{read, read_all},
    workspace,
};

/// Where Rust files are looked for.
const PLACES: &[&str] =
    &["conformance", "contract", "crates", "examples", "hostile", "interop", "xtask", "bench"];

/// Rules that read one file.
const RULES: &[fn(&Source) -> Vec<Finding>] = &[
    code::glob_exports,
    code::ignored_doctests,
    code::ignored_tests,
    code::serde_guesses,
    code::sizes,
    code::sleeping_tests,
    layers::runtime,
];

/// Checks the whole checkout; the error lists every finding as `file:line: sentence`.
pub(crate) fn run() -> Result<(), String> {
    let root = workspace::root();
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    let mut files = Vec::new();
    for place in PLACES {
        files.extend(read_all(&root, place, "rs")?);
    }
    for (path, text) in files {
        match Source::parse(&path, &text) {
            Ok(source) => sources.push(source),
            Err(finding) => findings.push(finding),
        }
    }
    findings.extend(sources.iter().flat_map(|source| RULES.iter().flat_map(|rule| rule(source))));
    findings.extend(layers::layers(&sources));
    let pages = pages(&root)?;
    findings.extend(pages.iter().flat_map(|(path, text)| code::ignored_fences(path, text)));
    findings.extend(docs::unmentioned_examples(&sources, &pages));
    findings.extend(limits::check(&limits::Checkout { sources: &sources, pages: &pages }));
    let shown = pages.iter().filter(|(path, _)| path == docs::SHOWN);
    findings.extend(shown.flat_map(|(_, text)| docs::missing_tests(text, &sources)));
    let page = pages.iter().find(|(path, _)| path == docs::DEPENDENCIES);
    let dependencies = page.map(|(_, text)| text.as_str()).unwrap_or_default();
    let metadata = workspace::metadata(&[])?;
    findings.extend(docs::dependencies(&metadata, dependencies));
    findings.extend(docs::untested_features(&metadata));
    report(findings, sources.len())
}

fn report(mut findings: Vec<Finding>, files: usize) -> Result<(), String> {
    if findings.is_empty() {
        println!("tidy: {files} files, nothing to say");
        return Ok(());
    }
    findings.sort();
    findings.dedup();
    let mut lines: Vec<String> = findings
        .iter()
        .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.sentence))
        .collect();
    lines.push(format!("tidy: {} findings", findings.len()));
    Err(lines.join("\n"))
}

/// The pages of Markdown: those at the root, of `docs/` and of the crates.
fn pages(root: &Path) -> Result<Vec<(String, String)>, String> {
    let mut pages = read_all(root, "docs", "md")?;
    pages.extend(read_all(root, "crates", "md")?);
    for name in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"] {
        pages.push((name.to_owned(), read(&root.join(name))?));
    }
    Ok(pages)
}
