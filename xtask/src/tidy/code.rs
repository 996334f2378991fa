//! Rules about one Rust file for which clippy has no lint.

use super::source::{Finding, Source, Token};

const FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 90;

/// A line with this comment may sleep in a test: it stands in for slow work under paused time.
const SLEEP_EXCUSE: &str = "// tidy: sleep is ";

/// Finds files and functions that are too long, tests left out.
pub(crate) fn sizes(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = source.text.lines().count();
    if lines > FILE_LINES && !source.is_test_file() {
        let sentence = format!("the file has {lines} lines, more than {FILE_LINES}");
        findings.push(source.finding(1, sentence));
    }
    let is_declared = |position: &usize| source.word(position + 1) != Some("(");
    for position in source.find(&["fn"]).filter(is_declared) {
        let line = source.tokens[position].line;
        let Some(open) = source.body(position) else { continue };
        let lines = source.end_line(open) + 1 - line;
        if lines > FUNCTION_LINES && !source.is_test_line(line) {
            let name = source.word(position + 1).unwrap_or_default();
            let sentence =
                format!("function `{name}` has {lines} lines, more than {FUNCTION_LINES}");
            findings.push(source.finding(line, sentence));
        }
    }
    findings
}

/// Finds glob re-exports.
pub(crate) fn glob_exports(source: &Source) -> Vec<Finding> {
    let exports = source.find(&["use"]).filter(|position| {
        let before = |distance| position.checked_sub(distance).and_then(|at| source.word(at));
        before(1) == Some("pub") || (before(1) == Some(")") && before(4) == Some("pub"))
    });
    let globs = exports.filter(|position| {
        let mut tree = source.tokens[*position..].iter().take_while(|token| token.text != ";");
        tree.any(|token| token.text == "*")
    });
    let sentence = "`pub use …::*` hides the public names: list the items";
    globs.map(|position| source.finding(source.tokens[position].line, sentence)).collect()
}

/// Finds serde attributes that buffer a message or guess by its shape. Tests may use them.
pub(crate) fn serde_guesses(source: &Source) -> Vec<Finding> {
    let words = source.find(&["serde", "("]).flat_map(|position| source.inside(position + 1));
    let is_guess = |token: &&Token| ["untagged", "flatten"].contains(&token.text.as_str());
    let guesses = words.filter(is_guess).filter(|token| !source.is_test_line(token.line));
    let sentence = |word: &str| format!("`serde({word})` buffers and guesses: decode by name");
    guesses.map(|token| source.finding(token.line, sentence(&token.text))).collect()
}

/// Finds tests that are switched off.
pub(crate) fn ignored_tests(source: &Source) -> Vec<Finding> {
    let ignored = source.find(&["#", "[", "ignore"]).map(|position| source.tokens[position].line);
    ignored.map(|line| source.finding(line, "an ignored test cannot fail")).collect()
}

/// Finds tests that sleep.
pub(crate) fn sleeping_tests(source: &Source) -> Vec<Finding> {
    let is_excused = |line: usize| {
        let text = source.text.lines().nth(line - 1).unwrap_or_default();
        text.split_once(SLEEP_EXCUSE).is_some_and(|(_, reason)| !reason.trim().is_empty())
    };
    let calls = source.find(&["("]).filter_map(|open| {
        let name = open.checked_sub(1)?;
        let is_sleep = ["sleep", "sleep_until", "sleep_ms"].contains(&source.word(name)?);
        let is_declared = name > 0 && source.word(name - 1) == Some("fn");
        (is_sleep && !is_declared).then_some(source.tokens[name].line)
    });
    calls
        .filter(|line| source.is_test_line(*line) && !is_excused(*line))
        .map(|line| source.finding(line, "a test that sleeps: wait for a gate or a channel"))
        .collect()
}

/// Finds code blocks of docs that are never compiled.
pub(crate) fn ignored_doctests(source: &Source) -> Vec<Finding> {
    ignored_fences(&source.path, &source.text)
}

/// Finds the same in Rust or Markdown, which may be included as docs.
pub(crate) fn ignored_fences(path: &str, text: &str) -> Vec<Finding> {
    let is_ignored = |line: &str| {
        let line = line.trim_start();
        let prose = match path.ends_with(".rs") {
            true => line.strip_prefix("///").or_else(|| line.strip_prefix("//!")),
            false => Some(line),
        };
        prose.and_then(|prose| prose.trim_start().strip_prefix("```")).is_some_and(|info| {
            info.split([',', ' ']).any(|word| word.trim().starts_with("ignore"))
        })
    };
    let ignored = text.lines().enumerate().filter(|(_, line)| is_ignored(line));
    let sentence = "an example that is ignored is never compiled";
    ignored
        .map(|(index, _)| Finding {
            path: path.to_owned(),
            line: index + 1,
            sentence: sentence.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&Source) -> Vec<Finding>;

    #[test]
    fn each_rule_finds_violations_and_nothing_else() {
        let (code, test) = ("crates/a/src/b.rs", "crates/a/tests/b.rs");
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "g();\n".repeat(lines - 2));
        let (limit, over) = (function(FUNCTION_LINES), function(FUNCTION_LINES + 1));
        let method = format!("impl A {{ {over} }}");
        let tested = format!("#[cfg(test)]\nmod tests {{\n{over}}}\n");
        let (long, longer) = ("// a\n".repeat(FILE_LINES), "// a\n".repeat(FILE_LINES + 1));
        let cases: &[(Rule, &str, &str, usize)] = &[
            (sizes, code, &limit, 0),
            (sizes, code, &over, 1),
            (sizes, code, &method, 1),
            (sizes, code, &tested, 0),
            (sizes, code, &long, 0),
            (sizes, code, &longer, 1),
            (sizes, test, &longer, 0),
            (glob_exports, code, "pub use a::{b, c};\nuse super::*;", 0),
            (glob_exports, code, "pub use a::*;", 1),
            (glob_exports, code, "pub(crate) use a::{b::*, c};", 1),
            (serde_guesses, code, "#[serde(rename = \"flatten\")]\nstruct A;", 0),
            (serde_guesses, test, "#[serde(untagged)]\nenum A {}", 0),
            (serde_guesses, code, "#[serde(untagged)]\nenum A {}", 1),
            (serde_guesses, code, "struct A { #[serde(default, flatten)] b: C }", 1),
            (ignored_tests, code, "#[test]\nfn ignore() {}", 0),
            (ignored_tests, code, "#[test]\n#[ignore = \"slow\"]\nfn f() {}", 1),
            (sleeping_tests, code, "fn f() { sleep(x); }", 0),
            (sleeping_tests, test, "fn f() { time::sleep(x); }", 1),
            (sleeping_tests, code, "#[cfg(test)]\nmod tests { fn f() { sleep(x) } }", 1),
            (sleeping_tests, test, "fn sleep() {}\nfn f() { call(\"sleep\") }", 0),
            (sleeping_tests, test, "fn f() {\n    sleep(x); // tidy: sleep is the work\n}", 0),
            (sleeping_tests, test, "fn f() {\n    sleep(x); // tidy: sleep is \n}", 1),
            (ignored_doctests, code, "/// ```no_run\n/// f();\n/// ```\nfn f() {}", 0),
            (ignored_doctests, code, "//! ```rust,ignore\n//! f();\n//! ```", 1),
            (ignored_doctests, code, "// ```ignore is for docs", 0),
        ];
        for (rule, path, text, wanted) in cases {
            let found = rule(&Source::parse(path, text).unwrap());
            assert_eq!(found.len(), *wanted, "{path}: {text}");
        }
        assert_eq!(ignored_fences("README.md", "```ignore\nf();\n```").len(), 1);
        assert_eq!(ignored_fences("README.md", "```rust\nignore();\n```").len(), 0);
    }
}
