//! The messages of the counted workloads.

use super::workload::Sends;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
/// For a client that can be asked.
const META_OF_ASKED: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#;

pub(super) fn discover() -> String {
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{{{META}}}}}"#)
}

/// A call of a tool; `rest` are more parameters.
fn tools_call(id: usize, tool: &str, arguments: &str, rest: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{{arguments}}},{rest}}}}}"#
    )
}

/// A call of `echo` with so many letters, or with a greeting of constant length.
fn echo(id: usize, length: usize) -> String {
    let text = match length {
        0 => format!("hello from the neutral load generator #{id:09}"),
        _ => "x".repeat(length),
    };
    tools_call(id, "echo", &format!(r#""text":"{text}""#), META)
}

/// A call of a tool without arguments.
pub(super) fn call(id: usize, tool: &str) -> String {
    tools_call(id, tool, "", META)
}

/// The second call of a conversation, with the name and the server's request state.
pub(super) fn greet_again(id: usize, state: &str) -> String {
    let answer = format!(
        r#""inputResponses":{{"name":{{"action":"accept","content":{{"name":"Ada"}}}}}},"requestState":"{state}",{META_OF_ASKED}"#
    );
    tools_call(id, "greet", "", &answer)
}

/// The request state of a result that asks for input.
pub(super) fn request_state(result: &str) -> Option<String> {
    let result: serde_json::Value = serde_json::from_str(result).ok()?;
    let result = &result["result"];
    let asks = result["resultType"] == "input_required";
    asks.then(|| result["requestState"].as_str().map(str::to_owned))?
}

/// The request of a workload.
pub(super) fn request(sends: Sends, id: usize) -> String {
    match sends {
        Sends::Echo { length } => echo(id, length),
        Sends::Sum { tool } => tools_call(id, tool, &format!(r#""a":{id},"b":1"#), META),
        // The name that `greet` has to ask for.
        Sends::Hello => tools_call(id, "hello", r#""name":"Ada""#, META_OF_ASKED),
        Sends::List | Sends::KeptList => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{META}}}}}"#)
        }
        // Asks for a name.
        Sends::Conversation => tools_call(id, "greet", "", META_OF_ASKED),
    }
}

/// A call as a whole HTTP request.
pub(super) fn post_call(port: u16, tool: &str, call: &str) -> String {
    post(port, &format!("Mcp-Method: tools/call\r\nMcp-Name: {tool}"), call)
}

/// A request for the list of tools as a whole HTTP request.
pub(super) fn post_list(port: u16, list: &str) -> String {
    post(port, "Mcp-Method: tools/list", list)
}

/// `facts` are headers that repeat parts of the body.
fn post(port: u16, facts: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         {facts}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_json_on_one_line() {
        let sends = [
            Sends::Echo { length: 0 },
            Sends::Echo { length: 5 },
            Sends::Sum { tool: "add" },
            Sends::Hello,
            Sends::List,
            Sends::Conversation,
        ];
        let rest = [discover(), call(5, "stats"), greet_again(10, "abc")];
        for message in sends.map(|sends| request(sends, 3)).into_iter().chain(rest) {
            assert!(!message.contains('\n'));
            serde_json::from_str::<serde_json::Value>(&message).unwrap();
        }
    }

    #[test]
    fn a_post_states_the_length_of_its_body() {
        let post = post_call(80, "echo", &echo(3, 0));
        let (head, body) = post.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, echo(3, 0));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }
}
