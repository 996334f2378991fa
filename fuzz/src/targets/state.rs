//! The state that a client keeps for a request which asked for input.

use std::{
    sync::Once,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use turnbuckle::__seam::fuzzing::seal;

use super::texts;
use crate::{
    endpoint::{Endpoint, KEYS},
    json,
};

/// The first byte chooses: the arguments of a first and a second round, or the content of a state.
pub fn run(data: &[u8]) {
    static CHECKED: Once = Once::new();
    // The seal below has to be the one of the server, or the target finds nothing.
    CHECKED.call_once(|| {
        let content = [&[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0][..], b"{}"].concat();
        assert!(is_result(&opened(&content)));
    });
    match data.split_first() {
        Some((0, rest)) => bound_to_arguments(rest),
        Some((_, content)) => {
            let answer = opened(content);
            assert!(is_result(&answer) || answer["error"]["code"] == -32602, "{answer}");
            let expires = content.get(4..12).and_then(|bytes| bytes.try_into().ok());
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let fits = expires.is_some_and(|bytes| u64::from_be_bytes(bytes) >= now);
            assert!(fits || !is_result(&answer), "an expired state is accepted");
        }
        None => {}
    }
}

/// A state is accepted with the same arguments, however they are written, and with no others.
fn bound_to_arguments(data: &[u8]) {
    let Some((first, second)) = texts(data) else { return };
    let objects = [first, second].map(|text| serde_json::from_str::<Value>(text).ok());
    if !objects.iter().flatten().all(Value::is_object) || objects.contains(&None) {
        return;
    }
    let mut endpoint = Endpoint::new();
    let (first, second) = (first.trim(), second.trim());
    let params = format!(r#"{{"name":"ask","arguments":{first}}}"#);
    let asked = endpoint.call("tools/call", Some("ask"), &params);
    let Some(state) = asked["result"]["requestState"].as_str() else { return };
    let answer = continued(&mut endpoint, second, state);
    assert!(is_result(&answer) || answer["error"]["code"] == -32602, "{answer}");
    let same = |text: &str| json::normal(&json::unique(text.as_bytes())?);
    match (same(first), same(second)) {
        (Some(one), Some(two)) => assert_eq!(is_result(&answer), one == two, "{answer}"),
        _ => assert!(is_result(&answer) || first != second, "{answer}"),
    }
}

/// Sends a state with this content.
fn opened(content: &[u8]) -> Value {
    // As `StateBinding::new(None, "tools/call", "ask", "{}")`.
    let mut binding = b"request state 2\n\0".to_vec();
    for part in ["", "tools/call", "ask"] {
        binding.extend_from_slice(&(part.len() as u64).to_be_bytes());
        binding.extend_from_slice(part.as_bytes());
    }
    binding.push(b'{');
    binding.extend_from_slice(&[0; 8]);
    continued(&mut Endpoint::new(), "{}", &seal(&KEYS, &binding, content))
}

fn continued(endpoint: &mut Endpoint, arguments: &str, state: &str) -> Value {
    let responses = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let params = format!(
        r#"{{"name":"ask","arguments":{arguments},"requestState":"{state}","inputResponses":{responses}}}"#
    );
    endpoint.call("tools/call", Some("ask"), &params)
}

fn is_result(answer: &Value) -> bool {
    answer["result"].is_object()
}
