//! Rules about pages and manifests: dependencies and examples are mentioned, tests that a page names
//! exist, and plain `cargo test` builds every feature.

use super::source::{Finding, Source};
use crate::workspace::Metadata;

/// The page with a line for every direct dependency.
pub(crate) const DEPENDENCIES: &str = "docs/dependencies.md";

/// The page that names the test of each statement.
pub(crate) const SHOWN: &str = "docs/auth.md";

/// Where its tests are.
const TESTS: [&str; 2] = ["crates/turnbuckle-auth/src/", "crates/turnbuckle/tests/"];

/// Features that plain `cargo test` leaves out, with the reason.
const APART: &[(&str, &str)] =
    &[("keyring", "needs a secret service: `.ci/run` starts one and runs its tests")];

fn finding(path: &str, line: usize, sentence: String) -> Finding {
    Finding { path: path.to_owned(), line, sentence }
}

/// Finds dependencies of published crates that the page does not name in backticks.
pub(crate) fn dependencies(metadata: &Metadata, page: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.packages.iter().filter(|package| package.is_published()) {
        for dependency in package.dependencies.iter().filter(|it| it.path.is_none()) {
            if !page.contains(&format!("`{}`", dependency.name)) {
                let sentence = format!("`{}` of {} has no line", dependency.name, package.name);
                findings.push(finding(DEPENDENCIES, 1, sentence));
            }
        }
    }
    findings
}

/// Finds features of members that the workspace does not turn on.
pub(crate) fn untested_features(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.packages.iter().filter(|package| package.source.is_none()) {
        let nodes = metadata.resolve.nodes.iter().filter(|node| node.id == package.id);
        let built: Vec<&String> = nodes.flat_map(|node| &node.features).collect();
        for feature in package.features.keys() {
            let is_apart = APART.iter().any(|(known, _)| known == feature);
            if !is_apart && feature != "default" && !built.contains(&feature) {
                let sentence = format!(
                    "no member asks for the feature `{feature}` of {}, so that `cargo test` runs \
                     none of its tests: ask for it in examples/Cargo.toml",
                    package.name
                );
                findings.push(finding("Cargo.toml", 1, sentence));
            }
        }
    }
    findings
}

/// Finds examples that no page mentions by file name, `--example NAME` or `--bin NAME`.
pub(crate) fn unmentioned_examples(sources: &[Source], pages: &[(String, String)]) -> Vec<Finding> {
    let is_unmentioned = |source: &&Source| {
        let file = source.path.rsplit('/').next().unwrap_or_default();
        let name = file.trim_end_matches(".rs");
        let wanted = [file.to_owned(), format!("--example {name}"), format!("--bin {name}")];
        source.path.starts_with("examples/")
            && !source.is_test_file()
            && !matches!(file, "lib.rs" | "main.rs" | "build.rs")
            && !pages.iter().any(|(_, text)| wanted.iter().any(|wanted| text.contains(wanted)))
    };
    let sentence = "no page in README.md or docs/ mentions this example";
    sources.iter().filter(is_unmentioned).map(|source| source.finding(1, sentence)).collect()
}

/// Finds tests that the page names, as `path/to/file.rs::name`, and that do not exist.
pub(crate) fn missing_tests(page: &str, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in page.lines().enumerate() {
        for named in line.split('`').skip(1).step_by(2) {
            let Some((file, test)) = named.split_once(".rs::") else { continue };
            let has_test = |source: &Source| {
                TESTS.iter().any(|place| source.path == format!("{place}{file}.rs"))
                    && source.find(&["fn", test]).next().is_some()
            };
            if !sources.iter().any(has_test) {
                findings.push(finding(SHOWN, index + 1, format!("there is no test `{named}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).unwrap()
    }

    #[test]
    fn every_test_that_is_named_exists() {
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

    #[test]
    fn dependencies_have_a_line_and_features_are_built() {
        let metadata: Metadata = serde_json::from_str(
            r#"{"packages": [
                {"id": "a", "name": "a", "features": {"default": ["x"], "x": [], "logs": [], "keyring": []},
                 "dependencies": [{"name": "serde", "path": null}, {"name": "b", "path": "/b"}]},
                {"id": "b", "name": "b", "publish": [], "dependencies": [{"name": "syn", "path": null}]}],
                "resolve": {"nodes": [{"id": "a", "features": ["default", "x"], "deps": []}]}}"#,
        )
        .unwrap();
        assert_eq!(dependencies(&metadata, "| `serde` | reads JSON |").len(), 0);
        assert_eq!(dependencies(&metadata, "| `serde_json` | reads JSON |").len(), 1);
        let found = untested_features(&metadata);
        assert_eq!(found.len(), 1);
        assert!(found[0].sentence.starts_with("no member asks for the feature `logs` of a"));
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
