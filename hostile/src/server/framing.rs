//! Requests of HTTP/1.1 that two readers could understand differently.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::memory::said;
use crate::{attack::Trial, wire::message::modern_call};

/// A request with headers and a body that contradict each other. `{hidden}` stands for a second
/// request that must not run.
struct Case {
    name: &'static str,
    headers: &'static str,
    body: &'static str,
}

const fn case(name: &'static str, headers: &'static str, body: &'static str) -> Case {
    Case { name, headers, body }
}

/// `{n}` is the length of the first body, `{all}` that of everything behind the head, `{chunks}` the
/// first body in chunks.
const CASES: &[Case] = &[
    case(
        "both lengths",
        "content-length: {n}\r\ntransfer-encoding: chunked\r\n",
        "0\r\n\r\n{hidden}",
    ),
    case(
        "chunked and a length",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
        "{chunks}{hidden}",
    ),
    case("two lengths", "content-length: {n}\r\ncontent-length: {all}\r\n", "{body}{hidden}"),
    case("a list of lengths", "content-length: {n}, {all}\r\n", "{body}{hidden}"),
    case("a negative length", "content-length: -1\r\n", "{body}{hidden}"),
    case("a length with a sign", "content-length: +{n}\r\n", "{body}{hidden}"),
    case("a hexadecimal length", "content-length: 0x10\r\n", "{body}{hidden}"),
    case(
        "a length that is too large",
        "content-length: 99999999999999999999\r\n",
        "{body}{hidden}",
    ),
    case("a length with a space", "content-length : {n}\r\n", "{body}{hidden}"),
    case("an empty length", "content-length: \r\n", "{body}{hidden}"),
    case(
        "chunked twice",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "{chunks}",
    ),
    case("chunked and identity", "transfer-encoding: chunked, identity\r\n", "{chunks}{hidden}"),
    case("identity", "transfer-encoding: identity\r\n", "{body}{hidden}"),
    case("gzip and chunked", "transfer-encoding: gzip, chunked\r\n", "{chunks}"),
    case("an unknown coding", "transfer-encoding: xchunked\r\n", "{chunks}{hidden}"),
    case("a coding with a vertical tab", "transfer-encoding: \x0bchunked\r\n", "{chunks}{hidden}"),
    case(
        "a coding with a space in its name",
        "transfer-encoding : chunked\r\n",
        "{chunks}{hidden}",
    ),
    case("a folded coding", "transfer-encoding:\r\n chunked\r\n", "{chunks}{hidden}"),
    case("a folded length", "content-length:\r\n {n}\r\n", "{body}{hidden}"),
    case("a NUL in a header", "x: a\0b\r\ncontent-length: {n}\r\n", "{body}{hidden}"),
    case("a bare CR in a header", "x: a\rb\r\ncontent-length: {n}\r\n", "{body}{hidden}"),
    case("a header without a colon", "nonsense\r\ncontent-length: {n}\r\n", "{body}{hidden}"),
    case("a header without a name", ": x\r\ncontent-length: {n}\r\n", "{body}{hidden}"),
    case(
        "a chunk with a sign",
        "transfer-encoding: chunked\r\n",
        "+5\r\nhello\r\n0\r\n\r\n{hidden}",
    ),
    case(
        "a chunk that is too large",
        "transfer-encoding: chunked\r\n",
        "ffffffffffffffffff\r\n{body}{hidden}",
    ),
    case(
        "a chunk without an end",
        "transfer-encoding: chunked\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n{hidden}",
    ),
    case(
        "a chunk size with NUL",
        "transfer-encoding: chunked\r\n",
        "5\0\r\nhello\r\n0\r\n\r\n{hidden}",
    ),
    case("a negative chunk", "transfer-encoding: chunked\r\n", "-1\r\n{hidden}"),
];

fn fill(text: &str, body: &str, hidden: &str) -> String {
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let all = body.len() + hidden.len();
    text.replace("{n}", &body.len().to_string())
        .replace("{all}", &all.to_string())
        .replace("{chunks}", &chunks)
        .replace("{body}", body)
        .replace("{hidden}", hidden)
}

/// Sends each case on a connection of its own. A hidden request must never run.
pub(crate) async fn smuggling(trial: Arc<Trial>) -> Result<(), String> {
    let list = modern_call(1, "stats", json!({}));
    let hidden = modern_call(2, "fail", json!({"message": "hidden"}));
    let hidden = String::from_utf8_lossy(&hidden.bytes()).into_owned();
    let mut wrong = Vec::new();
    for case in CASES {
        let head = list.head(0);
        let head = head.split_once("content-length").map_or("", |(head, _)| head);
        let text = format!(
            "{head}{}\r\n{}",
            fill(case.headers, &list.text, &hidden),
            fill(case.body, &list.text, &hidden)
        );
        let mut stream = trial.endpoint.connect(1).await.map_err(said)?;
        let mut read = Vec::new();
        let exchange = async {
            stream.write_all(text.as_bytes()).await?;
            stream.shutdown().await?;
            stream.read_to_end(&mut read).await
        };
        // A server that closes early resets the connection.
        if timeout(Duration::from_secs(5), exchange).await.is_err() {
            wrong.push(format!("{}: not closed", case.name));
        }
        let read = String::from_utf8_lossy(&read);
        // A prefix that is valid may be answered; the hidden request is a different matter.
        if read.contains("hidden") {
            wrong.push(format!("{}: the hidden request ran: {read}", case.name));
        }
    }
    trial.note(format!("{} cases", CASES.len()));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Requests one behind the other whose responses are not read.
pub(crate) async fn pipelining(trial: Arc<Trial>) -> Result<(), String> {
    let echo = modern_call(1, "echo", json!({"text": "x".repeat(10_000)})).bytes();
    let mut streams = Vec::new();
    let mut sent = 0_usize;
    for _ in 0..trial.scale(20, 100) {
        let mut stream = trial.endpoint.connect_narrow(1).await.map_err(said)?;
        for _ in 0..1_000 {
            match timeout(Duration::from_millis(200), stream.write_all(&echo)).await {
                Ok(Ok(())) => sent += 1,
                _ => break,
            }
        }
        streams.push(stream);
    }
    trial.note(format!("{sent} requests on {} connections", streams.len()));
    Ok(())
}

/// JSON that is deep, long, repeated, or not JSON at all, in place of a message and in arguments.
pub(crate) async fn json(trial: Arc<Trial>) -> Result<(), String> {
    let mut random = trial.random();
    let mega = trial.scale(1 << 20, 4 << 20) - 1_000;
    let call = |arguments: &str| {
        let mut message = modern_call(1, "echo", json!({}));
        message.text =
            message.text.replace("\"arguments\":{}", &format!("\"arguments\":{arguments}"));
        message
    };
    let noise =
        random.bytes(4_000).iter().map(|byte| char::from(byte % 95 + 32)).collect::<String>();
    let texts = [
        "[".repeat(mega),
        "{\"a\":".repeat(mega / 5),
        format!("{}{}", "[".repeat(99_000), "]".repeat(99_000)),
        format!("{{\"text\":{}}}", "9".repeat(mega / 2)),
        format!("{{\"text\":\"{}\"}}", "\\u0000".repeat(mega / 6)),
        format!("{{\"text\":\"a\",\"more\":[{}[]]}}", "[],".repeat(mega / 4)),
        format!("{{{}\"text\":\"a\"}}", "\"k\":0,".repeat(mega / 8)),
        format!("{{\"text\":1e{}}}", "9".repeat(1_000)),
        noise,
    ];
    let mut statuses = Vec::new();
    for text in &texts {
        let mut connection =
            crate::wire::http1::Http1::new(trial.endpoint.connect(1).await.map_err(said)?);
        let asked = timeout(Duration::from_secs(20), connection.ask(&call(text))).await;
        let status = match asked {
            Ok(Ok(answer)) if answer.message() == Value::Null => {
                return Err(format!("no JSON in the answer: {}", answer.body));
            }
            Ok(Ok(answer)) => answer.status.to_string(),
            Ok(Err(_)) => "closed".to_owned(),
            Err(_) => return Err(format!("no answer in 20 s to {}…", &text[..20])),
        };
        statuses.push(status);
    }
    trial.note(statuses.join(" "));
    Ok(())
}
