//! A bridge over HTTP, from its start to its end, and the command of one over stdio.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use super::{
    conversation::{Say, signal, start},
    peers::Program,
};
use crate::common::process::{Family, file};

/// A free port of this machine.
const ANYWHERE: &str = "127.0.0.1:0";

/// How long a bridge may take to print its URL.
const STARTING: Duration = Duration::from_secs(30);

/// How long it may take to end, with the server that it started.
const ENDING: Duration = Duration::from_secs(10);

/// Logs the start of a program, and its end if that is successful.
const LOGGED: &str = "echo started >> \"$0\"; \"$@\" && echo ended >> \"$0\"";

/// The command with which a client starts a bridge to a URL, logged to `log`.
pub(crate) fn over_stdio(
    bridge: &Program,
    revision: Option<&str>,
    url: &str,
    log: &Path,
) -> Program {
    let mut words: Program = ["sh", "-c", LOGGED].map(PathBuf::from).into();
    words.push(log.to_owned());
    words.extend_from_slice(bridge);
    words.extend(revision.into_iter().flat_map(|revision| ["--revision".into(), revision.into()]));
    words.extend([PathBuf::from("--stdio"), url.into()]);
    words
}

/// A bridge over HTTP, which runs until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct RunningBridge {
    pub(crate) url: String,
    family: Family,
    program: PathBuf,
    /// A unique argument of the server, whose command line is part of the bridge's.
    mark: PathBuf,
}

impl RunningBridge {
    /// Starts a bridge to the server of this command and waits for its URL.
    pub(crate) fn start(
        bridge: &Program,
        revision: Option<&str>,
        server: &Program,
        mark: &Path,
        stderr: &Path,
    ) -> Result<RunningBridge, String> {
        let mut command = start(bridge);
        command.args(["--http", ANYWHERE]);
        if let Some(revision) = revision {
            command.args(["--revision", revision]);
        }
        command.arg("--").args(server);
        let mut family = Family::start(command.stdout(Stdio::null()).stderr(file(stderr)?))?;
        let deadline = Instant::now() + STARTING;
        loop {
            if let Some(url) = url(&fs::read_to_string(stderr).unwrap_or_default()) {
                let (program, mark) = (bridge[0].clone(), mark.to_owned());
                return Ok(RunningBridge { url, family, program, mark });
            }
            // Also the pause between two looks at the file.
            let ended = family.wait_until(Instant::now() + Duration::from_millis(20));
            if ended.is_ok_and(|ended| ended.is_some()) || Instant::now() > deadline {
                return Err("the bridge did not print its URL".to_owned());
            }
        }
    }

    /// Sends SIGTERM to the bridge and waits for its end.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        let (program, mark) = (self.program.as_os_str(), self.mark.as_os_str());
        let told = signal(Say::Stop, |words| {
            words.first() == Some(&program.as_encoded_bytes())
                && words.contains(&mark.as_encoded_bytes())
        });
        if told.is_empty() && cfg!(not(target_os = "linux")) {
            // It is killed when it is dropped.
            return Ok(());
        }
        match self.family.wait_until(Instant::now() + ENDING) {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(format!("the bridge ended with {status}")),
            Ok(None) => Err("the bridge did not stop".to_owned()),
            Err(error) => Err(format!("the bridge is lost: {error}")),
        }
    }
}

/// The first URL in the output of a bridge, once its line is complete.
fn url(text: &str) -> Option<String> {
    let line = text.split_inclusive('\n').find(|line| line.contains("http://"))?;
    let url = line.split_whitespace().find(|word| word.starts_with("http://"))?;
    line.ends_with('\n').then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_when_its_line_is_whole() {
        assert_eq!(url("serving http://127.0.0.1:8"), None);
        let text = "a word\nserving http://127.0.0.1:80/mcp (Ctrl-C stops it)\n";
        assert_eq!(url(text).as_deref(), Some("http://127.0.0.1:80/mcp"));
        assert_eq!(url("no\n"), None);
    }
}
