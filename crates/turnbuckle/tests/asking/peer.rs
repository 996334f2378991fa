//! Owns a client that is a script. Does not own any expectation.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use turnbuckle::Server;

pub(crate) struct Peer {
    stream: DuplexStream,
    buffer: Vec<u8>,
    capabilities: Value,
    last_id: u64,
}

/// Everything that a client could declare.
pub(crate) fn able() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
}

/// What a user fills in.
pub(crate) fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// The text of a tool's result.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

pub(crate) fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

pub(crate) fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

/// The keys that are asked for, in their order.
pub(crate) fn asked(answer: &Value) -> Vec<&str> {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    assert!(answer["result"]["requestState"].is_string(), "{answer}");
    answer["result"]["inputRequests"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// The params of one question.
pub(crate) fn params_of<'a>(answer: &'a Value, key: &str) -> &'a Value {
    &answer["result"]["inputRequests"][key]["params"]
}

impl Peer {
    /// A client of the modern era.
    pub(crate) fn modern(server: &Server, capabilities: Value) -> Peer {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let serving = server.clone().serve(theirs);
        tokio::spawn(async move { serving.await });
        Peer { stream: ours, buffer: Vec::new(), capabilities, last_id: 0 }
    }

    /// A client of the legacy era that has opened its connection.
    pub(crate) async fn legacy(server: &Server, capabilities: Value, version: &str) -> Peer {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(server.serve(theirs).into_future());
        Peer::open(ours, capabilities, version).await
    }

    /// The same, over a stream whose other end is served.
    pub(crate) async fn open(stream: DuplexStream, capabilities: Value, version: &str) -> Peer {
        let buffer = Vec::new();
        let mut peer = Peer { stream, buffer, capabilities: capabilities.clone(), last_id: 0 };
        let opening = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "script", "version": "1"}});
        let answer = peer.legacy_call("initialize", opening).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        peer.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        peer
    }

    /// Sends a request of the modern era and reads its answer, which must be the next message.
    pub(crate) async fn call(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        self.legacy_call(method, params).await
    }

    pub(crate) async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Calls a tool without arguments again, with the state of the answer before and new answers.
    pub(crate) async fn retry(&mut self, name: &str, before: &Value, answers: Value) -> Value {
        let state = &before["result"]["requestState"];
        let params = json!({"name": name, "arguments": {}, "inputResponses": answers,
            "requestState": state});
        self.call("tools/call", params).await
    }

    /// Sends a request as it is and reads its answer, which must be the next message.
    pub(crate) async fn legacy_call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.read().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request and gives its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// Answers a question of the server.
    pub(crate) async fn answer(&mut self, question: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    }

    /// Answers a question of the server with an error.
    pub(crate) async fn refuse(&mut self, question: &Value, error: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": question["id"], "error": error})).await;
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.stream.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn read(&mut self) -> Value {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            assert_ne!(self.stream.read_buf(&mut self.buffer).await.unwrap(), 0, "the end");
        }
    }
}
