//! Owns: the messages that are sent while counting. Does not own: how they travel.

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(super) fn discover() -> String {
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{{{META}}}}}"#)
}

/// A call of `echo` with so many letters, or with a greeting of constant length.
pub(super) fn echo(id: usize, length: usize) -> String {
    let text = match length {
        0 => format!("hello from the neutral load generator #{id:09}"),
        _ => "x".repeat(length),
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}},{META}}}}}"#
    )
}

/// A call of a tool without arguments.
pub(super) fn call(id: usize, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},{META}}}}}"#
    )
}

/// A call as a whole HTTP request.
pub(super) fn post(port: u16, tool: &str, call: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{call}",
        call.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_json_on_one_line() {
        for message in [discover(), echo(3, 0), echo(4, 5), call(5, "stats")] {
            assert!(!message.contains('\n'));
            serde_json::from_str::<serde_json::Value>(&message).unwrap();
        }
    }

    #[test]
    fn a_post_states_the_length_of_its_body() {
        let post = post(80, "echo", &echo(3, 0));
        let (head, body) = post.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, echo(3, 0));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }
}
