//! The table: section, frames, reaction.

use super::{Case, Reaction};
use crate::wire::{
    http2::{
        ACK, CONTINUATION, DATA, ENABLE_PUSH, END_HEADERS, END_STREAM, GOAWAY, HEADERS,
        INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, PADDED, PING, PRIORITY, PRIORITY_FLAG, PUSH_PROMISE,
        RST_STREAM, SETTINGS, WINDOW_UPDATE, block, frame, request_block, settings,
    },
    message::Message,
};

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const COMPRESSION_ERROR: u32 = 9;

const PROTOCOL: Reaction = Reaction::Connection(&[PROTOCOL_ERROR]);
const MALFORMED: Reaction = Reaction::Stream(&[PROTOCOL_ERROR]);
// The library `h2` reports every frame that it can't read as PROTOCOL_ERROR.
const SIZE: Reaction = Reaction::Connection(&[FRAME_SIZE_ERROR, PROTOCOL_ERROR]);
const COMPRESSION: Reaction = Reaction::Connection(&[COMPRESSION_ERROR, PROTOCOL_ERROR]);
const CLOSED: Reaction = Reaction::Stream(&[STREAM_CLOSED, PROTOCOL_ERROR]);
const FLOW: Reaction = Reaction::Connection(&[FLOW_CONTROL_ERROR, PROTOCOL_ERROR]);

/// The flags of a request without a body.
const WHOLE: u8 = END_HEADERS | END_STREAM;
/// The longest frame that a server has to accept.
const FRAME: usize = 16_384;

const fn case(
    section: &'static str,
    name: &'static str,
    reaction: Reaction,
    frames: fn(&Message) -> Vec<u8>,
) -> Case {
    Case { section, name, frames, reaction }
}

pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    [FRAMES, STREAMS, CONTROL, WINDOWS, BLOCKS, REQUESTS, COMPRESSED].into_iter().flatten()
}

/// A request whose body follows.
fn head(call: &Message, stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &request_block(call))
}

/// A whole request.
fn request(call: &Message, stream: u32) -> Vec<u8> {
    joined([head(call, stream), frame(DATA, END_STREAM, stream, call.text.as_bytes())])
}

fn joined<const N: usize>(frames: [Vec<u8>; N]) -> Vec<u8> {
    frames.concat()
}

/// A request with these headers behind valid ones.
fn with(call: &Message, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = request_block(call);
    bytes.extend(block(headers.iter().copied()));
    joined([
        frame(HEADERS, END_HEADERS, 1, &bytes),
        frame(DATA, END_STREAM, 1, call.text.as_bytes()),
    ])
}

/// A request with these headers and no others.
fn only(headers: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, WHOLE, 1, &block(headers.iter().copied()))
}

const METHOD: (&str, &str) = (":method", "POST");
const SCHEME: (&str, &str) = (":scheme", "http");
const PATH: (&str, &str) = (":path", "/mcp");
const HOST: (&str, &str) = (":authority", "localhost");

/// A block with raw bytes behind valid headers.
fn raw(call: &Message, bytes: &[u8]) -> Vec<u8> {
    let mut block = request_block(call);
    block.extend(bytes);
    frame(HEADERS, WHOLE, 1, &block)
}

const FRAMES: &[Case] = &[
    case("4.1", "a valid request", Reaction::Status(200), |call| request(call, 1)),
    case("4.1", "a frame of an unknown type", Reaction::Ignored, |_| frame(0xff, 0, 0, &[0; 8])),
    case("4.1", "flags that are not defined", Reaction::Ignored, |_| frame(PING, 0x16, 0, &[0; 8])),
    case("4.1", "the reserved bit", Reaction::Ignored, |_| frame(PING, 0, 1 << 31, &[0; 8])),
    case("4.2", "the longest frame", Reaction::Status(400), |call| {
        joined([head(call, 1), frame(DATA, END_STREAM, 1, &[b'x'; FRAME])])
    }),
    case("4.2", "DATA that is too long", Reaction::Stream(&[FRAME_SIZE_ERROR]), |call| {
        joined([head(call, 1), frame(DATA, END_STREAM, 1, &[b'x'; FRAME + 1])])
    }),
    case("4.2", "HEADERS that are too long", SIZE, |call| {
        let mut block = request_block(call);
        block.extend(self::block([("x", &*"y".repeat(FRAME))]));
        frame(HEADERS, WHOLE, 1, &block)
    }),
    case("5.5", "an extension within a header block", PROTOCOL, |call| {
        joined([frame(HEADERS, 0, 1, &request_block(call)), frame(0xff, 0, 0, &[])])
    }),
];

const STREAMS: &[Case] = &[
    case("5.1", "DATA on an idle stream", PROTOCOL, |_| frame(DATA, END_STREAM, 1, b"x")),
    case("5.1", "RST_STREAM on an idle stream", PROTOCOL, |_| frame(RST_STREAM, 0, 1, &[0; 4])),
    case("5.1", "WINDOW_UPDATE on an idle stream", PROTOCOL, |_| {
        frame(WINDOW_UPDATE, 0, 1, &100_u32.to_be_bytes())
    }),
    case("5.1", "CONTINUATION on an idle stream", PROTOCOL, |call| {
        frame(CONTINUATION, END_HEADERS, 1, &request_block(call))
    }),
    case("5.1", "PRIORITY on an idle stream", Reaction::Ignored, |_| {
        frame(PRIORITY, 0, 5, &[0, 0, 0, 3, 7])
    }),
    case("5.1", "DATA behind the end", CLOSED, |call| {
        joined([request(call, 1), frame(DATA, END_STREAM, 1, b"x")])
    }),
    case("5.1", "HEADERS behind the end", CLOSED, |call| {
        joined([request(call, 1), frame(HEADERS, WHOLE, 1, &request_block(call))])
    }),
    case("5.1", "CONTINUATION behind the end", PROTOCOL, |call| {
        joined([request(call, 1), frame(CONTINUATION, END_HEADERS, 1, &[])])
    }),
    case("5.1", "DATA on a stream that was reset", CLOSED, |call| {
        joined([
            head(call, 1),
            frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes()),
            frame(DATA, 1, 1, b"x"),
        ])
    }),
    case("5.1", "HEADERS on a stream that was reset", CLOSED, |call| {
        let reset = frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes());
        joined([head(call, 1), reset, frame(HEADERS, WHOLE, 1, &request_block(call))])
    }),
    case("5.1", "CONTINUATION on a stream that was reset", PROTOCOL, |call| {
        let reset = frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes());
        joined([head(call, 1), reset, frame(CONTINUATION, END_HEADERS, 1, &[])])
    }),
    case("5.1.1", "an even stream", PROTOCOL, |call| request(call, 2)),
    case(
        "5.1.1",
        "a smaller stream",
        Reaction::Connection(&[PROTOCOL_ERROR, STREAM_CLOSED]),
        |call| joined([request(call, 5), request(call, 3)]),
    ),
    case(
        "5.1.2",
        "too many streams",
        Reaction::Stream(&[PROTOCOL_ERROR, REFUSED_STREAM]),
        |call| (0..300).flat_map(|number| head(call, number * 2 + 1)).collect(),
    ),
    case("5.3.1", "HEADERS that depend on themselves", MALFORMED, |call| {
        let block = [&[0, 0, 0, 1, 7][..], &request_block(call)].concat();
        frame(HEADERS, WHOLE | PRIORITY_FLAG, 1, &block)
    }),
    case("5.3.1", "PRIORITY that depends on itself", MALFORMED, |call| {
        joined([head(call, 1), frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 7])])
    }),
];

const CONTROL: &[Case] = &[
    case("6.1", "DATA on stream 0", PROTOCOL, |_| frame(DATA, END_STREAM, 0, b"x")),
    case("6.1", "DATA with too much padding", PROTOCOL, |call| {
        joined([head(call, 1), frame(DATA, END_STREAM | PADDED, 1, &[200, 1, 2])])
    }),
    case("6.1", "padded DATA", Reaction::Status(200), |call| {
        let padded = [&[3][..], call.text.as_bytes(), &[0; 3]].concat();
        joined([head(call, 1), frame(DATA, END_STREAM | PADDED, 1, &padded)])
    }),
    case("6.2", "HEADERS on stream 0", PROTOCOL, |call| {
        frame(HEADERS, WHOLE, 0, &request_block(call))
    }),
    case("6.2", "HEADERS with too much padding", PROTOCOL, |call| {
        let block = [&[255][..], &request_block(call)[..100]].concat();
        frame(HEADERS, WHOLE | PADDED, 1, &block)
    }),
    case("6.3", "PRIORITY on stream 0", PROTOCOL, |_| frame(PRIORITY, 0, 0, &[0, 0, 0, 1, 7])),
    case("6.3", "PRIORITY of four bytes", SIZE, |call| {
        joined([head(call, 1), frame(PRIORITY, 0, 1, &[0; 4])])
    }),
    case("6.4", "RST_STREAM on stream 0", PROTOCOL, |_| frame(RST_STREAM, 0, 0, &[0; 4])),
    case("6.4", "RST_STREAM of three bytes", SIZE, |call| {
        joined([head(call, 1), frame(RST_STREAM, 0, 1, &[0; 3])])
    }),
    case("6.5", "SETTINGS with an acknowledgement and a value", SIZE, |_| {
        frame(SETTINGS, ACK, 0, &[0; 6])
    }),
    case("6.5", "SETTINGS on a stream", PROTOCOL, |_| frame(SETTINGS, 0, 1, &[])),
    case("6.5", "SETTINGS of five bytes", SIZE, |_| frame(SETTINGS, 0, 0, &[0; 5])),
    case("6.5.2", "ENABLE_PUSH of 2", PROTOCOL, |_| settings(&[(ENABLE_PUSH, 2)])),
    case("6.5.2", "INITIAL_WINDOW_SIZE of 2^31", FLOW, |_| {
        settings(&[(INITIAL_WINDOW_SIZE, 1 << 31)])
    }),
    case("6.5.2", "MAX_FRAME_SIZE of 16,383", PROTOCOL, |_| settings(&[(MAX_FRAME_SIZE, 16_383)])),
    case("6.5.2", "MAX_FRAME_SIZE of 2^24", PROTOCOL, |_| settings(&[(MAX_FRAME_SIZE, 1 << 24)])),
    case("6.5.2", "an unknown setting", Reaction::Ignored, |_| settings(&[(0xff, 1)])),
    case("6.6", "PUSH_PROMISE of a client", PROTOCOL, |call| {
        let block = [&2_u32.to_be_bytes()[..], &request_block(call)].concat();
        joined([head(call, 1), frame(PUSH_PROMISE, END_HEADERS, 1, &block)])
    }),
    case("6.7", "a PING", Reaction::Ignored, |_| frame(PING, 0, 0, &[7; 8])),
    case("6.7", "an answer to no PING", Reaction::Ignored, |_| frame(PING, ACK, 0, &[7; 8])),
    case("6.7", "PING on a stream", PROTOCOL, |_| frame(PING, 0, 1, &[0; 8])),
    case("6.7", "PING of six bytes", SIZE, |_| frame(PING, 0, 0, &[0; 6])),
    case("6.8", "GOAWAY on a stream", PROTOCOL, |_| frame(GOAWAY, 0, 1, &[0; 8])),
];

const WINDOWS: &[Case] = &[
    case("6.9", "WINDOW_UPDATE of 0", PROTOCOL, |_| frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
    case("6.9", "WINDOW_UPDATE of 0 on a stream", MALFORMED, |call| {
        joined([head(call, 1), frame(WINDOW_UPDATE, 0, 1, &[0; 4])])
    }),
    case("6.9", "WINDOW_UPDATE of three bytes", SIZE, |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1])),
    case("6.9.1", "a window of the connection beyond 2^31", FLOW, |_| {
        frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes()).repeat(2)
    }),
    case(
        "6.9.1",
        "a window of a stream beyond 2^31",
        Reaction::Stream(&[FLOW_CONTROL_ERROR]),
        |call| {
            let update = frame(WINDOW_UPDATE, 0, 1, &0x7fff_ffff_u32.to_be_bytes());
            joined([head(call, 1), update.repeat(2)])
        },
    ),
    case("6.9.2", "a window of a stream beyond 2^31 by SETTINGS", FLOW, |call| {
        let update = frame(WINDOW_UPDATE, 0, 1, &0x7fff_0000_u32.to_be_bytes());
        joined([head(call, 1), update, settings(&[(INITIAL_WINDOW_SIZE, 0x7fff_ffff)])])
    }),
    case("6.9.2", "SETTINGS twice", Reaction::Status(200), |call| {
        let windows = settings(&[(INITIAL_WINDOW_SIZE, 0), (INITIAL_WINDOW_SIZE, 70_000)]);
        joined([windows, request(call, 1)])
    }),
];

const BLOCKS: &[Case] = &[
    case("4.3", "PRIORITY within a header block", PROTOCOL, |call| {
        let priority = frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7]);
        joined([frame(HEADERS, 0, 1, &request_block(call)), priority])
    }),
    case("4.3", "HEADERS of another stream within a header block", PROTOCOL, |call| {
        joined([frame(HEADERS, 0, 1, &request_block(call)), head(call, 3)])
    }),
    case("6.10", "a header block in pieces", Reaction::Status(200), |call| {
        let block = request_block(call);
        joined([
            frame(HEADERS, 0, 1, &block[..10]),
            frame(CONTINUATION, 0, 1, &block[10..50]),
            frame(CONTINUATION, 0, 1, &[]),
            frame(CONTINUATION, END_HEADERS, 1, &block[50..]),
            frame(DATA, END_STREAM, 1, call.text.as_bytes()),
        ])
    }),
    case("6.10", "DATA within a header block", PROTOCOL, |call| {
        joined([frame(HEADERS, 0, 1, &request_block(call)), frame(DATA, END_STREAM, 1, b"x")])
    }),
    case("6.10", "CONTINUATION on stream 0", PROTOCOL, |call| {
        joined([
            frame(HEADERS, 0, 1, &request_block(call)),
            frame(CONTINUATION, END_HEADERS, 0, &[]),
        ])
    }),
    case("6.10", "CONTINUATION of another stream", PROTOCOL, |call| {
        joined([
            frame(HEADERS, 0, 1, &request_block(call)),
            frame(CONTINUATION, END_HEADERS, 3, &[]),
        ])
    }),
    case("6.10", "CONTINUATION behind the end of a block", PROTOCOL, |call| {
        joined([head(call, 1), frame(CONTINUATION, END_HEADERS, 1, &[])])
    }),
    case("6.10", "CONTINUATION behind DATA", PROTOCOL, |call| {
        joined([head(call, 1), frame(DATA, 0, 1, b"x"), frame(CONTINUATION, END_HEADERS, 1, &[])])
    }),
];

const REQUESTS: &[Case] = &[
    case("8.1", "trailers", Reaction::Status(200), |call| {
        let trailers = frame(HEADERS, WHOLE, 1, &block([("x-trailer", "y")]));
        joined([head(call, 1), frame(DATA, 0, 1, call.text.as_bytes()), trailers])
    }),
    case("8.1", "trailers without an end", MALFORMED, |call| {
        let trailers = frame(HEADERS, END_HEADERS, 1, &block([("x-trailer", "y")]));
        joined([head(call, 1), frame(DATA, 0, 1, call.text.as_bytes()), trailers])
    }),
    // `h2` accepts it; the server does not read trailers.
    case("8.1", "a pseudo header in trailers", Reaction::Status(200), |call| {
        let trailers = frame(HEADERS, WHOLE, 1, &block([(":method", "POST")]));
        joined([head(call, 1), frame(DATA, 0, 1, call.text.as_bytes()), trailers])
    }),
    case("8.2", "a name in upper case", MALFORMED, |call| with(call, &[("X-Upper", "y")])),
    case("8.2.1", "a name with a space", MALFORMED, |call| with(call, &[("x y", "z")])),
    case("8.2.1", "a value with a line feed", MALFORMED, |call| with(call, &[("x", "y\nz")])),
    case("8.2.1", "a value with NUL", MALFORMED, |call| with(call, &[("x", "y\0z")])),
    case("8.2.2", "connection", MALFORMED, |call| with(call, &[("connection", "keep-alive")])),
    case("8.2.2", "keep-alive", MALFORMED, |call| with(call, &[("keep-alive", "1")])),
    case("8.2.2", "proxy-connection", MALFORMED, |call| with(call, &[("proxy-connection", "x")])),
    case("8.2.2", "transfer-encoding", MALFORMED, |call| {
        with(call, &[("transfer-encoding", "chunked")])
    }),
    case("8.2.2", "upgrade", MALFORMED, |call| with(call, &[("upgrade", "h2c")])),
    case("8.2.2", "te other than trailers", MALFORMED, |call| with(call, &[("te", "gzip")])),
    case("8.2.2", "te: trailers", Reaction::Status(200), |call| with(call, &[("te", "trailers")])),
    case("8.3", "an unknown pseudo header", MALFORMED, |_| {
        only(&[METHOD, SCHEME, PATH, (":x", "y")])
    }),
    case("8.3", "a pseudo header of responses", MALFORMED, |_| {
        only(&[METHOD, SCHEME, PATH, (":status", "200")])
    }),
    case("8.3", "a pseudo header behind others", MALFORMED, |_| {
        only(&[METHOD, SCHEME, ("x", "y"), PATH])
    }),
    case("8.3.1", "no :method", MALFORMED, |_| only(&[SCHEME, PATH, HOST])),
    case("8.3.1", "no :scheme", MALFORMED, |_| only(&[METHOD, PATH, HOST])),
    case("8.3.1", "no :path", MALFORMED, |_| only(&[METHOD, SCHEME, HOST])),
    case("8.3.1", "an empty :path", MALFORMED, |_| only(&[METHOD, SCHEME, (":path", ""), HOST])),
    case("8.3.1", ":method twice", MALFORMED, |_| only(&[METHOD, METHOD, SCHEME, PATH])),
    case("8.3.1", ":scheme twice", MALFORMED, |_| only(&[METHOD, SCHEME, SCHEME, PATH])),
    case("8.3.1", ":path twice", MALFORMED, |_| only(&[METHOD, SCHEME, PATH, PATH])),
    case("8.3.1", ":authority twice", MALFORMED, |_| only(&[METHOD, SCHEME, PATH, HOST, HOST])),
    case("8.1.1", "a content-length that is too small", MALFORMED, |call| {
        with(call, &[("content-length", "1")])
    }),
    case("8.1.1", "a content-length that is too large", MALFORMED, |call| {
        with(call, &[("content-length", "100000")])
    }),
    case("8.1.1", "a content-length of two frames", MALFORMED, |call| {
        let mut bytes = request_block(call);
        bytes.extend(block([("content-length", "1")]));
        let head = frame(HEADERS, END_HEADERS, 1, &bytes);
        joined([head, frame(DATA, 0, 1, b"te"), frame(DATA, END_STREAM, 1, b"st")])
    }),
    case("8.1.1", "a content-length that is no number", MALFORMED, |call| {
        with(call, &[("content-length", "x")])
    }),
];

/// RFC 7541.
const COMPRESSED: &[Case] = &[
    case("7541 2.3.3", "an index behind the tables", COMPRESSION, |call| {
        raw(call, &[0xff, 0x80, 0x01])
    }),
    case("7541 6.1", "index 0", COMPRESSION, |call| raw(call, &[0x80])),
    case("7541 4.2", "a new size of the table at the end of a block", COMPRESSION, |call| {
        raw(call, &[0x20])
    }),
    case("7541 6.3", "a table that is too large", COMPRESSION, |call| {
        let block = [&[0x3f, 0xff, 0xff, 0x7f][..], &request_block(call)].concat();
        frame(HEADERS, WHOLE, 1, &block)
    }),
    // A literal with the name `x` and a value of Huffman code.
    case("7541 5.2", "padding of more than seven bits", COMPRESSION, |call| {
        raw(call, &[0x00, 1, b'x', 0x85, 0xf2, 0xb2, 0x4a, 0x84, 0xff, 0xff])
    }),
    case("7541 5.2", "padding with zeros", COMPRESSION, |call| {
        raw(call, &[0x00, 1, b'x', 0x84, 0xf2, 0xb2, 0x4a, 0x80])
    }),
    case("7541 5.2", "EOS within a text", COMPRESSION, |call| {
        raw(call, &[0x00, 1, b'x', 0x88, 0xf2, 0xb2, 0x4a, 0x84, 0xff, 0xff, 0xff, 0xff])
    }),
    case("7541 5.1", "an integer without an end", COMPRESSION, |call| raw(call, &[0xff; 20])),
    case("7541 5.2", "a text that is longer than its block", COMPRESSION, |call| {
        raw(call, &[0x00, 1, b'x', 100, b'y'])
    }),
];
