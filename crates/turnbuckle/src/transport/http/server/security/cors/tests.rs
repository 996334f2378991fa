use super::*;

fn cors() -> Cors {
    let mut cors = Cors::default();
    cors.allow_origin("https://app.example.com").unwrap();
    cors.allow_origin("http://localhost:3000").unwrap();
    cors
}

fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(*name, HeaderValue::from_str(value).unwrap());
    }
    map
}

fn text(map: &HeaderMap, name: &str) -> Option<String> {
    map.get(name).map(|value| value.to_str().unwrap().to_owned())
}

const ORIGIN: (&str, &str) = ("origin", "https://app.example.com");
const METHOD: (&str, &str) = ("access-control-request-method", "POST");

#[test]
fn a_listed_page_may_send_what_the_protocol_needs() {
    let asked = "Content-Type, accept,authorization , MCP-Protocol-Version,mcp-method,mcp-name,\
                 Mcp-Param-Region, Mcp-Session-Id, Last-Event-ID, x-evil, mcp-param-, cookie, b\u{7f}d";
    let headers = "access-control-request-headers";
    let asked: String = asked.chars().filter(|letter| *letter != '\u{7f}').collect();
    let answer =
        cors().preflight(&Method::OPTIONS, &map(&[ORIGIN, METHOD, (headers, &asked)])).unwrap();
    assert_eq!(text(&answer, "access-control-allow-origin").unwrap(), ORIGIN.1);
    assert_eq!(text(&answer, "access-control-allow-methods").unwrap(), "POST, GET, DELETE");
    assert_eq!(
        text(&answer, "access-control-allow-headers").unwrap(),
        "content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, \
         mcp-param-region, mcp-session-id, last-event-id"
    );
    assert_eq!(text(&answer, "access-control-max-age").unwrap(), "7200");
    assert!(text(&answer, "vary").unwrap().contains("origin"));
    assert_eq!(text(&answer, "access-control-allow-credentials"), None);
}

#[test]
fn a_page_that_asks_for_nothing_allowed_is_allowed_nothing() {
    for asked in [&[][..], &[("access-control-request-headers", "x-evil, , \"")]] {
        let headers = map(&[&[ORIGIN, METHOD], asked].concat());
        let answer = cors().preflight(&Method::OPTIONS, &headers).unwrap();
        assert_eq!(text(&answer, "access-control-allow-headers"), None);
    }
}

#[test]
fn what_is_no_preflight_of_a_listed_page_is_left_to_the_guard() {
    for (method, pairs) in [
        (Method::POST, &[ORIGIN, METHOD][..]),
        (Method::OPTIONS, &[ORIGIN]),
        (Method::OPTIONS, &[METHOD]),
        (Method::OPTIONS, &[("origin", "https://evil.example.com"), METHOD]),
        (Method::OPTIONS, &[("origin", "null"), METHOD]),
        (Method::OPTIONS, &[ORIGIN, ORIGIN, METHOD]),
    ] {
        assert_eq!(cors().preflight(&method, &map(pairs)), None, "{pairs:?}");
    }
}

// req: hosting:session:cors-expose
#[test]
fn answers_are_readable_for_listed_pages_only_and_vary_for_all() {
    let answer = cors().headers(&map(&[("origin", "HTTP://localhost:3000")]));
    assert_eq!(text(&answer, "access-control-allow-origin").unwrap(), "HTTP://localhost:3000");
    let exposed = text(&answer, "access-control-expose-headers").unwrap();
    assert!(exposed.contains("www-authenticate") && exposed.contains("mcp-session-id"));
    assert_eq!(text(&answer, "vary").unwrap(), "origin");
    for pairs in [&[][..], &[("origin", "http://localhost")], &[("origin", "null")]] {
        let answer = cors().headers(&map(pairs));
        assert_eq!(answer.len(), 1, "{pairs:?}");
        assert_eq!(text(&answer, "vary").unwrap(), "origin");
    }
}

#[test]
fn what_is_no_origin_can_not_be_listed() {
    for origin in ["*", "null", "app.example.com", "https://app.example.com/"] {
        let error = Cors::default().allow_origin(origin).unwrap_err();
        assert!(error.contains(origin) && error.contains("https://app"), "{error}");
    }
}
