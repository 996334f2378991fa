//! A client of HTTP/2 that writes and reads frames.

use std::{collections::HashMap, io};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{endpoint::Stream, message::Message};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const PRIORITY_FLAG: u8 = 0x20;

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;

/// The window of a connection and of a stream before anything is said about it.
const WINDOW: i64 = 65_535;
/// The longest DATA frame that a server has to accept.
const FRAME: usize = 16_384;

/// A frame as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// Returns the number at the end of the fixed part: an error code or a window.
    pub(crate) fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        let bytes = self.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    }
}

/// Returns the bytes of a frame, whether it is valid or not.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns a SETTINGS frame.
pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (name, value) in values {
        payload.extend(name.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

/// Encodes headers as literals, without Huffman and without the dynamic table.
pub(crate) fn block<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            length(&mut block, text.len());
            block.extend(text.as_bytes());
        }
    }
    block
}

/// An integer with a prefix of seven bits.
fn length(block: &mut Vec<u8>, mut rest: usize) {
    if rest < 127 {
        block.push(rest as u8);
        return;
    }
    block.push(127);
    rest -= 127;
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}

/// Returns the headers of a request: the pseudo headers first.
pub(crate) fn request_block(message: &Message) -> Vec<u8> {
    let pseudo =
        [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/mcp")];
    let headers = message.headers.iter().map(|(name, value)| (*name, value.as_str()));
    block(pseudo.into_iter().chain(headers))
}

/// Reads the status at the start of a header block. The client has set the size of the dynamic table
/// to zero, so that each block stands for itself.
pub(crate) fn status(mut block: &[u8]) -> Option<u16> {
    // Changes of the table's size come first.
    while let [first, rest @ ..] = block
        && first & 0xe0 == 0x20
    {
        block = rest;
    }
    let indexed = [200, 204, 206, 304, 400, 404, 500];
    match block {
        [index @ 0x88..=0x8e, ..] => Some(indexed[usize::from(index - 0x88)]),
        // A literal whose name is `:status`.
        [first, length, rest @ ..] if first & 0x0f == 8 || *first == 0x48 => {
            let text = rest.get(..usize::from(length & 0x7f))?;
            if length & 0x80 == 0 {
                return std::str::from_utf8(text).ok()?.parse().ok();
            }
            Some(huffman_digits(text))
        }
        _ => None,
    }
}

/// Decodes three digits of the Huffman code: 0 to 2 have five bits, 3 to 9 six.
fn huffman_digits(text: &[u8]) -> u16 {
    let bits: Vec<u8> =
        text.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let number = |bits: &[u8]| bits.iter().fold(0_u16, |number, bit| number * 2 + u16::from(*bit));
    let (mut at, mut value) = (0, 0);
    for _ in 0..3 {
        let Some(five) = bits.get(at..at + 5).map(number) else { break };
        let digit = if five <= 2 {
            at += 5;
            five
        } else {
            let six = bits.get(at..at + 6).map_or(0x19, number);
            at += 6;
            six.saturating_sub(0x19) + 3
        };
        value = value * 10 + digit;
    }
    value
}

/// A connection.
pub(crate) struct Http2 {
    pub(crate) stream: Stream,
    read: Vec<u8>,
    window: i64,
    initial_window: i64,
    windows: HashMap<u32, i64>,
    /// The frames that were read while a body waited for its window.
    pub(crate) waiting: Vec<Frame>,
}

impl Http2 {
    /// Sends the preface and the settings.
    pub(crate) async fn start(mut stream: Stream, values: &[(u16, u32)]) -> io::Result<Http2> {
        stream.write_all(PREFACE).await?;
        let mut all = vec![(HEADER_TABLE_SIZE, 0)];
        all.extend(values);
        stream.write_all(&settings(&all)).await?;
        Ok(Http2 {
            stream,
            read: Vec::new(),
            window: WINDOW,
            initial_window: WINDOW,
            windows: HashMap::new(),
            waiting: Vec::new(),
        })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads the next frame. Acknowledges settings and answers PINGs.
    pub(crate) async fn next(&mut self) -> io::Result<Frame> {
        let frame = self.read_frame().await?;
        match (frame.kind, frame.flags & ACK) {
            (SETTINGS, 0) => {
                for pair in frame.payload.chunks_exact(6) {
                    let value = u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]);
                    if u16::from_be_bytes([pair[0], pair[1]]) == INITIAL_WINDOW_SIZE {
                        let change = i64::from(value) - self.initial_window;
                        self.initial_window = i64::from(value);
                        self.windows.values_mut().for_each(|window| *window += change);
                    }
                }
                self.send(&self::frame(SETTINGS, ACK, 0, &[])).await?;
            }
            (PING, 0) => self.send(&self::frame(PING, ACK, 0, &frame.payload)).await?,
            (WINDOW_UPDATE, _) if frame.stream == 0 => self.window += i64::from(frame.code()),
            (WINDOW_UPDATE, _) => {
                if let Some(window) = self.windows.get_mut(&frame.stream) {
                    *window += i64::from(frame.code());
                }
            }
            _ => {}
        }
        Ok(frame)
    }

    async fn read_frame(&mut self) -> io::Result<Frame> {
        loop {
            if let [a, b, c, kind, flags, d, e, f, g, rest @ ..] = &self.read[..] {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                if rest.len() >= length {
                    let stream = u32::from_be_bytes([*d & 0x7f, *e, *f, *g]);
                    let payload = rest[..length].to_vec();
                    let frame = Frame { kind: *kind, flags: *flags, stream, payload };
                    self.read.drain(..9 + length);
                    return Ok(frame);
                }
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends a request with its whole body, as the windows permit. Frames that arrive in between are
    /// kept in `waiting`.
    pub(crate) async fn request(&mut self, stream: u32, message: &Message) -> io::Result<()> {
        let head = frame(HEADERS, END_HEADERS, stream, &request_block(message));
        self.send(&head).await?;
        self.windows.insert(stream, self.initial_window);
        let mut rest = message.text.as_bytes();
        while !rest.is_empty() {
            let open = self.window.min(self.windows.get(&stream).copied().unwrap_or(0));
            let length = usize::try_from(open).unwrap_or(0).min(FRAME).min(rest.len());
            if length == 0 {
                let frame = self.next().await?;
                // A response before the end of the body is a refusal.
                let is_refused =
                    frame.stream == stream && [HEADERS, RST_STREAM].contains(&frame.kind);
                let is_over = frame.kind == GOAWAY;
                self.waiting.push(frame);
                if is_refused {
                    let cancel = 8_u32.to_be_bytes();
                    self.send(&self::frame(RST_STREAM, 0, stream, &cancel)).await?;
                }
                if is_refused || is_over {
                    return Ok(());
                }
                continue;
            }
            let (now, later) = rest.split_at(length);
            let flags = if later.is_empty() { END_STREAM } else { 0 };
            self.send(&frame(DATA, flags, stream, now)).await?;
            self.window -= length as i64;
            if let Some(window) = self.windows.get_mut(&stream) {
                *window -= length as i64;
            }
            rest = later;
        }
        self.windows.remove(&stream);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_in_each_encoding() {
        assert_eq!(status(&[0x88]), Some(200));
        assert_eq!(status(&[0x20, 0x8c]), Some(400));
        assert_eq!(status(b"\x08\x03503"), Some(503));
        // "302" in the Huffman code, from RFC 7541, C.6.1.
        assert_eq!(status(&[0x48, 0x82, 0x64, 0x02]), Some(302));
    }

    #[test]
    fn a_length_takes_as_many_bytes_as_it_needs() {
        let encoded = |number| {
            let mut block = Vec::new();
            length(&mut block, number);
            block
        };
        assert_eq!(encoded(126), [126]);
        assert_eq!(encoded(127), [127, 0]);
        assert_eq!(encoded(127 + 128), [127, 128, 1]);
    }
}
