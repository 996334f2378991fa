//! Owns server-sent events: bytes in, events out, each bounded; and how one is written. Does not
//! own what the data of an event means.

#[cfg(all(test, feature = "client", feature = "server"))]
mod tests;

#[cfg(feature = "client")]
use std::{collections::VecDeque, time::Duration};

#[cfg(feature = "client")]
use bytes::{Buf as _, Bytes};

/// A comment: it says that the stream lives, and readers ignore it.
#[cfg(feature = "server")]
pub(crate) const KEEP_ALIVE: &[u8] = b":\n\n";

/// What an event begins with. Its data is one line.
#[cfg(feature = "server")]
pub(crate) const DATA: &[u8] = b"data: ";
/// What ends an event.
#[cfg(feature = "server")]
pub(crate) const END: &[u8] = b"\n\n";

/// One event.
#[cfg(feature = "client")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SseEvent {
    /// `None` is the kind that needs no name, `message`.
    pub(crate) kind: Option<Bytes>,
    /// The last `id` since the event before, even if it came in a block without data.
    pub(crate) id: Option<Bytes>,
    /// The same for `retry`.
    pub(crate) retry: Option<Duration>,
    /// The data lines, joined by line feeds.
    pub(crate) data: Bytes,
}

/// An event was longer than the limit, and was skipped.
#[cfg(feature = "client")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EventTooLong;

/// Splits a byte stream into events.
///
/// Every byte is looked at once for a line break, whatever the chunks: what a chunk leaves
/// unfinished moves to `line`, which is not searched again. Between two chunks it keeps at most
/// `max_event` bytes of text.
#[cfg(feature = "client")]
#[derive(Debug)]
pub(crate) struct SseReader {
    max_event: usize,
    /// What was pushed and not yet looked at. Invariant: no chunk is empty.
    chunks: VecDeque<Bytes>,
    place: LinePosition,
    /// The last line ended with a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    /// The beginning of a line that an earlier chunk began. Invariant: it has no line break, and
    /// with the lines of `block` it is no longer than `max_event`.
    line: Vec<u8>,
    block: Block,
    marks: ResumePoint,
    /// The block at hand is too long: its rest is thrown away.
    skipping: bool,
    /// How the data of the last block that was too long began.
    began: Vec<u8>,
    #[cfg(test)]
    searched: usize,
}

/// Where a stream can be taken up again, and when: what the last whole block with an `id` or a
/// `retry` said. A block that breaks off says nothing, because its event was not delivered.
#[cfg(feature = "client")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResumePoint {
    pub(crate) id: Option<Bytes>,
    pub(crate) retry: Option<Duration>,
}

/// Where in the stream the reader stands.
#[cfg(feature = "client")]
#[derive(Clone, Copy, Debug, PartialEq)]
enum LinePosition {
    /// At its very start, so many bytes into what may be a byte-order mark.
    Mark(usize),
    LineStart,
    /// In a line with at least one byte, no comment.
    Line,
    Comment,
}

/// What the lines since the last empty one say.
#[cfg(feature = "client")]
#[derive(Debug, Default)]
struct Block {
    /// The bytes of its lines, whatever became of them. Comments do not count.
    size: usize,
    kind: Option<Bytes>,
    id: Option<Bytes>,
    retry: Option<Duration>,
    data: EventData,
}

#[cfg(feature = "client")]
#[derive(Debug, Default)]
enum EventData {
    #[default]
    None,
    /// One line, a slice of a chunk, which it keeps alive.
    Shared(Bytes),
    /// One line that keeps nothing else alive.
    Own(Bytes),
    Joined(Vec<u8>),
}

/// How much is kept of an event that is too long.
#[cfg(feature = "client")]
const BEGINNING: usize = 1024;

#[cfg(feature = "client")]
const MARK: [u8; 3] = *b"\xef\xbb\xbf";

#[cfg(feature = "client")]
impl SseReader {
    pub(crate) fn new(max_event: usize) -> SseReader {
        SseReader {
            max_event,
            chunks: VecDeque::new(),
            place: LinePosition::Mark(0),
            after_return: false,
            line: Vec::new(),
            block: Block::default(),
            marks: ResumePoint::default(),
            skipping: false,
            began: Vec::new(),
            #[cfg(test)]
            searched: 0,
        }
    }

    /// Adds bytes of the stream. Take the events out with [`next`](SseReader::next) before pushing
    /// more: nothing else bounds what is pushed.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// The next whole event in what was pushed. A block without data is no event.
    ///
    /// An event that is too long is reported once, as soon as that is known, and its rest is
    /// skipped.
    pub(crate) fn next(&mut self) -> Option<Result<SseEvent, EventTooLong>> {
        while let Some(chunk) = self.chunks.front() {
            let first = chunk[0];
            if let Some(found) = self.step(first) {
                return Some(found);
            }
        }
        self.block.data.unshare();
        None
    }

    /// The marks up to the last event that was taken out, or to the last whole block.
    pub(crate) fn marks(&self) -> &ResumePoint {
        &self.marks
    }

    /// How the data of the last event that was too long began.
    #[cfg_attr(
        not(any(feature = "sse-2024", all(test, feature = "server"))),
        expect(dead_code, reason = "only HTTP+SSE reports it")
    )]
    pub(crate) fn began(&self) -> &[u8] {
        &self.began
    }

    /// Returns how many bytes of an event wait for its end.
    pub(crate) fn held(&self) -> usize {
        self.block.size + self.line.len()
    }

    /// Drops the event that waits for its end, and skips the rest of it.
    pub(crate) fn skip_event(&mut self) {
        self.skip(&[]);
    }

    /// Whether part of an event waits for its end: a stream that ends now was cut off.
    pub(crate) fn is_mid_event(&self) -> bool {
        self.skipping || self.place == LinePosition::Line || self.block.size > 0
    }

    /// Goes on by at least one byte or one place.
    fn step(&mut self, first: u8) -> Option<Result<SseEvent, EventTooLong>> {
        if std::mem::take(&mut self.after_return) && first == b'\n' {
            self.take(1);
            return None;
        }
        match self.place {
            LinePosition::Mark(matched) => self.mark(matched, first).map(Err),
            LinePosition::LineStart if first == b'\n' || first == b'\r' => {
                self.end_line(0);
                self.end_block().map(Ok)
            }
            LinePosition::LineStart => {
                self.place = if first == b':' { LinePosition::Comment } else { LinePosition::Line };
                None
            }
            LinePosition::Comment => {
                match self.find_break() {
                    Some(at) => drop(self.end_line(at)),
                    None => drop(self.chunks.pop_front()),
                }
                None
            }
            LinePosition::Line => self.line().map(Err),
        }
    }

    fn mark(&mut self, matched: usize, first: u8) -> Option<EventTooLong> {
        if first == MARK[matched] {
            self.take(1);
            let whole = matched + 1 == MARK.len();
            self.place =
                if whole { LinePosition::LineStart } else { LinePosition::Mark(matched + 1) };
            return None;
        }
        if matched == 0 {
            self.place = LinePosition::LineStart;
            return None;
        }
        // It was none: its bytes belong to the first line.
        self.place = LinePosition::Line;
        self.keep(&MARK[..matched])
    }

    /// Reads on in a line: to its end, or to that of the chunk.
    fn line(&mut self) -> Option<EventTooLong> {
        let Some(at) = self.find_break() else {
            let piece = self.chunks.pop_front()?;
            return self.keep(&piece);
        };
        let piece = self.end_line(at);
        if self.skipping {
            return None;
        }
        if !self.fits(piece.len()) {
            return Some(self.skip(&piece));
        }
        let (line, origin): (_, fn(Bytes) -> EventData) = if self.line.is_empty() {
            (piece, EventData::Shared)
        } else {
            self.append(&piece);
            (Bytes::from(std::mem::take(&mut self.line)), EventData::Own)
        };
        self.block.field(line, origin);
        None
    }

    /// Keeps part of a line until the rest of it comes.
    fn keep(&mut self, piece: &[u8]) -> Option<EventTooLong> {
        if self.skipping {
            return None;
        }
        if !self.fits(piece.len()) {
            return Some(self.skip(piece));
        }
        self.append(piece);
        None
    }

    fn fits(&self, more: usize) -> bool {
        self.block.size + self.line.len() + more <= self.max_event
    }

    fn skip(&mut self, piece: &[u8]) -> EventTooLong {
        let block = std::mem::take(&mut self.block);
        let line = std::mem::take(&mut self.line);
        self.began = match block.data.whole() {
            Some(data) => data[..data.len().min(BEGINNING)].to_vec(),
            None => {
                let line = line.iter().chain(piece).take(BEGINNING).copied().collect::<Vec<_>>();
                let data = line.strip_prefix(b"data:").unwrap_or_default();
                data.strip_prefix(b" ").unwrap_or(data).to_vec()
            }
        };
        self.skipping = true;
        EventTooLong
    }

    /// Doubles the room when it has to, but never beyond the limit.
    fn append(&mut self, piece: &[u8]) {
        let needed = self.line.len() + piece.len();
        if needed > self.line.capacity() {
            let room = needed.max(2 * self.line.capacity()).min(self.max_event.max(needed));
            self.line.reserve_exact(room - self.line.len());
        }
        self.line.extend_from_slice(piece);
    }

    fn end_block(&mut self) -> Option<SseEvent> {
        if std::mem::take(&mut self.skipping) {
            return None;
        }
        if self.block.id.is_some() {
            self.marks.id.clone_from(&self.block.id);
        }
        self.marks.retry = self.block.retry.or(self.marks.retry);
        self.block.end()
    }

    /// Where the next line break of the first chunk is.
    fn find_break(&mut self) -> Option<usize> {
        let chunk = self.chunks.front()?;
        let found = memchr::memchr2(b'\n', b'\r', chunk);
        #[cfg(test)]
        {
            self.searched += found.map_or(chunk.len(), |at| at + 1);
        }
        found
    }

    /// Takes what is before a line break of the first chunk, and the break away.
    fn end_line(&mut self, at: usize) -> Bytes {
        let piece = self.take(at);
        let line_break = self.take(1);
        self.after_return = *line_break == *b"\r";
        self.place = LinePosition::LineStart;
        piece
    }

    /// Takes bytes from the first chunk.
    fn take(&mut self, count: usize) -> Bytes {
        let Some(chunk) = self.chunks.front_mut() else {
            return Bytes::new();
        };
        let taken = chunk.split_to(count);
        if !chunk.has_remaining() {
            self.chunks.pop_front();
        }
        taken
    }
}

#[cfg(feature = "client")]
impl Block {
    /// Takes note of one line that is neither empty nor a comment.
    fn field(&mut self, line: Bytes, origin: fn(Bytes) -> EventData) {
        self.size += line.len();
        let (name, value) = match memchr::memchr(b':', &line) {
            Some(colon) => {
                let space = usize::from(line.get(colon + 1) == Some(&b' '));
                (&line[..colon], line.slice(colon + 1 + space..))
            }
            None => (&line[..], Bytes::new()),
        };
        match name {
            b"data" => self.data.add(value, origin),
            b"event" => {
                let named = !value.is_empty() && *value != *b"message";
                self.kind = named.then(|| Bytes::copy_from_slice(&value));
            }
            b"id" if !value.contains(&0) => self.id = Some(Bytes::copy_from_slice(&value)),
            b"retry" => self.retry = milliseconds(&value).or(self.retry),
            _ => {}
        }
    }

    /// At an empty line.
    fn end(&mut self) -> Option<SseEvent> {
        self.size = 0;
        let kind = self.kind.take();
        let data = std::mem::take(&mut self.data).whole()?;
        Some(SseEvent { kind, id: self.id.take(), retry: self.retry.take(), data })
    }
}

#[cfg(feature = "client")]
impl EventData {
    fn add(&mut self, value: Bytes, origin: fn(Bytes) -> EventData) {
        let mut joined = match std::mem::take(self) {
            EventData::None => {
                *self = origin(value);
                return;
            }
            EventData::Shared(first) | EventData::Own(first) => first.to_vec(),
            EventData::Joined(joined) => joined,
        };
        joined.push(b'\n');
        joined.extend_from_slice(&value);
        *self = EventData::Joined(joined);
    }

    /// Lets go of the chunk, which may be much larger.
    fn unshare(&mut self) {
        if let EventData::Shared(value) = self {
            *self = EventData::Own(Bytes::copy_from_slice(value));
        }
    }

    fn whole(self) -> Option<Bytes> {
        match self {
            EventData::None => None,
            EventData::Shared(value) | EventData::Own(value) => Some(value),
            EventData::Joined(joined) => Some(joined.into()),
        }
    }
}

#[cfg(feature = "client")]
fn milliseconds(value: &[u8]) -> Option<Duration> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok().map(Duration::from_millis)
}
