//! Just enough of the protocol, with borrowed types, to answer the bench contract.

use std::borrow::Cow;
use std::io::Write;
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::counters;

#[derive(Deserialize)]
pub(crate) struct Request<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) params: Option<Params<'a>>,
}

#[derive(Deserialize, Default)]
pub(crate) struct Params<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    pub(crate) meta: Option<Meta<'a>>,
    #[serde(borrow, default, rename = "requestId")]
    pub(crate) request_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct Progress {
    n: u64,
}

/// What is left to do for a request.
pub(crate) enum Rest {
    /// The answer is written.
    Nothing,
    /// Wait until cancelled.
    Slow,
    /// So many notifications for this token, then the answer.
    Progress { token: String, count: u64 },
    /// Acknowledge, and remember the listener.
    Listen,
    /// Tell every listener, then answer.
    Emit,
}

/// Handles one request as far as it can be done at once, writing the answer into `out`.
pub(crate) fn handle(method: &str, id: &RawValue, params: &Params, out: &mut Vec<u8>) -> Rest {
    match method {
        "tools/call" => return call(id, params, out),
        "tools/list" => {
            counters::LISTS.up();
            open(out, id);
            let tools: &str = &TOOLS;
            let ttl = if KEPT_LIST.get().is_some() { HOUR } else { 0 };
            put(
                out,
                format_args!(
                    r#""resultType":"complete","ttlMs":{ttl},"cacheScope":"public","tools":[{tools}]}}}}"#
                ),
            );
        }
        "server/discover" => {
            open(out, id);
            out.extend_from_slice(br#""resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":3600000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"limit","version":"1.0.0"}}}}"#);
        }
        "initialize" => {
            open(out, id);
            out.extend_from_slice(br#""protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"limit","version":"1.0.0"}}}"#);
        }
        "ping" => {
            open(out, id);
            out.extend_from_slice(b"}}");
        }
        "subscriptions/listen" => return Rest::Listen,
        _ => error(out, Some(id), -32601, "method not found"),
    }
    Rest::Nothing
}

fn call(id: &RawValue, params: &Params, out: &mut Vec<u8>) -> Rest {
    let arguments = params.arguments.map_or("{}", RawValue::get);
    match &*params.name {
        "echo" => match serde_json::from_str::<Echo>(arguments) {
            Ok(echo) => text(out, id, &echo.text),
            Err(_) => error(out, Some(id), -32602, "bad arguments"),
        },
        "add" => match serde_json::from_str::<Add>(arguments) {
            Ok(Add { a, b }) => {
                let sum = a + b;
                open(out, id);
                put(
                    out,
                    format_args!(
                        r#""resultType":"complete","content":[{{"type":"text","text":"{{\"sum\":{sum}}}"}}],"structuredContent":{{"sum":{sum}}},"isError":false}}}}"#
                    ),
                );
            }
            Err(_) => error(out, Some(id), -32602, "bad arguments"),
        },
        "slow" => {
            counters::STARTED.up();
            return Rest::Slow;
        }
        "progress" => {
            let count = serde_json::from_str::<Progress>(arguments).map_or(0, |wanted| wanted.n);
            let token = params.meta.as_ref().and_then(|meta| meta.token);
            return Rest::Progress { token: token.map_or("0", RawValue::get).to_owned(), count };
        }
        "stats" => text(out, id, &counters::report()),
        "emit" => return Rest::Emit,
        _ => error(out, Some(id), -32602, "no such tool"),
    }
    Rest::Nothing
}

pub(crate) fn text(out: &mut Vec<u8>, id: &RawValue, text: &str) {
    open(out, id);
    out.extend_from_slice(br#""resultType":"complete","content":[{"type":"text","text":"#);
    serde_json::to_writer(&mut *out, text).expect("a vector takes everything");
    out.extend_from_slice(br#"}],"isError":false}}"#);
}

pub(crate) fn error(out: &mut Vec<u8>, id: Option<&RawValue>, code: i32, message: &str) {
    let id = id.map_or("null", RawValue::get);
    put(
        out,
        format_args!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#
        ),
    );
}

pub(crate) fn progress_note(out: &mut Vec<u8>, token: &str, done: u64, total: u64) {
    put(
        out,
        format_args!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{done},"total":{total}}}}}"#
        ),
    );
}

pub(crate) fn acknowledged(out: &mut Vec<u8>, id: &str) {
    put(
        out,
        format_args!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{"toolsListChanged":true}}}}}}"#
        ),
    );
}

pub(crate) fn list_changed(out: &mut Vec<u8>, id: &str) {
    put(
        out,
        format_args!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        ),
    );
}

fn open(out: &mut Vec<u8>, id: &RawValue) {
    put(out, format_args!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"#, id.get()));
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes everything");
}

/// How many tools are listed, if clients may keep that list.
pub(crate) static KEPT_LIST: OnceLock<usize> = OnceLock::new();
/// In milliseconds.
const HOUR: u64 = 3_600_000;

static TOOLS: LazyLock<String> = LazyLock::new(|| {
    let wanted = || std::env::var("BENCH_TOOLS").ok().and_then(|count| count.parse().ok());
    let count = KEPT_LIST.get().copied().or_else(wanted).unwrap_or(0);
    let tools = if count == 0 { contract() } else { so_many(count) };
    tools.join(",")
});

const ECHO: &str = r#"{"name":"echo","description":"Echo the text back","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}"#;

fn contract() -> Vec<String> {
    let mut tools = vec![
        ECHO.to_owned(),
        r#"{"name":"add","description":"Add two integers","inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}"#.to_owned(),
        r#"{"name":"progress","description":"Emit n progress notifications","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}"#.to_owned(),
    ];
    for name in ["slow", "stats", "emit"] {
        tools.push(format!(
            r#"{{"name":"{name}","description":"bench","inputSchema":{{"type":"object"}}}}"#
        ));
    }
    tools
}

/// `echo`, and tools that only fill the list.
fn so_many(count: usize) -> Vec<String> {
    let dummies = (1..count).map(|number| {
        format!(
            r#"{{"name":"dummy_{number:04}","description":"A dummy tool used to fill the tool list","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"Some text"}},"count":{{"type":"integer","description":"A count"}}}},"required":["text"]}}}}"#
        )
    });
    std::iter::once(ECHO.to_owned()).chain(dummies).collect()
}
