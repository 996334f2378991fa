//! Session ids.

use std::{
    sync::Once,
    time::{SystemTime, UNIX_EPOCH},
};

use http::HeaderValue;
use http_body_util::Full;
use serde_json::{Value, json};
use turnbuckle::__seam::fuzzing::seal;

use crate::{
    endpoint::{Endpoint, KEYS, post},
    json,
};

/// The owner of sessions without a principal: the first half of the SHA-256 digest of nothing.
const OWNER: [u8; 16] =
    [227, 176, 196, 66, 152, 252, 28, 20, 154, 251, 244, 200, 153, 111, 185, 36];

/// The first byte chooses whether the rest is an id or the content of one.
pub fn run(data: &[u8]) {
    static CHECKED: Once = Once::new();
    // The seal below has to be the one of the server, or the target finds nothing.
    CHECKED.call_once(|| {
        let content =
            json!({"o": OWNER, "u": u32::MAX, "r": "2025-11-25", "n": "a", "v": "1", "c": 0});
        assert!(is_session(sealed(content.to_string().as_bytes()).as_bytes()));
        let mut endpoint = Endpoint::new();
        let id = endpoint.open_session();
        assert!(answers(&mut endpoint, id.as_bytes()));
    });
    match data.split_first() {
        Some((0, id)) => assert!(!is_session(id), "an id is accepted that was not given out"),
        Some((_, content)) if is_session(sealed(content).as_bytes()) => {
            let content = json::unique(content).expect("an object without repeated members");
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            assert_eq!(content["o"], json!(OWNER), "the session of another is accepted");
            assert!(content["u"].as_u64().is_some_and(|until| until > now), "an id has expired");
            assert!(content["r"].as_str().is_some_and(|name| name.starts_with("202")));
        }
        _ => {}
    }
}

fn sealed(content: &[u8]) -> String {
    seal(&KEYS, b"session", content)
}

fn is_session(id: &[u8]) -> bool {
    answers(&mut Endpoint::new(), id)
}

fn answers(endpoint: &mut Endpoint, id: &[u8]) -> bool {
    let Ok(id) = HeaderValue::from_bytes(id) else { return false };
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let request = post().header("mcp-session-id", id).body(Full::from(text)).expect("a request");
    let answer = endpoint.send(request);
    if answer.status.is_client_error() {
        return false;
    }
    assert_eq!(answer.status, 200);
    let message: Value = answer.json();
    let text = answer.body.as_deref().unwrap_or_default();
    assert!(message["id"] == 1 || text.starts_with(b"id:") || text.starts_with(b"data:"));
    true
}
