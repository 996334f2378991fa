//! The ids of events of a session, and the text of such events.

use std::{fmt, time::Duration};

use super::super::super::sse;
use crate::protocol::sealed::random;

/// A comment that is no block of its own: some readers take an empty line after an id for an event.
pub(crate) const KEEP_ALIVE: &[u8] = b":\n";

/// The upper bits of all streams that belong to no request, and of no other.
const OF_GET: u64 = 0x6765 << 48;
const KIND: u64 = 0xffff << 48;

/// No stream gets this far; what a client sends must not bring one to the end of all numbers.
const MOST: u64 = 1 << 53;

/// The name of a stream in its session: random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamNumber(u64);

impl StreamNumber {
    /// For a stream that answers requests.
    pub(crate) fn of_requests() -> StreamNumber {
        let number = u64::from_be_bytes(random());
        let is_other = number & KIND == OF_GET;
        StreamNumber(if is_other { number ^ (1 << 63) } else { number })
    }

    /// For a stream that belongs to no request.
    pub(crate) fn of_get() -> StreamNumber {
        StreamNumber(u64::from_be_bytes(random()) & !KIND | OF_GET)
    }

    /// Whether it belongs to no request: then it can be taken up again by its name alone.
    pub(crate) fn is_of_get(self) -> bool {
        self.0 & KIND == OF_GET
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

/// A place in a stream: after its first so many events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) stream: StreamNumber,
    pub(crate) number: u64,
}

impl Cursor {
    /// Reads what a client sends back. Nothing that is not exactly what was sent is taken.
    pub(crate) fn read(text: &[u8]) -> Option<Cursor> {
        let text = std::str::from_utf8(text).ok()?;
        let (stream, number) = text.split_at_checked(16)?;
        let stream = StreamNumber(u64::from_str_radix(stream, 16).ok()?);
        let number = number.strip_prefix('-')?.parse().ok()?;
        let cursor = Cursor { stream, number };
        (number <= MOST && cursor.to_string() == text).then_some(cursor)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.stream.0, self.number)
    }
}

/// Appends an event.
pub(crate) fn write(out: &mut Vec<u8>, cursor: Cursor, data: &[u8]) {
    out.extend_from_slice(format!("id: {cursor}\n").as_bytes());
    write_once(out, data);
}

/// Appends an event that can't be asked for again.
pub(crate) fn write_once(out: &mut Vec<u8>, data: &[u8]) {
    out.extend_from_slice(sse::DATA);
    out.extend_from_slice(data);
    out.extend_from_slice(sse::END);
}

/// Appends an event that says no more than where the client stands.
pub(crate) fn write_place(out: &mut Vec<u8>, cursor: Cursor) {
    out.extend_from_slice(format!("id: {cursor}\ndata:\n\n").as_bytes());
}

/// Appends how long to wait before coming back: it goes with the event that follows, or, for clients
/// that know none without data, with none.
pub(crate) fn write_retry(out: &mut Vec<u8>, retry: Duration) {
    out.extend_from_slice(format!("retry: {}\n", retry.as_millis()).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is() {
        for stream in [StreamNumber::of_requests(), StreamNumber::of_get(), StreamNumber(0)] {
            for number in [0, 1, MOST] {
                let cursor = Cursor { stream, number };
                assert_eq!(Cursor::read(cursor.to_string().as_bytes()), Some(cursor));
            }
        }
        for text in [
            "",
            "-",
            "0000000000000000",
            "0000000000000000-",
            "0000000000000000-01",
            "0000000000000000-+1",
            "0000000000000000-1 ",
            "0000000000000000-9007199254740993",
            "0000000000000000-18446744073709551615",
            "0000000000000000-18446744073709551616",
            "000000000000000-1",
            "00000000000000000-1",
            "+000000000000000-1",
            "000000000000000A-1",
            "000000000000000g-1",
            "äääääääää-1",
        ] {
            assert_eq!(Cursor::read(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Cursor::read(b"\xff000000000000000-1"), None);
    }

    #[test]
    fn kinds_of_streams_are_told_apart_by_their_names() {
        for _ in 0..1000 {
            assert!(StreamNumber::of_get().is_of_get());
            assert!(!StreamNumber::of_requests().is_of_get());
        }
        assert_ne!(StreamNumber::of_get(), StreamNumber::of_get());
    }

    #[test]
    fn events_have_an_id_and_one_line_of_data() {
        let cursor = Cursor { stream: StreamNumber(10), number: 3 };
        let mut out = Vec::new();
        write(&mut out, cursor, b"{}");
        write_place(&mut out, cursor);
        write_once(&mut out, b"[]");
        write_retry(&mut out, Duration::from_secs(1));
        let expected = "id: 000000000000000a-3\ndata: {}\n\n\
                        id: 000000000000000a-3\ndata:\n\ndata: []\n\nretry: 1000\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
