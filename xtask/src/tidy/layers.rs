//! Owns: who may name whom among the rooms of the `turnbuckle` crate, and which rooms stay free
//! of tokio. Does not own: what the rooms do; `docs/architecture.md` says that.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use super::source::{Finding, Source};

/// Where the rooms are.
const HOUSE: &str = "crates/turnbuckle/src/";

/// Every room and its floor. A room may name rooms on lower floors only, so `client` and `server`
/// never name each other. The root (`lib`) stands above all of them.
const ROOMS: &[(&str, u8)] = &[
    ("error", 0),
    ("form", 0),
    ("sampling", 0),
    ("json_schema", 0),
    ("limits", 0),
    ("principal", 0),
    ("seal", 0),
    ("trace", 0),
    ("store", 0),
    ("envelope", 1),
    ("observe", 1),
    ("dispatch", 2),
    ("layers", 3),
    ("transport", 3),
    ("client", 4),
    ("server", 4),
    ("auth", 5),
    ("ext", 5),
    // The places that join a client and a server.
    ("in_process", 6),
    ("__seam", 6),
    // What users test their servers with; the program itself has no use for it.
    ("testing", 7),
];

/// Code that decides and never waits, so that it can be tested without a runtime.
const NO_TOKIO: &[&str] = &[
    "crates/turnbuckle/src/envelope",
    "crates/turnbuckle/src/dispatch/table",
    "crates/turnbuckle-types/src/",
];

/// The crate of types, in which nothing is asynchronous.
const NO_ASYNC: &str = "crates/turnbuckle-types/src/";

/// Names that the root re-exports, and the room that each comes from.
pub(crate) type Exports = BTreeMap<String, String>;

/// Reads the re-exports of the crate's root, so that `crate::Client` counts as naming `client`.
pub(crate) fn exports(root: &Source) -> Exports {
    let mut exports = Exports::new();
    for item in &root.syntax.items {
        let syn::Item::Use(item) = item else { continue };
        for segments in use_paths(&item.tree) {
            let mut segments = segments.as_slice();
            if let [first, rest @ ..] = segments
                && (first == "crate" || first == "self")
            {
                segments = rest;
            }
            if let [room, .., name] = segments
                && floor(room).is_some()
            {
                exports.insert(name.clone(), room.clone());
            }
        }
    }
    exports
}

/// Finds names of rooms that this room must not know.
pub(crate) fn rooms(source: &Source, exports: &Exports) -> Vec<Finding> {
    let Some(module) = module_of(&source.path) else { return Vec::new() };
    let Some(room) = module.first() else { return Vec::new() };
    let Some(own_floor) = floor(room) else {
        let sentence = format!("room `{room}` has no floor: add it to ROOMS in the layering rule");
        return vec![source.finding(1, sentence)];
    };
    let mut findings = Vec::new();
    for (segments, line) in paths(source) {
        let inner = inline_modules(source, line);
        let Some(target) = resolve(&module, &inner, &segments, exports) else { continue };
        if target != *room && floor(&target).is_some_and(|floor| floor >= own_floor) {
            findings.push(source.finding(
                line,
                format!("`{room}` names `{target}`, which is not below it in the layering"),
            ));
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

/// Finds tokio, and in the crate of types anything asynchronous, where it must not be.
pub(crate) fn runtime(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !NO_TOKIO.iter().any(|place| source.path.starts_with(place)) {
        return findings;
    }
    for (position, token) in source.tokens.iter().enumerate() {
        if source.is_test_line(token.line) {
            continue;
        }
        let word = token.text.as_str();
        let is_path = source.word(position + 1) == Some("::")
            || position.checked_sub(1).and_then(|before| source.word(before)) == Some("use");
        if word.starts_with("tokio") && is_path {
            findings.push(source.finding(token.line, "tokio has no place in pure code"));
        }
        if source.path.starts_with(NO_ASYNC) && (word == "async" || word == "await") {
            findings.push(source.finding(token.line, "nothing is asynchronous in the types"));
        }
    }
    findings
}

fn floor(room: &str) -> Option<u8> {
    ROOMS.iter().find(|(name, _)| *name == room).map(|(_, floor)| *floor)
}

/// The module that a file is, from the crate's root: `dispatch/table/mod.rs` is `[dispatch, table]`.
fn module_of(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix(HOUSE)?.strip_suffix(".rs")?;
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    Some(parts)
}

/// The room that a path leads to, if it leads into this crate.
fn resolve(
    module: &[String],
    inner: &[String],
    segments: &[String],
    exports: &Exports,
) -> Option<String> {
    let mut at: Vec<String> = module.iter().chain(inner).cloned().collect();
    let mut rest = segments;
    match rest.first()?.as_str() {
        "crate" => {
            at.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {}
        _ => return None,
    }
    while rest.first().is_some_and(|segment| segment == "super") {
        at.pop();
        rest = &rest[1..];
    }
    at.extend(rest.iter().cloned());
    let first = at.first()?;
    // What the root re-exports belongs to the room that it comes from.
    Some(exports.get(first).filter(|_| floor(first).is_none()).unwrap_or(first).clone())
}

/// Every path in the file with its line: those of `use` trees, and the rest as they are written,
/// also inside macros.
fn paths(source: &Source) -> Vec<(Vec<String>, usize)> {
    let mut finder = UseFinder::default();
    finder.visit_file(&source.syntax);
    let mut found = finder.found;
    for (position, token) in source.tokens.iter().enumerate() {
        let starts = position.checked_sub(1).and_then(|before| source.word(before)) != Some("::");
        if !starts || !matches!(token.text.as_str(), "crate" | "self" | "super") {
            continue;
        }
        let mut segments = vec![token.text.clone()];
        let mut next = position + 1;
        while source.word(next) == Some("::")
            && let Some(word) = source.word(next + 1)
            && word.starts_with(|first: char| first.is_alphabetic() || first == '_')
        {
            segments.push(word.to_owned());
            next += 2;
        }
        if segments.len() > 1 {
            found.push((segments, token.line));
        }
    }
    found
}

#[derive(Default)]
struct UseFinder {
    found: Vec<(Vec<String>, usize)>,
}

impl<'ast> Visit<'ast> for UseFinder {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let line = item.use_token.span.start().line;
        self.found.extend(use_paths(&item.tree).into_iter().map(|segments| (segments, line)));
        visit::visit_item_use(self, item);
    }
}

/// The leaves of a `use` tree. A renamed leaf goes by its new name.
fn use_paths(tree: &syn::UseTree) -> Vec<Vec<String>> {
    let under = |name: &syn::Ident, rest: Vec<Vec<String>>| {
        rest.into_iter()
            .map(|mut segments| {
                segments.insert(0, name.to_string());
                segments
            })
            .collect()
    };
    match tree {
        syn::UseTree::Path(path) => under(&path.ident, use_paths(&path.tree)),
        syn::UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        syn::UseTree::Rename(rename) => {
            vec![vec![rename.ident.to_string(), rename.rename.to_string()]]
        }
        syn::UseTree::Glob(_) => vec![vec!["*".to_owned()]],
        syn::UseTree::Group(group) => group.items.iter().flat_map(use_paths).collect(),
    }
}

/// The inline modules around a line, outermost first: `super` counts them.
fn inline_modules(source: &Source, line: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut items = source.syntax.items.as_slice();
    loop {
        let around = items.iter().find_map(|item| match item {
            syn::Item::Mod(module) => {
                let (brace, inside) = module.content.as_ref()?;
                let lines = brace.span.open().start().line..=brace.span.close().end().line;
                lines.contains(&line).then(|| (module.ident.to_string(), inside.as_slice()))
            }
            _ => None,
        });
        let Some((name, inside)) = around else { return names };
        names.push(name);
        items = inside;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_room(path: &str, text: &str) -> Vec<String> {
        let root = Source::parse(
            "crates/turnbuckle/src/lib.rs",
            "mod client; pub use client::{Client, call::Call as Pending}; pub use server::Server;",
        )
        .unwrap();
        let source = Source::parse(&format!("{HOUSE}{path}"), text).unwrap();
        rooms(&source, &exports(&root)).into_iter().map(|finding| finding.sentence).collect()
    }

    #[test]
    fn a_room_may_name_the_floors_below() {
        let text = "use crate::{dispatch::{Table, duplex}, error::Error, transport::line};\n\
                    fn f() { super::call::g(); crate::envelope::stamp(); }";
        assert_eq!(in_room("client/mod.rs", text), [""; 0]);
        assert_eq!(in_room("lib.rs", "use client::Client; use server::Server;"), [""; 0]);
    }

    #[test]
    fn a_room_may_not_name_its_own_floor_or_above() {
        let broken = [
            ("client/call.rs", "use crate::server::Server;"),
            ("client/call.rs", "fn f() { crate::server::run() }"),
            ("client/call.rs", "fn f() { select! { _ = crate::server::run() => {} } }"),
            ("client/call.rs", "use super::super::server;"),
            ("transport/line.rs", "use crate::{dispatch::Table, client::Client};"),
            ("transport/line.rs", "use crate::Client;"),
            ("transport/line.rs", "type A = crate::Pending;"),
            ("dispatch/mod.rs", "#[cfg(test)] mod tests { use crate::client::Client; }"),
            ("dispatch/mod.rs", "mod inner { use super::super::transport; }"),
            ("envelope/stamp.rs", "pub(crate) use crate::dispatch::*;"),
        ];
        for (path, text) in broken {
            assert_eq!(in_room(path, text).len(), 1, "{path}: {text}");
        }
    }

    #[test]
    fn an_unknown_room_must_be_given_a_floor() {
        assert_eq!(in_room("attic/mod.rs", "").len(), 1);
    }

    fn with_runtime(path: &str, text: &str) -> usize {
        runtime(&Source::parse(path, text).unwrap()).len()
    }

    #[test]
    fn pure_code_names_no_tokio_outside_its_tests() {
        let table = "crates/turnbuckle/src/dispatch/table.rs";
        assert_eq!(with_runtime(table, "use tokio::sync::oneshot;"), 1);
        assert_eq!(with_runtime(table, "fn f() { tokio::spawn(g()); }"), 1);
        assert_eq!(with_runtime(table, "#[cfg(test)] mod tests { use tokio::sync; }"), 0);
        assert_eq!(with_runtime(table, "/// Unlike tokio::sync.\nfn f() {}"), 0);
        assert_eq!(with_runtime("crates/turnbuckle/src/dispatch/duplex.rs", "use tokio::io;"), 0);
    }

    #[test]
    fn the_types_are_not_asynchronous() {
        assert_eq!(with_runtime("crates/turnbuckle-types/src/id.rs", "async fn f() {}"), 1);
        assert_eq!(with_runtime("crates/turnbuckle-types/src/id.rs", "fn f() {}"), 0);
        assert_eq!(with_runtime("crates/turnbuckle/src/envelope/a.rs", "async fn f() {}"), 0);
    }
}
