//! Owns what is printed: results as text, and text that can't play tricks on a terminal.
//! Does not own the sentences of failures, nor the progress line.

use std::{
    borrow::Cow,
    io::{ErrorKind, IsTerminal, Write},
};

use serde::Serialize;
use serde_json::Value;
use turnbuckle::types::{CallToolResult, ContentBlock, ResourceContents};

use crate::exit::Failure;

/// Prints text and a line break to stdout. On a terminal, what a server sent can't move the
/// cursor or change colours; into a pipe or file goes exactly what it sent.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_next(text).map(drop)
}

/// [`print()`] for those who have more to print: says whether anybody still reads.
pub(crate) fn print_next(text: &str) -> Result<Reader, Failure> {
    let mut stdout = std::io::stdout().lock();
    let text = if stdout.is_terminal() { printable(text) } else { Cow::Borrowed(text) };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::failed(format!("writing to stdout failed: {error}"))),
        Ok(()) => Ok(Reader::There),
    }
}

/// Whether what is printed is still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Prints a value as JSON on one line.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&json_line(value)?)
}

/// A value as JSON on one line.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::failed(format!("the result can't be written as JSON: {error}")))
}

/// Writes a line to stderr, where that is possible.
pub(crate) fn complain(line: &str) {
    // Nobody is left to be told that nobody can be told.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A result, for people. Empty if there is nothing to see.
pub(crate) fn result_text(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(block_text).collect();
    if let Some(structured) = &result.structured_content
        && let Ok(value) = structured.decode::<Value>()
    {
        let inner = unwrapped(&value);
        if !is_shown(&result.content, &value)
            && !inner.is_some_and(|v| is_shown(&result.content, v))
        {
            parts.push(format!("{value:#}"));
        }
    }
    parts.join("\n")
}

/// Whether a block has this value as its text, or the blocks have one item of it each.
fn is_shown(blocks: &[ContentBlock], value: &Value) -> bool {
    let shows = |block: &ContentBlock, value: &Value| {
        block.as_text().is_some_and(|text| {
            value.as_str() == Some(text) || serde_json::from_str(text).ok().as_ref() == Some(value)
        })
    };
    let items = value.as_array().filter(|items| !items.is_empty() && items.len() == blocks.len());
    blocks.iter().any(|block| shows(block, value))
        || items
            .is_some_and(|items| blocks.iter().zip(items).all(|(block, item)| shows(block, item)))
}

/// Returns the value that a server wrapped because structured content must be an object:
/// `{"result": …}`.
fn unwrapped(value: &Value) -> Option<&Value> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get("result")
}

/// The text with control characters made visible; line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let harmless = |letter: char| !letter.is_control() || letter == '\n' || letter == '\t';
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if harmless(letter) {
            shown.push(letter);
        } else {
            shown.extend(letter.escape_unicode());
        }
    }
    Cow::Owned(shown)
}

/// The text on one line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let joined = text.split(['\n', '\r', '\t']).map(str::trim).filter(|part| !part.is_empty());
    printable(&joined.collect::<Vec<_>>().join(" ")).into_owned()
}

pub(crate) fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!("[image: {}, {}]", image.mime_type, decoded_size(&image.data))
        }
        ContentBlock::Audio(audio) => {
            format!("[audio: {}, {}]", audio.mime_type, decoded_size(&audio.data))
        }
        ContentBlock::ResourceLink(link) => {
            let title = link.title.as_deref().unwrap_or(&link.name);
            format!("[link to a resource: {title}, {}]", link.uri)
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(contents) => {
                format!("[resource: {}]\n{}", contents.uri, contents.text)
            }
            other => contents_size(other),
        },
        _ => "[content of a kind that this program does not know; see it with --output json]"
            .to_owned(),
    }
}

/// What was read of a resource. One text is printed as it is; of several each has its heading.
pub(crate) fn contents_text(contents: &[ResourceContents]) -> String {
    match contents {
        [ResourceContents::Text(one)] => one.text.clone(),
        several => several
            .iter()
            .map(|contents| match contents {
                ResourceContents::Text(contents) => {
                    format!("[resource: {}]\n{}", contents.uri, contents.text)
                }
                other => contents_size(other),
            })
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn contents_size(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Blob(blob) => {
            let kind = blob.mime_type.as_ref().map(|kind| format!("{kind}, ")).unwrap_or_default();
            format!("[resource: {}, {kind}{}]", blob.uri, decoded_size(&blob.blob))
        }
        other => format!("[resource: {}]", other.uri()),
    }
}

/// How many bytes a base64 text stands for.
pub(crate) fn decoded_size(base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle::types::{
        AudioContent, BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink,
        TextResourceContents,
    };

    use super::*;

    fn text_of(result: Value) -> String {
        result_text(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn structured_content_is_shown_unless_a_text_mirrors_it() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let mirrored =
            json!({"content": [text("{\"b\": 2,\"a\":1}")], "structuredContent": {"a": 1, "b": 2}});
        assert_eq!(text_of(mirrored), "{\"b\": 2,\"a\":1}");
        let alone = json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(text_of(alone), "{\n  \"a\": 1\n}");
        let both = json!({"content": [text("a is one")], "structuredContent": {"a": 1}});
        assert_eq!(text_of(both), "a is one\n{\n  \"a\": 1\n}");
        assert_eq!(text_of(json!({"content": []})), "");
    }

    #[test]
    fn a_value_that_was_wrapped_as_result_is_shown_once() {
        let shown = |texts: &[&str], result: Value| {
            let content: Vec<Value> =
                texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            text_of(json!({"content": content, "structuredContent": {"result": result}}))
        };
        assert_eq!(shown(&["hello"], json!("hello")), "hello");
        assert_eq!(shown(&["42"], json!(42)), "42");
        assert_eq!(shown(&["[\n  1,\n  2\n]"], json!([1, 2])), "[\n  1,\n  2\n]");
        assert_eq!(shown(&["a", "{\"b\": 1}"], json!(["a", {"b": 1}])), "a\n{\"b\": 1}");
        assert_eq!(shown(&["hello"], json!("bye")), "hello\n{\n  \"result\": \"bye\"\n}");
        assert_eq!(shown(&[], json!([])), "{\n  \"result\": []\n}");
    }

    #[test]
    fn what_is_not_text_is_described() {
        let unknown = json!({"type": "hologram"});
        let blocks = [
            ImageContent::new("AAAA", "image/png").into(),
            AudioContent::new("AA==", "audio/wav").into(),
            ResourceLink::new("file:///a", "a").into(),
            EmbeddedResource::new(TextResourceContents::new("note://7", "buy milk")).into(),
            EmbeddedResource::new(BlobResourceContents::new("file:///b", "A".repeat(4096))).into(),
            serde_json::from_value(unknown).unwrap(),
        ];
        let shown: Vec<String> = blocks.iter().map(block_text).collect();
        assert_eq!(
            shown[..5],
            [
                "[image: image/png, 3 bytes]",
                "[audio: audio/wav, 1 byte]",
                "[link to a resource: a, file:///a]",
                "[resource: note://7]\nbuy milk",
                "[resource: file:///b, 3 KiB]",
            ]
        );
        assert!(shown[5].contains("--output json"));
    }

    #[test]
    fn what_is_read_is_printed_as_it_is_if_it_is_one_text() {
        let text = || TextResourceContents::new("a:1", "one\n").into();
        let blob = || BlobResourceContents::new("a:2", "AAAA").into();
        assert_eq!(contents_text(&[text()]), "one\n");
        assert_eq!(contents_text(&[blob()]), "[resource: a:2, 3 bytes]");
        assert_eq!(
            contents_text(&[text(), blob()]),
            "[resource: a:1]\none\n\n[resource: a:2, 3 bytes]"
        );
        assert_eq!(contents_text(&[]), "");
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(printable("a\u{1b}[2Jb\n\tc"), "a\\u{1b}[2Jb\n\tc");
        assert!(matches!(printable("plain ✓\n"), Cow::Borrowed(_)));
        assert_eq!(one_line("first \r\n  second\u{7}\n\n"), "first second\\u{7}");
    }
}
