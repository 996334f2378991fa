//! What a server asks is asked in the terminal, or refused.

mod models;

use serde_json::Value;

use crate::support::{Gate, Terminal, Typed, http::Served, server, turnbuckle};

const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

#[test]
fn a_form_is_filled_in_at_the_terminal() {
    let served = Served::new();
    for target in [&*server(), served.url()] {
        for revision in REVISIONS {
            let arguments = ["call", target, "greet", "--revision", revision];
            let script =
                [("What is your name?", Typed::Line("")), ("filled in", Typed::Line("Ada"))];
            let (run, seen) = Terminal::open().converse(arguments, &script);
            assert_eq!((run.status, &*run.stdout), (0, "Hello, Ada!\n"), "{target}: {seen}");
            assert!(seen.contains("name (text, required)\r\n  What you are called.\r\n"), "{seen}");
        }
    }
}

#[test]
fn a_question_is_declined_with_a_word_or_with_the_end_of_the_input() {
    let server = server();
    for revision in REVISIONS {
        for typed in [Typed::Line("!decline"), Typed::End] {
            let arguments = ["call", &server, "greet", "--revision", revision];
            let (run, seen) = Terminal::open().converse(arguments, &[("> ", typed)]);
            assert_eq!((run.status, &*run.stdout), (1, ""), "{seen}");
            assert!(seen.contains("\r\nerror: the tool `greet` failed: "), "{seen}");
            assert!(seen.contains("declined"), "{seen}");
        }
    }
}

#[test]
fn ctrl_c_at_a_question_cancels_the_call() {
    for revision in REVISIONS {
        let gate = Gate::new(&format!("question-{revision}"));
        let target = gate.tapped(&server());
        let arguments = ["call", &target, "greet", "--revision", revision];
        let (run, seen) = Terminal::open().converse(arguments, &[("> ", Typed::Interrupt)]);
        assert_eq!((run.status, &*run.stdout), (130, ""), "{seen}");
        assert!(seen.contains("\r\nerror: interrupted: the call was cancelled\r\n"), "{seen}");
        let is_cancel = |message: &Value| message["method"] == "notifications/cancelled";
        let cancels = gate.rest().into_iter().filter(is_cancel).count();
        // In the modern era nothing runs on the server while the question is open.
        assert_eq!(cancels, usize::from(revision == "2025-11-25"), "{revision}");
    }
}

#[test]
fn questions_are_refused_on_request_and_where_nobody_is_there() {
    let served = Served::new();
    for target in [&*server(), served.url()] {
        let run = turnbuckle(["call", target, "greet"]);
        assert_eq!((run.status, &*run.stdout), (3, ""), "{}", run.stderr);
        let sentence = "the server wants to ask something, and nobody can be asked: ";
        assert!(run.sentence().starts_with(sentence), "{}", run.stderr);
        let arguments = ["call", target, "greet", "--no-input"];
        let (run, seen) = Terminal::open().converse(arguments, &[]);
        assert_eq!((run.status, &*run.stdout), (3, ""), "{seen}");
        assert!(seen.contains(sentence), "{seen}");
        // The older era has no error of its own for that: the tool fails.
        let run = turnbuckle(["call", target, "greet", "--revision", "2025-11-25"]);
        assert_eq!((run.status, &*run.stdout), (1, ""), "{}", run.stderr);
        assert!(run.sentence().contains("elicitation"), "{}", run.stderr);
    }
}

#[test]
fn only_where_somebody_is_there_is_asking_declared() {
    let declared = |name: &str, arguments: &[&str]| {
        let gate = Gate::new(name);
        let target = gate.tapped(&server());
        let words = ["info", &target, "--revision", "2025-11-25"];
        let words = words.iter().chain(arguments).map(|word| (*word).to_owned());
        let (run, seen) = Terminal::open().converse(words, &[]);
        assert_eq!(run.status, 0, "{seen}");
        gate.wait_for("initialize")["params"]["capabilities"].clone()
    };
    let asking = declared("declared-asking", &[]);
    assert!(asking["elicitation"]["form"].is_object(), "{asking}");
    assert!(asking["elicitation"]["url"].is_object(), "{asking}");
    assert!(asking["sampling"]["tools"].is_object(), "{asking}");
    assert!(asking.get("roots").is_none(), "{asking}");
    let refusing = declared("declared-refusing", &["--no-input", "--root", "."]);
    assert!(refusing.get("elicitation").is_none(), "{refusing}");
    assert!(refusing.get("sampling").is_none(), "{refusing}");
    assert!(refusing["roots"].is_object(), "{refusing}");
}

#[test]
fn a_root_that_is_not_there_exits_with_2() {
    let run = turnbuckle(["info", &server(), "--root", "no/such/folder"]);
    assert_eq!((run.status, &*run.stdout), (2, ""));
    assert!(run.sentence().starts_with("no/such/folder can't be a root: "), "{}", run.stderr);
}
