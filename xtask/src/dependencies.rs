//! `cargo xtask dependencies`: licences, sources, bans, duplicates and `rust-version` of all
//! dependencies of the published crates.
//!
//! This is the part of `cargo deny` that needs no database, read from `cargo metadata`. Both read their
//! rules from `deny.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::{
    common::files::read,
    workspace::{self, Edge, Metadata, Node, Package},
};

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
    /// Crates that may occur in more than one version.
    skip: Vec<Ban>,
}

/// A crate by its name, and the reason of the entry.
#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// Checks the graph; the error has one line for each problem.
pub(crate) fn run() -> Result<(), String> {
    let policy = policy(&read(&workspace::root().join("deny.toml"))?)?;
    let metadata = workspace::metadata(&["--all-features"])?;
    let packages = reachable(&metadata);
    let problems = problems(&packages, &policy);
    if problems.is_empty() {
        println!("dependencies: {} crates, no problem", packages.len());
        return Ok(());
    }
    Err(problems.join("\n"))
}

fn policy(text: &str) -> Result<Policy, String> {
    toml::from_str(text).map_err(|error| format!("deny.toml is unreadable: {error}"))
}

fn problems(packages: &[&Package], policy: &Policy) -> Vec<String> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let ours = packages.iter().filter(|package| package.source.is_none());
    let oldest = ours.filter_map(|package| package.rust_version.as_deref()).map(numbers).min();
    for package in packages {
        let Package { name, version, .. } = package;
        versions.entry(name).or_default().insert(version);
        problems.extend(policy.refuse(package));
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
    let skipped: BTreeSet<&str> = policy.bans.skip.iter().map(|skip| &*skip.name).collect();
    for (name, versions) in versions.iter().filter(|(name, _)| !skipped.contains(*name)) {
        let versions: Vec<&str> = versions.iter().copied().collect();
        problems.push(format!("{name}: occurs as {}", versions.join(" and ")));
    }
    let stale = skipped.iter().filter(|name| !versions.contains_key(*name));
    problems.extend(stale.map(|name| format!("{name}: is no duplicate any more; see deny.toml")));
    problems
}

impl Policy {
    /// Returns the problems of the licence, the source and the name of a package.
    fn refuse(&self, package: &Package) -> Vec<String> {
        let Package { name, version, .. } = package;
        let mut problems = Vec::new();
        let licence = package.license.as_deref().unwrap_or_default();
        if !self.allows(licence) {
            problems.push(format!("{name} {version}: the licence `{licence}` is not allowed"));
        }
        if let Some(source) = &package.source
            && !source.strip_prefix("registry+").is_some_and(|url| self.knows(url))
        {
            problems.push(format!("{name} {version}: comes from {source}, not from crates.io"));
        }
        if let Some(ban) = self.bans.deny.iter().find(|ban| ban.name == *name) {
            problems.push(format!("{name} {version}: is banned: {}", ban.reason));
        }
        problems
    }

    /// Returns whether the allowed licences fulfil an SPDX expression; `/` is the old way to write
    /// `OR`.
    fn allows(&self, expression: &str) -> bool {
        let allowed = &self.licenses.allow;
        let parsed = Expression::parse_mode(expression, ParseMode::LAX);
        parsed.is_ok_and(|parsed| parsed.evaluate(|licence| allowed.contains(&licence.to_string())))
    }

    fn knows(&self, registry: &str) -> bool {
        self.sources.allow_registry.iter().any(|known| known == registry)
    }
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

fn numbers(version: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    numbers.resize(3, 0);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "https://example.com/index";

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some("MIT".to_owned()),
            source: Some(format!("registry+{REGISTRY}")),
            rust_version: Some("1.80".to_owned()),
            ..Package::default()
        }
    }

    fn rules(skip: &str) -> Policy {
        let licences = r#"["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"]"#;
        let text = format!(
            "licenses.allow = {licences}\nsources.allow-registry = ['{REGISTRY}']\n\
             [bans]\ndeny = [{{crate = 'bad', reason = 'why'}}]\nskip = [{skip}]"
        );
        policy(&text).unwrap()
    }

    #[test]
    fn an_expression_is_fulfilled_by_allowed_licences() {
        let policy = rules("");
        let allowed = [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ];
        assert!(allowed.into_iter().all(|text| policy.allows(text)));
        let refused =
            ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT Apache-2.0", "MIT WITH X", "OR MIT"];
        assert!(!refused.into_iter().any(|text| policy.allows(text)));
    }

    #[test]
    fn licences_sources_versions_bans_and_duplicates_are_checked() {
        let ours = Package {
            source: None,
            rust_version: Some("1.88".to_owned()),
            ..package("a", "1.0.0")
        };
        let (one, two) = (package("b", "1.0.0"), package("b", "2.0.0"));
        let none = rules("");
        let skip = rules("{crate = 'b', reason = 'why'}");
        assert_eq!(problems(&[&ours, &one, &one], &none).len(), 0);
        assert_eq!(problems(&[&ours, &one, &two], &none), ["b: occurs as 1.0.0 and 2.0.0"]);
        assert_eq!(problems(&[&ours, &one, &two], &skip).len(), 0);
        assert!(problems(&[&ours, &one], &skip)[0].starts_with("b: is no duplicate any more"));
        let newer = Package { rust_version: Some("1.88.1".to_owned()), ..package("c", "1.0.0") };
        assert!(problems(&[&ours, &newer], &none)[0].starts_with("c 1.0.0: needs Rust 1.88.1"));
        for source in ["git+https://x", "registry+https://x", "sparse+https://x"] {
            let elsewhere = Package { source: Some(source.to_owned()), ..package("c", "1.0.0") };
            assert!(problems(&[&ours, &elsewhere], &none)[0].contains("comes from"), "{source}");
        }
        let closed = Package { license: Some("GPL-3.0".to_owned()), ..package("c", "1.0.0") };
        assert!(problems(&[&ours, &closed], &none)[0].contains("`GPL-3.0` is not allowed"));
        assert_eq!(problems(&[&package("bad", "1.0.0")], &none), ["bad 1.0.0: is banned: why"]);
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
