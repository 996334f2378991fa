//! Owns: words and attributes that have no place in this code base, and the excuse for a `sleep`.
//! Does not own: revisions, layering and sizes, which have rules of their own.

use super::source::{Finding, Source};

/// What a line must end with to sleep in a test: only a stand-in for slow work, under paused time,
/// may do that. Waiting for something to happen is never an excuse.
const SLEEP_EXCUSE: &str = "// tidy: sleep is ";

/// Finds re-exports of everything: what is public is listed, one path an item.
pub(crate) fn glob_exports(source: &Source) -> Vec<Finding> {
    source
        .find(&["use"])
        .filter(|position| is_public(source, *position))
        .filter(|position| {
            source.tokens[*position..]
                .iter()
                .take_while(|token| token.text != ";")
                .any(|token| token.text == "*")
        })
        .map(|position| source.tokens[position].line)
        .map(|line| source.finding(line, "`pub use …::*` hides what is public: list the items"))
        .collect()
}

/// Finds `todo!` and `unimplemented!`.
pub(crate) fn unfinished(source: &Source) -> Vec<Finding> {
    ["todo", "unimplemented"]
        .iter()
        .flat_map(|name| {
            source.find(&[name, "!"]).map(move |position| (name, position)).collect::<Vec<_>>()
        })
        .map(|(name, position)| {
            source.finding(source.tokens[position].line, format!("`{name}!` is unfinished work"))
        })
        .collect()
}

/// Finds channels that grow without end.
pub(crate) fn endless_queues(source: &Source) -> Vec<Finding> {
    // The bare limits of `bench/` show what the machine allows; they promise nothing.
    if source.path.starts_with("bench/") {
        return Vec::new();
    }
    const ENDLESS: &[&[&str]] = &[
        &["unbounded_channel"],
        &["UnboundedSender"],
        &["UnboundedReceiver"],
        &["unbounded", "("],
        // The standard library's; tokio's takes its limit as an argument.
        &["mpsc", "::", "channel", "(", ")"],
    ];
    ENDLESS
        .iter()
        .flat_map(|words| source.find(words))
        .map(|position| source.tokens[position].line)
        .filter(|line| !source.is_test_line(*line))
        .map(|line| source.finding(line, "an unbounded channel: every queue has a limit"))
        .collect()
}

/// Finds the serde attributes that buffer a whole message or guess by its shape.
pub(crate) fn serde_guesses(source: &Source) -> Vec<Finding> {
    source
        .find(&["serde", "("])
        .flat_map(|position| source.inside(position + 1))
        .filter(|token| token.text == "untagged" || token.text == "flatten")
        // A test may show that a user's type with it works.
        .filter(|token| !source.is_test_line(token.line))
        .map(|token| {
            source.finding(
                token.line,
                format!("`serde({})` buffers and guesses: decode by name instead", token.text),
            )
        })
        .collect()
}

/// Finds lints that are silenced for good, and expectations without a reason. What a macro writes
/// into other people's code may allow: there an expectation would often be wrong.
pub(crate) fn silenced_lints(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (position, token) in source.tokens.iter().enumerate() {
        let names_lints = matches!(token.text.as_str(), "allow" | "expect");
        if !names_lints || source.word(position + 1) != Some("(") {
            continue;
        }
        if !is_attribute(source, position) || is_quoted(source, position) {
            continue;
        }
        let sentence = match token.text.as_str() {
            "allow" => "`allow` outlives its cause: use `expect` with a reason",
            "expect" if !has_reason(source, position + 1) => "this `expect` gives no reason",
            _ => continue,
        };
        findings.push(source.finding(token.line, sentence));
    }
    findings
}

/// Finds tests that are switched off.
pub(crate) fn ignored_tests(source: &Source) -> Vec<Finding> {
    source
        .find(&["#", "[", "ignore"])
        .map(|position| source.finding(source.tokens[position].line, "an ignored test cannot fail"))
        .collect()
}

/// Finds tests that sleep.
pub(crate) fn sleeping_tests(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().collect();
    let excused = |line: usize| {
        lines
            .get(line - 1)
            .and_then(|text| text.split_once(SLEEP_EXCUSE))
            .is_some_and(|(_, reason)| !reason.trim().is_empty())
    };
    ["sleep", "sleep_until", "sleep_ms"]
        .iter()
        .flat_map(|name| source.find(&[name, "("]).collect::<Vec<_>>())
        .filter(|position| {
            position.checked_sub(1).and_then(|before| source.word(before)) != Some("fn")
        })
        .map(|position| source.tokens[position].line)
        .filter(|line| source.is_test_line(*line) && !excused(*line))
        .map(|line| source.finding(line, "a test that sleeps: wait for a gate or a channel"))
        .collect()
}

fn is_public(source: &Source, position: usize) -> bool {
    let before =
        |distance: usize| position.checked_sub(distance).and_then(|position| source.word(position));
    before(1) == Some("pub") || (before(1) == Some(")") && before(4) == Some("pub"))
}

/// Whether the word stands first in an attribute, or somewhere in a `cfg_attr`.
fn is_attribute(source: &Source, position: usize) -> bool {
    let before =
        |distance: usize| position.checked_sub(distance).and_then(|position| source.word(position));
    if before(1) == Some("[") && matches!(before(2), Some("#" | "!")) {
        return true;
    }
    is_inside(source, position, &["cfg_attr", "("])
}

fn is_quoted(source: &Source, position: usize) -> bool {
    ["quote", "quote_spanned", "parse_quote"].iter().any(|name| {
        ["{", "(", "["].iter().any(|open| is_inside(source, position, &[name, "!", open]))
    })
}

/// Whether the word stands in a group that these words open.
fn is_inside(source: &Source, position: usize, opening: &[&str]) -> bool {
    source.find(opening).any(|start| {
        let open = start + opening.len() - 1;
        (open + 1..=open + source.inside(open).len()).contains(&position)
    })
}

fn has_reason(source: &Source, open: usize) -> bool {
    source.inside(open).windows(2).any(|pair| pair[0].text == "reason" && pair[1].text == "=")
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
    fn work_is_finished() {
        assert_eq!(count(unfinished, CODE, "// todo!()\nfn f() { g(\"todo!()\") }"), 0);
        assert_eq!(
            count(unfinished, CODE, "fn f() { todo!() }\nfn g() { unimplemented!(\"x\") }"),
            2
        );
    }

    #[test]
    fn channels_are_bounded() {
        let bounded = "fn f() { mpsc::channel(8); oneshot::channel(); }";
        assert_eq!(count(endless_queues, CODE, bounded), 0);
        assert_eq!(count(endless_queues, CODE, "fn f() { mpsc::unbounded_channel(); }"), 1);
        assert_eq!(count(endless_queues, CODE, "fn f() { std::sync::mpsc::channel(); }"), 1);
        assert_eq!(count(endless_queues, "crates/a/tests/b.rs", "fn f() { mpsc::channel(); }"), 0);
        assert_eq!(count(endless_queues, "bench/a/src/b.rs", "fn f() { unbounded_channel(); }"), 0);
    }

    #[test]
    fn serde_neither_buffers_nor_guesses() {
        assert_eq!(count(serde_guesses, CODE, "#[serde(rename = \"flatten\")]\nstruct A;"), 0);
        assert_eq!(count(serde_guesses, "crates/a/tests/b.rs", "#[serde(untagged)]\nenum A {}"), 0);
        assert_eq!(count(serde_guesses, CODE, "#[serde(untagged)]\nenum A {}"), 1);
        assert_eq!(count(serde_guesses, CODE, "struct A { #[serde(default, flatten)] b: C }"), 1);
    }

    #[test]
    fn lints_are_expected_with_a_reason() {
        let good =
            "#[expect(dead_code, reason = \"why\")]\nfn allow(a: A) { a.expect(\"x\"); allow(b) }";
        assert_eq!(count(silenced_lints, CODE, good), 0);
        let generated = "fn f() { quote! { #[allow(deprecated)] const _: () = {}; } }";
        assert_eq!(count(silenced_lints, CODE, generated), 0);
        assert_eq!(count(silenced_lints, CODE, "#[allow(dead_code)]\nfn f() {}"), 1);
        assert_eq!(count(silenced_lints, CODE, "#![allow(dead_code)]"), 1);
        assert_eq!(
            count(silenced_lints, CODE, "#[cfg_attr(test, allow(dead_code))]\nfn f() {}"),
            1
        );
        assert_eq!(count(silenced_lints, CODE, "#[expect(dead_code)]\nfn f() {}"), 1);
    }

    #[test]
    fn tests_are_never_ignored() {
        assert_eq!(count(ignored_tests, CODE, "#[test]\nfn ignore() {}"), 0);
        assert_eq!(count(ignored_tests, CODE, "#[test]\n#[ignore = \"slow\"]\nfn f() {}"), 1);
        assert_eq!(count(ignored_tests, CODE, "#[test]\n#[ignore]\nfn f() {}"), 1);
    }

    #[test]
    fn tests_do_not_sleep() {
        let test = "crates/a/tests/it.rs";
        let sleeping = "fn f() { sleep(x); }";
        assert_eq!(count(sleeping_tests, CODE, sleeping), 0);
        assert_eq!(count(sleeping_tests, test, sleeping), 1);
        assert_eq!(
            count(sleeping_tests, CODE, "#[cfg(test)]\nmod tests { fn f() { time::sleep(x) } }"),
            1
        );
        assert_eq!(count(sleeping_tests, test, "fn sleep() {}\nfn f() { call(\"sleep\") }"), 0);
    }

    #[test]
    fn a_stand_in_for_slow_work_may_sleep_if_it_says_so() {
        let test = "crates/a/tests/it.rs";
        let excused =
            "fn f() {\n    sleep(x); // tidy: sleep is the tool's slow work, time is paused\n}";
        assert_eq!(count(sleeping_tests, test, excused), 0);
        assert_eq!(count(sleeping_tests, test, "fn f() {\n    sleep(x); // tidy: sleep is \n}"), 1);
    }
}
