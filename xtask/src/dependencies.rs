//! `cargo xtask dependencies`: licences, sources, duplicates and `rust-version` of all that the
//! published crates bring along.
//!
//! This is the part of `cargo deny` that needs no database, read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::workspace;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Licences that do not bind the users of the crates beyond a notice.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that occur in more than one version, and the reason. `*` stands for any ending.
const DUPLICATES: &[(&str, &str)] = &[
    ("getrandom", "ring needs 0.2, jsonschema 0.3, secret-service 0.4"),
    ("r-efi", "of getrandom, on UEFI only"),
    ("syn", "serde and schemars need 3, tracing-attributes and zerocopy 2"),
    ("thiserror*", "win32job needs 1, on Windows only"),
    ("windows*", "win32job, keyring and webbrowser need different ones, on Windows only"),
];

/// A package of the graph.
#[derive(Debug, Default)]
struct Node {
    name: String,
    version: String,
    licence: String,
    /// `None` for a member of the workspace.
    source: Option<String>,
    rust_version: Option<String>,
    is_published: bool,
    /// Normal and build dependencies, by id.
    dependencies: Vec<String>,
}

/// Checks the graph; the error has one line for each problem.
pub(crate) fn run() -> Result<(), String> {
    let mut metadata = workspace::cargo();
    metadata.args(["metadata", "--format-version=1", "--all-features", "--locked"]);
    let graph = parse(&workspace::output(&mut metadata)?)?;
    let nodes = reachable(&graph);
    let problems = problems(&nodes, DUPLICATES);
    if problems.is_empty() {
        println!("dependencies: {} crates, no problem", nodes.len());
        return Ok(());
    }
    Err(problems.join("\n"))
}

fn problems(nodes: &[&Node], duplicates: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let ours = nodes.iter().filter(|node| node.source.is_none());
    let oldest = ours.filter_map(|node| node.rust_version.as_deref()).map(numbers).min();
    for node in nodes {
        let Node { name, version, licence, .. } = node;
        versions.entry(name).or_default().insert(version);
        if !is_allowed(licence) {
            problems.push(format!("{name} {version}: the licence `{licence}` is not allowed"));
        }
        if let Some(source) = node.source.as_deref().filter(|source| *source != REGISTRY) {
            problems.push(format!("{name} {version}: comes from {source}, not from crates.io"));
        }
        if let (Some(needed), Some(oldest)) = (&node.rust_version, &oldest)
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

/// The published crates and everything that they are built from.
fn reachable(graph: &BTreeMap<String, Node>) -> Vec<&Node> {
    let published = graph.iter().filter(|(_, node)| node.is_published);
    let mut waiting: Vec<&str> = published.map(|(id, _)| id.as_str()).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if seen.insert(id) {
            waiting.extend(graph[id].dependencies.iter().map(String::as_str));
        }
    }
    seen.into_iter().map(|id| &graph[id]).collect()
}

fn parse(metadata: &str) -> Result<BTreeMap<String, Node>, String> {
    let metadata: Value = serde_json::from_str(metadata)
        .map_err(|error| format!("cargo's metadata is not JSON: {error}"))?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut graph = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let node = Node {
            name: text(&package["name"]).unwrap_or_default(),
            version: text(&package["version"]).unwrap_or_default(),
            licence: text(&package["license"]).unwrap_or_default(),
            source: text(&package["source"]),
            rust_version: text(&package["rust_version"]),
            is_published: package["source"].is_null() && package["publish"].is_null(),
            dependencies: Vec::new(),
        };
        graph.insert(text(&package["id"]).unwrap_or_default(), node);
    }
    for node in list(&metadata["resolve"]["nodes"]) {
        let built = list(&node["deps"]).into_iter().filter(|dependency| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev")
        });
        let built = built.filter_map(|dependency| text(&dependency["pkg"])).collect();
        if let Some(known) = node["id"].as_str().and_then(|id| graph.get_mut(id)) {
            known.dependencies = built;
        }
    }
    Ok(graph)
}

/// Whether the allowed licences fulfil an SPDX expression; `/` is the old way to write `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) == Some(true) && rest.is_empty()
}

fn any_of(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = all_of(words)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        allowed |= all_of(words)?;
    }
    Some(allowed)
}

fn all_of(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = licence(words)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        allowed &= licence(words)?;
    }
    Some(allowed)
}

fn licence(words: &mut &[&str]) -> Option<bool> {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let allowed = any_of(words)?;
            *words = words.strip_prefix(&[")"])?;
            Some(allowed)
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            Some(LICENCES.contains(&format!("{name} WITH {exception}").as_str()))
        }
        [name, rest @ ..] => {
            *words = rest;
            Some(LICENCES.contains(name))
        }
        [] => None,
    }
}

fn numbers(version: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    numbers.resize(3, 0);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, version: &str) -> Node {
        Node {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: "MIT".to_owned(),
            source: Some(REGISTRY.to_owned()),
            rust_version: Some("1.80".to_owned()),
            ..Node::default()
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
        let ours =
            Node { source: None, rust_version: Some("1.88".to_owned()), ..node("a", "1.0.0") };
        let (one, two) = (node("b", "1.0.0"), node("b", "2.0.0"));
        assert_eq!(problems(&[&ours, &one, &one], &[]).len(), 0);
        assert_eq!(problems(&[&ours, &one, &two], &[]), ["b: occurs as 1.0.0 and 2.0.0"]);
        assert_eq!(problems(&[&ours, &one, &two], &[("b*", "why")]).len(), 0);
        assert_eq!(problems(&[&ours, &one], &[("b", "why")]), ["b: is no duplicate any more"]);
        let newer = Node { rust_version: Some("1.88.1".to_owned()), ..node("c", "1.0.0") };
        assert!(problems(&[&ours, &newer], &[])[0].starts_with("c 1.0.0: needs Rust 1.88.1"));
        let elsewhere = Node { source: Some("git+https://x".to_owned()), ..node("c", "1.0.0") };
        assert!(problems(&[&ours, &elsewhere], &[])[0].contains("comes from git+https://x"));
        let closed = Node { licence: "GPL-3.0".to_owned(), ..node("c", "1.0.0") };
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
        let graph = parse(text).unwrap();
        let names: Vec<&str> = reachable(&graph).iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
    }
}
