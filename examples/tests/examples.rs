//! Every example runs and prints what it says.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use serde_json::json;
use turnbuckle::Client;

fn run(program: &str, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        Command::new(program).args(arguments).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{program}: {status}: {stderr}");
    String::from_utf8(stdout).expect("text")
}

#[test]
fn client_and_server() {
    let shown = run(env!("CARGO_BIN_EXE_client"), &[env!("CARGO_BIN_EXE_server")]);
    assert!(shown.contains("connected in revision 2026-07-28"), "{shown}");
    assert!(shown.contains("- add: Add two integers."), "{shown}");
    assert!(shown.contains("1 + 2 = 3"), "{shown}");
}

#[test]
fn group() {
    let (server, plain) = (env!("CARGO_BIN_EXE_server"), env!("CARGO_BIN_EXE_plain_server"));
    let text = json!({"mcpServers": {
        "calc": {"command": server},
        "more": {"command": server},
        "greeter": {"command": plain},
        "keyed": {"command": plain, "env": {"KEY": "${TURNBUCKLE_EXAMPLE_UNSET}"}},
        "off": {"command": plain, "disabled": true},
    }});
    let path = std::env::temp_dir().join(format!("turnbuckle-mcp-{}.json", std::process::id()));
    std::fs::write(&path, text.to_string()).expect("it can be written");
    let shown = run(env!("CARGO_BIN_EXE_group"), &[path.to_str().expect("text")]);
    std::fs::remove_file(&path).expect("it was written");
    for expected in [
        "calc: ready\n",
        "`env.KEY`: the environment variable `TURNBUCKLE_EXAMPLE_UNSET` is not set\n",
        "off: Stopped\n",
        "- calc_add is add of calc\n",
        "- more_add is add of more\n",
        "- greet is greet of greeter\n",
        "1 + 2 = 3\n",
        "stopped: 3\n",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn progress() {
    let shown = run(env!("CARGO_BIN_EXE_progress"), &[]);
    let expected = "1 of 3: file 1\n2 of 3: file 2\n3 of 3: file 3\ncopied 3 files\n";
    assert_eq!(shown, expected);
}

#[test]
fn ask() {
    let expected = concat!(
        "asked: Write down \"It holds.\"?\n",
        "asked: for 20 tokens at most\n",
        "2025-11-25: note 7 is in notes, titled On turnbuckles\n",
        "asked: Write down \"It holds.\"?\n",
        "asked: for 20 tokens at most\n",
        "2026-07-28: note 7 is in notes, titled On turnbuckles\n",
    );
    assert_eq!(run(env!("CARGO_BIN_EXE_ask"), &[]), expected);
}

#[test]
fn resources() {
    let shown = run(env!("CARGO_BIN_EXE_resources"), &[]);
    for expected in [
        "- notes://readme\n",
        "- file:///docs/hello.txt\n",
        "notes://7: {\"id\":7,\"text\":\"buy milk\"}\n",
        "file:///docs/hello.txt: hello from a file\n",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(shown.matches("there is no such resource").count(), 2, "{shown}");
}

#[test]
fn prompts() {
    let expected = concat!(
        "r… [\"ruby\", \"rust\"]\n",
        "ex… [\"experts\"]\n",
        "user: Review this Rust code for everyone: fn main() {}\n",
        "assistant: I'll begin with what matters most.\n",
    );
    assert_eq!(run(env!("CARGO_BIN_EXE_prompts"), &[]), expected);
}

#[test]
fn tool_set() {
    let shown = run(env!("CARGO_BIN_EXE_tool_set"), &[]);
    let expected = "added: 40\n`amount` must be at most 100, is 400\nread: 40\nreset: 0\n";
    assert_eq!(shown, expected);
}

#[test]
fn streaming() {
    let expected = "part 1: Once \npart 2: upon \npart 3: a time.\nwhole: Once upon a time.\n";
    assert_eq!(run(env!("CARGO_BIN_EXE_streaming"), &[]), expected);
}

#[test]
fn live() {
    let shown = run(env!("CARGO_BIN_EXE_live"), &[]);
    assert!(shown.starts_with("listed: always, sometimes\nlisted: always\n"), "{shown}");
    assert!(shown.contains("there is no tool named `sometimes`"), "{shown}");
}

#[test]
fn layers() {
    let shown = run(env!("CARGO_BIN_EXE_layers"), &[]);
    assert_eq!(shown.matches("audit: tools/call answer\n").count(), 3, "{shown}");
    assert_eq!(shown.matches("answer: 42\n").count(), 2, "{shown}");
    assert!(shown.contains("audit: tools/call ponder\nponder: "), "{shown}");
}

#[test]
fn logs() {
    let expected = "warning from logs: {\"left\":2,\"message\":\"running low\"}\nsold: 3 apples\n";
    assert_eq!(run(env!("CARGO_BIN_EXE_logs"), &[]), expected);
}

#[test]
fn socket() {
    assert_eq!(run(env!("CARGO_BIN_EXE_socket"), &[]), "over a socket\n");
}

#[test]
fn testing() {
    let shown = run(env!("CARGO_BIN_EXE_testing"), &[]);
    assert!(shown.contains("revision 2025-11-25: as expected"), "{shown}");
    assert!(shown.contains("revision 2026-07-28: as expected"), "{shown}");
}

/// An HTTP server at work; killed when it is dropped.
struct HttpServer(Child, BufReader<ChildStdout>);

impl HttpServer {
    fn start(way: &str) -> HttpServer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_http_server"));
        command.args([way, "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdout = child.stdout.take().expect("it is piped");
        HttpServer(child, BufReader::new(stdout))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("text");
        line
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // One that has ended can't be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn http_client_and_http_server() {
    for way in ["axum", "short"] {
        let mut server = HttpServer::start(way);
        let line = server.line();
        let url = line.strip_prefix("serving ").expect(&line).trim_end();
        let shown = run(env!("CARGO_BIN_EXE_http_client"), &[url]);
        assert!(shown.contains("connected in revision 2026-07-28\n1 + 2 = 3\n"), "{shown}");
        assert!(shown.contains("timed out after 100ms"), "{shown}");
        assert!(shown.ends_with("three steps were enough\n"), "{shown}");
        // The late call, and the one that lost its race.
        assert_eq!(server.line(), "count was abandoned\n");
        assert_eq!(server.line(), "count was abandoned\n");
    }
}

#[test]
fn listen() {
    let shown = run(env!("CARGO_BIN_EXE_listen"), &[]);
    assert_eq!(shown, "granted: true\nthe tools changed: list them again\n");
}

#[tokio::test]
async fn plain_server() {
    let client = Client::spawn(Command::new(env!("CARGO_BIN_EXE_plain_server"))).await.unwrap();
    let greeting = client.call_tool("greet", json!({"name": "Ada"})).await.unwrap();
    let structured = greeting.structured_content.unwrap();
    assert_eq!(structured.as_str(), r#"{"text":"hello Ada","visit":1}"#);
    let who = client.call_tool("who", ()).await.unwrap();
    assert_eq!(who.to_text(), "turnbuckle asks in revision 2026-07-28");
    let wrong = client.call_tool("shape", json!({"sides": 2})).await.unwrap();
    assert_eq!(wrong.is_error, Some(true));
    assert!(wrong.to_text().contains("sides"), "{}", wrong.to_text());
    let report = client.close().await.expect("it was a process");
    assert!(report.is_success(), "{report}");
}
