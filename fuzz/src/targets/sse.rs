//! Server-sent events, beside a reader that follows the standard line by line.

use std::time::Duration;

use bytes::Bytes;
use turnbuckle::__seam::fuzzing::{self, EventFields};

/// The first byte chooses the size of chunks.
pub fn run(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else { return };
    let chunks = || stream.chunks(usize::from(size % 16) + 1);
    let expected: Vec<_> = expected(stream).into_iter().map(Some).collect();
    assert_eq!(fuzzing::events(chunks(), usize::MAX), expected);
    // With a limit, chunks do not matter either, and an event within it is the same.
    let limited = fuzzing::events([stream], 16);
    assert_eq!(fuzzing::events(chunks(), 16), limited);
    assert!(limited.iter().flatten().all(|(_, _, _, data)| data.len() <= 16));
}

/// The events by <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>.
fn expected(stream: &[u8]) -> Vec<EventFields> {
    let mut events = Vec::new();
    let (mut kind, mut id, mut retry) = (None, None, None);
    let mut data: Option<Vec<u8>> = None;
    for line in lines(stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream)) {
        if line.is_empty() {
            let name = kind.take();
            if let Some(data) = data.take() {
                events.push((name, id.take(), retry.take(), Bytes::from(data)));
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => {
                let named = !value.is_empty() && value != b"message";
                kind = named.then(|| Bytes::copy_from_slice(value));
            }
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            b"id" if !value.contains(&0) => id = Some(Bytes::copy_from_slice(value)),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value).unwrap();
                retry = digits.parse().ok().map(Duration::from_millis).or(retry);
            }
            _ => {}
        }
    }
    events
}

/// The lines that have an end: a line feed, a carriage return, or both.
fn lines(mut stream: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(end) = stream.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        lines.push(&stream[..end]);
        let length = if stream[end..].starts_with(b"\r\n") { 2 } else { 1 };
        stream = &stream[end + length..];
    }
    lines
}
