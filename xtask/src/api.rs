//! `cargo xtask api`: a snapshot of the public API of each published library in `docs/api`.
//!
//! The declarations are read from the pages that rustdoc writes, in which re-exports and macros are
//! resolved. That works on a stable toolchain.

use std::{fs, path::Path};

use crate::{
    common::files::{create, read, write},
    workspace,
};

/// Writes or compares the snapshots; the error lists every added and removed line.
pub(crate) fn run(is_check: bool) -> Result<(), String> {
    let members = workspace::members()?;
    let libraries =
        members.iter().filter(|package| package.is_published() && package.has_library());
    let names: Vec<&str> = libraries.map(|package| package.name.as_str()).collect();
    let mut doc = workspace::cargo();
    doc.args(["doc", "--quiet", "--no-deps", "--lib", "--all-features"]);
    doc.args(names.iter().flat_map(|name| ["--package", name]));
    workspace::run(&mut doc)?;
    let home = workspace::root().join("docs/api");
    create(&home)?;
    let mut differences = Vec::new();
    for name in names {
        let pages = workspace::target().join("doc").join(name.replace('-', "_"));
        let wanted = snapshot(&name.replace('-', "_"), &pages)?;
        let path = home.join(format!("{name}.txt"));
        if is_check {
            let now = fs::read_to_string(&path).unwrap_or_default();
            differences.extend(compare(name, &now, &wanted));
        } else {
            write(&path, &wanted)?;
        }
        println!("api: {name}: {} lines", wanted.lines().count());
    }
    if differences.is_empty() {
        return Ok(());
    }
    differences.push("docs/api is not current: run `cargo xtask api`".to_owned());
    Err(differences.join("\n"))
}

fn compare(name: &str, now: &str, wanted: &str) -> Vec<String> {
    let only = |these: &str, others: &str, sign: char| {
        let others: Vec<&str> = others.lines().collect();
        let lines = these.lines().filter(|line| !others.contains(line));
        lines.map(|line| format!("{name}: {sign} {line}")).collect::<Vec<_>>()
    };
    let mut differences = only(now, wanted, '-');
    differences.extend(only(wanted, now, '+'));
    differences
}

/// The items of a crate, sorted. The list of all items names the pages, as old pages may be there.
fn snapshot(name: &str, pages: &Path) -> Result<String, String> {
    let list = read(&pages.join("all.html"))?;
    let mut lines = Vec::new();
    let links = list.split("<li><a href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    for link in links.filter(|link| !link.starts_with('#')) {
        let path = item_path(name, link);
        let page = read(&pages.join(link))?;
        lines.extend(declarations(&page).into_iter().map(|text| format!("{path}: {text}")));
    }
    lines.sort();
    lines.dedup();
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// `client/struct.Client.html` of `turnbuckle` is `turnbuckle::client::Client`.
fn item_path(name: &str, link: &str) -> String {
    let (modules, file) = link.rsplit_once('/').unwrap_or(("", link));
    let item = file.split('.').nth(1).unwrap_or_default();
    let modules = modules.split('/').filter(|module| !module.is_empty());
    [name].into_iter().chain(modules).chain([item]).collect::<Vec<_>>().join("::")
}

/// The item itself, its methods and constants, and the traits that it implements.
fn declarations(page: &str) -> Vec<String> {
    let mut found = between(page, "<pre class=\"rust item-decl\">", "</pre>");
    found.truncate(1);
    let list = |id: &str| {
        let start = format!("<div id=\"{id}-list\">");
        page.split_once(&start).map(|(_, rest)| rest.split("<h2 ").next().unwrap_or_default())
    };
    let own = list("implementations").unwrap_or_default();
    found.extend(between(own, "<h4 class=\"code-header\">", "</h4>"));
    let traits = list("trait-implementations").unwrap_or_default();
    let traits = between(traits, "<h3 class=\"code-header\">", "</h3>");
    found.extend(traits.into_iter().filter(|text| !text.contains("StructuralPartialEq")));
    let automatic = list("synthetic-implementations").unwrap_or_default();
    let automatic = between(automatic, "<h3 class=\"code-header\">", "</h3>");
    let matters = |text: &String| text.contains("!Send for") || text.contains("!Sync for");
    found.extend(automatic.into_iter().filter(matters));
    found
}

/// The texts between two marks, without tags and in one line each.
fn between(page: &str, begin: &str, end: &str) -> Vec<String> {
    let rest = page.split(begin).skip(1);
    rest.filter_map(|rest| rest.split_once(end)).map(|(inside, _)| plain(inside)).collect()
}

fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut is_button = false;
    for (index, part) in html.split('<').enumerate() {
        let (tag, rest) =
            if index == 0 { ("", part) } else { part.split_once('>').unwrap_or(("", "")) };
        match tag.split(' ').next().unwrap_or_default() {
            // The text of a button, such as `Show 12 fields`, is not a part of the item.
            "summary" => is_button = true,
            "/summary" => is_button = false,
            "div" | "/div" | "br" => text.push(' '),
            _ => {}
        }
        if !is_button {
            text.push_str(rest);
        }
    }
    for (entity, character) in ENTITIES {
        text = text.replace(entity, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `&amp;` is last, because its result may look like another entity.
const ENTITIES: [(&str, &str); 6] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&nbsp;", " "),
    ("&amp;", "&"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gives_the_item_its_methods_and_traits() {
        let page = "<h1>Struct A</h1><pre class=\"rust item-decl\"><code>pub struct A&lt;T&gt; {\n\
            <details><summary class=\"hideme\"><span>Show 2 fields</span></summary>    pub b: T,\n}\
            </details></code></pre><h2 id=\"x\"></h2><div id=\"implementations-list\">\
            <h3 class=\"code-header\">impl A</h3><h4 class=\"code-header\">pub fn <a href=\"#\">f</a>()\
            <div class=\"where\">where T: B,</div></h4></div><h2 ></h2>\
            <div id=\"trait-implementations-list\"><h3 class=\"code-header\">impl Clone for A</h3>\
            <h4 class=\"code-header\">fn clone()</h4></div><h2 ></h2>\
            <div id=\"synthetic-implementations-list\"><h3 class=\"code-header\">impl !Send for A</h3>\
            <h3 class=\"code-header\">impl Unpin for A</h3></div>\
            <h2 ></h2><div id=\"blanket-implementations-list\"><h3 class=\"code-header\">impl Any</h3>";
        assert_eq!(
            declarations(page),
            [
                "pub struct A<T> { pub b: T, }",
                "pub fn f() where T: B,",
                "impl Clone for A",
                "impl !Send for A"
            ]
        );
    }
}
