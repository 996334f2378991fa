//! Owns what every command that talks to a server takes: which server, and how to treat it.
//! Does not own the commands, nor what the settings do.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use turnbuckle::Revision;

use crate::target::Target;

/// What every command that talks to a server takes.
#[derive(Args, Debug)]
pub(crate) struct Connection {
    /// The server: a command line that starts it, as one argument, its http(s) URL, or its
    /// name in an mcp.json.
    ///
    /// The command line is split into words as a shell would do it, but no shell runs it:
    /// variables and wildcards stay as they are. A single word is a name if --config is given,
    /// or if ~/.config/turnbuckle/mcp.json has it; ./notes is always a program. An mcp.json of the
    /// folder counts only if --config names it: it says which programs are started.
    ///
    /// Example: "uvx mcp-server-git --repository ." or https://mcp.example.com/mcp
    pub(crate) target: Target,

    /// Look the server up by its name in this file, as editors and desktop hosts have it.
    ///
    /// Example: turnbuckle tools notes --config ~/.config/mcp.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

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

    /// Refuse questions: the server is told that nobody can be asked, and no browser is opened
    /// to log in.
    ///
    /// So it is whenever stdin or stderr is no terminal.
    ///
    /// Example: turnbuckle call "turnbuckle serve" greet --no-input
    #[arg(long)]
    pub(crate) no_input: bool,

    /// A folder that the server may work in, as far as this command is concerned; can be
    /// repeated.
    ///
    /// Example: --root . --root ~/notes
    #[arg(long = "root", value_name = "PATH")]
    pub(crate) roots: Vec<PathBuf>,

    /// Show every message on stderr, as it is sent and received, with secrets masked.
    ///
    /// Example: turnbuckle info "turnbuckle serve" --wire
    #[arg(long)]
    pub(crate) wire: bool,

    /// Show what the server writes to its stderr and its log messages, as they come.
    ///
    /// Without it only the last lines of stderr are shown, and only when the server fails.
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

pub(super) fn revision() -> impl TypedValueParser<Value = Revision> {
    PossibleValuesParser::new(Revision::ALL.map(Revision::as_str))
        .try_map(|date| date.parse::<Revision>())
}

/// `5s`, `500ms`, `2m`, `1h`, `1.5s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
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
    use super::*;

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
}
