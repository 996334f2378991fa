//! Owns what a request to the listener is: the answer to the login, or something else. Pure.
//! Does not own reading it from a connection.

use crate::Secret;

/// What tells the answer to a login from everything else.
pub(super) struct ExpectedCallback {
    path: &'static str,
    hosts: [String; 2],
    /// A page that the browser happens to show can send requests here too; this it can't know.
    state: Option<Secret>,
}

impl ExpectedCallback {
    pub(super) fn new(path: &'static str, port: u16, state: Option<String>) -> ExpectedCallback {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
        ExpectedCallback { path, hosts, state: state.map(Secret::new) }
    }
}

/// What was asked. It can't be printed: there may be a code in it.
#[derive(PartialEq, Eq)]
pub(super) enum CallbackRequest {
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
pub(super) fn read(bytes: &[u8], expected: &ExpectedCallback) -> CallbackRequest {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return CallbackRequest::Unfinished;
    };
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else { return CallbackRequest::Bad };
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return CallbackRequest::Bad;
    };
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    // A name that somebody made point here (DNS rebinding) is not ours.
    let ours = |host: &str| expected.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if ours(host) => {}
        _ => return CallbackRequest::Bad,
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match method {
        _ if path != expected.path => CallbackRequest::NotFound,
        "GET" => judge(query, expected),
        _ => CallbackRequest::NotAllowed,
    }
}

fn judge(query: &str, expected: &ExpectedCallback) -> CallbackRequest {
    let query = query.split('#').next().unwrap_or_default();
    let value = |wanted: &str| {
        url::form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| Secret::new(value))
    };
    let outcome = match (value("code"), value("error")) {
        (_, Some(_)) => Outcome::Error,
        (Some(_), None) => Outcome::Code,
        (None, None) => return CallbackRequest::Stray,
    };
    if expected.state.is_some() && value("state") != expected.state {
        return CallbackRequest::Stray;
    }
    CallbackRequest::Answer { query: Secret::new(query), outcome }
}

impl CallbackRequest {
    /// What the browser is told. Nothing of what it sent is in it.
    pub(super) fn response(&self) -> String {
        let (status, text) = match self {
            CallbackRequest::Answer { outcome: Outcome::Code, .. } => {
                ("200 OK", "The login has been passed on. You can close this page.")
            }
            CallbackRequest::Answer { outcome: Outcome::Error, .. } => {
                ("200 OK", "The login was refused. You can close this page.")
            }
            CallbackRequest::Stray => {
                ("400 Bad Request", "This is not the login that is waited for.")
            }
            CallbackRequest::NotFound => ("404 Not Found", "There is nothing here."),
            CallbackRequest::NotAllowed => ("405 Method Not Allowed", "Only GET is answered here."),
            CallbackRequest::TooLong => {
                ("431 Request Header Fields Too Large", "That was too much.")
            }
            CallbackRequest::Unfinished | CallbackRequest::Bad => {
                ("400 Bad Request", "That was not understood.")
            }
        };
        let allow = if *self == CallbackRequest::NotAllowed { "allow: GET\r\n" } else { "" };
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

    fn ask(head: &str) -> CallbackRequest {
        read(head.as_bytes(), &ExpectedCallback::new("/callback", 7, Some("s t".into())))
    }

    fn get(target: &str) -> CallbackRequest {
        ask(&format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n"))
    }

    #[test]
    fn the_answer_is_told_from_everything_else() {
        for (query, outcome) in
            [("code=c&state=s+t", Outcome::Code), ("state=s%20t&error=no", Outcome::Error)]
        {
            let answer = CallbackRequest::Answer { query: Secret::new(query), outcome };
            assert!(get(&format!("/callback?{query}")) == answer, "{query}");
        }
        for (target, expected) in [
            ("/callback", CallbackRequest::Stray),
            ("/callback?code=c", CallbackRequest::Stray),
            ("/callback?code=c&state=other", CallbackRequest::Stray),
            ("/callback?state=s+t", CallbackRequest::Stray),
            ("/callback/?code=c&state=s+t", CallbackRequest::NotFound),
            ("/favicon.ico", CallbackRequest::NotFound),
            ("/", CallbackRequest::NotFound),
            ("http://127.0.0.1:7/callback?code=c&state=s+t", CallbackRequest::NotFound),
        ] {
            assert!(get(target) == expected, "{target}");
        }
    }

    #[test]
    fn what_is_no_request_of_a_browser_is_turned_away() {
        let target = "/callback?code=c&state=s+t";
        for (head, expected) in [
            (
                format!("POST {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n"),
                CallbackRequest::NotAllowed,
            ),
            (
                format!("HEAD {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n"),
                CallbackRequest::NotAllowed,
            ),
            (
                format!("GET {target} HTTP/1.1\r\nHost: evil.example:7\r\n\r\n"),
                CallbackRequest::Bad,
            ),
            (format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:8\r\n\r\n"), CallbackRequest::Bad),
            (format!("GET {target} HTTP/1.1\r\n\r\n"), CallbackRequest::Bad),
            (
                format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\nhost: x\r\n\r\n"),
                CallbackRequest::Bad,
            ),
            (format!("GET {target} HTTP/2\r\nHost: 127.0.0.1:7\r\n\r\n"), CallbackRequest::Bad),
            (format!("GET {target}\r\nHost: 127.0.0.1:7\r\n\r\n"), CallbackRequest::Bad),
            ("\r\n\r\n".into(), CallbackRequest::Bad),
            (
                format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n"),
                CallbackRequest::Unfinished,
            ),
            (String::new(), CallbackRequest::Unfinished),
        ] {
            assert!(ask(&head) == expected, "{head}");
        }
        let expected = ExpectedCallback::new("/callback", 7, None);
        assert!(read(b"\xff\xfe\r\n\r\n", &expected) == CallbackRequest::Bad);
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
        assert!(CallbackRequest::NotAllowed.response().contains("\r\nallow: GET\r\n"));
    }
}
