//! Owns what crossed a wire: keeping it, showing it, and comparing it with what should have.
//! Does not own the wire.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

/// How many lines are kept. Later ones are only counted.
const MOST_LINES: usize = 10_000;

/// Members whose values differ from run to run, because they are sealed or drawn by lot.
const VOLATILE: &[&str] = &["requestState", "cursor", "nextCursor", "elicitationId", "sessionId"];

/// The lines that crossed a wire, in order. As text each is a line that begins with `-->` if the
/// client said it, with `<--` if the server did.
///
/// The values of `requestState`, `cursor`, `nextCursor`, `elicitationId` and `sessionId` are
/// masked in the text, because they differ from run to run: the first one of a name is
/// `"<requestState 1>"` wherever it appears, the next `"<requestState 2>"`. Request ids are counted
/// from 1 on every connection and are shown as they are.
///
/// ```
/// # use turnbuckle::{Server, testing::TestClient, tool};
/// async fn hello() -> &'static str { "Hello!" }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> turnbuckle::Result<()> {
/// let server = Server::new("demo", "1.0").tool(tool("hello", hello));
/// let client = TestClient::new(&server).await?;
/// client.call_tool("hello", ()).await?;
/// client.transcript().mask("_meta").assert_eq(r#"
///     --> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":"<_meta 1>"}}
///     <-- {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Hello!"}],"resultType":"complete","_meta":"<_meta 2>"}}
/// "#);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    lines: Vec<TranscriptLine>,
    /// How many there were after those.
    more: usize,
    /// The line that each side has begun.
    begun: [Vec<u8>; 2],
    masks: Vec<String>,
}

/// One line of a [`Transcript`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptLine {
    /// Who said it.
    pub by: TranscriptSide,
    /// The line as it crossed, without its end.
    pub text: String,
}

/// One of the two who are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptSide {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl TranscriptSide {
    pub(super) fn other(self) -> TranscriptSide {
        match self {
            TranscriptSide::Client => TranscriptSide::Server,
            TranscriptSide::Server => TranscriptSide::Client,
        }
    }
}

impl Transcript {
    /// The lines as they crossed, with nothing masked.
    pub fn lines(&self) -> &[TranscriptLine] {
        &self.lines
    }

    /// Masks the values of one more member in the text.
    #[must_use]
    pub fn mask(mut self, member: impl Into<String>) -> Transcript {
        self.masks.push(member.into());
        self
    }

    /// Panics, and shows where the two differ, unless the text is as expected. White space around
    /// lines and empty lines do not count.
    #[track_caller]
    pub fn assert_eq(&self, expected: &str) {
        let said = self.to_string();
        let said: Vec<&str> = said.lines().collect();
        let expected: Vec<&str> =
            expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if said != expected {
            let shown = difference(&expected, &said);
            panic!("something else crossed the wire (- expected, + said):\n{shown}");
        }
    }

    /// Keeps what crossed, which need not end where a line does.
    pub(super) fn record(&mut self, by: TranscriptSide, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun[by as usize].extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line(by, "");
            }
        }
    }

    /// The connection was cut while this side spoke.
    pub(super) fn cut(&mut self, by: TranscriptSide) {
        if !self.begun[by as usize].is_empty() {
            self.end_line(by, "…");
        }
    }

    fn end_line(&mut self, by: TranscriptSide, mark: &str) {
        let line = std::mem::take(&mut self.begun[by as usize]);
        if self.lines.len() >= MOST_LINES {
            self.more += 1;
            return;
        }
        let line = String::from_utf8_lossy(&line);
        self.lines.push(TranscriptLine { by, text: format!("{}{mark}", line.trim_end()) });
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut masks = Masks { names: &self.masks, seen: Vec::new() };
        for line in &self.lines {
            let arrow = match line.by {
                TranscriptSide::Client => "-->",
                TranscriptSide::Server => "<--",
            };
            writeln!(f, "{arrow} {}", masks.apply(&line.text))?;
        }
        match self.more {
            0 => Ok(()),
            more => writeln!(f, "and {more} lines more"),
        }
    }
}

/// Puts masks in the place of values, the same for the same value.
struct Masks<'a> {
    names: &'a [String],
    /// The name and the text of each value so far.
    seen: Vec<(String, String)>,
}

impl Masks<'_> {
    /// Goes from string to string: one that a colon follows is a member's name.
    fn apply(&mut self, line: &str) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(start) = rest.find('"') {
            let Some(string) = value_at(&rest[start..]) else { break };
            let (head, tail) = rest.split_at(start + string.len());
            out.push_str(head);
            rest = tail;
            let name = string.trim_matches('"');
            let value = tail.trim_start().strip_prefix(':').map(str::trim_start);
            if !VOLATILE.contains(&name) && !self.names.iter().any(|own| own == name) {
                continue;
            }
            if let Some((value, text)) = value.and_then(|value| Some((value, value_at(value)?))) {
                out.push_str(&format!(":\"<{name} {}>\"", self.number(name, text)));
                rest = &value[text.len()..];
            }
        }
        out.push_str(rest);
        out
    }

    /// Which of the values of this name it is, counted from 1.
    fn number(&mut self, name: &str, text: &str) -> usize {
        let mut known = self.seen.iter().filter(|(seen, _)| seen == name);
        if let Some(position) = known.clone().position(|(_, seen)| seen == text) {
            return position + 1;
        }
        let number = known.by_ref().count() + 1;
        self.seen.push((name.to_owned(), text.to_owned()));
        number
    }
}

/// The text of the JSON value that begins here.
fn value_at(text: &str) -> Option<&str> {
    let mut parser = serde_json::Deserializer::from_str(text);
    <&RawValue>::deserialize(&mut parser).ok().map(RawValue::get)
}

/// Both, line by line, with what only one of them has marked.
fn difference(expected: &[&str], said: &[&str]) -> String {
    // How many lines the rests from here on have in common.
    let width = said.len() + 1;
    let mut common = vec![0usize; (expected.len() + 1) * width];
    for (row, line) in expected.iter().enumerate().rev() {
        for (column, other) in said.iter().enumerate().rev() {
            common[row * width + column] = match line == other {
                true => common[(row + 1) * width + column + 1] + 1,
                false => common[(row + 1) * width + column].max(common[row * width + column + 1]),
            };
        }
    }
    let (mut row, mut column, mut shown) = (0, 0, String::new());
    while row < expected.len() || column < said.len() {
        let (mark, line) = match (expected.get(row), said.get(column)) {
            (Some(line), Some(other)) if line == other => {
                (row, column) = (row + 1, column + 1);
                (' ', line)
            }
            (Some(line), other)
                if other.is_none()
                    || common[(row + 1) * width + column] >= common[row * width + column + 1] =>
            {
                row += 1;
                ('-', line)
            }
            (_, Some(other)) => {
                column += 1;
                ('+', other)
            }
            (Some(_) | None, None) => break,
        };
        shown.push_str(&format!("{mark} {line}\n"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(said: &[(TranscriptSide, &str)]) -> Transcript {
        let mut transcript = Transcript::default();
        for (by, bytes) in said {
            transcript.record(*by, bytes.as_bytes());
        }
        transcript
    }

    #[test]
    fn lines_are_kept_in_the_order_in_which_they_end() {
        let mut said = transcript(&[
            (TranscriptSide::Client, "{\"a\":"),
            (TranscriptSide::Server, "{}\n"),
            (TranscriptSide::Client, "1}\r\n{\"b\":2}\n{\"half"),
        ]);
        said.assert_eq("<-- {}\n\n  --> {\"a\":1}\n--> {\"b\":2}");
        said.cut(TranscriptSide::Client);
        said.cut(TranscriptSide::Server);
        assert_eq!(said.lines().last().unwrap().text, "{\"half…");
        assert_eq!(said.lines().len(), 4);
    }

    #[test]
    fn the_same_value_has_the_same_mask() {
        let said = transcript(&[
            (TranscriptSide::Server, "{\"requestState\":\"x\\\"y\",\"nextCursor\":null}\n"),
            (TranscriptSide::Client, "{\"requestState\" : \"x\\\"y\"}\n"),
            (
                TranscriptSide::Server,
                "{\"requestState\":\"z\",\"text\":\"requestState\",\"own\":{\"a\":[1]}}\n",
            ),
        ]);
        said.clone().mask("own").assert_eq(
            r#"
            <-- {"requestState":"<requestState 1>","nextCursor":"<nextCursor 1>"}
            --> {"requestState":"<requestState 1>"}
            <-- {"requestState":"<requestState 2>","text":"requestState","own":"<own 1>"}
            "#,
        );
        assert!(said.lines()[0].text.contains("x\\\"y"), "as it crossed");
    }

    #[test]
    fn what_is_no_json_is_shown_as_it_is() {
        let said = transcript(&[
            (TranscriptSide::Server, "%% \"requestState\n"),
            (TranscriptSide::Client, "\"a\":\n"),
        ]);
        said.assert_eq("<-- %% \"requestState\n--> \"a\":");
    }

    #[test]
    fn a_difference_shows_what_is_missing_and_what_is_new() {
        let shown = difference(&["a", "b", "c", "d"], &["a", "x", "c", "d", "e"]);
        assert_eq!(shown, "  a\n- b\n+ x\n  c\n  d\n+ e\n");
        assert_eq!(difference(&["a"], &[]), "- a\n");
        assert_eq!(difference(&[], &["a"]), "+ a\n");
    }

    #[test]
    #[should_panic(expected = "- --> {}\n+ --> []\n")]
    fn another_line_fails() {
        transcript(&[(TranscriptSide::Client, "[]\n")]).assert_eq("--> {}");
    }

    #[test]
    fn a_long_transcript_ends_with_a_count() {
        let mut said = Transcript::default();
        for _ in 0..MOST_LINES + 3 {
            said.record(TranscriptSide::Client, b"x\n");
        }
        assert_eq!(said.lines().len(), MOST_LINES);
        assert!(said.to_string().ends_with("and 3 lines more\n"));
    }
}
