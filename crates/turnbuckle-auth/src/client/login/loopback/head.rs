//! Owns what a request to the listener is: the answer to the login, or something else. Pure.
//! Does not own reading it from a connection.

use crate::Secret;

/// What tells the answer to a login from everything else.
pub(super) struct Expected {
    path: &'static str,
    hosts: [String; 2],
    /// A page that the browser happens to show can send requests here too; this it can't know.
    state: Option<Secret>,
}

impl Expected {
    pub(super) fn new(path: &'static str, port: u16, state: Option<String>) -> Expected {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
        Expected { path, hosts, state: state.map(Secret::new) }
    }
}

/// What was asked. It can't be printed: there may be a code in it.
#[derive(PartialEq, Eq)]
pub(super) enum Asked {
    /// The head has not come whole.
    Unfinished,
    /// The answer to the login.
    Answer { query: Secret, outcome: Outcome },
    /// The answer to another login, or to none.
    Stray,
    /// Another page, such as the icon that browsers ask for.
    NotFound,
    /// The page, but not by GET.
    NotAllowed,
    /// No request, or one for another host.
    Bad,
    /// More than is read.
    TooLong,
}

/// What the page tells the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Code,
    Error,
}

/// Looks at what has come so far.
pub(super) fn read(bytes: &[u8], expected: &Expected) -> Asked {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Asked::Unfinished;
    };
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else { return Asked::Bad };
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Asked::Bad;
    };
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    // A name that somebody made point here (DNS rebinding) is not ours.
    let ours = |host: &str| expected.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if ours(host) => {}
        _ => return Asked::Bad,
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match method {
        _ if path != expected.path => Asked::NotFound,
        "GET" => judge(query, expected),
        _ => Asked::NotAllowed,
    }
}

fn judge(query: &str, expected: &Expected) -> Asked {
    let query = query.split('#').next().unwrap_or_default();
    let value = |wanted: &str| {
        url::form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| Secret::new(value))
    };
    let outcome = match (value("code"), value("error")) {
        (_, Some(_)) => Outcome::Error,
        (Some(_), None) => Outcome::Code,
        (None, None) => return Asked::Stray,
    };
    if expected.state.is_some() && value("state") != expected.state {
        return Asked::Stray;
    }
    Asked::Answer { query: Secret::new(query), outcome }
}

impl Asked {
    /// What the browser is told. Nothing of what it sent is in it.
    pub(super) fn response(&self) -> String {
        let (status, text) = match self {
            Asked::Answer { outcome: Outcome::Code, .. } => {
                ("200 OK", "The login has been passed on. You can close this page.")
            }
            Asked::Answer { outcome: Outcome::Error, .. } => {
                ("200 OK", "The login was refused. You can close this page.")
            }
            Asked::Stray => ("400 Bad Request", "This is not the login that is waited for."),
            Asked::NotFound => ("404 Not Found", "There is nothing here."),
            Asked::NotAllowed => ("405 Method Not Allowed", "Only GET is answered here."),
            Asked::TooLong => ("431 Request Header Fields Too Large", "That was too much."),
            Asked::Unfinished | Asked::Bad => ("400 Bad Request", "That was not understood."),
        };
        let allow = if *self == Asked::NotAllowed { "allow: GET\r\n" } else { "" };
        let page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Login</title>\
             <p>{text}</p></html>"
        );
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\n\
             content-length: {}\r\nconnection: close\r\ncache-control: no-store\r\n\
             referrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
             content-security-policy: default-src 'none'; frame-ancestors 'none'\r\n\
             {allow}\r\n{page}",
            page.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(head: &str) -> Asked {
        read(head.as_bytes(), &Expected::new("/callback", 7, Some("s t".into())))
    }

    fn get(target: &str) -> Asked {
        ask(&format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n"))
    }

    #[test]
    fn the_answer_is_told_from_everything_else() {
        for (query, outcome) in
            [("code=c&state=s+t", Outcome::Code), ("state=s%20t&error=no", Outcome::Error)]
        {
            let answer = Asked::Answer { query: Secret::new(query), outcome };
            assert!(get(&format!("/callback?{query}")) == answer, "{query}");
        }
        for (target, expected) in [
            ("/callback", Asked::Stray),
            ("/callback?code=c", Asked::Stray),
            ("/callback?code=c&state=other", Asked::Stray),
            ("/callback?state=s+t", Asked::Stray),
            ("/callback/?code=c&state=s+t", Asked::NotFound),
            ("/favicon.ico", Asked::NotFound),
            ("/", Asked::NotFound),
            ("http://127.0.0.1:7/callback?code=c&state=s+t", Asked::NotFound),
        ] {
            assert!(get(target) == expected, "{target}");
        }
    }

    #[test]
    fn what_is_no_request_of_a_browser_is_turned_away() {
        let target = "/callback?code=c&state=s+t";
        for (head, expected) in [
            (format!("POST {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n"), Asked::NotAllowed),
            (format!("HEAD {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n"), Asked::NotAllowed),
            (format!("GET {target} HTTP/1.1\r\nHost: evil.example:7\r\n\r\n"), Asked::Bad),
            (format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:8\r\n\r\n"), Asked::Bad),
            (format!("GET {target} HTTP/1.1\r\n\r\n"), Asked::Bad),
            (format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\nhost: x\r\n\r\n"), Asked::Bad),
            (format!("GET {target} HTTP/2\r\nHost: 127.0.0.1:7\r\n\r\n"), Asked::Bad),
            (format!("GET {target}\r\nHost: 127.0.0.1:7\r\n\r\n"), Asked::Bad),
            ("\r\n\r\n".into(), Asked::Bad),
            (format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n"), Asked::Unfinished),
            (String::new(), Asked::Unfinished),
        ] {
            assert!(ask(&head) == expected, "{head}");
        }
        let expected = Expected::new("/callback", 7, None);
        assert!(read(b"\xff\xfe\r\n\r\n", &expected) == Asked::Bad);
    }

    #[test]
    fn the_page_shows_nothing_of_what_was_sent() {
        let asked = get("/callback?code=<script>&state=s+t");
        let page = asked.response();
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && !page.contains("script>"), "{page}");
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        for header in ["cache-control: no-store", "connection: close", "content-security-policy:"] {
            assert!(head.contains(header), "{head}");
        }
        assert!(get("/").response().starts_with("HTTP/1.1 404"));
        assert!(Asked::NotAllowed.response().contains("\r\nallow: GET\r\n"));
    }
}
