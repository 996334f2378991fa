//! Finds `// req:` comments and the tests below them.

use std::collections::{BTreeMap, BTreeSet};

const MARK: &str = "// req:";

/// The tests of each id, and comments that are above no test.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    /// A test is `path::name`.
    pub(crate) tests: BTreeMap<String, BTreeSet<String>>,
    /// Each a sentence with its place.
    pub(crate) misplaced: Vec<String>,
}

impl Proofs {
    /// The tests that prove a requirement.
    pub(crate) fn of(&self, id: &str) -> impl Iterator<Item = &str> {
        self.tests.get(id).into_iter().flatten().map(String::as_str)
    }

    /// Reads one file.
    pub(crate) fn collect(&mut self, path: &str, text: &str) {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(ids) = line.strip_prefix(MARK) else { continue };
            match test_below(&lines, index) {
                Some(name) => {
                    for id in ids.split(',').map(str::trim).filter(|id| !id.is_empty()) {
                        let tests = self.tests.entry(id.to_owned()).or_default();
                        tests.insert(format!("{path}::{name}"));
                    }
                }
                None => self.misplaced.push(format!(
                    "{path}:{}: a `// req:` comment belongs directly above a test",
                    index + 1
                )),
            }
        }
    }
}

/// Returns the name of the test below a comment.
fn test_below<'a>(lines: &[&'a str], comment: usize) -> Option<&'a str> {
    let mut marked = false;
    let mut below = lines[comment + 1..].iter();
    let item = loop {
        let line = *below.next()?;
        if line.starts_with("#[") {
            marked |= is_test(line);
            // An attribute may go on over several lines.
            let mut last = line;
            while !last.ends_with(']') {
                last = below.next()?;
            }
        } else if !line.starts_with("//") {
            break line;
        }
    };
    match item.split_once("fn ") {
        Some((before, rest)) if before.split_whitespace().all(is_qualifier) => {
            let name = rest.split(['(', '<']).next()?;
            (marked || lines.iter().any(|line| lists(line, name))).then_some(name)
        }
        // An entry of a macro that makes a test of each name.
        _ => {
            let name = item.split([',', ':']).next()?;
            (is_name(name) && lists(item, name)).then_some(name)
        }
    }
}

/// `#[test]`, `#[tokio::test]`, `#[tokio::test(…)]`.
fn is_test(attribute: &str) -> bool {
    let path = attribute.trim_start_matches("#[").split(['(', ']']).next().unwrap_or_default();
    path.rsplit("::").next() == Some("test")
}

fn is_qualifier(word: &str) -> bool {
    matches!(word, "pub" | "pub(crate)" | "pub(super)" | "async" | "const")
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether a line of a macro's list has this name first.
fn lists(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(text: &str) -> Proofs {
        let mut proofs = Proofs::default();
        proofs.collect("a/b.rs", text);
        proofs
    }

    fn of(text: &str, id: &str) -> Vec<String> {
        collected(text).of(id).map(str::to_owned).collect()
    }

    #[test]
    fn a_comment_belongs_to_the_test_below_it() {
        let text = "
            // req: x:one, x:two
            // req: x:three
            /// Says more.
            #[tokio::test(
                start_paused = true
            )]
            async fn it_works() {}
            // req: x:one
            #[test]
            #[cfg(unix)]
            fn it_works_again() {}";
        assert_eq!(of(text, "x:one"), ["a/b.rs::it_works", "a/b.rs::it_works_again"]);
        assert_eq!(of(text, "x:two"), ["a/b.rs::it_works"]);
        assert_eq!(of(text, "x:three"), ["a/b.rs::it_works"]);
        assert_eq!(of(text, "x:four").len(), 0);
    }

    #[test]
    fn an_entry_of_a_list_is_a_test_and_so_is_its_function() {
        let listed = "contract! { all on [memory]:\n    // req: x:one\n    it_works,\n}\n";
        assert_eq!(of(listed, "x:one"), ["a/b.rs::it_works"]);
        let body =
            "contract! { all:\n    it_works,\n}\n// req: x:one\nasync fn it_works(rig: &Rig) {}";
        assert_eq!(of(body, "x:one"), ["a/b.rs::it_works"]);
    }

    #[test]
    fn a_comment_above_no_test_is_reported() {
        for text in [
            "// req: x:one\nfn helper() {}",
            "// req: x:one\nstruct S;",
            "// req: x:one\n\n#[test]\nfn apart() {}",
            "// req: x:one\n#[cfg(test)]\nfn not_a_test() {}",
            "// req: x:one",
        ] {
            let proofs = collected(text);
            assert_eq!((proofs.tests.len(), proofs.misplaced.len()), (0, 1), "{text}");
            assert!(proofs.misplaced[0].starts_with("a/b.rs:1: "));
        }
    }
}
