//! Attributes and calls that are not allowed, where clippy has no lint for them.

use super::source::{Finding, Source};

/// A line with this comment may sleep in a test: it stands in for slow work under paused time.
const SLEEP_EXCUSE: &str = "// tidy: sleep is ";

/// Finds glob re-exports: public items are listed, one path for each.
pub(crate) fn glob_exports(source: &Source) -> Vec<Finding> {
    let is_public = |position: usize| {
        let before =
            |distance: usize| position.checked_sub(distance).and_then(|at| source.word(at));
        before(1) == Some("pub") || (before(1) == Some(")") && before(4) == Some("pub"))
    };
    let exports = source.find(&["use"]).filter(|position| is_public(*position));
    let globs = exports.filter(|position| {
        let mut tree = source.tokens[*position..].iter().take_while(|token| token.text != ";");
        tree.any(|token| token.text == "*")
    });
    let sentence = "`pub use …::*` hides the public names: list the items";
    globs.map(|position| source.finding(source.tokens[position].line, sentence)).collect()
}

/// Finds the serde attributes that buffer a whole message or guess by its shape. A test may show
/// that a user's type with them works.
pub(crate) fn serde_guesses(source: &Source) -> Vec<Finding> {
    let words = source.find(&["serde", "("]).flat_map(|position| source.inside(position + 1));
    let guesses = words.filter(|token| token.text == "untagged" || token.text == "flatten");
    let guesses = guesses.filter(|token| !source.is_test_line(token.line));
    let sentence = |word: &str| format!("`serde({word})` buffers and guesses: decode by name");
    guesses.map(|token| source.finding(token.line, sentence(&token.text))).collect()
}

/// Finds tests that are switched off.
pub(crate) fn ignored_tests(source: &Source) -> Vec<Finding> {
    let ignored = source.find(&["#", "[", "ignore"]);
    ignored
        .map(|position| source.finding(source.tokens[position].line, "an ignored test cannot fail"))
        .collect()
}

/// Finds tests that sleep. Clippy cannot tell them from code that has to.
pub(crate) fn sleeping_tests(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().collect();
    let is_excused = |line: usize| {
        let reason = lines.get(line - 1).and_then(|text| text.split_once(SLEEP_EXCUSE));
        reason.is_some_and(|(_, reason)| !reason.trim().is_empty())
    };
    let is_declared = |position: usize| position > 0 && source.word(position - 1) == Some("fn");
    let calls = ["sleep", "sleep_until", "sleep_ms"]
        .into_iter()
        .flat_map(|name| source.find(&[name, "("]).collect::<Vec<_>>());
    let lines = calls
        .filter(|position| !is_declared(*position))
        .map(|position| source.tokens[position].line)
        .filter(|line| source.is_test_line(*line) && !is_excused(*line));
    lines
        .map(|line| source.finding(line, "a test that sleeps: wait for a gate or a channel"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "crates/a/src/b.rs";

    fn count(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> usize {
        rule(&Source::parse(path, text).unwrap()).len()
    }

    #[test]
    fn exports_are_listed() {
        assert_eq!(count(glob_exports, CODE, "pub use a::{b, c};\nuse super::*;"), 0);
        assert_eq!(count(glob_exports, CODE, "pub use a::*;"), 1);
        assert_eq!(count(glob_exports, CODE, "pub(crate) use a::{b::*, c};"), 1);
    }

    #[test]
    fn serde_neither_buffers_nor_guesses() {
        assert_eq!(count(serde_guesses, CODE, "#[serde(rename = \"flatten\")]\nstruct A;"), 0);
        assert_eq!(count(serde_guesses, "crates/a/tests/b.rs", "#[serde(untagged)]\nenum A {}"), 0);
        assert_eq!(count(serde_guesses, CODE, "#[serde(untagged)]\nenum A {}"), 1);
        assert_eq!(count(serde_guesses, CODE, "struct A { #[serde(default, flatten)] b: C }"), 1);
    }

    #[test]
    fn tests_are_never_ignored() {
        assert_eq!(count(ignored_tests, CODE, "#[test]\nfn ignore() {}"), 0);
        assert_eq!(count(ignored_tests, CODE, "#[test]\n#[ignore = \"slow\"]\nfn f() {}"), 1);
        assert_eq!(count(ignored_tests, CODE, "#[test]\n#[ignore]\nfn f() {}"), 1);
    }

    #[test]
    fn tests_do_not_sleep_unless_they_stand_in_for_slow_work() {
        let test = "crates/a/tests/it.rs";
        let sleeping = "fn f() { sleep(x); }";
        assert_eq!(count(sleeping_tests, CODE, sleeping), 0);
        assert_eq!(count(sleeping_tests, test, sleeping), 1);
        let inline = "#[cfg(test)]\nmod tests { fn f() { time::sleep(x) } }";
        assert_eq!(count(sleeping_tests, CODE, inline), 1);
        assert_eq!(count(sleeping_tests, test, "fn sleep() {}\nfn f() { call(\"sleep\") }"), 0);
        let excused =
            "fn f() {\n    sleep(x); // tidy: sleep is the tool's slow work, time is paused\n}";
        assert_eq!(count(sleeping_tests, test, excused), 0);
        assert_eq!(count(sleeping_tests, test, "fn f() {\n    sleep(x); // tidy: sleep is \n}"), 1);
    }
}
