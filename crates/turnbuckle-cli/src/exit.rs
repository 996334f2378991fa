//! The exit statuses, and the sentence that goes with each of them.

use std::process::ExitCode;

use serde_json::Value;
use turnbuckle::{ErrorKind, RpcError, types::code};

use crate::{
    output::{complain, one_line, printable},
    target::Target,
};

/// How many of a server's last lines are worth showing.
pub(crate) const LAST_LINES: usize = 10;

/// Why the command does not exit with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The tool ran, and says that it failed.
    ToolFailed = 1,
    /// What was typed makes no sense. clap exits with the same.
    Usage = 2,
    /// No connection, or the server answered with an error or broke the protocol.
    Failed = 3,
    /// The server wants to know who asks, and nobody has logged in.
    LogIn = 4,
    /// SIGHUP: 128 plus its number, as shells count.
    HungUp = 129,
    /// Ctrl-C: 128 plus the number of SIGINT.
    Interrupted = 130,
    /// SIGTERM: 128 plus its number.
    Terminated = 143,
}

/// A failure, as it is told to whoever typed the command.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    sentence: String,
    /// Lines that belong below the sentence.
    details: Vec<String>,
}

impl Failure {
    pub(crate) fn new(status: Status, sentence: impl Into<String>) -> Failure {
        Failure { status, sentence: sentence.into(), details: Vec::new() }
    }

    pub(crate) fn usage(sentence: impl Into<String>) -> Failure {
        Failure::new(Status::Usage, sentence)
    }

    pub(crate) fn failed(sentence: impl Into<String>) -> Failure {
        Failure::new(Status::Failed, sentence)
    }

    pub(crate) fn with_details<T: Into<String>>(
        mut self,
        details: impl IntoIterator<Item = T>,
    ) -> Failure {
        self.details = details.into_iter().map(Into::into).collect();
        self
    }

    /// Adds the last lines that a server wrote to its stderr.
    pub(crate) fn with_last_lines(self, lines: &[String]) -> Failure {
        let shown = &lines[lines.len().saturating_sub(LAST_LINES)..];
        if shown.is_empty() {
            return self;
        }
        let heading = "the last lines the server wrote to its stderr:".to_owned();
        self.with_details(
            std::iter::once(heading).chain(shown.iter().map(|line| format!("  {line}"))),
        )
    }

    pub(crate) fn without_details(mut self) -> Failure {
        self.details.clear();
        self
    }

    /// Says what helps, where that is to log in at this server.
    pub(crate) fn at(mut self, target: &Target) -> Failure {
        if let (Status::LogIn, Target::Http(url)) = (self.status, target) {
            self.sentence.push_str(&format!("; log in first: turnbuckle login {url}"));
        }
        self
    }

    /// Says it on stderr.
    pub(crate) fn report(&self) {
        complain(&format!("error: {}", one_line(&self.sentence)));
        for line in &self.details {
            complain(&printable(line));
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status as u8)
    }

    #[cfg(test)]
    pub(crate) fn sentence(&self) -> &str {
        &self.sentence
    }
}

impl From<turnbuckle::Error> for Failure {
    fn from(error: turnbuckle::Error) -> Failure {
        let remote = error.as_rpc().filter(|_| error.kind() != ErrorKind::Refused);
        let sentence = match remote {
            Some(rpc) => match lacking(rpc) {
                Some(advice) => format!("{advice} ({})", rpc.message),
                None => format!("the server answered with an error: {rpc}"),
            },
            // Also what the person would not answer: that is no error of the server's.
            None => match (error.kind(), error.status()) {
                (ErrorKind::AuthorizationRequired, Some(status)) => refused_by(status),
                _ => error.to_string(),
            },
        };
        let status = match error.kind() {
            ErrorKind::AuthorizationRequired => Status::LogIn,
            _ => Status::Failed,
        };
        let failure = Failure::new(status, sentence);
        // The sentence itself has the very last line.
        if error.last_stderr().len() > 1 {
            failure.with_last_lines(error.last_stderr())
        } else {
            failure
        }
    }
}

fn refused_by(status: u16) -> String {
    match status {
        403 => "the server answered HTTP 403: the login or token does not allow this".to_owned(),
        _ => format!("the server answered HTTP {status}: it requires a login or a valid token"),
    }
}

/// What helps a server that needs what was not offered to it.
fn lacking(error: &RpcError) -> Option<&'static str> {
    if error.code != code::MISSING_CLIENT_CAPABILITY {
        return None;
    }
    let data: Value = error.data.as_ref()?.decode().ok()?;
    let required = data.get("requiredCapabilities")?;
    let advice = [
        (
            "elicitation",
            "the server wants to ask something, and nobody can be asked: that takes a terminal, and \
             no --no-input",
        ),
        (
            "sampling",
            "the server wants to use a model, and nobody can stand in for one: that takes a terminal, \
             and no --no-input",
        ),
        ("roots", "the server wants to know where it may work: say so with --root PATH"),
    ];
    advice.iter().find(|(name, _)| required.get(name).is_some()).map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_end_of_a_long_story_is_shown() {
        let lines: Vec<String> = (0..25).map(|line| format!("line {line}")).collect();
        let failure = Failure::failed("it broke").with_last_lines(&lines);
        assert_eq!(failure.details.len(), 1 + LAST_LINES);
        assert_eq!(failure.details.last().unwrap(), "  line 24");
        assert!(Failure::failed("it broke").with_last_lines(&[]).details.is_empty());
    }

    #[test]
    fn an_error_of_the_server_is_one_sentence_that_says_whose_it_is() {
        let rpc = turnbuckle::RpcError::invalid_params("there is no tool named `x`");
        let failure = Failure::from(turnbuckle::Error::from(rpc));
        assert_eq!(failure.status, Status::Failed);
        assert_eq!(
            failure.sentence(),
            "the server answered with an error: there is no tool named `x` (code -32602)"
        );
    }

    #[test]
    fn a_server_that_lacks_something_is_helped() {
        let sentence = |required: Value| {
            let rpc = RpcError::new(code::MISSING_CLIENT_CAPABILITY, "no")
                .with_data(&json!({"requiredCapabilities": required}));
            Failure::from(turnbuckle::Error::from(rpc)).sentence().to_owned()
        };
        let table = [
            (json!({"elicitation": {"form": {}}}), "--no-input"),
            (json!({"sampling": {}}), "a model"),
            (json!({"roots": {}}), "--root PATH"),
            (json!({"other": {}}), "the server answered with an error: no"),
        ];
        for (required, expected) in table {
            let sentence = sentence(required);
            assert!(sentence.contains(expected), "{sentence}");
        }
    }
}
