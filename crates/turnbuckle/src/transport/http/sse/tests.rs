use proptest::prelude::*;

use super::*;

type Found = Vec<Result<SseEvent, EventTooLong>>;

/// Everything in a stream that comes in these chunks, and whether it ends in the middle.
fn read(chunks: &[&[u8]], max_event: usize) -> (Found, bool) {
    let mut reader = SseReader::new(max_event);
    let mut found = Vec::new();
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk));
        found.extend(std::iter::from_fn(|| reader.next()));
    }
    (found, reader.is_mid_event())
}

fn events(stream: &str) -> Vec<SseEvent> {
    read(&[stream.as_bytes()], 1000).0.into_iter().map(Result::unwrap).collect()
}

fn data(stream: &str) -> Vec<String> {
    events(stream).iter().map(|event| String::from_utf8_lossy(&event.data).into_owned()).collect()
}

fn event(data: &'static str) -> SseEvent {
    SseEvent { kind: None, id: None, retry: None, data: Bytes::from_static(data.as_bytes()) }
}

#[test]
fn the_examples_of_the_standard_are_read_as_it_says() {
    assert_eq!(
        data(
            "data: This is the first message.\n\ndata: This is the second message, it\n\
              data: has two lines.\n\ndata: This is the third message.\n\n"
        ),
        [
            "This is the first message.",
            "This is the second message, it\nhas two lines.",
            "This is the third message."
        ]
    );
    assert_eq!(
        events("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n"),
        [
            SseEvent { kind: Some("add".into()), ..event("73857293") },
            SseEvent { kind: Some("remove".into()), ..event("2153") },
        ]
    );
    assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
    // A comment; an event with an id; one that resets the id; one whose data begins with a space.
    assert_eq!(
        events(
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n\
                data:  third event\n"
        ),
        [
            SseEvent { id: Some("1".into()), ..event("first event") },
            SseEvent { id: Some("".into()), ..event("second event") },
        ]
    );
    // One empty, one that is a line feed, and one that the end of the stream cuts off.
    assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
    assert_eq!(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
}

#[test]
fn lines_may_end_in_any_of_three_ways() {
    for stream in ["data: a\ndata: b\n\n", "data: a\rdata: b\r\r", "data: a\r\ndata: b\r\n\r\n"] {
        assert_eq!(data(stream), ["a\nb"], "{stream:?}");
        // A carriage return ends an event at once: no one knows when the next byte comes.
        assert!(!read(&[stream.as_bytes()], 1000).1);
    }
    assert_eq!(data("data: a\n\rdata: b\r\n\ndata: c\r\r\n"), ["a", "b", "c"]);
    let (found, _) = read(&[b"data: a\r", b"\n\r", b"\ndata: b\r", b"\r", b"\n"], 1000);
    assert_eq!(found, [Ok(event("a")), Ok(event("b"))]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\ndata: c\n\n"), ["a", "c"]);
    assert_eq!(data("\u{feff}\u{feff}data: a\n\ndata: b\n\n"), ["b"]);
    let (found, _) = read(&[b"\xef", b"\xbb", b"\xbf", b"data: a\n\n"], 1000);
    assert_eq!(found, [Ok(event("a"))]);
    // What only begins like one is part of the first line.
    let (found, _) = read(&[b"\xef\xbbdata: a\n\ndata: b\n\n"], 1000);
    assert_eq!(found, [Ok(event("b"))]);
}

#[test]
fn fields_that_say_nothing_are_ignored() {
    assert_eq!(
        events(
            "unknown: x\nDATA: no\n data: no\ndata : no\nevent: message\nretry: 1s\nretry:\n\
                id: a\0b\ndata: a\n\n"
        ),
        [event("a")]
    );
    assert_eq!(
        events("retry: 2500\nretry: x\nid: 7\nid: 8\nevent: one\nevent:\ndata: a\n\ndata: b\n\n"),
        [
            SseEvent {
                id: Some("8".into()),
                retry: Some(Duration::from_millis(2500)),
                ..event("a")
            },
            event("b")
        ]
    );
    assert_eq!(events("retry: 99999999999999999999999\ndata: a\n\n"), [event("a")]);
}

#[test]
fn a_block_without_data_is_no_event_but_its_id_and_retry_stay() {
    assert_eq!(events("event: x\n\nid: 1\nevent: y\n\nretry: 5\n\n:\n\n\n\n"), []);
    assert_eq!(
        events("id: 1\nevent: y\nretry: 5\n\ndata: a\n\ndata: b\n\n"),
        [
            SseEvent { id: Some("1".into()), retry: Some(Duration::from_millis(5)), ..event("a") },
            event("b")
        ]
    );
}

#[test]
fn only_an_unfinished_event_is_cut_off() {
    for (stream, cut) in [
        ("", false),
        ("\u{feff}", false),
        ("data: a\n\n", false),
        ("data: a\r\n\r", false),
        ("data: a\n\n: keep-ali", false),
        ("data: a\n\n:\n", false),
        ("d", true),
        ("data: a\n", true),
        ("data: a\n\nid", true),
        ("data: a\n\nid: 7\n", true),
        ("data: a\n:\n: keep-ali", true),
    ] {
        assert_eq!(read(&[stream.as_bytes()], 1000).1, cut, "{stream:?}");
    }
}

#[test]
fn an_event_over_the_limit_costs_that_event() {
    // The limit counts the bytes of its lines.
    assert_eq!(read(&[b"data: 6789\n\n"], 10).0, [Ok(event("6789"))]);
    assert_eq!(read(&[b"data: 67890\n\n"], 10).0, [Err(EventTooLong)]);
    let stream =
        b"data: a\n\ndata: 67\ndata: 67\n: comment\ndata: 67\n\ndata: b\n\nid: 4567890\n\n\
                   data: c\n\n";
    let expected =
        [Ok(event("a")), Err(EventTooLong), Ok(event("b")), Err(EventTooLong), Ok(event("c"))];
    assert_eq!(read(&[stream], 10).0, expected);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(read(&bytes, 10).0, expected);
    // Comments do not count, however long.
    let comments = [b": x\n".repeat(100), b":".repeat(100), b"\ndata: 6789\n\n".to_vec()].concat();
    assert_eq!(read(&[&comments], 10).0, [Ok(event("6789"))]);
    assert_eq!(read(&[b"data: 67890"], 10), (vec![Err(EventTooLong)], true));
    for chunks in
        [&[&b"id: 1\ndata: {\"a\":1}"[..]][..], &[b"da", b"ta:{\"a", b"\":1}\n", b"data: b"]]
    {
        let mut reader = SseReader::new(12);
        chunks.iter().for_each(|chunk| reader.push(Bytes::copy_from_slice(chunk)));
        assert_eq!(reader.next(), Some(Err(EventTooLong)));
        assert_eq!(reader.began(), b"{\"a\":1}");
    }
    assert_eq!(read(&[b"data: 67890\n:\n"], 10), (vec![Err(EventTooLong)], true));
    assert_eq!(read(&[b"data: 67890\n\r"], 10), (vec![Err(EventTooLong)], false));
    // A skipped event takes its id along.
    assert_eq!(
        read(&[b"id: 1\ndata: 67890\n\ndata: a\n\n"], 10).0,
        [Err(EventTooLong), Ok(event("a"))]
    );
}

#[test]
fn a_line_within_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"event: message\ndata: {\"a\":1}\n\ndata: {}\n\n");
    let mut reader = SseReader::new(1000);
    reader.push(chunk.clone());
    let first = reader.next().unwrap().unwrap();
    let second = reader.next().unwrap().unwrap();
    assert_eq!(first.data.as_ptr(), chunk[21..].as_ptr());
    assert_eq!(second.data.as_ptr(), chunk[36..].as_ptr());
    assert_eq!(reader.next(), None);
}

#[test]
fn what_waits_for_more_does_not_keep_its_chunk_alive() {
    let mut reader = SseReader::new(1000);
    let chunk = Bytes::from(b"data: a\n\n".repeat(1000));
    let watch = chunk.clone();
    reader.push(chunk);
    reader.push(Bytes::from_static(b""));
    let mut count = 0;
    while reader.next().is_some() {
        count += 1;
    }
    assert_eq!(count, 1000);
    assert!(watch.is_unique());
    let tail = Bytes::from(b"data: b\nevent: x\nid: y\n".to_vec());
    let watch = tail.clone();
    reader.push(tail);
    assert_eq!(reader.next(), None);
    assert!(watch.is_unique());
    reader.push(Bytes::from_static(b"\n"));
    let last = SseEvent { kind: Some("x".into()), id: Some("y".into()), ..event("b") };
    assert_eq!(reader.next(), Some(Ok(last)));
}

#[test]
fn no_byte_is_searched_twice() {
    const SIZE: usize = 1 << 20;
    let mut stream = b"data: ".to_vec();
    stream.resize(SIZE, b'x');
    stream.extend_from_slice(b"\n\n");
    for step in [1, 7, 4096, stream.len()] {
        let mut reader = SseReader::new(SIZE);
        let mut lengths = Vec::new();
        for chunk in stream.chunks(step) {
            reader.push(Bytes::copy_from_slice(chunk));
            while let Some(found) = reader.next() {
                lengths.push(found.unwrap().data.len());
            }
        }
        assert_eq!(lengths, [SIZE - 6]);
        assert!(reader.searched <= stream.len(), "{step}: {}", reader.searched);
    }
}

#[test]
fn an_event_is_written_so_that_it_reads_back() {
    let out = [DATA, br#"{"jsonrpc":"2.0"}"#, END, KEEP_ALIVE, DATA, END].concat();
    let expected = vec![Ok(event(r#"{"jsonrpc":"2.0"}"#)), Ok(event(""))];
    assert_eq!(read(&[&out], 1000), (expected, false));
}

/// Bytes that are likely to mean something.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[u8]] = &[
        b"data: a\n",
        b"data",
        b"data: ",
        b"event: e\n",
        b"id: 1\n",
        b"retry: 5\n",
        b"\n",
        b"\r",
        b"\r\n",
        b":",
        b": comment\r",
        b"\xef\xbb\xbf",
        b"\xef",
        b"\0",
        b" ",
        b"xxxxxxxxxxxx",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn split<'s>(stream: &'s [u8], cuts: &[prop::sample::Index]) -> Vec<&'s [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
}

/// The same by the letter of the standard, for text that came at once and is not too long.
fn by_the_letter(stream: &[u8]) -> Vec<SseEvent> {
    let stream = stream.strip_prefix(&MARK).unwrap_or(stream);
    let mut lines = vec![Vec::new()];
    let mut bytes = stream.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if_eq(&b'\n');
                lines.push(Vec::new());
            }
            b'\n' => lines.push(Vec::new()),
            byte => lines.last_mut().unwrap().push(byte),
        }
    }
    // What stands after the last line break is no line.
    lines.pop();
    let mut events = Vec::new();
    let (mut data, mut kind, mut id, mut retry) = (Vec::new(), Vec::new(), None, None);
    for line in lines {
        if line.is_empty() {
            let kind = std::mem::take(&mut kind);
            if let Some(b'\n') = data.pop() {
                let kind = (!kind.is_empty() && kind != b"message").then(|| kind.into());
                let data = Bytes::from(std::mem::take(&mut data));
                events.push(SseEvent { kind, id: id.take(), retry: retry.take(), data });
            }
            continue;
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (halves.next().unwrap(), halves.next().unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => data.extend([value, b"\n"].concat()),
            b"event" => kind = value.to_vec(),
            b"id" if !value.contains(&0) => id = Some(Bytes::copy_from_slice(value)),
            b"retry" => {
                let digits = std::str::from_utf8(value).unwrap_or_default();
                if digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.is_empty() {
                    retry = digits.parse().ok().map(Duration::from_millis).or(retry);
                }
            }
            _ => {}
        }
    }
    events
}

proptest! {
    #[test]
    fn how_the_stream_is_cut_changes_nothing(
        stream in streams(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        max_event in prop_oneof![Just(1_000_000), 0usize..40],
    ) {
        let whole = read(&[&stream], max_event);
        prop_assert_eq!(&read(&split(&stream, &cuts), max_event), &whole);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&read(&bytes, max_event), &whole);
    }

    #[test]
    fn events_are_what_the_standard_says(stream in streams()) {
        let found: Vec<SseEvent> =
            read(&[&stream], 1_000_000).0.into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(found, by_the_letter(&stream));
    }

    #[test]
    fn any_bytes_are_read_within_bounds(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
        max_event in 0usize..100,
    ) {
        let mut reader = SseReader::new(max_event);
        for chunk in chunks {
            reader.push(chunk.into());
            while let Some(found) = reader.next() {
                prop_assert!(found.is_err() || found.is_ok_and(|event| event.data.len() <= max_event));
            }
            let block = &reader.block;
            let data = match &block.data {
                EventData::None => 0,
                EventData::Shared(_) => return Err(TestCaseError::fail("a chunk is kept alive")),
                EventData::Own(data) => data.len(),
                EventData::Joined(joined) => joined.len(),
            };
            let kept = data + reader.line.len();
            prop_assert!(kept <= max_event && block.size <= max_event);
            prop_assert!(reader.line.capacity() <= max_event.max(8));
            prop_assert!(reader.chunks.is_empty());
        }
    }
}
