use http::{HeaderName, HeaderValue};

use super::*;

/// What a conforming client sends, with some headers replaced: an empty list takes one away.
fn request(changes: &[(&str, &[&str])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("host", "localhost:8080"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("content-length", "100"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, values) in changes {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.remove(&name);
        for value in *values {
            headers.append(&name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
    }
    headers
}

fn status(guard: &Guard, changes: &[(&str, &[&str])]) -> u16 {
    let uri = Uri::from_static("/mcp");
    match guard.judge(&Method::POST, &uri, &request(changes)) {
        Ok(()) => 200,
        Err(refusal) => refusal.status.as_u16(),
    }
}

fn public() -> Guard {
    let mut guard = Guard::loopback();
    guard.allow_host("mcp.example.com").unwrap();
    guard.allow_host("ports.example.com:8443").unwrap();
    guard.allow_host("default.example.com:443").unwrap();
    guard.allow_host("[2001:db8::1]").unwrap();
    guard.allow_origin("https://app.example.com").unwrap();
    guard.allow_origin("vscode-webview://panel").unwrap();
    guard
}

#[test]
fn only_hosts_of_this_server_are_served() {
    for (host, loopback, named) in [
        ("localhost:8080", 200, 200),
        ("LOCALHOST", 200, 200),
        ("localhost.", 200, 200),
        ("app.localhost:1", 200, 200),
        ("127.0.0.1:8080", 200, 200),
        ("127.9.9.9", 200, 200),
        ("[::1]:8080", 200, 200),
        ("mcp.example.com", 403, 200),
        ("MCP.Example.COM.:8443", 403, 200),
        ("mcp.example.com:443", 403, 200),
        ("ports.example.com:8443", 403, 200),
        ("ports.example.com", 403, 403),
        ("ports.example.com:443", 403, 403),
        ("default.example.com", 403, 200),
        ("default.example.com:443", 403, 200),
        ("default.example.com:80", 403, 403),
        ("[2001:DB8:0::1]:9", 403, 200),
        ("[2001:db8::2]", 403, 403),
        ("evil.example.com", 403, 403),
        ("example.com", 403, 403),
        ("mcp.example.com.evil.example", 403, 403),
        ("localhost.evil.example", 403, 403),
        ("127.0.0.1.evil.example", 403, 403),
        ("0.0.0.0:8080", 403, 403),
        ("192.168.0.1", 403, 403),
        ("", 400, 400),
        ("user@localhost", 400, 400),
        ("localhost:99999", 400, 400),
        ("localhost:http", 400, 400),
        ("localhost, localhost", 400, 400),
        ("[::1", 400, 400),
        ("::1", 400, 400),
        ("localhöst", 400, 400),
    ] {
        assert_eq!(status(&Guard::loopback(), &[("host", &[host])]), loopback, "{host}");
        assert_eq!(status(&public(), &[("host", &[host])]), named, "{host}");
    }
    assert_eq!(status(&public(), &[("host", &[])]), 400);
    assert_eq!(status(&public(), &[("host", &["localhost", "localhost"])]), 400);
}

#[test]
fn the_request_line_goes_before_the_host_header() {
    for (uri, host, expected) in [
        ("https://localhost:8080/mcp", &[][..], 200),
        ("https://localhost:8080/mcp", &["evil.example.com"], 200),
        ("https://evil.example.com/mcp", &["localhost"], 403),
        ("http://evil.example.com:8080/mcp", &[], 403),
    ] {
        let uri = Uri::from_static(uri);
        let outcome = Guard::loopback().judge(&Method::POST, &uri, &request(&[("host", host)]));
        let status = outcome.map_or_else(|refusal| refusal.status.as_u16(), |()| 200);
        assert_eq!(status, expected, "{uri} {host:?}");
    }
}

#[test]
fn a_page_may_call_its_own_host_and_listed_ones_may() {
    for (host, origin, expected) in [
        // This machine, whatever it is called.
        ("localhost:8080", "http://localhost:8080", 200),
        ("localhost:8080", "http://localhost:3000", 200),
        ("localhost:8080", "https://127.0.0.1", 200),
        ("127.0.0.1:8080", "http://app.localhost:5173", 200),
        ("[::1]:8080", "http://localhost", 200),
        ("localhost:8080", "evil://localhost", 403),
        ("localhost:8080", "http://localhost.evil.example", 403),
        // A page of this machine is foreign to a public host.
        ("mcp.example.com", "http://localhost:3000", 403),
        // The same host, with default ports said or not.
        ("mcp.example.com", "https://mcp.example.com", 200),
        ("mcp.example.com", "HTTP://MCP.example.com", 200),
        ("mcp.example.com", "https://mcp.example.com:443", 200),
        ("mcp.example.com:443", "https://mcp.example.com", 200),
        ("mcp.example.com:80", "http://mcp.example.com", 200),
        ("mcp.example.com:8443", "https://mcp.example.com:8443", 200),
        ("[2001:db8::1]:8443", "https://[2001:db8:0::1]:8443", 200),
        ("mcp.example.com:80", "https://mcp.example.com", 403),
        ("mcp.example.com", "https://mcp.example.com:8443", 403),
        ("mcp.example.com:8443", "https://mcp.example.com", 403),
        ("mcp.example.com", "ftp://mcp.example.com", 403),
        ("mcp.example.com", "https://example.com", 403),
        // Listed.
        ("mcp.example.com", "https://app.example.com", 200),
        ("mcp.example.com", "https://APP.example.com:443", 200),
        ("localhost:8080", "https://app.example.com", 200),
        ("mcp.example.com", "vscode-webview://panel", 200),
        ("mcp.example.com", "http://app.example.com", 403),
        ("mcp.example.com", "https://app.example.com:8443", 403),
        ("mcp.example.com", "https://app.example.com.evil.example", 403),
        ("mcp.example.com", "https://sub.app.example.com", 403),
        // No origin at all.
        ("localhost:8080", "null", 403),
        ("localhost:8080", "", 403),
        ("localhost:8080", "http://localhost:8080/", 403),
        ("localhost:8080", "http://user@localhost:8080", 403),
        ("localhost:8080", "http://localhost:8080, http://localhost:8080", 403),
        ("localhost:8080", "http://localhöst", 403),
    ] {
        let changes: &[(&str, &[&str])] = &[("host", &[host]), ("origin", &[origin])];
        assert_eq!(status(&public(), changes), expected, "{host} {origin}");
    }
    let twice = ["http://localhost:8080", "http://localhost:8080"];
    assert_eq!(status(&public(), &[("origin", &twice)]), 403);
}

#[test]
fn a_name_that_was_rebound_to_this_machine_is_refused() {
    for guard in [Guard::loopback(), Guard::any_host(), public()] {
        for host in ["evil.example.com", "evil.example.com:8080"] {
            let origin = format!("http://{host}");
            assert_eq!(status(&guard, &[("host", &[host]), ("origin", &[&origin])]), 403);
        }
        // The page's own request comes before: its method must not hide the reason.
        let uri = Uri::from_static("/mcp");
        let headers = request(&[("origin", &["http://evil.example.com"])]);
        let refusal = guard.judge(&Method::GET, &uri, &headers).unwrap_err();
        assert_eq!(refusal.status, 403);
    }
}

#[test]
fn where_the_wire_says_who_can_reach_it_the_host_does_not_count_but_the_origin_does() {
    let guard = Guard::any_host();
    for host in [&[][..], &["a", "b"], &["whatever"], &["not a host"], &["/run/mcp.sock"]] {
        assert_eq!(status(&guard, &[("host", host)]), 200, "{host:?}");
        let changes = [("host", host), ("origin", &["https://evil.example.com"][..])];
        assert_eq!(status(&guard, &changes), 403, "{host:?}");
    }
    let own = [("host", &["mcp.example.com"][..]), ("origin", &["https://mcp.example.com"][..])];
    assert_eq!(status(&guard, &own), 403);
    let mut guard = guard;
    guard.allow_host("mcp.example.com").unwrap();
    assert_eq!(status(&guard, &own), 200);
}

#[test]
fn only_post_is_taken() {
    for method in ["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "post"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        // A GET has neither a body nor its type.
        let headers = request(&[("content-type", &[]), ("content-length", &[])]);
        let refusal =
            Guard::loopback().judge(&method, &Uri::from_static("/mcp"), &headers).unwrap_err();
        assert_eq!((refusal.status.as_u16(), refusal.allow), (405, Some("POST")), "{method}");
    }
}

#[test]
fn the_form_of_a_request_is_judged_in_one_order() {
    for (changes, expected) in [
        (&[("content-type", &["Application/JSON; charset=utf-8"][..])][..], 200),
        (&[("content-type", &[])], 415),
        (&[("content-type", &["text/plain"])], 415),
        (&[("content-type", &["text/plain; application/json"])], 415),
        (&[("content-type", &["application/jsonp"])], 415),
        (&[("content-type", &["application/json", "application/json"])], 415),
        (&[("accept", &[])], 200),
        (&[("accept", &["*/*"])], 200),
        (&[("accept", &["text/event-stream", "application/*;q=0.5"])], 200),
        (&[("accept", &["application/json"])], 406),
        (&[("accept", &["text/event-stream"])], 406),
        (&[("accept", &["*/*, text/event-stream;q=0"])], 406),
        (&[("accept", &["xapplication/json, text/event-streams"])], 406),
        (&[("accept", &["application/json text/event-stream"])], 406),
        (&[("content-length", &[])], 200),
        (&[("content-length", &["4194304"])], 200),
        (&[("content-length", &["4194305"])], 413),
        (&[("content-length", &["1", "4194305"])], 413),
        (&[("content-length", &["99999999999999999999999999"])], 413),
        (&[("content-length", &["-1"])], 400),
        (&[("content-length", &["+1"])], 400),
        (&[("content-length", &["1, 1"])], 400),
        (&[("content-length", &[""])], 400),
        // Two faults: the first counts.
        (&[("host", &["evil.example.com"]), ("origin", &["null"])], 403),
        (&[("host", &[]), ("origin", &["null"])], 400),
        (&[("origin", &["null"]), ("content-type", &[])], 403),
        (&[("content-type", &[]), ("accept", &["text/html"])], 415),
        (&[("accept", &["text/html"]), ("content-length", &["4194305"])], 406),
    ] {
        assert_eq!(status(&Guard::loopback(), changes), expected, "{changes:?}");
    }
    let mut guard = Guard::loopback();
    guard.limit_body(99);
    assert_eq!(status(&guard, &[]), 413);
    guard.limit_body(100);
    assert_eq!(status(&guard, &[]), 200);
}

#[test]
fn a_refusal_says_what_to_do() {
    let message = |changes: &[(&str, &[&str])]| {
        let uri = Uri::from_static("/mcp");
        Guard::loopback().judge(&Method::POST, &uri, &request(changes)).unwrap_err().message
    };
    assert_eq!(
        message(&[("host", &["mcp.example.com:8443"])]),
        "`mcp.example.com:8443` is not a host of this server; call \
         .public_host(\"mcp.example.com\") to serve it"
    );
    assert_eq!(
        message(&[("origin", &["https://App.example.com:443"])]),
        "pages of https://App.example.com may not call this server; call \
         .allow_origin(\"https://App.example.com\") to let them"
    );
}

#[test]
fn what_can_not_be_allowed_is_said_when_the_server_is_built() {
    let mut guard = Guard::loopback();
    for (host, reason) in [
        ("https://example.com", "scheme"),
        ("example.com/mcp", "characters"),
        ("example.com:0", "port"),
        ("user@example.com", "user"),
        ("*.example.com", "characters"),
        ("exämple.com", "xn--"),
        ("::1", "brackets"),
        ("", "no host"),
    ] {
        let error = guard.allow_host(host).unwrap_err();
        assert!(error.contains(reason) && error.contains("write"), "{host}: {error}");
    }
    for (origin, reason) in [
        ("app.example.com", "scheme"),
        ("https://app.example.com/", "ends with"),
        ("null", "scheme"),
        ("*", "scheme"),
        ("https://*.example.com", "characters"),
    ] {
        let error = guard.allow_origin(origin).unwrap_err();
        assert!(error.contains(reason) && error.contains("write"), "{origin}: {error}");
    }
}

#[test]
fn who_may_read_answers_may_call() {
    let mut cors = Cors::default();
    cors.allow_origin("https://app.example.com").unwrap();
    let mut guard = Guard::loopback();
    let changes: &[(&str, &[&str])] = &[("origin", &["https://app.example.com"])];
    assert_eq!(status(&guard, changes), 403);
    guard.allow_origins_of(&cors);
    assert_eq!(status(&guard, changes), 200);
}
