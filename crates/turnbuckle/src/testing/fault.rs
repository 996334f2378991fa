//! Owns what goes wrong on a wire, and with which message. Does not own the wire or its clock.

use std::time::Duration;

/// Something that goes wrong with one message.
///
/// ```
/// use turnbuckle::testing::{Fault, Faults};
/// // The server's second message arrives byte by byte, the client's third twice.
/// let faults = Faults::none()
///     .server_message(2, Fault::Split(1))
///     .client_message(3, Fault::Duplicate);
/// # let _ = faults;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It never arrives.
    Lose,
    /// It arrives so much later, and whatever follows it waits behind it.
    Delay(Duration),
    /// It arrives in pieces of so many bytes, and others run between them.
    Split(usize),
    /// It arrives twice.
    Duplicate,
    /// A line that is no message arrives before it.
    Garbage(Vec<u8>),
    /// The connection ends, both ways, after so many bytes of it: none for before it, more than it
    /// has for after it. What was sent before still arrives.
    Cut(usize),
}

/// What goes wrong on a [`link`](super::link()): which fault with which message, counted from 1 in
/// each direction. Several may befall one message.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub(super) client: Vec<(At, Fault)>,
    pub(super) server: Vec<(At, Fault)>,
}

/// Which messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    Every,
    Number(usize),
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// A fault of one message that the client sends.
    #[must_use]
    pub fn client_message(mut self, number: usize, fault: Fault) -> Faults {
        self.client.push((At::Number(number), fault));
        self
    }

    /// A fault of one message that the server sends.
    #[must_use]
    pub fn server_message(mut self, number: usize, fault: Fault) -> Faults {
        self.server.push((At::Number(number), fault));
        self
    }

    /// A fault of every message that the client sends.
    #[must_use]
    pub fn every_client_message(mut self, fault: Fault) -> Faults {
        self.client.push((At::Every, fault));
        self
    }

    /// A fault of every message that the server sends.
    #[must_use]
    pub fn every_server_message(mut self, fault: Fault) -> Faults {
        self.server.push((At::Every, fault));
        self
    }
}

/// What the faults make of one direction's bytes.
#[derive(Debug)]
pub(super) struct FaultPlan {
    faults: Vec<(At, Fault)>,
    /// How many messages have begun.
    number: usize,
    message: Option<Message>,
}

/// What is left to do for the message that has begun.
#[derive(Debug, Default)]
struct Message {
    lost: bool,
    delay: Option<Duration>,
    split: Option<usize>,
    /// The bytes that pass before the cut.
    cut: Option<usize>,
    /// All of it so far, if it comes twice.
    copy: Option<Vec<u8>>,
}

/// What happens to some bytes.
#[derive(Debug, PartialEq)]
pub(super) enum FaultStep {
    Deliver { bytes: Vec<u8>, delay: Option<Duration>, split: Option<usize> },
    Cut,
}

impl FaultStep {
    fn plain(bytes: Vec<u8>) -> FaultStep {
        FaultStep::Deliver { bytes, delay: None, split: None }
    }
}

impl FaultPlan {
    pub(super) fn new(faults: Vec<(At, Fault)>) -> FaultPlan {
        FaultPlan { faults, number: 0, message: None }
    }

    /// What becomes of these bytes, which need not end where a message does.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Vec<FaultStep> {
        let mut steps = Vec::new();
        while !bytes.is_empty() {
            let mut message = match self.message.take() {
                Some(message) => message,
                None => self.begin(&mut steps),
            };
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            bytes = rest;
            if message.pass(piece, &mut steps) || (end.is_some() && message.end(&mut steps)) {
                steps.push(FaultStep::Cut);
                return steps;
            }
            if end.is_none() {
                self.message = Some(message);
            }
        }
        steps
    }

    fn begin(&mut self, steps: &mut Vec<FaultStep>) -> Message {
        self.number += 1;
        let mut message = Message::default();
        for (at, fault) in &self.faults {
            if matches!(at, At::Number(number) if *number != self.number) {
                continue;
            }
            match fault {
                Fault::Lose => message.lost = true,
                Fault::Delay(delay) => message.delay = Some(*delay),
                Fault::Split(bytes) => message.split = Some((*bytes).max(1)),
                Fault::Duplicate => message.copy = Some(Vec::new()),
                Fault::Cut(after) => message.cut = Some(*after),
                Fault::Garbage(junk) => {
                    let mut line = junk.clone();
                    line.push(b'\n');
                    steps.push(FaultStep::plain(line));
                }
            }
        }
        message
    }
}

impl Message {
    /// Lets a piece of it pass; whether the connection is cut there.
    fn pass(&mut self, piece: &[u8], steps: &mut Vec<FaultStep>) -> bool {
        let passes = self.cut.map_or(piece.len(), |left| left.min(piece.len()));
        if !self.lost && passes > 0 {
            let bytes = piece[..passes].to_vec();
            // The rest of the message waits behind its beginning.
            steps.push(FaultStep::Deliver { bytes, delay: self.delay.take(), split: self.split });
        }
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(piece);
        }
        match &mut self.cut {
            Some(left) if *left < piece.len() => true,
            Some(left) => {
                *left -= piece.len();
                false
            }
            None => false,
        }
    }

    /// Ends it; whether the connection is cut now.
    fn end(&mut self, steps: &mut Vec<FaultStep>) -> bool {
        if let (Some(bytes), false) = (self.copy.take(), self.lost) {
            steps.push(FaultStep::Deliver { bytes, delay: None, split: self.split });
        }
        self.cut.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What arrives of three messages that come in pieces of every size.
    fn arrives(faults: &[(usize, Fault)]) -> (String, bool) {
        let said = b"one\ntwo\nthree\n";
        let mut outcomes = (1..=said.len()).map(|size| {
            let faults = faults.iter().map(|(at, fault)| (At::Number(*at), fault.clone()));
            let mut plan = FaultPlan::new(faults.collect());
            let (mut arrived, mut cut) = (Vec::new(), false);
            for piece in said.chunks(size) {
                for step in plan.feed(piece) {
                    match step {
                        FaultStep::Deliver { bytes, .. } if !cut => arrived.extend(bytes),
                        FaultStep::Deliver { .. } => {}
                        FaultStep::Cut => cut = true,
                    }
                }
            }
            (String::from_utf8(arrived).unwrap(), cut)
        });
        let first = outcomes.next().unwrap();
        assert!(outcomes.all(|outcome| outcome == first), "it depends on the pieces");
        first
    }

    #[test]
    fn a_fault_befalls_its_message_whatever_the_pieces() {
        let junk = Fault::Garbage(b"%%".to_vec());
        for (faults, expected, is_cut) in [
            (vec![], "one\ntwo\nthree\n", false),
            (vec![(2, Fault::Lose)], "one\nthree\n", false),
            (vec![(2, Fault::Duplicate)], "one\ntwo\ntwo\nthree\n", false),
            (vec![(3, junk.clone())], "one\ntwo\n%%\nthree\n", false),
            (vec![(2, Fault::Cut(0))], "one\n", true),
            (vec![(2, Fault::Cut(2))], "one\ntw", true),
            (vec![(2, Fault::Cut(4))], "one\ntwo\n", true),
            (vec![(2, Fault::Cut(99))], "one\ntwo\n", true),
            (vec![(1, Fault::Lose), (1, junk)], "%%\ntwo\nthree\n", false),
            (vec![(2, Fault::Lose), (2, Fault::Duplicate)], "one\nthree\n", false),
        ] {
            assert_eq!(arrives(&faults), (expected.to_owned(), is_cut), "{faults:?}");
        }
    }

    #[test]
    fn only_the_beginning_of_a_message_is_delayed() {
        let second = Duration::from_secs(1);
        let mut plan = FaultPlan::new(vec![(At::Every, Fault::Delay(second))]);
        let delays = |steps: Vec<FaultStep>| {
            let delay = |step| match step {
                FaultStep::Deliver { delay, .. } => delay,
                FaultStep::Cut => None,
            };
            steps.into_iter().map(delay).collect::<Vec<_>>()
        };
        assert_eq!(delays(plan.feed(b"a")), [Some(second)]);
        assert_eq!(delays(plan.feed(b"b\nc\n")), [None, Some(second)]);
    }
}
