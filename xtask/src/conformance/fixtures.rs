//! Owns: the two programs of `conformance/`: building them, starting the server, ending it.
//! Does not own: what the suite asks of them.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::Value;

use super::process::{Family, command};
use crate::workspace;

/// Where the programs are.
#[derive(Debug)]
pub(crate) struct Fixtures {
    pub(crate) server: PathBuf,
    pub(crate) client: PathBuf,
}

impl Fixtures {
    pub(crate) fn build() -> Result<Fixtures, String> {
        let mut command = workspace::cargo();
        command.args(["build", "--package", "turnbuckle-conformance", "--bins"]);
        command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
        let messages = workspace::output(&mut command)?;
        let path = |name: &str| {
            executable(&messages, name).ok_or_else(|| format!("cargo built no `{name}`"))
        };
        Ok(Fixtures { server: path("everything-server")?, client: path("everything-client")? })
    }
}

/// Where cargo says that it has put a program.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// The server, which runs until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) url: String,
    /// Held for its end.
    _family: Family,
}

impl RunningServer {
    /// Starts it and waits for the URL that it prints.
    pub(crate) fn start(fixtures: &Fixtures) -> Result<RunningServer, String> {
        let mut family = Family::start(command(&fixtures.server).stdout(Stdio::piped()))?;
        let stdout = family.child().stdout.take().ok_or("a server without stdout")?;
        let (send, receive) = sync_channel(1);
        // Ends with the first line, or with the server.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            let _ = send.send(read.map(|_| line.trim().to_owned()));
        });
        match receive.recv_timeout(Duration::from_secs(30)) {
            Ok(Ok(url)) if url.starts_with("http") => Ok(RunningServer { url, _family: family }),
            Err(RecvTimeoutError::Timeout) => Err("the server took too long to start".to_owned()),
            _ => Err("the server ended before it said its URL".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_where_cargo_says() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":null}"#,
            "\nnot JSON\n",
            r#"{"reason":"compiler-artifact","target":{"name":"b"},"executable":"/t/b"}"#,
        );
        assert_eq!(executable(messages, "b"), Some(PathBuf::from("/t/b")));
        assert_eq!(executable(messages, "a"), None);
    }
}
