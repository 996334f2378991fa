//! A bridge that is served over HTTP, from its start to a good end, and how a client starts one
//! over stdio.

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

/// How long a bridge has to say where it is.
const STARTING: Duration = Duration::from_secs(30);

/// How long it has to end, with the server that it started.
const ENDING: Duration = Duration::from_secs(10);

/// Writes to a log that a program started, and that it ended by itself and well.
const LOGGED: &str = "echo started >> \"$0\"; \"$@\" && echo ended >> \"$0\"";

/// The command by which a client starts a bridge to a URL, and what is to be written to `log`.
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
    /// In the server's command line, which is in the bridge's, and in no other bridge's.
    mark: PathBuf,
}

impl RunningBridge {
    /// Starts one to the server that this command starts, and waits for its URL.
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
            // A moment, so that this does not only look.
            let ended = family.wait_until(Instant::now() + Duration::from_millis(20));
            if ended.is_ok_and(|ended| ended.is_some()) || Instant::now() > deadline {
                return Err("the bridge did not say its URL".to_owned());
            }
        }
    }

    /// Asks it to stop, as whoever runs it would, and waits for its end.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        let (program, mark) = (self.program.as_os_str(), self.mark.as_os_str());
        let told = signal(Say::Stop, |words| {
            words.first() == Some(&program.as_encoded_bytes())
                && words.contains(&mark.as_encoded_bytes())
        });
        if told.is_empty() && cfg!(not(target_os = "linux")) {
            // It can't be told: it is ended as it is dropped.
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

/// The first URL in what a bridge wrote, once the line is whole.
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

    #[test]
    fn a_client_is_given_a_command_that_says_how_the_bridge_ended() {
        let bridge: Program = ["turnbuckle", "bridge"].map(PathBuf::from).into();
        let words = over_stdio(&bridge, Some("2025-11-25"), "http://x/mcp", Path::new("/log"));
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).skip(3).collect();
        let wanted = "/log turnbuckle bridge --revision 2025-11-25 --stdio http://x/mcp";
        assert_eq!(words.join(" "), wanted);
    }
}
