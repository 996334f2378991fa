//! Compares the list of requirements with the comments in tests.

use std::collections::BTreeSet;

use super::{comments::Proofs, list::List};

/// Returns a line for each unknown id, misplaced comment and outdated reason.
pub(crate) fn wrong(list: &List, proofs: &Proofs) -> Vec<String> {
    let known: BTreeSet<&str> = list.lines().map(|line| line.id.as_str()).collect();
    let mut wrong = proofs.misplaced.clone();
    for (id, tests) in proofs.tests.iter().filter(|(id, _)| !known.contains(id.as_str())) {
        let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
        wrong.push(format!("there is no requirement `{id}`: {}", tests.join(", ")));
    }
    for line in list.lines().filter(|line| line.waits.is_some()) {
        if let Some(test) = proofs.of(&line.id).next() {
            wrong.push(format!("`{}` no longer waits: {test} proves it", line.id));
        }
    }
    wrong
}

/// Returns a line for each requirement that is due and has neither a test nor a reason to wait for
/// one. A deliberate difference needs a test as well.
pub(crate) fn missing(list: &List, proofs: &Proofs) -> Vec<String> {
    list.due()
        .filter(|line| line.waits.is_none() && proofs.of(&line.id).next().is_none())
        .map(|line| match line.decided {
            Some(_) => format!("`{}` is decided, and no test proves it", line.id),
            None => format!("`{}` has neither a test nor a reason", line.id),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[group]]
        title = "Tools"
        lines = [
            { id = "server", side = "server", what = "w" },
            { id = "either", side = "both", what = "w" },
            { id = "client", side = "client", what = "w" },
            { id = "waits", side = "server", what = "w", waits = "Not yet." },
            { id = "decided", side = "server", what = "w", decided = "No." },
        ]
        [[group]]
        title = "More"
        later = true
        lines = [{ id = "more", side = "server", what = "w" }]
    "#;

    fn proofs(ids: &str) -> Proofs {
        let mut proofs = Proofs::default();
        proofs.collect("a.rs", &format!("// req: {ids}\n#[test]\nfn it_works() {{}}"));
        proofs
    }

    #[test]
    fn every_line_that_is_due_needs_a_test_or_a_reason() {
        let list = List::parse(FILE).unwrap();
        let missing = |ids| missing(&list, &proofs(ids));
        assert_eq!(
            missing("client"),
            [
                "`server` has neither a test nor a reason",
                "`either` has neither a test nor a reason",
                "`decided` is decided, and no test proves it",
            ]
        );
        assert_eq!(missing("server, either, client, decided").len(), 0);
    }

    #[test]
    fn unknown_ids_and_old_reasons_are_wrong() {
        let list = List::parse(FILE).unwrap();
        let wrong = |ids| wrong(&list, &proofs(ids));
        assert_eq!(wrong("server, decided, more").len(), 0);
        assert_eq!(wrong("serve"), ["there is no requirement `serve`: a.rs::it_works"]);
        assert_eq!(wrong("waits"), ["`waits` no longer waits: a.rs::it_works proves it"]);
    }
}
