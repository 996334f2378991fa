//! Owns the command line: commands, flags, and the words that `--help` has for them.
//! Does not own what the commands do.

#![expect(rustdoc::bare_urls, reason = "the docs are help texts, read in a terminal")]

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use turnbuckle::Revision;

use crate::{
    target::Target,
    values::{Object, Pair},
};

/// Talk to Model Context Protocol (MCP) servers from a terminal
///
/// See it work first:
///   turnbuckle demo
///
/// Look at a server and call it; a server is given as the command line that starts it,
/// or as its URL:
///   turnbuckle tools "turnbuckle serve"
///   turnbuckle call "turnbuckle serve" add a=2 b=40
///   turnbuckle listen http://127.0.0.1:8080/mcp
///
/// Exit status: 0 success, 1 the tool failed, 2 wrong usage, 3 no connection or a
/// broken protocol, 130 interrupted with Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "turnbuckle", version, verbatim_doc_comment, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show calls, progress and cancellation at work, on this machine alone
    ///
    /// Starts the demo server as a child process, calls it, shows progress, abandons a
    /// call halfway and lets the server's own counts prove that its handler stopped: in
    /// the modern era of the protocol and in the one before, and once more over HTTP, on a
    /// port of this machine that is closed again. Takes some fifteen seconds.
    ///
    /// Example:
    ///   turnbuckle demo
    #[command(verbatim_doc_comment)]
    Demo(Demo),
    /// List the tools of a server, with their arguments
    ///
    /// Examples:
    ///   turnbuckle tools "turnbuckle serve"
    ///   turnbuckle tools "uvx mcp-server-git" --output json
    ///   turnbuckle tools https://mcp.example.com/mcp --bearer-env MCP_TOKEN
    #[command(verbatim_doc_comment)]
    Tools(Tools),
    /// Call a tool and print its result; Ctrl-C cancels the call
    ///
    /// Values take the type that the tool's schema gives the argument: with `text` a
    /// string and `a` an integer, text=42 sends "42" and a=42 sends 42.
    ///
    /// Examples:
    ///   turnbuckle call "turnbuckle serve" echo text=hello
    ///   turnbuckle call "turnbuckle serve" add --json '{"a": 2}' b=40 --output json
    ///   turnbuckle call "turnbuckle serve" countdown from=20 --timeout 5s
    ///   turnbuckle call http://127.0.0.1:8080/mcp add a=2 b=40
    #[command(verbatim_doc_comment)]
    Call(Call),
    /// Print what a server tells of its changes, a line each, until Ctrl-C
    ///
    /// The first line is what the server agreed to tell. Without a choice all its lists are
    /// asked for: tools, prompts and resources. A line is a cue to ask again; none carries
    /// what is new. Ctrl-C unsubscribes; so does --timeout, and then the exit status is 0.
    ///
    /// Examples:
    ///   turnbuckle listen http://127.0.0.1:8080/mcp
    ///   turnbuckle listen "turnbuckle serve" --tools --output json
    ///   turnbuckle listen https://mcp.example.com/mcp --resource note://7
    #[command(verbatim_doc_comment)]
    Listen(Listen),
    /// Serve the demo tools, over standard input and output or over HTTP
    ///
    /// Without --http it is meant to be started by a client, and speaks both eras of the
    /// protocol. The tools are echo, add, sleep, countdown, announce, fail, panic and stats.
    ///
    /// Examples:
    ///   turnbuckle call "turnbuckle serve" stats
    ///   turnbuckle serve --http 127.0.0.1:8080
    #[command(verbatim_doc_comment)]
    Serve(Serve),
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Leave out the pauses that give people time to read.
    ///
    /// Example: turnbuckle demo --fast
    #[arg(long)]
    pub(crate) fast: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Tools {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Args, Debug)]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// The name of the tool; `turnbuckle tools TARGET` lists them.
    ///
    /// Example: echo
    pub(crate) tool: String,

    /// The tool's arguments. Arrays and objects are written as JSON.
    ///
    /// Example: text=hello count=3 'list=["a", "b"]'
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<Pair>,

    /// All arguments as one JSON object; each key=value replaces one of its members.
    ///
    /// Example: --json '{"a": 2, "b": 40}'
    #[arg(long, value_name = "OBJECT")]
    pub(crate) json: Option<Object>,
}

#[derive(Args, Debug)]
pub(crate) struct Listen {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// Ask for changes of the list of tools.
    ///
    /// Example: turnbuckle listen "turnbuckle serve" --tools
    #[arg(long)]
    pub(crate) tools: bool,

    /// Ask for changes of the list of prompts.
    ///
    /// Example: turnbuckle listen "my-server" --prompts
    #[arg(long)]
    pub(crate) prompts: bool,

    /// Ask for changes of the list of resources.
    ///
    /// Example: turnbuckle listen "my-server" --resources
    #[arg(long)]
    pub(crate) resources: bool,

    /// Ask for changes of this resource; can be repeated.
    ///
    /// Example: --resource note://7 --resource note://8
    #[arg(long = "resource", value_name = "URI")]
    pub(crate) watched: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Serve over HTTP at this address, path /mcp; its URL is printed to stderr.
    ///
    /// Port 0 takes a free one; unix:PATH makes a Unix socket. Ctrl-C and SIGTERM let running
    /// calls finish for up to 5 s; a second one does not wait.
    ///
    /// Example: --http 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,

    /// A name by which clients on other machines reach this server; can be repeated.
    ///
    /// Requests to any other name are refused, except those of this machine. An address that
    /// other machines reach is not served without it.
    ///
    /// Example: --http 0.0.0.0:8080 --public-host mcp.example.com
    #[arg(long = "public-host", value_name = "NAME", requires = "http")]
    pub(crate) public_hosts: Vec<String>,
}

/// What every command that talks to a server takes.
#[derive(Args, Debug)]
pub(crate) struct Connection {
    /// The server: a command line that starts it, as one argument, or its http(s) URL.
    ///
    /// The command line is split into words as a shell would do it, but no shell runs it:
    /// variables and wildcards stay as they are. Over HTTP revision 2026-07-28 is spoken.
    ///
    /// Example: "uvx mcp-server-git --repository ." or https://mcp.example.com/mcp
    pub(crate) target: Target,

    /// Give up after this long, all in all: starting the server, connecting, the call.
    ///
    /// Without it a call may take as long as it takes. The server is told to stop, and
    /// gets a moment to exit.
    ///
    /// Example: --timeout 5s (or 500ms, 1.5s, 2m, 1h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Speak this revision of the protocol instead of the newest one in common.
    ///
    /// Example: --revision 2025-11-25
    #[arg(long, value_parser = revision())]
    pub(crate) revision: Option<Revision>,

    /// How to print: text for people, or json, on one line, for programs.
    ///
    /// Example: --output json
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,

    /// Let the server see a variable of this environment, or set one for it; can be repeated.
    ///
    /// A server sees only HOME, LANG, PATH, USER and a few more like them, so that it does
    /// not learn secrets that were meant for others.
    ///
    /// Example: --env GITHUB_TOKEN --env LOG_LEVEL=debug
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) environment: Vec<Variable>,

    /// Send this header with every request to a URL; can be repeated.
    ///
    /// It never follows a redirect to another origin. What is typed here can be seen by
    /// others on this machine: for a secret there is --bearer-env.
    ///
    /// Example: --header 'X-Tenant: acme'
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<Header>,

    /// Send the value of this variable as a bearer token with every request to a URL.
    ///
    /// Example: --bearer-env MCP_TOKEN
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) bearer_env: Option<String>,

    /// Reach a URL through this Unix socket; its host is then only a name.
    ///
    /// Example: turnbuckle tools http://localhost/mcp --unix-socket /run/mcp.sock
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,

    /// Show what the server writes to its stderr, as it comes.
    ///
    /// Without it only the last lines are shown, and only when the server fails.
    ///
    /// Example: turnbuckle tools "my-server" --verbose
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: what the server sent, on one line.
    Json,
}

/// A variable for the server's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// As it is here.
    Passed(String),
    Set(String, String),
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Variable, String> {
        let (name, variable) = match text.split_once('=') {
            Some((name, value)) => (name, Variable::Set(name.to_owned(), value.to_owned())),
            None => (text, Variable::Passed(text.to_owned())),
        };
        if name.is_empty() { Err("the name is missing".to_owned()) } else { Ok(variable) }
    }
}

/// A header for requests. What it says may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Header, String> {
        match text.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Header { name: name.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err("headers are written as 'Name: value'".to_owned()),
        }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("name", &self.name).finish_non_exhaustive()
    }
}

fn revision() -> impl TypedValueParser<Value = Revision> {
    PossibleValuesParser::new(Revision::ALL.map(Revision::as_str))
        .try_map(|date| date.parse::<Revision>())
}

/// `5s`, `500ms`, `2m`, `1h`, `1.5s`.
fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let hint = || "give a number and a unit: 500ms, 5s, 2m or 1h".to_owned();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(hint)?;
    if !digits.chars().all(|letter| letter.is_ascii_digit() || letter == '.') {
        return Err(hint());
    }
    let count: f64 = digits.parse().map_err(|_| hint())?;
    match Duration::try_from_secs_f64(count * seconds) {
        Ok(Duration::ZERO) => Err("it must be longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(_) => Err("this is too long".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_fits_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_have_a_number_and_a_unit() {
        let table = [
            ("500ms", Duration::from_millis(500)),
            ("5s", Duration::from_secs(5)),
            ("1.5s", Duration::from_millis(1500)),
            ("2m", Duration::from_secs(120)),
            ("1h", Duration::from_secs(3600)),
        ];
        for (text, expected) in table {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for text in ["", "5", "s", "-5s", "5 s", "5x", "1e3s", "0s", "infs", "NaNs", "5.5.5s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(duration(&format!("{}h", "9".repeat(40))).is_err());
    }

    #[test]
    fn a_variable_is_passed_or_set() {
        assert_eq!("A".parse(), Ok(Variable::Passed("A".into())));
        assert_eq!("A=b=c".parse(), Ok(Variable::Set("A".into(), "b=c".into())));
        assert!("=b".parse::<Variable>().is_err());
        assert!("".parse::<Variable>().is_err());
    }

    #[test]
    fn a_header_has_a_name_and_a_value_that_is_not_shown() {
        let header: Header = "X-Key:  a: b ".parse().unwrap();
        assert_eq!((&*header.name, &*header.value), ("X-Key", "a: b"));
        assert_eq!(format!("{header:?}"), r#"Header { name: "X-Key", .. }"#);
        for text in ["", "X-Key", ": b", " : b"] {
            assert!(text.parse::<Header>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_command_and_flag_is_explained_with_an_example() {
        let cli = Cli::command();
        let explained = |help: Option<String>, what: &str| {
            let help = help.unwrap_or_default();
            assert!(help.contains("Example"), "{what} has no example: {help:?}");
        };
        for command in cli.get_subcommands() {
            let name = command.get_name();
            explained(command.get_long_about().map(ToString::to_string), name);
            for argument in command.get_arguments() {
                let what = format!("{name} {}", argument.get_id());
                explained(argument.get_long_help().map(ToString::to_string), &what);
            }
        }
    }
}
