//! Rules with a number: each counts something in the whole checkout and fails above its limit.
//!
//! A limit is a ratchet. It is lowered when the number falls and never raised; the goal says where
//! it ends.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Finding, Source};

/// A rule, the number that it allows today, and the number that it is to reach.
struct Limit {
    name: &'static str,
    allowed: usize,
    goal: usize,
    count: fn(&Checkout<'_>) -> Count,
}

const fn limit(
    name: &'static str,
    allowed: usize,
    goal: usize,
    count: fn(&Checkout<'_>) -> Count,
) -> Limit {
    Limit { name, allowed, goal, count }
}

/// Lower the second column when the printed number is lower.
const LIMITS: &[Limit] = &[
    limit("entries in a directory of src", 15, 15, directory_entries),
    limit("type names declared in more than one file of a crate", 0, 0, repeated_types),
    limit("uses of `pub(in …)`", 0, 0, restricted_paths),
    limit("names at the root of turnbuckle, modules not counted", 30, 30, root_names),
    limit("files of turnbuckle that look at the era", 3, 4, era_files),
    limit("unusual words (whoever, nobody, anew, meanwhile …)", 727, 0, unusual_words),
    limit("relative clauses used as nouns (what is, what was)", 681, 100, noun_clauses),
    limit("module headers of the form Owns / Does not own", 324, 0, ownership_headers),
];

/// Files that are compiled instead of another one, with the same names: `windows.rs` for `unix.rs`.
const ALTERNATIVES: &[&str] = &["/windows.rs", "/unprotected.rs"];

/// Type names that the module's name completes.
const COMMON_TYPES: &str = "Args Body Builder Config Entry Error ErrorKind Future Guard \
    Inner InputNext InputRequest IntoIter Iter Kind Next Notification Options Repr Request \
    Settings State Visitor";

/// Words that technical English does without.
const UNUSUAL_WORDS: &str = "anew herein hereby meanwhile nobody somebody thereby therein \
    thereof whatsoever whence whereupon whither whoever whomever";

const NOUN_CLAUSES: &[&str] = &["what is", "what was"];

/// Everything that a rule may look at.
pub(crate) struct Checkout<'a> {
    pub(crate) sources: &'a [Source],
    /// Pages of Markdown that are not generated: path and text.
    pub(crate) pages: &'a [(String, String)],
}

/// A number and the places that make it up.
#[derive(Debug)]
struct Count {
    number: usize,
    places: Vec<Finding>,
}

impl Count {
    fn of(places: Vec<Finding>) -> Self {
        Self { number: places.len(), places }
    }
}

/// Prints every number and returns the places of those above their limits.
pub(crate) fn check(checkout: &Checkout<'_>) -> Vec<Finding> {
    LIMITS.iter().flat_map(|limit| check_one(limit, checkout)).collect()
}

fn check_one(limit: &Limit, checkout: &Checkout<'_>) -> Vec<Finding> {
    let Limit { name, allowed, goal, count } = limit;
    let Count { number, places } = count(checkout);
    println!("tidy: {name}: {number} (limit {allowed}, goal {goal})");
    if number <= *allowed {
        return Vec::new();
    }
    let summary = format!("{name}: {number}, more than the limit of {allowed}; see the places");
    let head = Finding { path: file!().to_owned(), line: 1, sentence: summary };
    std::iter::once(head).chain(places).collect()
}

/// The largest number of entries in one directory of a `src`.
fn directory_entries(checkout: &Checkout<'_>) -> Count {
    let mut directories: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in checkout.sources {
        // Every example is a program of its own.
        if source.path.starts_with("examples/") {
            continue;
        }
        let Some(start) = source.path.find("src/") else { continue };
        let mut path = source.path.as_str();
        while let Some((directory, entry)) = path.rsplit_once('/')
            && directory.len() >= start + "src".len()
        {
            directories.entry(directory).or_default().insert(entry);
            path = directory;
        }
    }
    let number = directories.values().map(BTreeSet::len).max().unwrap_or(0);
    let largest = directories.iter().filter(|(_, entries)| entries.len() == number);
    let finding = |directory: &&str| Finding {
        path: (*directory).to_owned(),
        line: 1,
        sentence: format!("the directory has {number} entries: group them"),
    };
    Count { number, places: largest.map(|(directory, _)| finding(directory)).collect() }
}

/// Names of types that several files of one crate declare.
fn repeated_types(checkout: &Checkout<'_>) -> Count {
    let mut declared: BTreeMap<(&str, String), Vec<Finding>> = BTreeMap::new();
    for source in checkout.sources.iter().filter(|source| source.is_crate_source()) {
        let Some((package, _)) = source.path.split_once("/src/") else { continue };
        if ALTERNATIVES.iter().any(|file| source.path.ends_with(file)) {
            continue;
        }
        let mut names = BTreeMap::new();
        type_names(&source.syntax.items, source, &mut names);
        for (name, line) in names {
            let sentence = format!("`{name}` is the name of another type of the crate, too");
            declared.entry((package, name)).or_default().push(source.finding(line, sentence));
        }
    }
    declared.retain(|(_, name), files| {
        files.len() > 1 && !COMMON_TYPES.split(' ').any(|common| common == name)
    });
    let number = declared.len();
    Count { number, places: declared.into_values().flatten().collect() }
}

/// Types that are declared in modules, those of tests left out.
fn type_names(items: &[syn::Item], source: &Source, names: &mut BTreeMap<String, usize>) {
    for item in items {
        let name = match item {
            syn::Item::Struct(item) => &item.ident,
            syn::Item::Enum(item) => &item.ident,
            syn::Item::Union(item) => &item.ident,
            syn::Item::Trait(item) => &item.ident,
            syn::Item::Type(item) => &item.ident,
            syn::Item::Mod(module) => {
                let inside = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                type_names(inside, source, names);
                continue;
            }
            _ => continue,
        };
        let line = name.span().start().line;
        if !source.is_test_line(line) {
            names.entry(name.to_string()).or_insert(line);
        }
    }
}

fn restricted_paths(checkout: &Checkout<'_>) -> Count {
    let places = checkout.sources.iter().flat_map(|source| {
        let found = source.find(&["pub", "(", "in"]);
        let sentence = "`pub(in …)`: use `pub(super)` or `pub(crate)`";
        found.map(move |position| source.finding(source.tokens[position].line, sentence))
    });
    Count::of(places.collect())
}

/// Public names at the root of the SDK. Modules and hidden items do not count.
fn root_names(checkout: &Checkout<'_>) -> Count {
    let root = checkout.sources.iter().find(|source| source.path == "crates/turnbuckle/src/lib.rs");
    let Some(root) = root else { return Count::of(Vec::new()) };
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for item in &root.syntax.items {
        let (attributes, visibility, found) = match item {
            syn::Item::Use(item) => (&item.attrs, &item.vis, super::layers::use_paths(&item.tree)),
            syn::Item::Struct(item) => (&item.attrs, &item.vis, one(&item.ident)),
            syn::Item::Enum(item) => (&item.attrs, &item.vis, one(&item.ident)),
            syn::Item::Trait(item) => (&item.attrs, &item.vis, one(&item.ident)),
            syn::Item::Type(item) => (&item.attrs, &item.vis, one(&item.ident)),
            syn::Item::Fn(item) => (&item.attrs, &item.vis, one(&item.sig.ident)),
            syn::Item::Const(item) => (&item.attrs, &item.vis, one(&item.ident)),
            _ => continue,
        };
        if matches!(visibility, syn::Visibility::Public(_)) && !is_hidden(attributes) {
            let line = syn::spanned::Spanned::span(visibility).start().line;
            // A crate that is re-exported whole is a module to its readers.
            let names_of = found.into_iter().filter(|path| !is_crate(path));
            names.extend(names_of.filter_map(|path| Some((path.last()?.clone(), line))));
        }
    }
    let finding = |(name, line)| root.finding(line, format!("`{name}` is at the crate's root"));
    Count::of(names.into_iter().map(finding).collect())
}

fn one(name: &syn::Ident) -> Vec<Vec<String>> {
    vec![vec!["crate".to_owned(), name.to_string()]]
}

/// `turnbuckle_types` or, renamed, `turnbuckle_types as types`.
fn is_crate(path: &[String]) -> bool {
    path.first().is_some_and(|first| first.starts_with("turnbuckle_"))
        && path.last().is_some_and(|last| last.starts_with(char::is_lowercase))
        && path.len() <= 2
        && path[0].trim_start_matches("turnbuckle_") == path[path.len() - 1]
}

fn is_hidden(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        matches!(&attribute.meta, syn::Meta::List(list)
            if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
    })
}

/// Files that decide by the era of the protocol instead of by data that carries the decision.
fn era_files(checkout: &Checkout<'_>) -> Count {
    let sdk = checkout.sources.iter().filter(|source| {
        source.path.starts_with("crates/turnbuckle/src/") && !source.is_test_file()
    });
    let places = sdk.filter_map(|source| {
        let named = source.find(&["Era", "::"]).chain(source.find(&[".", "era", "("]));
        let mut lines = named.map(|position| source.tokens[position].line);
        let line = lines.find(|line| !source.is_test_line(*line))?;
        Some(source.finding(line, "looks at the era of the protocol"))
    });
    Count::of(places.collect())
}

fn unusual_words(checkout: &Checkout<'_>) -> Count {
    phrases(checkout, &UNUSUAL_WORDS.split(' ').collect::<Vec<_>>())
}

fn noun_clauses(checkout: &Checkout<'_>) -> Count {
    phrases(checkout, NOUN_CLAUSES)
}

fn ownership_headers(checkout: &Checkout<'_>) -> Count {
    let headers = checkout.sources.iter().filter(|source| {
        let header = source.text.lines().take_while(|line| line.starts_with("//!"));
        let header = header.flat_map(str::split_whitespace).filter(|word| *word != "//!");
        let header: Vec<&str> = header.collect();
        header.first().is_some_and(|word| word.starts_with("Owns"))
            || header.join(" ").contains("Does not own")
    });
    let sentence = "say in one or two sentences what the module does";
    Count::of(headers.map(|source| source.finding(1, sentence)).collect())
}

/// Places of words or of words in a row, in code, comments and pages.
fn phrases(checkout: &Checkout<'_>, phrases: &[&str]) -> Count {
    let sources = checkout.sources.iter().filter(|source| !source.path.ends_with(file!()));
    let sources = sources.map(|source| (source.path.as_str(), source.text.as_str()));
    let pages = checkout.pages.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let mut places = Vec::new();
    for (path, text) in sources.chain(pages) {
        for (index, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            for phrase in phrases {
                let found = line.match_indices(phrase).filter(|(start, _)| {
                    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
                    !line[..*start].ends_with(is_letter)
                        && !line[start + phrase.len()..].starts_with(is_letter)
                });
                places.extend(found.map(|_| Finding {
                    path: path.to_owned(),
                    line: index + 1,
                    sentence: format!("`{phrase}`: use plain technical English"),
                }));
            }
        }
    }
    Count::of(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).unwrap()
    }

    fn count(rule: fn(&Checkout<'_>) -> Count, sources: &[Source]) -> usize {
        rule(&Checkout { sources, pages: &[] }).number
    }

    #[test]
    fn a_number_above_its_limit_is_a_finding_with_its_places() {
        let sources = [source("crates/a/src/b.rs", "pub(in crate::x) fn f() {}")];
        let checkout = Checkout { sources: &sources, pages: &[] };
        assert_eq!(check_one(&limit("x", 1, 0, restricted_paths), &checkout).len(), 0);
        let findings = check_one(&limit("x", 0, 0, restricted_paths), &checkout);
        assert_eq!(findings[0].sentence, "x: 1, more than the limit of 0; see the places");
        assert_eq!(findings[1].path, "crates/a/src/b.rs");
    }

    #[test]
    fn a_directory_counts_its_files_and_directories() {
        let paths = ["src/lib.rs", "src/a/mod.rs", "src/a/b.rs", "src/a/c/mod.rs", "src/a/c/d.rs"];
        let sources = paths.map(|path| source(&format!("crates/x/{path}"), ""));
        assert_eq!(count(directory_entries, &sources), 3);
        assert_eq!(count(directory_entries, &[source("crates/x/tests/a.rs", "")]), 0);
    }

    #[test]
    fn a_type_name_belongs_to_one_file_of_a_crate() {
        let file = |path: &str, text: &str| source(&format!("crates/{path}.rs"), text);
        let twice = [file("a/src/x", "struct Same;"), file("a/src/y", "mod z { enum Same {} }")];
        assert_eq!(count(repeated_types, &twice), 1);
        let fine = [
            file("a/src/x", "struct Same; struct Error; #[cfg(unix)] struct Two;"),
            file("b/src/y", "struct Same;"),
            file("a/src/z", "type Error = ();\n#[cfg(test)]\nmod tests { struct Same; }"),
            file("a/tests/z", "struct Same;"),
        ];
        assert_eq!(count(repeated_types, &fine), 0);
    }

    #[test]
    fn the_root_counts_public_names_once() {
        let text = "pub use a::{B, c::D as E}; #[cfg(x)] pub use f::B; use g::H; pub mod i;\n\
                    pub fn j() {} #[doc(hidden)] pub use k::L; pub use turnbuckle_types as types;\n\
                    pub use turnbuckle_macros::tool;";
        assert_eq!(count(root_names, &[source("crates/turnbuckle/src/lib.rs", text)]), 4);
    }

    #[test]
    fn the_era_is_looked_at_outside_of_tests() {
        let file = |name: &str, text: &str| source(&format!("crates/turnbuckle/src/{name}"), text);
        let sources = [
            file("a.rs", "fn f() { x.era() == Era::Modern }"),
            file("b.rs", "fn f(era: Era) { g(era) }"),
            file("c.rs", "#[test]\nfn f() { g(Era::Modern) }"),
            file("tests.rs", "fn f() { g(Era::Modern) }"),
        ];
        assert_eq!(count(era_files, &sources), 1);
    }

    #[test]
    fn words_are_counted_as_whole_words() {
        let text = "//! Owns: a.\n//! Does not\n//! own: b.\n// Nobody, whoever.\nfn nobody_hears() { f(\"what is\") }";
        let sources = [source("crates/a/src/b.rs", text)];
        assert_eq!(count(unusual_words, &sources), 2);
        assert_eq!(count(noun_clauses, &sources), 1);
        assert_eq!(count(ownership_headers, &sources), 1);
        let pages = [("README.md".to_owned(), "Meanwhile.\nWhat\nis".to_owned())];
        let checkout = Checkout { sources: &[], pages: &pages };
        assert_eq!((unusual_words(&checkout).number, noun_clauses(&checkout).number), (1, 0));
    }
}
