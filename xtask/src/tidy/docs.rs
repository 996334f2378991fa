//! Rules about documentation: doctests run, dependencies and examples are mentioned, tests that a
//! page names exist.

use super::source::{Finding, Source};
use crate::workspace::Package;

/// Finds code blocks in doc comments that are never compiled.
pub(crate) fn ignored_doctests(source: &Source) -> Vec<Finding> {
    let docs = source.text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        Some((index + 1, text))
    });
    ignored_fences(&source.path, docs)
}

/// Finds the same in a page of Markdown, which may be included as docs.
pub(crate) fn ignored_fences_of_page(path: &str, text: &str) -> Vec<Finding> {
    ignored_fences(path, text.lines().enumerate().map(|(index, line)| (index + 1, line)))
}

fn ignored_fences<'a>(path: &str, lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Finding> {
    let is_ignored = |line: &str| {
        line.trim_start().strip_prefix("```").is_some_and(|info| {
            info.split([',', ' ']).any(|word| word.trim().starts_with("ignore"))
        })
    };
    lines
        .filter(|(_, line)| is_ignored(line))
        .map(|(line, _)| Finding {
            path: path.to_owned(),
            line,
            sentence: "an example that is ignored is never compiled".to_owned(),
        })
        .collect()
}

/// Where every direct dependency has its line.
pub(crate) const DEPENDENCIES: &str = "docs/dependencies.md";

/// Finds dependencies of published crates without a line that names them in backticks.
pub(crate) fn dependencies(packages: &[Package], page: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| package.published) {
        for dependency in &package.dependencies {
            if !page.contains(&format!("`{dependency}`")) {
                findings.push(Finding {
                    path: DEPENDENCIES.to_owned(),
                    line: 1,
                    sentence: format!("`{dependency}` of {} has no line", package.name),
                });
            }
        }
    }
    findings
}

/// Finds examples that no page mentions by file name or by `--example NAME`.
pub(crate) fn unmentioned_examples(sources: &[Source], pages: &[(String, String)]) -> Vec<Finding> {
    let is_example = |source: &&Source| {
        let name = source.path.rsplit('/').next().unwrap_or_default();
        source.path.starts_with("examples/")
            && !source.is_test_file()
            && !matches!(name, "lib.rs" | "main.rs" | "build.rs")
    };
    sources
        .iter()
        .filter(is_example)
        .filter(|source| {
            let file = source.path.rsplit('/').next().unwrap_or_default();
            let name = file.trim_end_matches(".rs");
            let wanted = [file.to_owned(), format!("--example {name}"), format!("--bin {name}")];
            !pages.iter().any(|(_, text)| wanted.iter().any(|wanted| text.contains(wanted)))
        })
        .map(|source| source.finding(1, "no page in README.md or docs/ mentions this example"))
        .collect()
}

/// The page that says which test shows what.
pub(crate) const SHOWN: &str = "docs/auth.md";

/// Where its tests are named from.
const TESTS: [&str; 2] = ["crates/turnbuckle-auth/src/", "crates/turnbuckle/tests/"];

/// Finds tests that the page names, as `path/to/file.rs::name`, and that are not there.
pub(crate) fn missing_tests(page: &str, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in page.lines().enumerate() {
        for named in line.split('`').skip(1).step_by(2) {
            let Some((file, test)) = named.split_once(".rs::") else { continue };
            let is_there = |source: &Source| {
                TESTS.iter().any(|place| source.path == format!("{place}{file}.rs"))
                    && source.find(&["fn", test]).next().is_some()
            };
            if !sources.iter().any(is_there) {
                let sentence = format!("there is no test `{named}`");
                findings.push(Finding { path: SHOWN.to_owned(), line: index + 1, sentence });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_that_is_named_is_there() {
        let sources = [
            source("crates/turnbuckle-auth/src/a/tests.rs", "#[test]\nfn it_is() {}"),
            source("crates/turnbuckle/tests/b/main.rs", "#[test]\nasync fn it_is() {}"),
            source("crates/other/src/c.rs", "#[test]\nfn it_is() {}"),
        ];
        let good = "| x | `a/tests.rs::it_is`, `b/main.rs::it_is` | `it.rs` |";
        assert_eq!(missing_tests(good, &sources).len(), 0);
        let bad = "`a/tests.rs::it_was`\n`c.rs::it_is`, `a.rs::it_is`";
        let lines: Vec<_> = missing_tests(bad, &sources).iter().map(|it| it.line).collect();
        assert_eq!(lines, [1, 2, 2]);
    }

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).unwrap()
    }

    #[test]
    fn examples_in_docs_run() {
        let good = "/// ```\n/// f();\n/// ```\n/// ```no_run\n/// g();\n/// ```\nfn f() {}";
        assert_eq!(ignored_doctests(&source("a.rs", good)).len(), 0);
        let bad = "//! ```rust,ignore\n//! f();\n//! ```";
        assert_eq!(ignored_doctests(&source("a.rs", bad)).len(), 1);
        assert_eq!(ignored_doctests(&source("a.rs", "// ```ignore is for docs")).len(), 0);
        assert_eq!(ignored_fences_of_page("README.md", "```ignore\nf();\n```").len(), 1);
        assert_eq!(ignored_fences_of_page("README.md", "```rust\nignore();\n```").len(), 0);
    }

    fn package(name: &str, published: bool) -> Package {
        Package {
            name: name.to_owned(),
            published,
            dependencies: vec!["serde".to_owned()],
            ..Package::default()
        }
    }

    #[test]
    fn every_dependency_of_a_published_crate_has_its_line() {
        let packages = [package("a", true), package("xtask", false)];
        assert_eq!(dependencies(&packages, "| `serde` | reads JSON |").len(), 0);
        assert_eq!(dependencies(&packages, "| `serde_json` | reads JSON |").len(), 1);
        assert_eq!(dependencies(&packages[1..], "").len(), 0);
    }

    #[test]
    fn every_example_is_mentioned() {
        let sources = [source("examples/src/bin/hello.rs", ""), source("examples/src/lib.rs", "")];
        let page = |text: &str| [("README.md".to_owned(), text.to_owned())];
        assert_eq!(unmentioned_examples(&sources, &page("see hello.rs")).len(), 0);
        assert_eq!(unmentioned_examples(&sources, &page("cargo run --example hello")).len(), 0);
        assert_eq!(unmentioned_examples(&sources, &page("says hello")).len(), 1);
    }
}
