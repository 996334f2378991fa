use super::*;
use crate::transport::http::session::server::event::StreamNumber;
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Wake,
};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn counting() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), Waker::from(count))
}

fn note_with(
    stream: &ResponseStream,
    request: Option<Serial>,
    waker: &Waker,
    params: &str,
) -> Poll<()> {
    let mut render = |out: &mut Vec<u8>| out.extend_from_slice(params.as_bytes());
    stream.poll_note(request, &mut Context::from_waker(waker), "a/b", &mut render)
}

/// Outside a session.
mod plain {
    use super::*;

    fn stream(limit: usize) -> ResponseStream {
        ResponseStream::new(Format::Events, limit, "", MemoryBudget::new(1 << 20))
    }

    fn note(stream: &ResponseStream, waker: &Waker, params: &str) -> Poll<()> {
        note_with(stream, None, waker, params)
    }

    #[test]
    fn messages_are_taken_together_and_in_order() {
        let stream = stream(8);
        let waker = Waker::noop();
        assert_eq!(note(&stream, waker, r#"{"n":1}"#), Poll::Ready(()));
        assert_eq!(note(&stream, waker, r#"{"n":2}"#), Poll::Ready(()));
        let expected = "data: {\"jsonrpc\":\"2.0\",\"method\":\"a/b\",\"params\":{\"n\":1}}\n\n\
                        data: {\"jsonrpc\":\"2.0\",\"method\":\"a/b\",\"params\":{\"n\":2}}\n\n";
        assert_eq!(String::from_utf8(stream.take_text()).unwrap(), expected);
        assert_eq!(stream.park(waker), Parked::Silent);
    }

    #[test]
    fn a_handler_waits_until_there_is_room() {
        for (limit, params) in [(1, "{}".to_owned()), (9, format!("\"{}\"", "x".repeat(1 << 18)))] {
            let stream = stream(limit);
            let (count, waker) = counting();
            assert_eq!(note(&stream, &waker, &params), Poll::Ready(()));
            for _ in 0..3 {
                assert_eq!(note(&stream, &waker, "{}"), Poll::Pending);
            }
            assert!(!stream.take_text().is_empty());
            assert_eq!(count.0.load(Relaxed), 1);
            assert_eq!(note(&stream, &waker, "{}"), Poll::Ready(()));
        }
    }

    #[test]
    fn the_driver_is_woken_only_while_it_waits() {
        let stream = stream(8);
        let (count, waker) = counting();
        assert_eq!(stream.park(&waker), Parked::Silent);
        stream.attend();
        assert_eq!(note(&stream, Waker::noop(), "{}"), Poll::Ready(()));
        assert_eq!(count.0.load(Relaxed), 0);
        assert_eq!(stream.park(&waker), Parked::Messages);
        stream.take_text();
        assert_eq!(stream.park(&waker), Parked::Silent);
        assert_eq!(note(&stream, Waker::noop(), "{}"), Poll::Ready(()));
        assert_eq!(count.0.load(Relaxed), 1);
    }

    #[test]
    fn after_the_end_messages_are_dropped_and_no_handler_waits() {
        let stream = stream(1);
        let (count, waker) = counting();
        assert_eq!(note(&stream, &waker, "{}"), Poll::Ready(()));
        assert_eq!(note(&stream, &waker, "{}"), Poll::Pending);
        assert!(!stream.close().is_empty());
        assert_eq!(count.0.load(Relaxed), 1);
        assert_eq!(note(&stream, &waker, "{}"), Poll::Ready(()));
        assert!(stream.close().is_empty());
    }
}

/// In a session.
mod in_session {
    use super::*;

    const RETRY: Duration = Duration::from_millis(5);
    const KNOWN: Format = Format::Resumable { retry: RETRY, priming: Priming::Known };
    const UNKNOWN: Format = Format::Resumable { retry: RETRY, priming: Priming::Unknown };
    const REQUEST: Option<Serial> = Some(Serial(1));

    fn stream(format: Format, limit: usize) -> ResponseStream {
        let stream =
            ResponseStream::in_session(format, limit, Weak::new(), MemoryBudget::new(1 << 20));
        stream.join(&1.into(), Serial(1));
        stream
    }

    fn note(stream: &ResponseStream, waker: &Waker) -> Poll<()> {
        note_with(stream, REQUEST, waker, "{}")
    }

    fn push(stream: &ResponseStream, text: &str) {
        stream.push_all(vec![text.as_bytes().to_vec()]);
    }

    fn end(stream: &ResponseStream) {
        stream.end(&mut Wakers::default());
    }

    fn flush(stream: &ResponseStream) {
        while let Some((number, message)) = stream.take_unstored() {
            match message {
                Unstored::Message { text, .. } => stream.deliver(number, &text),
                Unstored::Release => stream.let_reader_go(),
            }
        }
    }

    fn read(stream: &ResponseStream, reader: u64) -> Poll<Option<String>> {
        let mut context = Context::from_waker(Waker::noop());
        stream
            .poll_read(reader, &mut context)
            .map(|text| text.map(|text| String::from_utf8(text).unwrap()))
    }

    #[test]
    fn a_handler_waits_for_the_store_and_for_an_attached_reader() {
        let stream = stream(KNOWN, 2);
        let (count, waker) = counting();
        let (reader, _) = stream.attach().unwrap();
        for _ in 0..2 {
            assert!(note(&stream, &waker).is_ready());
        }
        assert!(note(&stream, &waker).is_pending());
        flush(&stream);
        assert!(count.0.load(Relaxed) > 0);
        // They are stored, but not read.
        assert!(note(&stream, &waker).is_pending());
        let woken = count.0.load(Relaxed);
        assert!(matches!(read(&stream, reader), Poll::Ready(Some(_))));
        assert!(count.0.load(Relaxed) > woken);
        for _ in 0..2 {
            assert!(note(&stream, &waker).is_ready());
        }
        flush(&stream);
        assert!(note(&stream, &waker).is_pending());
        stream.detach(reader);
        for _ in 0..10 {
            assert!(note(&stream, &waker).is_ready());
            flush(&stream);
        }
    }

    #[test]
    fn a_new_reader_replaces_the_old_one_and_reads_only_later_events() {
        let stream = stream(KNOWN, 8);
        let (first, last) = stream.attach().unwrap();
        assert_eq!(last, 0);
        assert!(note(&stream, Waker::noop()).is_ready());
        flush(&stream);
        let (second, last) = stream.attach().unwrap();
        assert_eq!(last, 1);
        assert_eq!(read(&stream, first), Poll::Ready(None));
        assert!(read(&stream, second).is_pending());
        stream.detach(first);
        assert!(note(&stream, Waker::noop()).is_ready());
        flush(&stream);
        let Poll::Ready(Some(text)) = read(&stream, second) else { panic!("nothing") };
        assert!(text.contains("-2\n") && !text.contains("-1\n"), "{text}");
    }

    #[test]
    fn of_several_requests_each_sends_until_it_has_ended() {
        let stream = stream(KNOWN, 8);
        stream.join(&2.into(), Serial(2));
        assert!(!stream.leave(Serial(1)));
        assert!(note(&stream, Waker::noop()).is_ready());
        assert!(!stream.has_unstored());
        let wakers = &mut Wakers::default();
        assert_eq!(stream.push_question(REQUEST, &6.into(), Vec::new(), wakers), Err(StreamEnded));
        let other = Some(Serial(2));
        assert_eq!(stream.push_question(other, &6.into(), Vec::new(), wakers), Ok(()));
        assert!(stream.has_unstored());
        assert!(stream.leave(Serial(2)));
    }

    #[test]
    fn a_question_can_be_taken_back_until_it_is_stored() {
        let stream = stream(KNOWN, 1);
        let (count, waker) = counting();
        let mut wakers = Wakers::default();
        stream.push_question(REQUEST, &5.into(), b"?".to_vec(), &mut wakers).unwrap();
        assert!(note(&stream, &waker).is_pending());
        assert!(stream.take_back(&5.into(), &mut wakers));
        wakers.wake();
        assert_eq!(count.0.load(Relaxed), 1, "there is room");
        assert!(stream.take_unstored().is_none());
        let mut wakers = Wakers::default();
        stream.push_question(REQUEST, &6.into(), b"?".to_vec(), &mut wakers).unwrap();
        assert!(stream.take_unstored().is_some());
        assert!(!stream.take_back(&6.into(), &mut wakers));
    }

    #[test]
    fn the_reader_of_a_stopped_stream_reads_only_the_last_messages() {
        let stream = stream(KNOWN, 1);
        let (count, waker) = counting();
        let (reader, _) = stream.attach().unwrap();
        assert!(stream.poll_stopped(&mut Context::from_waker(&waker)).is_pending());
        assert!(note(&stream, &waker).is_ready());
        flush(&stream);
        assert!(note(&stream, &waker).is_pending());
        let mut wakers = Wakers::default();
        stream.kill(&[b"cancel".to_vec()], &mut wakers);
        wakers.wake();
        assert_eq!(count.0.load(Relaxed), 2, "the pump and the handler");
        assert!(stream.poll_stopped(&mut Context::from_waker(&waker)).is_ready());
        assert!(note(&stream, &waker).is_ready());
        push(&stream, "response");
        stream.deliver(9, b"late");
        assert!(stream.take_unstored().is_none());
        assert_eq!(read(&stream, reader), Poll::Ready(Some("data: cancel\n\n".to_owned())));
        assert_eq!(read(&stream, reader), Poll::Ready(None));
        assert_eq!(stream.attach(), Err(StreamEnded));
    }

    #[test]
    fn the_text_before_the_end_can_be_read() {
        let stream = stream(KNOWN, 8);
        let (reader, _) = stream.attach().unwrap();
        push(&stream, "response");
        flush(&stream);
        end(&stream);
        assert_eq!(stream.attach(), Err(StreamEnded));
        let Poll::Ready(Some(text)) = read(&stream, reader) else { panic!("nothing") };
        assert!(text.contains("response"), "{text}");
        assert_eq!(read(&stream, reader), Poll::Ready(None));
    }

    #[test]
    fn a_reader_is_released_after_the_messages_so_far_if_it_can_come_back() {
        for (format, notes, expected) in [
            (KNOWN, 0, Some("data:\n\n")),
            (KNOWN, 1, Some("data:\n\n")),
            (UNKNOWN, 0, None),
            (UNKNOWN, 1, Some("retry: 5\n")),
        ] {
            let stream = stream(format, 8);
            let (reader, _) = stream.attach().unwrap();
            stream.prime();
            for _ in 0..notes {
                assert!(note(&stream, Waker::noop()).is_ready());
            }
            stream.release();
            stream.release();
            flush(&stream);
            assert!(note(&stream, Waker::noop()).is_ready());
            flush(&stream);
            let Poll::Ready(Some(text)) = read(&stream, reader) else { panic!("{format:?}") };
            match expected {
                Some(end) => {
                    assert!(text.ends_with(end), "{text:?}");
                    assert_eq!(text.matches("a/b").count(), notes);
                    assert_eq!(read(&stream, reader), Poll::Ready(None));
                }
                None => {
                    assert_eq!(text.matches("a/b").count(), 1);
                    assert!(read(&stream, reader).is_pending());
                }
            }
            let (_, last) = stream.attach().unwrap();
            assert_eq!(last, notes as u64 + 1);
        }
    }

    #[test]
    fn json_has_only_responses_and_is_read_at_its_end() {
        let stream = stream(Format::Json, 1);
        let (reader, _) = stream.attach().unwrap();
        stream.prime();
        stream.release();
        for _ in 0..3 {
            assert!(note(&stream, Waker::noop()).is_ready());
        }
        assert!(!stream.has_unstored());
        push(&stream, "1");
        assert!(read(&stream, reader).is_pending());
        push(&stream, "2");
        end(&stream);
        assert_eq!(read(&stream, reader), Poll::Ready(Some("1,2".to_owned())));
        assert_eq!(read(&stream, reader), Poll::Ready(None));
    }

    #[test]
    fn the_pump_is_woken_when_the_reader_comes_and_goes() {
        let stream = ResponseStream::in_session(KNOWN, 8, Weak::new(), MemoryBudget::new(1 << 20));
        let stream = stream.continuing(StreamNumber::of_get(), 7);
        assert!(stream.number().is_of_get());
        let (count, waker) = counting();
        let mut context = Context::from_waker(&waker);
        assert!(stream.poll_stopped(&mut context).is_pending() && !stream.has_reader());
        let (reader, last) = stream.attach().unwrap();
        assert_eq!((last, count.0.load(Relaxed)), (7, 1));
        assert!(stream.poll_stopped(&mut context).is_pending() && stream.has_reader());
        stream.detach(reader);
        assert_eq!(count.0.load(Relaxed), 2);
        assert!(!stream.has_reader());
    }
}
