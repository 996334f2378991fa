//! Servers that are no programs of ours, as scripts.

use crate::support::{scripted, turnbuckle};

const CALL: &str = r#""tools/call""#;
const LIST: &str = r#""tools/list""#;
const ONE_TOOL: &str = r#"answer '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'"#;

#[test]
fn what_a_server_does_not_offer_is_said_in_words_of_the_command() {
    let target = scripted("offers-tools", r#"{"tools":{}}"#, &[]);
    for (words, kind) in [
        (&["resources"][..], "resources"),
        (&["read", "a:1"], "resources"),
        (&["prompts"], "prompts"),
        (&["prompt", "p"], "prompts"),
        (&["complete", "prompt:p", "a"], "completions"),
    ] {
        let run = turnbuckle([words[0], &target].iter().chain(&words[1..]));
        assert_eq!((run.status, &*run.stdout), (3, ""), "{words:?}");
        let expected =
            format!("the server offers no {kind}; `turnbuckle info TARGET` shows what it offers");
        assert_eq!(run.sentence(), expected);
    }
    let target = scripted("offers-nothing", "{}", &[]);
    for words in [&["tools", &*target][..], &["call", &target, "t"]] {
        assert!(turnbuckle(words).sentence().starts_with("the server offers no tools; "));
    }
    let run = turnbuckle(["listen", &target]);
    assert_eq!((run.status, &*run.stdout), (3, ""));
    let expected = "the server does not report changes of what was asked for; list or read it \
                    again, for example with `turnbuckle tools TARGET`";
    assert_eq!(run.sentence(), expected);
}

#[test]
fn a_result_that_is_sent_as_text_and_wrapped_is_printed_once() {
    let result =
        r#"answer '{"content":[{"type":"text","text":"hi"}],"structuredContent":{"result":"hi"}}'"#;
    let target = scripted("wrapped", r#"{"tools":{}}"#, &[(LIST, ONE_TOOL), (CALL, result)]);
    let run = turnbuckle(["call", &target, "t"]);
    assert_eq!((run.status, &*run.stdout, &*run.stderr), (0, "hi\n", ""));
}

#[test]
fn a_server_that_asks_for_the_roots_has_them_before_the_first_call() {
    let asks = r#"printf '{"jsonrpc":"2.0","id":"r","method":"roots/list"}\n'"#;
    // A server that has no roots lists no tools.
    let lists = format!(r#"if [ "$told" ]; then {ONE_TOOL}; else answer '{{"tools":[]}}'; fi"#);
    let cases =
        [(r#""notifications/initialized""#, asks), (r#""id":"r""#, "told=1"), (LIST, &lists)];
    let target = scripted("asks-roots", r#"{"tools":{}}"#, &cases);
    let run = turnbuckle(["tools", &target, "--root", "/"]);
    assert!(run.stdout.contains(" offers 1 tool "), "{}{}", run.stdout, run.stderr);
    // One that never asks is not waited for without end.
    let target = scripted("asks-nothing", r#"{"tools":{}}"#, &[(LIST, ONE_TOOL)]);
    assert_eq!(turnbuckle(["tools", &target, "--root", "/"]).status, 0);
}
