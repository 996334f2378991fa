//! Owns what TARGET means: which server the command talks to.
//! Does not own the connection to it.

use std::str::FromStr;

use turnbuckle::{HttpConfig, ProcessConfig, ServerConfig};

/// A server to talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A program to start, and its arguments. No shell ever sees them.
    Program { program: String, arguments: Vec<String> },
    /// A server on the web.
    Http(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let text = text.trim();
        if is_url(text) {
            return Ok(Target::Http(text.to_owned()));
        }
        let words = shell_words::split(text)
            .map_err(|_| "a quotation mark in this command line is not closed".to_owned())?;
        let mut words = words.into_iter();
        match words.next() {
            Some(program) if !program.is_empty() => {
                Ok(Target::Program { program, arguments: words.collect() })
            }
            _ => Err("give a command line that starts a server, or its URL".to_owned()),
        }
    }
}

impl Target {
    /// The one word that was given, if it can be a name: a path can't.
    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Target::Program { program, arguments } if arguments.is_empty() => {
                let is_path = program.contains(['/', std::path::MAIN_SEPARATOR]);
                (!is_path).then_some(program)
            }
            _ => None,
        }
    }

    /// How the server is reached.
    pub(crate) fn server(&self) -> ServerConfig {
        match self {
            Target::Program { program, arguments } => {
                ProcessConfig::new(program).args(arguments.clone()).into()
            }
            Target::Http(url) => HttpConfig::new(url).into(),
        }
    }
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(program: &str, arguments: &[&str]) -> Target {
        Target::Program {
            program: program.to_owned(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        }
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_would_and_nothing_more() {
        let table = [
            ("server", program("server", &[])),
            ("  server --stdio  ", program("server", &["--stdio"])),
            (r#"'my server' "a b" c\ d"#, program("my server", &["a b", "c d"])),
            ("server $HOME; rm *", program("server", &["$HOME;", "rm", "*"])),
            ("server ''", program("server", &[""])),
        ];
        for (text, target) in table {
            assert_eq!(text.parse(), Ok(target), "{text}");
        }
    }

    #[test]
    fn a_url_is_no_program() {
        for url in ["http://localhost:8000/mcp", "https://example.com", "HTTPS://example.com"] {
            assert_eq!(url.parse(), Ok(Target::Http(url.to_owned())));
        }
        assert_eq!("httpd".parse(), Ok(program("httpd", &[])));
    }

    #[test]
    fn a_single_word_can_be_a_name_and_a_path_can_not() {
        let word = |text: &str| text.parse::<Target>().unwrap().word().map(str::to_owned);
        assert_eq!(word("notes").as_deref(), Some("notes"));
        assert_eq!(word("'my notes'").as_deref(), Some("my notes"));
        for text in ["./notes", "/bin/notes", "notes --stdio", "http://localhost/mcp"] {
            assert_eq!(word(text), None, "{text}");
        }
    }

    #[test]
    fn nothing_to_start_is_an_error() {
        for text in ["", "   ", "''", "'unclosed"] {
            assert!(text.parse::<Target>().is_err(), "{text:?}");
        }
    }
}
