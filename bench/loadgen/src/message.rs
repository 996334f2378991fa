//! The raw messages of both eras.

use std::fmt::Write;

use crate::http::Endpoint;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

impl Era {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Modern, Self::Legacy].into_iter().find(|era| era.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}"#;

/// What follows the answer to `initialize`.
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A request. `params` and `meta` are the insides of those objects, without braces; both may be
/// empty.
pub(crate) fn request(era: Era, id: u64, method: &str, params: &str, meta: &str) -> String {
    let comma = |left: &str, right: &str| match left.is_empty() || right.is_empty() {
        true => "",
        false => ",",
    };
    let own_meta = match era {
        Era::Modern => META,
        Era::Legacy => "",
    };
    let meta = format!("{own_meta}{}{meta}", comma(own_meta, meta));
    let meta = match meta.is_empty() {
        true => meta,
        false => format!(r#""_meta":{{{meta}}}"#),
    };
    let comma = comma(params, &meta);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}{meta}}}}}"#
    )
}

/// A call of a tool; `arguments` without braces.
pub(crate) fn call(era: Era, id: u64, tool: &str, arguments: &str, meta: &str) -> String {
    let params = format!(r#""name":"{tool}","arguments":{{{arguments}}}"#);
    request(era, id, "tools/call", &params, meta)
}

/// Text of constant length, so that every request is as long as the others (until id 10⁹).
pub(crate) fn echo_text(id: u64) -> String {
    format!("hello from the neutral load generator #{id:09}")
}

pub(crate) fn echo(era: Era, id: u64) -> String {
    call(era, id, "echo", &format!(r#""text":"{}""#, echo_text(id)), "")
}

pub(crate) fn initialize(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1.0.0"}}}}}}"#
    )
}

pub(crate) fn cancelled(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"bench"}}}}"#
    )
}

/// What one load scenario repeats, on any wire.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    Echo,
    Add,
    /// `echo` of one MiB of this text.
    Large(std::rc::Rc<str>),
    List,
}

impl Load {
    /// Reads the part of a scenario's name after the wire.
    pub(crate) fn parse(kind: &str) -> Option<Self> {
        match kind {
            "echo" => Some(Self::Echo),
            "add" => Some(Self::Add),
            "large" => Some(Self::Large("x".repeat(1 << 20).into())),
            "list" => Some(Self::List),
            _ => None,
        }
    }

    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::List => "tools/list",
            _ => "tools/call",
        }
    }

    pub(crate) fn tool(&self) -> Option<&'static str> {
        match self {
            Self::Echo | Self::Large(_) => Some("echo"),
            Self::Add => Some("add"),
            Self::List => None,
        }
    }

    pub(crate) fn request(&self, era: Era, id: u64) -> String {
        match self {
            Self::Echo => echo(era, id),
            Self::Add => call(era, id, "add", &format!(r#""a":{id},"b":1"#), ""),
            Self::Large(text) => call(era, id, "echo", &format!(r#""text":"{text}""#), ""),
            Self::List => request(era, id, "tools/list", "", ""),
        }
    }

    /// Whether the answer is the one to that request.
    pub(crate) fn is_answered(&self, id: u64, answer: &[u8]) -> bool {
        let contains = |text: &str| memchr::memmem::find(answer, text.as_bytes()).is_some();
        match self {
            Self::Echo => contains(&echo_text(id)),
            Self::Add => contains(&(id + 1).to_string()),
            Self::Large(text) => answer.len() > text.len() && contains("xxxxxxxx"),
            Self::List => contains("dummy_0999"),
        }
    }
}

/// A whole HTTP request.
pub(crate) fn post(
    endpoint: &Endpoint,
    era: Era,
    session: Option<&str>,
    method: &str,
    name: Option<&str>,
    body: &str,
) -> Vec<u8> {
    let mut text = String::with_capacity(512 + body.len());
    let mut header = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("a string takes everything");
        text.push_str("\r\n");
    };
    header(format_args!("POST {} HTTP/1.1", endpoint.path));
    header(format_args!("Host: {}", endpoint.address));
    header(format_args!("Content-Type: application/json"));
    header(format_args!("Accept: application/json, text/event-stream"));
    match era {
        Era::Modern => {
            header(format_args!("MCP-Protocol-Version: {MODERN}"));
            header(format_args!("Mcp-Method: {method}"));
            if let Some(name) = name {
                header(format_args!("Mcp-Name: {name}"));
            }
        }
        Era::Legacy => {
            if method != "initialize" {
                header(format_args!("MCP-Protocol-Version: {LEGACY}"));
            }
            if let Some(session) = session {
                header(format_args!("Mcp-Session-Id: {session}"));
            }
        }
    }
    header(format_args!("Content-Length: {}", body.len()));
    header(format_args!(""));
    text.push_str(body);
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_both_eras_are_json() {
        for era in [Era::Modern, Era::Legacy] {
            for meta in ["", r#""progressToken":7"#] {
                for params in ["", r#""a":1"#] {
                    let text = request(era, 3, "x/y", params, meta);
                    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(value["id"], 3);
                    let token = &value["params"]["_meta"]["progressToken"];
                    assert_eq!(token.is_null(), meta.is_empty());
                    let version =
                        &value["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
                    assert_eq!(version.is_null(), era == Era::Legacy);
                }
            }
        }
    }

    #[test]
    fn an_answer_belongs_to_its_request() {
        assert!(Load::Echo.is_answered(7, echo_text(7).as_bytes()));
        assert!(!Load::Echo.is_answered(7, echo_text(8).as_bytes()));
        assert!(Load::Add.is_answered(7, br#"{"sum":8}"#));
        let large = Load::parse("large").unwrap();
        assert!(!large.is_answered(7, b"xxxxxxxx"));
    }
}
