//! Owns what TARGET means: which server the command talks to.
//! Does not own the connection to it.

use std::{
    net::Ipv6Addr,
    path::{MAIN_SEPARATOR, Path},
    str::FromStr,
};

use turnbuckle_host::{HttpConfig, ProcessConfig, ServerConfig};

use crate::exit::Failure;

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
        if let Some(scheme) = scheme(text) {
            return Err(format!(
                "there is no way to a server at {scheme}://; an address begins with https:// or http://"
            ));
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
                let is_path = program.contains(['/', MAIN_SEPARATOR]);
                (!is_path).then_some(program)
            }
            _ => None,
        }
    }

    /// Fails if what was given is an address without its scheme, and no program either.
    pub(crate) fn is_no_bare_address(&self) -> Result<(), Failure> {
        match self {
            Target::Program { program, arguments }
                if arguments.is_empty() && is_bare_address(program) && !exists(program) =>
            {
                Err(Failure::usage(format!(
                    "there is no program `{program}`; as an address it is http://{program}"
                )))
            }
            _ => Ok(()),
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

/// Fails if requests can't be sent to this address.
pub(crate) fn check_address(url: &str) -> Result<(), Failure> {
    if !is_url(url) {
        return Err(Failure::usage("the address of a server begins with https:// or http://"));
    }
    let authority = url.split("//").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
    if authority.is_some_and(|authority| authority.contains('@')) {
        return Err(Failure::usage(
            "an address must not contain a user or a password: give a token with --bearer-env \
             VARIABLE, or --header 'Authorization: …'",
        ));
    }
    Ok(())
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

/// What stands before `://`, as RFC 3986 §3.1 has it. A single letter is a drive.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(plain);
    is_scheme.then_some(scheme)
}

/// Whether it looks like `host:port` or `host:port/path`.
fn is_bare_address(text: &str) -> bool {
    let authority = text.split('/').next().unwrap_or_default();
    let Some((host, port)) = authority.rsplit_once(':') else { return false };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    let version_6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match version_6 {
        Some(host) => host.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(plain),
    };
    is_host && port.parse::<u16>().is_ok()
}

/// Whether there is such a program: at its path, or by its name in PATH.
fn exists(program: &str) -> bool {
    if program.contains(['/', MAIN_SEPARATOR]) {
        return Path::new(program).exists();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).exists())
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
    fn another_scheme_is_no_program() {
        for text in ["htp://x/mcp", "ws://127.0.0.1:9", "stdio+x://a b", "sse://it's"] {
            let sentence = text.parse::<Target>().unwrap_err();
            let scheme = text.split(':').next().unwrap();
            assert!(sentence.contains(&format!("at {scheme}://; ")), "{sentence}");
        }
        for text in ["C://server.exe", "proxy htp://x/mcp", "./a://b"] {
            assert!(matches!(text.parse(), Ok(Target::Program { .. })), "{text}");
        }
    }

    #[test]
    fn a_host_with_its_port_looks_like_an_address() {
        for text in ["127.0.0.1:18080/mcp", "localhost:1", "a-b.example:443/", "[::1]:80/x:y"] {
            assert!(is_bare_address(text), "{text}");
        }
        for text in
            ["server", "a:b", ":80", "a:", "a:65536", "./a:80", "::1:80", "[x]:80", "a b:80"]
        {
            assert!(!is_bare_address(text), "{text}");
        }
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
