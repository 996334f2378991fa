//! `cargo xtask dependencies`: licences, sources, duplicates and `rust-version` of all
//! dependencies of the published crates.
//!
//! This is the part of `cargo deny` that needs no database, read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use spdx::{Expression, ParseMode};

use crate::workspace::{self, Edge, Metadata, Node, Package};

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Licences that do not bind the users of the crates beyond a notice.
const LICENCES: &str = "0BSD, Apache-2.0, Apache-2.0 WITH LLVM-exception, \
    BSD-2-Clause, BSD-3-Clause, BSL-1.0, CC0-1.0, ISC, MIT, MIT-0, Unicode-3.0, Unlicense, Zlib";

/// Crates that occur in more than one version, and the reason. `*` stands for any ending.
const DUPLICATES: &[(&str, &str)] = &[
    ("getrandom", "ring needs 0.2, jsonschema 0.3, secret-service 0.4"),
    ("r-efi", "of getrandom, on UEFI only"),
    ("syn", "serde and schemars need 3, tracing-attributes and zerocopy 2"),
    ("thiserror*", "win32job needs 1, on Windows only"),
    ("windows*", "win32job, keyring and webbrowser need different ones, on Windows only"),
];

/// Checks the graph; the error has one line for each problem.
pub(crate) fn run() -> Result<(), String> {
    let metadata = workspace::metadata(&["--all-features"])?;
    let packages = reachable(&metadata);
    let problems = problems(&packages, DUPLICATES);
    if problems.is_empty() {
        println!("dependencies: {} crates, no problem", packages.len());
        return Ok(());
    }
    Err(problems.join("\n"))
}

fn problems(packages: &[&Package], duplicates: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let ours = packages.iter().filter(|package| package.source.is_none());
    let oldest = ours.filter_map(|package| package.rust_version.as_deref()).map(numbers).min();
    for package in packages {
        let Package { name, version, .. } = package;
        let licence = package.license.as_deref().unwrap_or_default();
        versions.entry(name).or_default().insert(version);
        if !is_allowed(licence) {
            problems.push(format!("{name} {version}: the licence `{licence}` is not allowed"));
        }
        if let Some(source) = package.source.as_deref().filter(|source| *source != REGISTRY) {
            problems.push(format!("{name} {version}: comes from {source}, not from crates.io"));
        }
        if let (Some(needed), Some(oldest)) = (&package.rust_version, &oldest)
            && numbers(needed) > *oldest
        {
            problems.push(format!(
                "{name} {version}: needs Rust {needed}, newer than the crates' rust-version; \
                 `cargo update -p {name}` chooses an older version"
            ));
        }
    }
    versions.retain(|_, versions| versions.len() > 1);
    for (name, versions) in &versions {
        if !duplicates.iter().any(|(known, _)| is_named(known, name)) {
            let versions: Vec<&str> = versions.iter().copied().collect();
            problems.push(format!("{name}: occurs as {}", versions.join(" and ")));
        }
    }
    let is_stale = |known: &str| !versions.keys().any(|name| is_named(known, name));
    let stale = duplicates.iter().filter(|(known, _)| is_stale(known));
    problems.extend(stale.map(|(known, _)| format!("{known}: is no duplicate any more")));
    problems
}

fn is_named(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

/// The published crates and all packages that they are built from, in the order of their ids.
fn reachable(metadata: &Metadata) -> Vec<&Package> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let published = metadata.packages.iter().filter(|package| package.is_published());
    let mut waiting: Vec<&str> = published.map(|package| package.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if seen.insert(id) {
            let edges = nodes.get(id).into_iter().flat_map(|node| &node.deps);
            let is_built = |edge: &&Edge| {
                edge.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"))
            };
            waiting.extend(edges.filter(is_built).map(|edge| edge.pkg.as_str()));
        }
    }
    seen.into_iter().filter_map(|id| packages.get(id).copied()).collect()
}

/// Whether the allowed licences fulfil an SPDX expression; `/` is the old way to write `OR`.
fn is_allowed(expression: &str) -> bool {
    let parsed = Expression::parse_mode(expression, ParseMode::LAX);
    parsed.is_ok_and(|parsed| {
        parsed
            .evaluate(|licence| LICENCES.split(", ").any(|allowed| allowed == licence.to_string()))
    })
}

fn numbers(version: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    numbers.resize(3, 0);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some("MIT".to_owned()),
            source: Some(REGISTRY.to_owned()),
            rust_version: Some("1.80".to_owned()),
            ..Package::default()
        }
    }

    #[test]
    fn an_expression_is_fulfilled_by_allowed_licences() {
        let allowed = [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ];
        assert!(allowed.into_iter().all(is_allowed));
        let refused =
            ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT Apache-2.0", "MIT WITH X", "OR MIT"];
        assert!(!refused.into_iter().any(is_allowed));
    }

    #[test]
    fn licences_sources_versions_and_duplicates_are_checked() {
        let ours = Package {
            source: None,
            rust_version: Some("1.88".to_owned()),
            ..package("a", "1.0.0")
        };
        let (one, two) = (package("b", "1.0.0"), package("b", "2.0.0"));
        assert_eq!(problems(&[&ours, &one, &one], &[]).len(), 0);
        assert_eq!(problems(&[&ours, &one, &two], &[]), ["b: occurs as 1.0.0 and 2.0.0"]);
        assert_eq!(problems(&[&ours, &one, &two], &[("b*", "why")]).len(), 0);
        assert_eq!(problems(&[&ours, &one], &[("b", "why")]), ["b: is no duplicate any more"]);
        let newer = Package { rust_version: Some("1.88.1".to_owned()), ..package("c", "1.0.0") };
        assert!(problems(&[&ours, &newer], &[])[0].starts_with("c 1.0.0: needs Rust 1.88.1"));
        let elsewhere =
            Package { source: Some("git+https://x".to_owned()), ..package("c", "1.0.0") };
        assert!(problems(&[&ours, &elsewhere], &[])[0].contains("comes from git+https://x"));
        let closed = Package { license: Some("GPL-3.0".to_owned()), ..package("c", "1.0.0") };
        assert!(problems(&[&ours, &closed], &[])[0].contains("`GPL-3.0` is not allowed"));
    }

    #[test]
    fn dev_dependencies_and_unpublished_members_are_left_out() {
        let text = r#"{"packages": [
            {"id": "a", "name": "a", "source": null, "publish": null},
            {"id": "b", "name": "b", "source": null, "publish": []},
            {"id": "c", "name": "c", "source": "x", "publish": null},
            {"id": "d", "name": "d", "source": "x", "publish": null}],
            "resolve": {"nodes": [{"id": "a", "deps": [
                {"pkg": "c", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                {"pkg": "d", "dep_kinds": [{"kind": "dev"}]}]}]}}"#;
        let metadata = serde_json::from_str(text).unwrap();
        let names: Vec<&str> =
            reachable(&metadata).iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
    }
}
