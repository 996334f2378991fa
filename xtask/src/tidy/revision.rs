//! The rule that revisions are compared where they are decided, and nowhere else.

use super::source::{Finding, Source};

/// The rooms that decide by revision. Elsewhere an era, a method row or a delta carries the decision.
const DECIDERS: &[&str] = &["crates/turnbuckle-types/", "crates/turnbuckle/src/client/negotiate"];

/// The dates that name revisions on the wire.
const DATES: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

const COMPARISONS: &[&str] = &["==", "!=", "<", ">", "<=", ">="];

/// Finds comparisons with, and patterns of, a revision, and dates spelled out in code.
pub(crate) fn decisions(source: &Source) -> Vec<Finding> {
    let decides = DECIDERS.iter().any(|place| source.path.starts_with(place));
    if decides || !source.is_crate_source() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (position, token) in source.tokens.iter().enumerate() {
        if source.is_test_line(token.line) {
            continue;
        }
        if is_date(&token.text) {
            findings
                .push(source.finding(token.line, "a revision's date in code: name the constant"));
        }
        if source.matches(position, &["Revision", "::"]) && is_decision(source, position) {
            findings.push(source.finding(
                token.line,
                "a decision by revision: it belongs in the types or in the negotiation",
            ));
        }
    }
    findings
}

fn is_date(token: &str) -> bool {
    token.split_once('"').is_some_and(|(_, rest)| {
        DATES.iter().any(|date| rest.trim_end_matches(['"', '#']) == *date)
    })
}

/// Whether the `Revision::X` at `position` is compared with something or matched against.
fn is_decision(source: &Source, position: usize) -> bool {
    // The path may be longer in front (`types::Revision`), and borrowed or bracketed.
    let mut first = position;
    while let Some(before) = first.checked_sub(1).and_then(|before| source.word(before)) {
        match before {
            "::" => first -= 2,
            "&" | "(" => first -= 1,
            _ => break,
        }
    }
    let before = first.checked_sub(1).and_then(|before| source.word(before)).unwrap_or_default();
    let after = source.word(position + 3).unwrap_or_default();
    let compares = |word: &str| COMPARISONS.contains(&word);
    compares(before)
        || compares(after)
        // Patterns: the arm of a `match`, an alternative in it, `if let`.
        || matches!(after, "=>" | "|")
        || before == "let"
        || is_matched(source, position)
}

/// Inside `matches!(…)`.
fn is_matched(source: &Source, position: usize) -> bool {
    source.find(&["matches", "!", "("]).any(|start| {
        let length = source.inside(start + 2).len();
        (start + 3..start + 3 + length).contains(&position)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        decisions(&Source::parse(path, text).unwrap()).len()
    }

    const KERNEL: &str = "crates/turnbuckle/src/server/kernel.rs";

    #[test]
    fn a_revision_may_be_named_and_carried() {
        let text =
            "/// Since 2026-07-28.\nfn f() { pin(Revision::LATEST); g(Revision::ALL, a == b); }";
        assert_eq!(count(KERNEL, text), 0);
        let message = "fn f() { refuse(\"batches exist in revision 2025-03-26 only\") }";
        assert_eq!(count(KERNEL, message), 0);
        assert_eq!(count(KERNEL, "fn f() { r.unwrap_or_else(|_| Revision::LATEST) }"), 0);
        assert_eq!(count(KERNEL, "fn f(r: Option<Revision>) -> Vec<Revision> { r.into() }"), 0);
    }

    #[test]
    fn a_revision_is_not_compared() {
        let broken = [
            "fn f() { r >= Revision::V2026_07_28 }",
            "fn f() { Revision::LATEST == r }",
            "fn f() { r < types::Revision::LATEST }",
            "fn f() { *r != (Revision::LATEST) }",
            "fn f() { matches!(r, Revision::V2025_03_26) }",
            "fn f() { match r { Revision::V2025_03_26 => 1, _ => 2 } }",
            "fn f() { match r { Revision::V2025_03_26 | _ => 2 } }",
            "fn f() { if let Revision::V2025_03_26 = r {} }",
            "const NEWEST: &str = \"2026-07-28\";",
        ];
        for text in broken {
            assert_eq!(count(KERNEL, text), 1, "{text}");
        }
    }

    #[test]
    fn the_deciders_and_tests_may_compare() {
        let text = "fn f() { r >= Revision::V2026_07_28 }";
        assert_eq!(count("crates/turnbuckle/src/client/negotiate.rs", text), 0);
        assert_eq!(count("crates/turnbuckle-types/src/wire/legacy.rs", text), 0);
        assert_eq!(count("crates/turnbuckle/tests/it/eras.rs", text), 0);
        assert_eq!(count(KERNEL, &format!("#[cfg(test)]\nmod tests {{ {text} }}")), 0);
    }
}
