//! The verbs of the command, against the demo server over both wires and in both eras, and the
//! ways to say which server is meant.

use serde_json::{Value, json};

use crate::support::{self, Run, http::Served, server, turnbuckle};

/// Runs a command with each way to reach the demo server.
fn everywhere(command: &str, arguments: &[&str], check: impl Fn(Run, &str)) {
    let served = Served::new();
    for target in [&*server(), served.url()] {
        for revision in ["2026-07-28", "2025-11-25"] {
            let words = [command, target].into_iter().chain(arguments.iter().copied());
            let run = turnbuckle(words.chain(["--revision", revision]));
            assert_eq!((run.status, &*run.stderr), (0, ""), "{command} {target} {revision}");
            check(run, revision);
        }
    }
}

fn json_of(run: &Run) -> Value {
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn info_says_who_the_server_is() {
    everywhere("info", &[], |run, revision| {
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert!(lines[0].starts_with("turnbuckle-demo "), "{}", run.stdout);
        assert!(lines[0].ends_with(" - Turnbuckle's demo server"), "{}", run.stdout);
        assert_eq!(lines[1], format!("  revision      {revision}"));
        assert!(lines[2].starts_with("  capabilities  "), "{}", run.stdout);
        assert!(lines[2].contains("tools"), "{}", run.stdout);
        assert!(run.stdout.contains("\n    Tools that show calls"), "{}", run.stdout);
    });
    everywhere("info", &["--output", "json"], |run, revision| {
        let info = json_of(&run);
        assert_eq!(info["protocolVersion"], revision);
        assert_eq!(info["serverInfo"]["name"], "turnbuckle-demo");
        assert!(info["capabilities"]["tools"].is_object(), "{info}");
        assert!(info["instructions"].is_string(), "{info}");
    });
}

#[test]
fn resources_and_templates_are_listed() {
    everywhere("resources", &[], |run, revision| {
        let text = &run.stdout;
        assert!(text.contains(&format!("(revision {revision})")), "{text}");
        assert!(text.contains(" offers 5 resources and 1 template "), "{text}");
        assert!(text.contains("\ndemo://readme - Read me\n  What the demo server is for.\n"));
        assert!(text.contains("\ndemo://items/{id} - Item\n"), "{text}");
    });
    everywhere("resources", &["--output", "json"], |run, _| {
        let listed = json_of(&run);
        assert_eq!(listed["resources"].as_array().unwrap().len(), 5);
        assert_eq!(listed["resourceTemplates"][0]["uriTemplate"], "demo://items/{id}");
    });
}

#[test]
fn a_resource_is_read() {
    everywhere("read", &["demo://items/7"], |run, _| {
        let item: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(item, json!({"id": 7, "name": "Item 7"}));
    });
    everywhere("read", &["demo://readme", "--output", "json"], |run, _| {
        let result = json_of(&run);
        assert_eq!(result["contents"][0]["uri"], "demo://readme");
        assert!(result["contents"][0]["text"].as_str().unwrap().starts_with("# The demo server"));
    });
    let run = turnbuckle(["read", &server(), "demo://items/101"]);
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert!(run.sentence().starts_with("the server answered with an error: "), "{}", run.stderr);
}

#[test]
fn prompts_are_listed_and_filled_in() {
    everywhere("prompts", &[], |run, _| {
        assert!(run.stdout.contains(" offers 1 prompt "), "{}", run.stdout);
        assert!(run.stdout.contains("\nreview - Review\n"), "{}", run.stdout);
        assert!(run.stdout.contains("\n    language  required  What"), "{}", run.stdout);
    });
    everywhere("prompts", &["--output", "json"], |run, _| {
        assert_eq!(json_of(&run)[0]["name"], "review");
    });
    let filled = ["review", "language=rust", "code=fn main() {}"];
    everywhere("prompt", &filled, |run, _| {
        let start = "[user]\nReview this Rust code:\n\nfn main() {}\n\n[assistant]\n";
        assert!(run.stdout.starts_with(start), "{}", run.stdout);
    });
    everywhere("prompt", &[&filled[..], &["--output", "json"]].concat(), |run, _| {
        assert_eq!(json_of(&run)["messages"][1]["role"], "assistant");
    });
    let run = turnbuckle(["prompt", &server(), "review", "code=a", "code=b"]);
    assert_eq!((run.status, run.sentence()), (2, "the argument `code` is given twice"));
    assert_eq!(turnbuckle(["prompt", &server(), "no-such"]).status, 3);
}

#[test]
fn arguments_are_completed() {
    everywhere("complete", &["prompt:review", "language", "ru"], |run, _| {
        assert_eq!(run.stdout, "ruby\nrust\n");
    });
    everywhere("complete", &["demo://items/{id}", "id", "9", "--output", "json"], |run, _| {
        assert_eq!(json_of(&run)["completion"]["values"].as_array().unwrap().len(), 11);
    });
    let run = turnbuckle(["complete", &server(), "prompt:review", "language", "zz"]);
    assert_eq!((run.status, &*run.stdout, &*run.stderr), (0, "", ""));
    let run = turnbuckle(["complete", &server(), "review", "language"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("a prompt is written as prompt:review"), "{}", run.stderr);
}

fn config(entry: &Value) -> String {
    json!({"mcpServers": {"demo": entry, "broken": {}, "sh": {"command": "no-such-program"}}})
        .to_string()
}

fn process() -> Value {
    json!({"command": env!("CARGO_BIN_EXE_turnbuckle"), "args": ["serve"]})
}

#[test]
fn a_server_is_named_as_in_an_mcp_json() {
    let folder = support::folder("named", &[("some.json", &config(&process()))]);
    let file = folder.join("some.json");
    let run = |name: &str, more: &[&str]| {
        let words = ["call", name, "--config", file.to_str().unwrap(), "echo", "text=hi"];
        turnbuckle(words.iter().chain(more))
    };
    let named = run("demo", &[]);
    assert_eq!((named.status, &*named.stdout, &*named.stderr), (0, "hi\n", ""));
    let unknown = run("other", &[]);
    assert_eq!(unknown.status, 2);
    assert!(unknown.sentence().starts_with("there is no server `other` in "), "{}", unknown.stderr);
    assert!(unknown.sentence().ends_with("it has `broken`, `demo`, `sh`"), "{}", unknown.stderr);
    let broken = run("broken", &[]);
    assert_eq!(broken.status, 2);
    assert!(broken.sentence().contains("server `broken`: "), "{}", broken.stderr);
    let line = run("demo --stdio", &[]);
    assert_eq!(line.status, 2);
    assert!(line.sentence().ends_with("the target is a command line"), "{}", line.stderr);
    assert_eq!(run("demo", &["--header", "A: b"]).status, 2);
}

#[test]
fn a_name_at_a_url_takes_its_headers_along() {
    let served = Served::new();
    let wire = support::http::Wire::to(&served);
    let entry = json!({"url": wire.url(), "headers": {"X-Tenant": "acme", "X-Who": "file"}});
    let folder = support::folder("named-url", &[("mcp.json", &config(&entry))]);
    let arguments = ["info", "demo", "--config", "mcp.json", "--header", "x-who: typed"];
    let run = support::in_folder(&folder, &arguments);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(wire.count("x-tenant: acme\r\n") > 0);
    assert_eq!(wire.count("x-who: typed\r\n"), wire.count("x-tenant: acme\r\n"));
    assert_eq!(wire.count("x-who: file\r\n"), 0);
}

#[test]
fn a_name_is_looked_up_in_the_user_s_own_file_and_goes_before_a_program() {
    let folder = support::folder("own", &[("turnbuckle/mcp.json", &config(&process()))]);
    let run = |arguments: &[&str]| {
        let own = [("XDG_CONFIG_HOME", folder.to_str().unwrap())];
        support::with_environment(&own, arguments.to_vec())
    };
    let named = run(&["call", "demo", "echo", "text=hi"]);
    assert_eq!((named.status, &*named.stdout), (0, "hi\n"), "{}", named.stderr);
    assert!(named.stderr.starts_with("note: `demo` is "), "{}", named.stderr);
    assert!(named.stderr.ends_with("turnbuckle/mcp.json says\n"), "{}", named.stderr);
    let program = run(&["info", "sh"]);
    assert_eq!(program.status, 3);
    assert!(program.stderr.contains("`no-such-program` was not found"), "{}", program.stderr);
    let unknown = run(&["info", "no-such-name"]);
    assert_eq!((unknown.status, unknown.sentence()), (3, "`no-such-name` was not found in PATH"));
}

#[test]
fn nothing_that_a_folder_s_own_file_says_is_started_unless_the_file_is_named() {
    for file in ["mcp.json", ".mcp.json", ".vscode/mcp.json"] {
        let name = format!("untrusted-{}", file.replace(['/', '.'], "-"));
        let folder = support::folder(&name, &[]);
        let trace = folder.join("started");
        let entry = json!({"command": "touch", "args": [trace]});
        support::folder(&name, &[(file, &config(&entry))]);
        let run = support::in_folder(&folder, &["info", "demo"]);
        assert_eq!(run.status, 3, "{}", run.stderr);
        let note =
            format!("note: {file} of this folder counts only if it is named: --config {file}");
        assert_eq!(run.stderr.lines().next(), Some(&*note));
        assert!(run.stderr.contains("error: `demo` was not found in PATH"), "{}", run.stderr);
        assert!(!trace.exists(), "it was started");
        // Whoever names it means it.
        let run = support::in_folder(&folder, &["info", "demo", "--config", file]);
        assert_eq!(run.status, 3, "{}", run.stderr);
        assert!(trace.exists(), "it was not started");
    }
}

#[test]
fn an_address_that_is_not_one_is_not_taken_for_a_program() {
    for command in ["tools", "bridge", "login"] {
        let run = turnbuckle([command, "htp://x/mcp"]);
        assert_eq!((run.status, &*run.stdout), (2, ""), "{command}: {}", run.stderr);
        let known =
            "there is no way to a server at htp://; an address begins with https:// or http://";
        assert!(run.sentence().ends_with(known), "{}", run.stderr);
        for address in ["127.0.0.1:9/mcp", "localhost:9"] {
            let run = turnbuckle([command, address]);
            assert_eq!((run.status, &*run.stdout), (2, ""), "{command}: {}", run.stderr);
            let meant =
                format!("there is no program `{address}`; as an address it is http://{address}");
            assert_eq!(run.sentence(), meant);
        }
    }
    // What is there is started. Without arguments this very program says that it needs some.
    let folder = support::folder("addresses", &[("host:9/other", "")]);
    let program = folder.join("host:9/mcp");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_turnbuckle"), program).unwrap();
    let run = support::in_folder(&folder, &["tools", "host:9/mcp"]);
    assert_eq!(run.status, 3);
    assert!(run.sentence().contains("exited with status 2"), "{}", run.stderr);
}

#[test]
fn the_messages_are_shown_on_request() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let run = turnbuckle(["read", &server(), "demo://clock", "--wire", "--revision", revision]);
        assert_eq!((run.status, run.stdout.lines().count()), (0, 1), "{}", run.stderr);
        let lines: Vec<&str> = run.stderr.lines().collect();
        let sent = |line: &&&str| line.starts_with("-> ") && line.contains("resources/read");
        let received = |line: &&&str| line.starts_with("<- ") && line.contains("demo://clock");
        assert_eq!(lines.iter().filter(sent).count(), 1, "{}", run.stderr);
        assert_eq!(lines.iter().filter(received).count(), 1, "{}", run.stderr);
    }
}

#[test]
fn log_messages_are_shown_on_request() {
    let served = Served::new();
    for target in [&*server(), served.url()] {
        for revision in ["2026-07-28", "2025-11-25"] {
            let words =
                ["call", target, "log", "level=debug", "message=hear", "--revision", revision];
            let run = turnbuckle(words);
            assert_eq!((run.status, &*run.stderr), (0, ""), "{target} {revision}");
            let run = turnbuckle(words.iter().chain(&["--verbose"]));
            assert_eq!((run.status, &*run.stdout), (0, "logged\n"), "{}", run.stderr);
            let expected = "server log (debug, demo): hear\n";
            assert_eq!(run.stderr, expected, "{target} {revision}");
        }
    }
}

#[test]
fn an_argument_that_there_is_not_is_refused() {
    let server = server();
    for (words, expected) in [
        (
            &["prompt", &server, "review", "langage=rust", "code=x"][..],
            "`review` has no argument `langage`; did you mean `language`? it has ",
        ),
        (
            &["complete", &server, "prompt:review", "langage", "ru"],
            "`review` has no argument `langage`; did you mean `language`? it has ",
        ),
        (
            &["complete", &server, "demo://items/{id}", "number", "9"],
            "`demo://items/{id}` has no argument `number`; it has `id`",
        ),
    ] {
        let run = turnbuckle(words);
        assert_eq!((run.status, &*run.stdout), (2, ""), "{words:?}: {}", run.stderr);
        assert!(run.sentence().starts_with(expected), "{}", run.stderr);
    }
}
