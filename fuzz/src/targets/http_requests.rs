//! HTTP requests, from their head to their answer.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use turnbuckle_types::jsonrpc::{self, Frame, Message};

use crate::endpoint::{Answer, Endpoint};

/// What stands for the id of a session that the target opens.
const SESSION: &[u8] = b"$SESSION";
/// The names of this machine, of which every accepted request has one.
const HERE: [&str; 3] = ["localhost", "127.", "[::1]"];

/// A request as HTTP/1.1 writes it: a request line without a version, header lines, an empty line, a
/// body.
pub fn run(data: &[u8]) {
    let mut endpoint = Endpoint::new();
    let Some(request) = read(data, &mut endpoint) else { return };
    let (head, body) = request.into_parts();
    let answer = endpoint.send(Request::from_parts(head.clone(), Full::new(body.clone())));
    let status = answer.status.as_u16();
    assert!(status < 500, "{status}");
    if let (Some(body), Some(kind)) = (&answer.body, answer.headers.get("content-type"))
        && kind.as_bytes().starts_with(b"application/json")
    {
        serde_json::from_slice::<serde_json::Value>(body).expect("a JSON body is JSON");
    }
    if !answer.status.is_success() {
        return;
    }
    let texts = |name: &str| {
        let values = head.headers.get_all(name).into_iter().cloned();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
    };
    let here = |text: &str| HERE.iter().any(|name| text.contains(name));
    let authority = head.uri.authority().map(|name| name.as_str().to_ascii_lowercase());
    // RFC 9112 §3.2.2: the request target goes before the Host header.
    let host = authority.or_else(|| texts("host").next());
    assert!(host.is_some_and(|host| here(&host)), "a foreign host is accepted");
    assert!(texts("origin").all(|origin| here(&origin)), "a foreign origin is accepted");
    assert!(texts("content-encoding").all(|coding| coding.trim() == "identity"));
    if head.method == Method::POST {
        answers(&answer, body);
    }
}

/// A request is answered with its own id.
fn answers(answer: &Answer, body: Bytes) {
    let message = jsonrpc::parse(body, 128).expect("only messages are accepted");
    match message {
        Message::Single(Frame::Request(request)) => {
            assert_eq!(answer.status, 200, "a request needs an answer");
            let message = answer.json();
            assert!(message.is_null() || message["id"].to_string() == id_of(&request));
        }
        _ => {}
    }
}

fn id_of(request: &jsonrpc::Request) -> String {
    let id: serde_json::Value = serde_json::from_str(&request.id.to_string()).unwrap_or_default();
    id.to_string()
}

fn read(data: &[u8], endpoint: &mut Endpoint) -> Option<Request<Bytes>> {
    let (line, mut rest) = split_line(data)?;
    let space = line.iter().position(|byte| *byte == b' ')?;
    let method = Method::from_bytes(&line[..space]).ok()?;
    let uri = Uri::try_from(&line[space + 1..]).ok()?;
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    loop {
        let (line, after) = split_line(rest)?;
        rest = after;
        if line.is_empty() {
            *request.body_mut() = Bytes::copy_from_slice(rest);
            return Some(request);
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = match line[colon + 1..].trim_ascii() {
            SESSION => HeaderValue::try_from(endpoint.open_session()).ok()?,
            value => HeaderValue::from_bytes(value).ok()?,
        };
        request.headers_mut().append(name, value);
    }
}

fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    Some((&text[..end], &text[end + 1..]))
}
