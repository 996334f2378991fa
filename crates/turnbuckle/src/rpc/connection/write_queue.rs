//! Owns what is rendered and not yet being written: many small frames in one buffer,
//! large bodies beside it, each with its owner so that it can be taken back.
//! Does not own the writing.

use crate::rpc::pending::Serial;
use bytes::Bytes;

/// A result this long is kept as it is instead of being copied into the buffer.
const LARGE: usize = 16 * 1024;
/// A buffer that grew past this is let go once it has been written.
const KEEP: usize = 1 << 20;

/// Frames in the order in which they will be written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pending: Batch,
    bytes: usize,
    /// How many times a batch was taken: what was pushed in an earlier one is on its way.
    taken: u64,
    /// How many times a part of one came back.
    returned: u64,
}

/// When something was counted: as long as this stays the same, so does the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueMoment {
    taken: u64,
    returned: u64,
}

/// What goes out in one write.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    buffer: Vec<u8>,
    frames: Vec<Framed>,
    large: usize,
}

/// Where one frame stands in the buffer.
#[derive(Debug)]
struct Framed {
    owner: Serial,
    start: usize,
    /// A large body that belongs between `buffer[start..at]` and the rest of the frame.
    body: Option<(usize, Bytes)>,
}

impl Outbox {
    /// Appends a frame, rendered by `render`, and the line break after it.
    pub(crate) fn push(&mut self, owner: Serial, render: impl FnOnce(&mut Vec<u8>)) {
        let start = self.pending.buffer.len();
        render(&mut self.pending.buffer);
        self.pending.buffer.push(b'\n');
        self.bytes += self.pending.buffer.len() - start;
        self.pending.frames.push(Framed { owner, start, body: None });
    }

    /// Appends a frame made of a head, a body and a closing brace, without copying a
    /// large body.
    pub(crate) fn push_body(
        &mut self,
        owner: Serial,
        body: Bytes,
        head: impl FnOnce(&mut Vec<u8>),
    ) {
        if body.len() < LARGE {
            return self.push(owner, |out| {
                head(out);
                out.extend_from_slice(&body);
                out.push(b'}');
            });
        }
        let start = self.pending.buffer.len();
        head(&mut self.pending.buffer);
        let at = self.pending.buffer.len();
        self.pending.buffer.extend_from_slice(b"}\n");
        self.bytes += self.pending.buffer.len() - start + body.len();
        self.pending.large += 1;
        self.pending.frames.push(Framed { owner, start, body: Some((at, body)) });
    }

    /// Takes back what this owner pushed and the writer has not begun. Tells how many
    /// frames that were.
    pub(crate) fn retract(&mut self, owner: Serial) -> usize {
        let batch = &mut self.pending;
        let mut gone = 0;
        let mut index = 0;
        while index < batch.frames.len() {
            if batch.frames[index].owner != owner {
                index += 1;
                continue;
            }
            let frame = batch.frames.remove(index);
            let end = batch.frames.get(index).map_or(batch.buffer.len(), |next| next.start);
            let length = end - frame.start;
            batch.buffer.drain(frame.start..end);
            for later in &mut batch.frames[index..] {
                later.start -= length;
                if let Some((at, _)) = &mut later.body {
                    *at -= length;
                }
            }
            self.bytes -= length;
            if let Some((_, body)) = frame.body {
                self.bytes -= body.len();
                batch.large -= 1;
            }
            gone += 1;
        }
        gone
    }

    /// Swaps everything out for writing; `spent` is the batch written before, whose
    /// memory is used again.
    pub(crate) fn take(&mut self, spent: &mut Batch) {
        spent.clear();
        std::mem::swap(&mut self.pending, spent);
        self.bytes = 0;
        self.taken += 1;
    }

    /// Takes back from a batch what its writer has not begun after `written` bytes, so that
    /// it can still be retracted while the peer does not read.
    pub(crate) fn put_back(&mut self, batch: &mut Batch, written: usize) {
        let mut tail = batch.split_after(written);
        let (bytes, length) = (tail.bytes(), tail.buffer.len());
        tail.buffer.append(&mut self.pending.buffer);
        tail.frames.extend(self.pending.frames.drain(..).map(|frame| frame.moved(length)));
        tail.large += std::mem::take(&mut self.pending.large);
        self.pending = tail;
        self.bytes += bytes;
        self.returned += 1;
    }

    /// How many frames of this owner wait, whose last one was pushed at or before `then`.
    /// Costs nothing unless a batch came back since.
    pub(crate) fn count_since(&self, then: QueueMoment, owner: Serial) -> usize {
        if then.returned == self.returned { 0 } else { self.count(owner) }
    }

    fn count(&self, owner: Serial) -> usize {
        self.pending.frames.iter().filter(|frame| frame.owner == owner).count()
    }

    /// How many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.frames.is_empty()
    }

    /// Differs from every moment before a batch was taken or came back.
    pub(crate) fn now(&self) -> QueueMoment {
        QueueMoment { taken: self.taken, returned: self.returned }
    }
}

impl Batch {
    /// What comes after the first `written` bytes, as far as it lies in one piece; empty at
    /// the end.
    pub(crate) fn rest(&self, written: usize) -> &[u8] {
        if self.large == 0 {
            return &self.buffer[written..];
        }
        let (mut left, mut from) = (written, 0);
        for (at, body) in self.frames.iter().filter_map(|frame| frame.body.as_ref()) {
            for piece in [&self.buffer[from..*at], &body[..]] {
                if left < piece.len() {
                    return &piece[left..];
                }
                left -= piece.len();
            }
            from = *at;
        }
        &self.buffer[from + left..]
    }

    /// Splits off the frames that begin at or after `written` bytes.
    fn split_after(&mut self, written: usize) -> Batch {
        let mut bodies = 0;
        let begun = self.frames.iter().take_while(|frame| {
            let begins = frame.start + bodies;
            bodies += frame.body.as_ref().map_or(0, |(_, body)| body.len());
            begins < written
        });
        let index = begun.count();
        let start = self.frames.get(index).map_or(self.buffer.len(), |frame| frame.start);
        let mut frames = self.frames.split_off(index);
        for frame in &mut frames {
            frame.start -= start;
            if let Some((at, _)) = &mut frame.body {
                *at -= start;
            }
        }
        let large = frames.iter().filter(|frame| frame.body.is_some()).count();
        self.large -= large;
        Batch { buffer: self.buffer.split_off(start), frames, large }
    }

    fn bytes(&self) -> usize {
        let bodies = self.frames.iter().filter_map(|frame| frame.body.as_ref());
        self.buffer.len() + bodies.map(|(_, body)| body.len()).sum::<usize>()
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.frames.clear();
        self.large = 0;
        if self.buffer.capacity() > KEEP {
            self.buffer = Vec::new();
        }
    }
}

impl Framed {
    fn moved(mut self, by: usize) -> Framed {
        self.start += by;
        if let Some((at, _)) = &mut self.body {
            *at += by;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(outbox: &mut Outbox) -> String {
        let mut batch = Batch::default();
        outbox.take(&mut batch);
        whole(&batch)
    }

    fn whole(batch: &Batch) -> String {
        let mut bytes = Vec::new();
        while !batch.rest(bytes.len()).is_empty() {
            let piece = batch.rest(bytes.len());
            bytes.extend_from_slice(piece);
        }
        String::from_utf8(bytes).unwrap()
    }

    fn text(outbox: &mut Outbox, owner: u64, text: &str) {
        outbox.push(Serial(owner), |out| out.extend_from_slice(text.as_bytes()));
    }

    #[test]
    fn frames_go_out_together_in_order() {
        let mut outbox = Outbox::default();
        text(&mut outbox, 1, "a");
        text(&mut outbox, 2, "b");
        assert_eq!(outbox.bytes(), 4);
        assert_eq!(written(&mut outbox), "a\nb\n");
        assert!(outbox.is_empty() && outbox.bytes() == 0);
    }

    #[test]
    fn what_was_not_begun_can_be_taken_back() {
        let mut outbox = Outbox::default();
        for (owner, line) in [(1, "one"), (2, "two"), (1, "three"), (3, "four")] {
            text(&mut outbox, owner, line);
        }
        assert_eq!(outbox.retract(Serial(1)), 2);
        assert_eq!(outbox.retract(Serial(9)), 0);
        assert_eq!(outbox.bytes(), 9);
        assert_eq!(written(&mut outbox), "two\nfour\n");
        assert_eq!(outbox.retract(Serial(2)), 0, "begun counts as written");
    }

    #[test]
    fn a_large_body_stands_in_its_place_without_a_copy() {
        let large = Bytes::from(vec![b'x'; LARGE]);
        let mut outbox = Outbox::default();
        text(&mut outbox, 1, "a");
        outbox.push_body(Serial(2), large.clone(), |out| out.extend_from_slice(b"{2:"));
        outbox.push_body(Serial(3), Bytes::from_static(b"small"), |out| {
            out.extend_from_slice(b"{3:")
        });
        outbox.push_body(Serial(4), large.clone(), |out| out.extend_from_slice(b"{4:"));
        text(&mut outbox, 5, "z");
        assert_eq!(outbox.retract(Serial(1)), 1);
        let x = std::str::from_utf8(&large).unwrap();
        assert_eq!(outbox.bytes(), 2 * (LARGE + 5) + 10 + 2);
        let mut batch = Batch::default();
        outbox.take(&mut batch);
        assert_eq!(batch.rest(3).as_ptr(), large.as_ptr());
        assert_eq!(whole(&batch), format!("{{2:{x}}}\n{{3:small}}\n{{4:{x}}}\nz\n"));
    }

    #[test]
    fn what_a_writer_has_not_begun_can_be_put_back() {
        let large = "x".repeat(LARGE);
        let ends = [4, LARGE + 7, LARGE + 13];
        for begun_bytes in ends.into_iter().flat_map(|end| end - 3..end + 3) {
            let mut outbox = Outbox::default();
            text(&mut outbox, 1, "one");
            outbox.push_body(Serial(2), large.clone().into(), |out| out.push(b'{'));
            text(&mut outbox, 3, "three");
            let mut batch = Batch::default();
            outbox.take(&mut batch);
            text(&mut outbox, 4, "four");
            outbox.put_back(&mut batch, begun_bytes);
            let begun = [0, 4, LARGE + 7].iter().filter(|start| **start < begun_bytes).count();
            let lines = ["one\n", &format!("{{{large}}}\n"), "three\n"];
            assert!(whole(&batch) == lines[..begun].concat(), "{begun_bytes}");
            assert_eq!(outbox.count(Serial(3)), usize::from(begun < 3));
            let rest = lines[begun..].concat() + "four\n";
            assert_eq!(outbox.bytes(), rest.len(), "{begun_bytes}");
            assert!(written(&mut outbox) == rest, "{begun_bytes}");
        }
    }

    #[test]
    fn retracting_a_large_body_keeps_the_rest_aligned() {
        let mut outbox = Outbox::default();
        for owner in 1..=3 {
            outbox.push_body(Serial(owner), Bytes::from(vec![b'0' + owner as u8; LARGE]), |out| {
                out.extend_from_slice(b"{");
            });
        }
        outbox.retract(Serial(2));
        let whole = written(&mut outbox);
        assert_eq!(whole, format!("{{{}}}\n{{{}}}\n", "1".repeat(LARGE), "3".repeat(LARGE)));
        assert_eq!(outbox.bytes(), 0);
    }
}
