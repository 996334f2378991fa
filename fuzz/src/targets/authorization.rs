//! Challenges and documents of authorization servers, through the flow of a client.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, Uri, header::WWW_AUTHENTICATE};
use turnbuckle_auth::{
    Challenge, Settings, SystemClock, SystemRandom,
    flow::{Answer, Asked, Flow, Step, Tools},
};

const SERVER: &str = "https://mcp.example.com/mcp";
const REDIRECT: &str = "http://127.0.0.1:7/callback";
/// A flow ends after so many steps, whatever servers say.
const MOST_STEPS: usize = 32;

/// A `WWW-Authenticate` header and the documents in the order in which they are asked for.
pub fn run(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0);
    let challenge = parts.next().and_then(challenge);
    let tools = Tools {
        settings: Arc::new(Settings::default()),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
    };
    let mut asked = Asked::new(SERVER);
    asked.challenge = challenge;
    asked.redirect_uri = Some(REDIRECT.to_owned());
    let (mut flow, mut step) = Flow::authorize(tools, asked);
    for _ in 0..MOST_STEPS {
        let answer = match &step {
            Step::Send(request) => {
                check(request.uri());
                Answer::Response(document(parts.next()))
            }
            Step::Recall(_) => Answer::Recalled(None),
            Step::LogIn(request) => Answer::CalledBack(called_back(&request.url, &request.issuer)),
            Step::Done(grant) => {
                check(&grant.endpoints.token.parse().expect("an address"));
                assert!(grant.tokens.is_some());
                return;
            }
            _ => return,
        };
        step = flow.answer(answer);
    }
    panic!("the flow does not end: {step:?}");
}

/// A written challenge is read as the same challenge.
fn challenge(header: &[u8]) -> Option<Challenge> {
    let read =
        |value: HeaderValue| Challenge::read(&HeaderMap::from_iter([(WWW_AUTHENTICATE, value)]));
    let challenge = read(HeaderValue::from_bytes(header).ok()?)?;
    let written = challenge.to_header();
    assert!(written.as_bytes().iter().all(|byte| (b' '..=b'~').contains(byte)));
    if header.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        assert_eq!(read(written).as_ref(), Some(&challenge));
    }
    Some(challenge)
}

/// Nothing is sent without encryption to another machine.
fn check(uri: &Uri) {
    let host = uri.host().unwrap_or_default();
    let is_loopback = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    assert!(uri.scheme_str() == Some("https") || is_loopback, "{uri}");
}

fn document(part: Option<&[u8]>) -> Response<Bytes> {
    let status = if part.is_some_and(|part| !part.is_empty()) { 200 } else { 404 };
    let body = Bytes::copy_from_slice(part.unwrap_or_default());
    Response::builder().status(status).body(body).expect("a response")
}

/// The address that someone is sent back to after a login.
fn called_back(login: &str, issuer: &str) -> String {
    let login = url::Url::parse(login).expect("the address of a login");
    let mut back = url::Url::parse(REDIRECT).expect("an address");
    back.query_pairs_mut().append_pair("code", "c").append_pair("iss", issuer);
    for (name, value) in login.query_pairs().filter(|(name, _)| name == "state") {
        back.query_pairs_mut().append_pair(&name, &value);
    }
    back.into()
}
