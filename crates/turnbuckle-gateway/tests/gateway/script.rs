//! Owns peers that are scripts: they see every byte and write what they are told.
//! Does not own any expectation.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    sync::mpsc,
    task::JoinHandle,
};
use turnbuckle::Revision;
use turnbuckle_gateway::Gateway;

/// One end of a stream.
pub(crate) struct Script(BufReader<DuplexStream>);

impl Script {
    pub(crate) fn over(stream: DuplexStream) -> Script {
        Script(BufReader::new(stream))
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    /// The next message; of the given method, if it has one.
    pub(crate) async fn next(&mut self, method: &str) -> (Value, String) {
        let line = self.line().await;
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"));
        assert_eq!(message["method"].as_str().unwrap_or_default(), method, "{line}");
        (message, line)
    }

    pub(crate) async fn say(&mut self, line: &str) {
        self.0.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Answers a message with this result, as it stands.
    pub(crate) async fn answer(&mut self, to: &Value, result: &str) {
        let id = &to["id"];
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    }

    /// Is a server of the legacy era that a client opens.
    pub(crate) async fn opened(&mut self, capabilities: Value) -> Value {
        let (initialize, _) = self.next("initialize").await;
        let result = json!({
            "protocolVersion": initialize["params"]["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": {"name": "script", "version": "1", "acme": 1.5},
            "instructions": "Read me.",
        });
        self.answer(&initialize, &result.to_string()).await;
        self.next("notifications/initialized").await;
        initialize
    }

    /// Is a client of the legacy era that opens a connection.
    pub(crate) async fn open(&mut self, capabilities: Value) {
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "downstream", "version": "3"},
        }});
        self.say(&initialize.to_string()).await;
    }

    pub(crate) async fn initialized(&mut self) -> Value {
        let (answer, _) = self.next("").await;
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        answer
    }
}

/// A gateway between scripts.
pub(crate) struct Between {
    pub(crate) downstream: Script,
    /// Each connection that the gateway makes to its server.
    pub(crate) upstream: mpsc::Receiver<Script>,
    pub(crate) serving: JoinHandle<turnbuckle::Result<()>>,
}

/// A gateway that speaks this revision with its server.
pub(crate) fn scripted(revision: Revision) -> (Gateway, mpsc::Receiver<Script>) {
    let (dialed, upstream) = mpsc::channel(8);
    let gateway = Gateway::new(move |builder| {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        dialed.try_send(Script(BufReader::new(theirs))).unwrap();
        builder.revision(revision).over(ours)
    });
    (gateway, upstream)
}

pub(crate) fn between(revision: Revision) -> Between {
    let (gateway, upstream) = scripted(revision);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(async move { gateway.serve(theirs).await });
    Between { downstream: Script(BufReader::new(ours)), upstream, serving }
}

/// Both sides of the legacy era, opened.
pub(crate) async fn legacy(downstream: Value, upstream: Value) -> (Script, Script, Rest) {
    let Between { downstream: mut client, upstream: mut dialed, serving } =
        between(Revision::V2025_06_18);
    client.open(downstream).await;
    let mut server = dialed.recv().await.unwrap();
    server.opened(upstream).await;
    client.initialized().await;
    (client, server, Rest { _dialed: dialed, serving })
}

/// The rest of a gateway between scripts.
pub(crate) struct Rest {
    _dialed: mpsc::Receiver<Script>,
    pub(crate) serving: JoinHandle<turnbuckle::Result<()>>,
}
