//! Layers: which top-level modules of the `turnbuckle` crate may use which, and which code stays
//! free of tokio.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Finding, Source};

const SDK: &str = "crates/turnbuckle/src/";

/// Every top-level module and its layer. A module may use lower layers only, so `client` and
/// `server` never use each other. The crate's root is above all of them.
const LAYERS: &[(&str, u8)] = &[
    ("error", 0),
    ("limits", 0),
    ("principal", 0),
    ("store", 0),
    ("protocol", 1),
    ("rpc", 2),
    ("middleware", 3),
    ("transport", 3),
    ("client", 4),
    ("server", 4),
    ("in_process", 6),
    ("__seam", 6),
    // For the tests of users.
    ("testing", 7),
];

/// Code that is tested without a runtime.
const NO_TOKIO: &[&str] = &["crates/turnbuckle/src/protocol", "crates/turnbuckle/src/rpc/pending"];

/// Finds uses of modules of the same or a higher layer, and modules and rows without a counterpart.
pub(crate) fn layers(sources: &[Source]) -> Vec<Finding> {
    let root = sources.iter().find(|source| source.path == format!("{SDK}lib.rs"));
    let exports = root.map(exports).unwrap_or_default();
    let modules: BTreeSet<&str> = sources.iter().filter_map(|source| module(source)).collect();
    let stale = LAYERS.iter().filter(|(name, _)| root.is_some() && !modules.contains(name));
    let stale = stale.map(|(name, _)| Finding {
        path: file!().to_owned(),
        line: 1,
        sentence: format!("there is no module `{name}`: remove its row from LAYERS"),
    });
    sources.iter().flat_map(|source| upward_uses(source, &exports)).chain(stale).collect()
}

fn upward_uses(source: &Source, exports: &BTreeMap<String, String>) -> Vec<Finding> {
    let Some(module) = module(source) else { return Vec::new() };
    let Some(own) = layer(module) else {
        let sentence = format!("module `{module}` has no layer: add it to LAYERS in {}", file!());
        return vec![source.finding(1, sentence)];
    };
    let mut findings = Vec::new();
    for (name, line) in crate_paths(source) {
        let target = exports.get(name).filter(|_| layer(name).is_none()).map_or(name, |it| it);
        if target != module && layer(target).is_some_and(|layer| layer >= own) {
            let sentence = format!("`{module}` uses `{target}`, which is not in a lower layer");
            findings.push(source.finding(line, sentence));
        }
    }
    findings
}

/// Finds uses of tokio in code that is tested without a runtime.
pub(crate) fn runtime(source: &Source) -> Vec<Finding> {
    if !NO_TOKIO.iter().any(|place| source.path.starts_with(place)) {
        return Vec::new();
    }
    let uses = source.tokens.iter().enumerate().filter(|(position, token)| {
        let is_path = source.word(position + 1) == Some("::")
            || position.checked_sub(1).and_then(|before| source.word(before)) == Some("use");
        token.text.starts_with("tokio") && is_path && !source.is_test_line(token.line)
    });
    let sentence = "code without I/O must not use tokio";
    uses.map(|(_, token)| source.finding(token.line, sentence)).collect()
}

/// The leaves of a `use` tree. A renamed leaf ends with its new name.
pub(crate) fn use_paths(tree: &syn::UseTree) -> Vec<Vec<String>> {
    match tree {
        syn::UseTree::Path(path) => {
            let mut rest = use_paths(&path.tree);
            rest.iter_mut().for_each(|segments| segments.insert(0, path.ident.to_string()));
            rest
        }
        syn::UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        syn::UseTree::Rename(rename) => {
            vec![vec![rename.ident.to_string(), rename.rename.to_string()]]
        }
        syn::UseTree::Glob(_) => vec![vec!["*".to_owned()]],
        syn::UseTree::Group(group) => group.items.iter().flat_map(use_paths).collect(),
    }
}

/// Names that the root re-exports with the module of each: `crate::Client` is a use of `client`.
fn exports(root: &Source) -> BTreeMap<String, String> {
    let uses = root.syntax.items.iter().filter_map(|item| match item {
        syn::Item::Use(item) => Some(use_paths(&item.tree)),
        _ => None,
    });
    let mut exports = BTreeMap::new();
    for path in uses.flatten() {
        let path = if path[0] == "crate" || path[0] == "self" { &path[1..] } else { &path[..] };
        if let [module, .., name] = path
            && layer(module).is_some()
        {
            exports.insert(name.clone(), module.clone());
        }
    }
    exports
}

fn layer(module: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == module).map(|(_, layer)| *layer)
}

/// The top-level module that a file is part of.
fn module(source: &Source) -> Option<&str> {
    let path = source.path.strip_prefix(SDK)?;
    // The middleware of a side is part of that side.
    let path = path.strip_prefix("middleware/").filter(|rest| is_side(rest)).unwrap_or(path);
    let first = path.split('/').next()?.trim_end_matches(".rs");
    (first != "lib").then_some(first)
}

fn is_side(path: &str) -> bool {
    path.starts_with("server/") || path == "client.rs"
}

/// The first segments after each `crate::`, also of groups and inside macros, with their lines.
fn crate_paths(source: &Source) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for position in source.find(&["crate", "::"]) {
        let Some(first) = source.tokens.get(position + 2) else { continue };
        if first.text != "{" {
            found.push((first.text.as_str(), first.line));
            continue;
        }
        let mut depth = 0;
        let mut starts = true;
        for token in source.inside(position + 2) {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                "," if depth == 0 => {
                    starts = true;
                    continue;
                }
                name if starts => found.push((name, token.line)),
                _ => {}
            }
            starts = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_module(path: &str, text: &str) -> Vec<String> {
        let root = Source::parse(
            "crates/turnbuckle/src/lib.rs",
            "mod client; pub use client::{Client, call::Call as Pending}; pub use server::Server;",
        )
        .unwrap();
        let source = Source::parse(&format!("{SDK}{path}"), text).unwrap();
        let findings = upward_uses(&source, &exports(&root));
        findings.into_iter().map(|finding| finding.sentence).collect()
    }

    #[test]
    fn a_module_uses_lower_layers_only() {
        let fine = "use crate::{protocol::{Table, duplex}, error::Error, transport::line};\n\
                    fn f() { super::call::g(); crate::rpc::stamp(); }";
        assert_eq!(in_module("client/mod.rs", fine), [""; 0]);
        assert_eq!(in_module("lib.rs", "use crate::client::Client;"), [""; 0]);
        let broken = [
            ("client/call.rs", "use crate::server::Server;"),
            ("client/call.rs", "fn f() { select! { _ = crate::server::run() => {} } }"),
            ("transport/line.rs", "use crate::{rpc::{Table, A}, client::Client};"),
            ("transport/line.rs", "use crate::Client;"),
            ("transport/line.rs", "type A = crate::Pending;"),
            ("rpc/mod.rs", "#[cfg(test)] mod tests { use crate::client::Client; }"),
            ("protocol/stamp.rs", "pub(crate) use crate::rpc::*;"),
            ("unknown/mod.rs", ""),
        ];
        for (path, text) in broken {
            assert_eq!(in_module(path, text).len(), 1, "{path}: {text}");
        }
    }

    #[test]
    fn a_layer_of_no_module_is_a_finding() {
        let root = Source::parse("crates/turnbuckle/src/lib.rs", "").unwrap();
        let error = Source::parse("crates/turnbuckle/src/error.rs", "").unwrap();
        assert_eq!(layers(&[root, error]).len(), LAYERS.len() - 1);
    }

    #[test]
    fn code_without_io_uses_no_tokio_outside_its_tests() {
        let count = |path: &str, text: &str| {
            runtime(&Source::parse(&format!("{SDK}{path}"), text).unwrap()).len()
        };
        let pending = "rpc/pending/mod.rs";
        assert_eq!(count(pending, "use tokio::sync::oneshot;"), 1);
        assert_eq!(count(pending, "fn f() { tokio::spawn(g()); }"), 1);
        assert_eq!(count(pending, "#[cfg(test)] mod tests { use tokio::sync; }"), 0);
        assert_eq!(count(pending, "/// Unlike tokio::sync.\nfn f() {}"), 0);
        assert_eq!(count("rpc/connection/mod.rs", "use tokio::io;"), 0);
    }
}
