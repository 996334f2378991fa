//! Lines of a stream, and the JSON-RPC message in a line.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};
use turnbuckle::__seam::fuzzing;
use turnbuckle_types::{
    Raw,
    jsonrpc::{self, Frame, Message, Params},
};

use crate::json;

const LONGEST_LINE: usize = 64;
const DEPTH: usize = 16;
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The first byte chooses the size of chunks.
pub fn run(data: &[u8]) {
    let Some((size, text)) = data.split_first() else { return };
    lines(text, usize::from(size % 16) + 1);
    message(text);
}

/// The chunks in which a stream arrives do not matter.
fn lines(text: &[u8], size: usize) {
    let chunks = Chunks { text: text.to_vec(), read: 0, size };
    let found = fuzzing::lines(chunks, LONGEST_LINE);
    let mut expected = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.len() > LONGEST_LINE {
            expected.push(None);
        } else if !line.trim_ascii().is_empty() {
            expected.push(Some(Bytes::copy_from_slice(line.trim_ascii())));
        }
    }
    assert_eq!(found, expected);
}

fn message(text: &[u8]) {
    let Ok(message) = jsonrpc::parse(Bytes::copy_from_slice(text), DEPTH) else { return };
    serde_json::from_slice::<IgnoredAny>(text).expect("only JSON is accepted");
    match message {
        Message::Single(frame) => {
            if let Ok(value) = serde_json::from_slice(text) {
                agrees(&frame, &value);
            }
            let repeated = |member: &&str| json::occurs_twice(text, member);
            assert_eq!(MEMBERS.iter().find(|member| repeated(member)), None);
            comes_back(frame);
        }
        Message::Batch(frames) => frames.into_iter().flatten().for_each(comes_back),
    }
}

/// Another reader finds the same members.
fn agrees(frame: &Frame, value: &Value) {
    let same_params = |params: &Params| match &params.raw {
        Some(raw) => assert_eq!(&tree(raw), &value["params"]),
        None => assert!(value["params"].is_null()),
    };
    match frame {
        Frame::Request(request) => {
            let id: Value = serde_json::from_str(&request.id.to_string()).unwrap();
            assert_eq!((&id, &*request.method), (&value["id"], value["method"].as_str().unwrap()));
            same_params(&request.params);
        }
        Frame::Notification(notification) => {
            assert!(value.get("id").is_none());
            assert_eq!(&*notification.method, value["method"].as_str().unwrap());
            same_params(&notification.params);
        }
        Frame::Response(response) => match &response.outcome {
            Ok(result) => assert_eq!(tree(result), value["result"]),
            Err(error) => assert_eq!(value["error"]["message"], *error.message),
        },
    }
}

fn tree(raw: &Raw) -> Value {
    serde_json::from_str(raw.as_str()).unwrap()
}

/// A written frame is read as the same frame.
fn comes_back(frame: Frame) {
    let mut line = Vec::new();
    let text = |params: &Params| params.raw.as_ref().map_or("", Raw::as_str).to_owned();
    match &frame {
        Frame::Request(request) => {
            let params = text(&request.params);
            jsonrpc::write_request(&mut line, &request.id, &request.method, &params);
        }
        Frame::Notification(notification) => {
            let params = text(&notification.params);
            jsonrpc::write_notification(&mut line, &notification.method, &params);
        }
        Frame::Response(response) => match (&response.id, &response.outcome) {
            (Some(id), Ok(result)) => {
                jsonrpc::write_result(&mut line, id, result.as_str().as_bytes());
            }
            (None, Ok(_)) => unreachable!("a result has an id"),
            (id, Err(error)) => jsonrpc::write_error(&mut line, id.as_ref(), error),
        },
    }
    assert!(!line.contains(&b'\n'));
    assert_eq!(jsonrpc::parse_line(line.into(), DEPTH), Ok(Message::Single(frame)));
}

/// A stream that arrives in chunks of one size.
struct Chunks {
    text: Vec<u8>,
    read: usize,
    size: usize,
}

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.text[self.read..];
        let count = self.size.min(rest.len()).min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.read += count;
        Poll::Ready(Ok(()))
    }
}
