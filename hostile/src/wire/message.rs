//! Messages of both eras, with the headers that they have over HTTP.

use serde_json::{Value, json};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// The body of a POST and its headers.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

fn headers() -> Vec<(&'static str, String)> {
    vec![
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
    ]
}

/// Returns a request of revision 2026-07-28.
pub(crate) fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Message {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let mut headers = headers();
    headers.push(("mcp-protocol-version", MODERN.to_owned()));
    headers.push(("mcp-method", method.to_owned()));
    if let Some(name) = params["name"].as_str() {
        headers.push(("mcp-name", name.to_owned()));
    }
    let id: Value = id.into();
    let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    Message { text: text.to_string(), headers }
}

/// Returns a call of a tool in revision 2026-07-28.
pub(crate) fn modern_call(id: impl Into<Value>, tool: &str, arguments: Value) -> Message {
    modern(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// Returns the `initialize` request of a legacy client.
pub(crate) fn initialize() -> Message {
    let text = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "hostile", "version": "1"},
    }});
    Message { text: text.to_string(), headers: headers() }
}

/// Returns a message of a legacy session.
pub(crate) fn legacy(session: &str, body: &Value) -> Message {
    let mut headers = headers();
    headers.push(("mcp-session-id", session.to_owned()));
    headers.push(("mcp-protocol-version", LEGACY.to_owned()));
    Message { text: body.to_string(), headers }
}

/// Returns a call of a tool as a legacy client sends it.
pub(crate) fn legacy_call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments,
    }})
}

/// Returns arguments that are long without being used.
pub(crate) fn padded(mut arguments: Value, bytes: usize) -> Value {
    arguments["padding"] = json!("x".repeat(bytes));
    arguments
}

impl Message {
    /// Returns the head of an HTTP/1.1 request for a body of this length.
    pub(crate) fn head(&self, length: usize) -> String {
        let mut head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\n".to_owned();
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        format!("{head}content-length: {length}\r\n\r\n")
    }

    /// Returns the whole HTTP/1.1 request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head(self.text.len()).into_bytes();
        bytes.extend(self.text.as_bytes());
        bytes
    }
}
