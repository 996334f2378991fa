//! The client that calls real peers: connects, runs every check, prints a line of JSON for each.
//!
//! Owns: connecting, time, what is printed. Does not own: what is checked.

mod checks;

use std::{
    process::{Command, ExitCode},
    time::Duration,
};

use serde_json::json;
use tokio::time::timeout;
use turnbuckle::{
    Client, ClientBuilder, Revision,
    transport::child_process::{ExitMethod, Spawn},
    types::{CreateMessageResult, ElicitAction, ElicitResult, Role, Root, TextContent},
};

use checks::Failure;

const USAGE: &str = "usage: interop-client [--revision R] (--url URL | --command WORD…)";

/// How long one check may take.
const ONE_CHECK: Duration = Duration::from_secs(20);

/// How long the server has to end.
const CLOSING: Duration = Duration::from_secs(5);

/// After how much of that it gets a signal, which leaves time to say so.
const GRACE: Duration = Duration::from_secs(4);

#[tokio::main]
async fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1).collect()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let client = match timeout(ONE_CHECK, options.connect()).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return failed_to_connect(&error.to_string()),
        Err(_) => return failed_to_connect("connecting took too long"),
    };
    say("connect", Ok(client.revision().to_string()));
    for check in checks::ALL {
        let late = Err(Failure::Failed("the check took too long".to_owned()));
        let outcome = timeout(ONE_CHECK, (check.run)(client.clone())).await.unwrap_or(late);
        say(check.name, outcome.map(|()| String::new()));
    }
    say("shutdown", shut_down(client).await.map(|()| String::new()));
    ExitCode::SUCCESS
}

fn failed_to_connect(sentence: &str) -> ExitCode {
    say("connect", Err(Failure::Failed(sentence.to_owned())));
    ExitCode::SUCCESS
}

/// One line for each check; the detail of a connection is its revision.
fn say(check: &str, outcome: Result<String, Failure>) {
    let (outcome, detail) = match outcome {
        Ok(detail) => ("pass", detail),
        Err(Failure::Absent(detail)) => ("absent", detail),
        Err(Failure::Failed(detail)) => ("fail", detail),
    };
    println!("{}", json!({ "check": check, "outcome": outcome, "detail": detail }));
}

/// A server that was started has to end because its input did, without a signal.
async fn shut_down(client: Client) -> Result<(), Failure> {
    let late = |_| Failure::Failed("closing took too long".to_owned());
    match timeout(CLOSING, client.close()).await.map_err(late)? {
        Some(report) if report.how != ExitMethod::Exited || !report.is_success() => {
            Err(Failure::Failed(format!("the server {report}")))
        }
        _ => Ok(()),
    }
}

#[derive(Debug, PartialEq)]
struct Options {
    revision: Option<Revision>,
    target: Target,
}

#[derive(Debug, PartialEq)]
enum Target {
    Url(String),
    Command(Vec<String>),
}

impl Options {
    fn parse(words: Vec<String>) -> Option<Options> {
        let mut words = words.into_iter();
        let mut word = words.next()?;
        let mut revision = None;
        if word == "--revision" {
            revision = Some(words.next()?.parse().ok()?);
            word = words.next()?;
        }
        let rest: Vec<String> = words.collect();
        let target = match (word.as_str(), rest.as_slice()) {
            ("--url", [url]) => Target::Url(url.clone()),
            ("--command", [_, ..]) => Target::Command(rest),
            _ => return None,
        };
        Some(Options { revision, target })
    }

    async fn connect(&self) -> turnbuckle::Result<Client> {
        let mut builder = builder();
        if let Some(revision) = self.revision {
            builder = builder.revision(revision);
        }
        match &self.target {
            Target::Url(url) => builder.connect(url).await,
            Target::Command(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                // A machine that is busy with other cells is no reason for a signal.
                builder.spawn(Spawn::new(command).close_grace(GRACE)).await
            }
        }
    }
}

/// A client whose user is called Ada and answers every question with that, whose model knows one
/// number, and who works at home.
fn builder() -> ClientBuilder {
    Client::builder()
        .info("interop-client", env!("CARGO_PKG_VERSION"))
        .on_elicitation(async |_| {
            let mut answer = ElicitResult::new(ElicitAction::Accept);
            answer.content = Some(json!({ "name": "Ada" }).into());
            Ok(answer)
        })
        .on_sampling(async |_| {
            Ok(CreateMessageResult::new(Role::Assistant, TextContent::new("forty-two"), "a-model"))
        })
        .roots([Root::new("file:///home/ada")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Options> {
        Options::parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn a_target_is_an_address_or_a_command_with_its_arguments() {
        let url = parse("--revision 2025-11-25 --url http://x/mcp").unwrap();
        assert_eq!(url.revision, Some(Revision::V2025_11_25));
        assert_eq!(url.target, Target::Url("http://x/mcp".to_owned()));
        let command = parse("--command a --url b").unwrap();
        assert_eq!(command.revision, None);
        assert_eq!(command.target, Target::Command(["a", "--url", "b"].map(str::to_owned).into()));
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in ["", "--url", "--url a b", "--command", "--revision 1 --url a", "a"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
