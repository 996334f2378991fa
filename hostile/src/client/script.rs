//! Answers of a malicious server, the same over stdio and over HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::wire::message::{LEGACY, MODERN};

/// The era that a malicious server speaks.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

/// A part of an answer.
pub(crate) enum Piece {
    Message(Value),
    /// The same message many times.
    Messages(usize, Value),
    /// The start of a message that does not end.
    Start(&'static str),
    /// The same bytes for ever.
    Endless(Vec<u8>),
    /// The same message for ever.
    EndlessMessage(Value),
    /// A byte from time to time, for ever.
    Drip,
    /// Nothing, for ever.
    Silence,
}

/// An attack on a client: an answer to one of its requests.
pub(crate) struct Script {
    pub(crate) name: &'static str,
    /// The request that is answered in this way; others are answered in good faith.
    method: &'static str,
    answer: fn(&Value, Era) -> Vec<Piece>,
    pub(crate) expected: Expected,
}

/// How the command has to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Expected {
    /// With the result.
    Success,
    /// With an error.
    Failure,
    /// With either of them, but soon.
    Either,
}

const fn script(
    name: &'static str,
    method: &'static str,
    expected: Expected,
    answer: fn(&Value, Era) -> Vec<Piece>,
) -> Script {
    Script { name, method, answer, expected }
}

use Expected::{Either, Failure, Success};
use Piece::{Drip, Endless, EndlessMessage, Message, Messages, Silence, Start};

const CALL: &str = "tools/call";
const LIST: &str = "tools/list";
/// The start of a result whose text does not end.
const ENDLESS_TEXT: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""#;
const ENDLESS_LIST: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":["#;
/// The levels of a schema whose evaluation doubles with each.
const BOMB_LEVELS: usize = 40;

/// All answers that work over both transports.
pub(crate) const SCRIPTS: &[Script] = &[
    script("endless-line", CALL, Failure, |_, _| vec![Start(ENDLESS_TEXT), Endless(many_x())]),
    script("endless-list", LIST, Failure, |_, _| {
        vec![Start(ENDLESS_LIST), Endless(b"{},".repeat(5_000))]
    }),
    script("endless-start", "server/discover", Failure, |_, _| {
        vec![Start(ENDLESS_TEXT), Endless(many_x())]
    }),
    script("endless-progress", CALL, Failure, |_, _| vec![EndlessMessage(progress())]),
    script("endless-blank-lines", CALL, Failure, |_, _| vec![Endless(b"\n".repeat(16_384))]),
    script("drip", CALL, Failure, |_, _| vec![Drip]),
    script("silence", CALL, Failure, |_, _| vec![Silence]),
    script("silent-start", "server/discover", Failure, |_, _| vec![Silence]),
    script("large-answer", CALL, Success, |request, era| {
        vec![Message(result(request, era, text(&"x".repeat(8 << 20))))]
    }),
    script("unknown-ids", CALL, Success, |request, era| {
        let unknown = json!({"jsonrpc": "2.0", "id": 987_654, "result": {}});
        vec![Messages(5_000, unknown), Message(honest(request, era))]
    }),
    script("strange-ids", CALL, Success, |request, era| {
        let strange = ["{}", "[]", "null", "1.5", "1e400", "-0", "\"\"", "true"].map(|id| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            Messages(1_000, serde_json::from_str(&text).unwrap_or(Value::Null))
        });
        strange.into_iter().chain([Message(honest(request, era))]).collect()
    }),
    script("duplicate-answers", CALL, Success, |request, era| {
        vec![Messages(5_000, honest(request, era))]
    }),
    script("answer-in-advance", LIST, Success, |request, era| {
        let next = request["id"].as_i64().unwrap_or(0) + 1;
        let early =
            json!({"jsonrpc": "2.0", "id": next, "result": {"content": [], "isError": true}});
        vec![Message(early), Message(honest(request, era))]
    }),
    script("flood-of-notifications", CALL, Success, |request, era| {
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {
            "level": "error", "data": "x".repeat(1_000),
        }});
        vec![Messages(5_000, log), Message(honest(request, era))]
    }),
    script("flood-of-changes", CALL, Success, |request, era| {
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        vec![Messages(5_000, changed), Message(honest(request, era))]
    }),
    script("flood-of-pings", CALL, Failure, |_, _| {
        vec![EndlessMessage(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}))]
    }),
    script("flood-of-questions", CALL, Failure, |_, _| {
        vec![EndlessMessage(json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}))]
    }),
    script("deep-json", CALL, Failure, |request, _| {
        let deep = format!("{}{}", "[".repeat(90_000), "]".repeat(90_000));
        let id = &request["id"];
        // Not a `Value`: it can't be that deep.
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"x":{deep}}}}}"#);
        vec![Start(text.leak()), Endless(b"\n".to_vec())]
    }),
    script("schema-bomb", LIST, Either, |request, era| {
        let mut levels = serde_json::Map::new();
        for level in 0..BOMB_LEVELS {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            levels.insert(format!("d{level}"), json!({"allOf": [next, next]}));
        }
        levels.insert(format!("d{BOMB_LEVELS}"), json!({"type": "object"}));
        let schema = json!({"type": "object", "$ref": "#/$defs/d0", "$defs": levels});
        vec![Message(result(
            request,
            era,
            json!({"tools": [
                {"name": "echo", "inputSchema": {"type": "object"}, "outputSchema": schema},
            ]}),
        ))]
    }),
    script("many-patterns", LIST, Either, |request, era| {
        let patterns: serde_json::Map<String, Value> =
            (0..3_000).map(|n| (format!("a{n}.*b+c+{n}$"), json!({"type": "string"}))).collect();
        let schema = json!({"type": "object", "patternProperties": patterns});
        vec![Message(result(
            request,
            era,
            json!({"tools": [
                {"name": "echo", "inputSchema": {"type": "object"}, "outputSchema": schema},
            ]}),
        ))]
    }),
    script("many-tools", LIST, Success, |request, era| {
        let tools: Vec<Value> = (0..10_000)
            .map(|n| json!({"name": format!("tool{n}"), "inputSchema": {"type": "object"}}))
            .chain([json!({"name": "echo", "inputSchema": {"type": "object"}})])
            .collect();
        vec![Message(result(request, era, json!({"tools": tools})))]
    }),
    script("endless-pages", LIST, Failure, |request, era| {
        let page = request["params"]["cursor"].as_str().map_or(0, str::len) + 1;
        vec![Message(result(request, era, json!({"tools": [], "nextCursor": "c".repeat(page)})))]
    }),
    script("same-page-again", LIST, Failure, |request, era| {
        vec![Message(result(request, era, json!({"tools": [], "nextCursor": "again"})))]
    }),
];

fn many_x() -> Vec<u8> {
    vec![b'x'; 64 << 10]
}

fn progress() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": 1, "progress": 1, "message": "x".repeat(100),
    }})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn result(request: &Value, era: Era, mut result: Value) -> Value {
    if era == Era::Modern {
        result["resultType"] = json!("complete");
    }
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// Returns the answer of a server in good faith.
pub(crate) fn honest(request: &Value, era: Era) -> Value {
    let error = |code: i32| json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "no"}});
    let info = json!({"name": "malicious", "version": "1"});
    let capabilities = json!({"tools": {"listChanged": true}, "logging": {}});
    match (request["method"].as_str().unwrap_or_default(), era) {
        ("server/discover", Era::Modern) => {
            let found = json!({
                "supportedVersions": [MODERN], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": info},
            });
            result(request, era, found)
        }
        ("initialize", Era::Legacy) => {
            let found = json!({
                "protocolVersion": LEGACY, "capabilities": capabilities, "serverInfo": info,
            });
            result(request, era, found)
        }
        ("tools/list", _) => {
            let mut found = json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]});
            if era == Era::Modern {
                found["ttlMs"] = json!(0);
                found["cacheScope"] = json!("private");
            }
            result(request, era, found)
        }
        // The client checks it against the schema of the tool, if there is one.
        ("tools/call", _) => {
            let mut found = text("ok");
            let members = (0..3_000).map(|n| (format!("a{n}{}", "bc".repeat(50)), json!("v")));
            found["structuredContent"] = Value::Object(members.collect());
            result(request, era, found)
        }
        ("ping", _) => result(request, era, json!({})),
        _ => error(-32601),
    }
}

impl Script {
    /// Returns the answer to a request.
    pub(crate) fn answer(&self, request: &Value, era: Era) -> Vec<Piece> {
        // A legacy server knows no `server/discover`; its first request is another.
        let is_start = self.method == "server/discover" && request["method"] == "initialize";
        if request["method"] == self.method || is_start {
            return (self.answer)(request, era);
        }
        vec![Message(honest(request, era))]
    }
}

/// How messages are separated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Framing {
    Lines,
    Events,
}

impl Framing {
    fn message(self, message: &Value) -> Vec<u8> {
        match self {
            Framing::Lines => format!("{message}\n").into_bytes(),
            Framing::Events => format!("data: {message}\n\n").into_bytes(),
        }
    }
}

/// Writes an answer. Returns an error as soon as the client does not accept it any more.
pub(crate) async fn play(
    pieces: Vec<Piece>,
    framing: Framing,
    output: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    for piece in pieces {
        match piece {
            Message(message) => output.write_all(&framing.message(&message)).await?,
            Messages(count, message) => {
                let bytes = framing.message(&message);
                for _ in 0..count {
                    output.write_all(&bytes).await?;
                }
            }
            Start(text) => {
                let start = if framing == Framing::Events { "data: " } else { "" };
                output.write_all(format!("{start}{text}").as_bytes()).await?;
            }
            Endless(bytes) => loop {
                output.write_all(&bytes).await?;
            },
            EndlessMessage(message) => {
                let bytes = framing.message(&message).repeat(20);
                loop {
                    output.write_all(&bytes).await?;
                }
            }
            Drip => loop {
                output.write_all(b" ").await?;
                output.flush().await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            },
            Silence => std::future::pending().await,
        }
    }
    output.flush().await
}
