//! Owns peers that are nobody's SDK: they write and read lines as a script says.
//! Does not own any expectation.

use std::{fmt::Display, future::IntoFuture, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    task::JoinHandle,
};
use turnbuckle::{Client, ClientBuilder, Limits, Result, types::Era};
use turnbuckle_contract::{Fixture, server};

use crate::rig::pinned;

/// Longer than anything that this side still has to say after it was told nothing; shorter
/// than the timeouts of a call. In paused time it passes as soon as everyone waits.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);

/// One end of an in-memory stream, in the hands of a test.
pub(crate) struct Peer {
    stream: DuplexStream,
    buffer: Vec<u8>,
}

impl Peer {
    pub(crate) fn new(stream: DuplexStream) -> Peer {
        Peer { stream, buffer: Vec::new() }
    }

    /// The next line as it came, without its end; `None` at the end of the stream. Dropping
    /// the future loses nothing.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap() == 0 {
                assert!(self.buffer.is_empty(), "the stream ended inside a line");
                return None;
            }
        }
    }

    /// The next message.
    pub(crate) async fn read(&mut self) -> Value {
        let line = self.line().await.expect("the stream ended");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Everything up to the end of the stream.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(line) = self.line().await {
            messages.push(serde_json::from_str(&line).unwrap());
        }
        messages
    }

    /// The messages that come before there is silence or the end.
    pub(crate) async fn lull(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Ok(Some(line)) = tokio::time::timeout(SILENCE, self.line()).await {
            messages.push(serde_json::from_str(&line).unwrap());
        }
        messages
    }

    /// Reads one byte: then the line it belongs to has begun.
    pub(crate) async fn taste(&mut self) {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).await.unwrap();
        self.buffer.push(byte[0]);
    }

    /// Asserts that nothing is said.
    pub(crate) async fn quiet(&mut self) {
        if let Ok(line) = tokio::time::timeout(SILENCE, self.line()).await {
            panic!("something was said: {line:?}");
        }
        assert!(self.buffer.is_empty(), "half a line was said");
    }

    /// Asserts that the stream ends without another word.
    pub(crate) async fn ended(&mut self) {
        assert_eq!(self.line().await, None);
    }

    pub(crate) async fn say(&mut self, line: impl Display) {
        self.bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Ends this direction; what the other side says can still be read.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Answers a request with a result.
    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Answers a request with an error.
    pub(crate) async fn refuse(&mut self, request: &Value, error: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    /// Asks for something as a client, and reads the answer, which must be the next message.
    pub(crate) async fn ask(&mut self, request: Value) -> Value {
        self.say(&request).await;
        let answer = self.read().await;
        assert_eq!(answer["id"], request["id"], "{answer}");
        answer
    }

    pub(crate) fn into_stream(self) -> DuplexStream {
        assert!(self.buffer.is_empty(), "something was read and not looked at");
        self.stream
    }
}

/// A client over a stream whose other end is a script. The client connects while the script
/// goes on.
pub(crate) fn connecting(
    builder: ClientBuilder,
    room: usize,
) -> (Peer, JoinHandle<Result<Client>>) {
    let (ours, theirs) = tokio::io::duplex(room);
    (Peer::new(theirs), tokio::spawn(builder.over(ours)))
}

/// A connected client whose server is a script.
pub(crate) async fn client(era: Era) -> (Peer, Client) {
    client_with(era, Client::builder(), 1 << 20).await
}

pub(crate) async fn client_with(era: Era, builder: ClientBuilder, room: usize) -> (Peer, Client) {
    let (mut peer, connecting) = connecting(builder.revision(pinned(era)), room);
    if era == Era::Legacy {
        let initialize = peer.read().await;
        assert_eq!(initialize["method"], "initialize");
        peer.answer(&initialize, initialized("2025-11-25")).await;
        assert_eq!(peer.read().await["method"], "notifications/initialized");
    }
    (peer, connecting.await.unwrap().unwrap())
}

/// The answer to `initialize`.
pub(crate) fn initialized(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        "serverInfo": {"name": "script", "version": "1"},
    })
}

/// The answer to a tool call.
pub(crate) fn said(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// A fixture whose client is a script.
pub(crate) struct Served {
    pub(crate) peer: Peer,
    pub(crate) fixture: Fixture,
    pub(crate) era: Era,
    /// Ends with the connection.
    pub(crate) serving: JoinHandle<Result<()>>,
}

/// Serves a script that has not said anything yet.
pub(crate) fn served(era: Era, limits: Limits, room: usize) -> Served {
    let (ours, theirs) = tokio::io::duplex(room);
    let fixture = Fixture::default();
    let serving = server(&fixture, limits).serve(theirs).with_shutdown(fixture.leaving());
    let serving = tokio::spawn(serving.into_future());
    Served { peer: Peer::new(ours), fixture, era, serving }
}

/// Serves a script that has opened the connection, if its era has an opening.
pub(crate) async fn opened(era: Era) -> Served {
    opened_with(era, Limits::default(), 1 << 20).await
}

pub(crate) async fn opened_with(era: Era, limits: Limits, room: usize) -> Served {
    let mut served = served(era, limits, room);
    if era == Era::Legacy {
        served.initialize("2025-11-25").await;
    }
    served
}

impl Served {
    /// Opens a legacy connection.
    pub(crate) async fn initialize(&mut self, version: &str) {
        let answer = self.peer.ask(initialize(version)).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.peer.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    /// A request of this connection's era.
    pub(crate) fn request(&self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        request(self.era, id, method, params)
    }

    pub(crate) fn tool(&self, id: impl Into<Value>, name: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Calls a tool that holds, and waits until its handler has started.
    pub(crate) async fn hold(&mut self, id: impl Into<Value>, tool: &str, key: &str) {
        let before = self.fixture.of(key).started;
        let call = self.tool(id, tool, json!({"key": key}));
        self.peer.say(call).await;
        let fixture = self.fixture.clone();
        crate::rig::eventually(|| fixture.of(key).started > before).await;
    }

    /// A round trip that must be the next thing on the wire.
    pub(crate) async fn alive(&mut self) {
        let call = self.tool("alive?", "echo", json!({"text": "alive"}));
        let answer = self.peer.ask(call).await;
        assert_eq!(answer["result"]["content"][0]["text"], "alive", "{answer}");
    }
}

/// What opens a legacy connection.
pub(crate) fn initialize(version: &str) -> Value {
    let info = json!({"name": "script", "version": "1"});
    // A server asks only for what its client has.
    let able = json!({"roots": {}, "sampling": {}});
    let params = json!({"protocolVersion": version, "capabilities": able, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params})
}

/// A request with the envelope of its era.
pub(crate) fn request(era: Era, id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    if era == Era::Modern {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn cancelled(id: impl Into<Value>) -> Value {
    let params = json!({"requestId": id.into(), "reason": "the script says so"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

/// A test for each era, in paused time.
macro_rules! in_both_eras {
    ($($test:ident),+ $(,)?) => {
        mod legacy { $($crate::raw::in_both_eras!(@test $test Legacy);)+ }
        mod modern { $($crate::raw::in_both_eras!(@test $test Modern);)+ }
    };
    (@test $test:ident $era:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $test() {
            $crate::rig::virtually(super::$test(turnbuckle::types::Era::$era)).await;
        }
    };
}
pub(crate) use in_both_eras;
