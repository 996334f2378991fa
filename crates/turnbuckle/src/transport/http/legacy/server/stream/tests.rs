use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Wake,
};

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

const RETRY: Duration = Duration::from_millis(5);
const KNOWN: Shape = Shape::Events { retry: RETRY, priming: Priming::Known };
const OWNER: Owner = Owner::Request(Serial(1));
const UNKNOWN: Shape = Shape::Events { retry: RETRY, priming: Priming::Unknown };

fn stream(shape: Shape, limit: usize) -> Stream {
    let stream = Stream::new(StreamNumber::of_requests(), shape, limit);
    stream.join(&1.into(), Serial(1));
    stream
}

fn note(stream: &Stream, waker: &Waker) -> Poll<()> {
    let mut render = |out: &mut Vec<u8>| out.extend_from_slice(b"{}");
    stream.poll_note(OWNER, &mut Context::from_waker(waker), "a/b", &mut render)
}

fn flush(stream: &Stream) {
    while let Some((number, said)) = stream.take() {
        match said {
            Said::Frame { text, .. } => stream.deliver(number, &text),
            Said::Release => stream.let_go(),
        }
    }
}

fn read(stream: &Stream, serial: u64) -> Poll<Option<String>> {
    let mut context = Context::from_waker(Waker::noop());
    stream
        .poll_read(serial, &mut context)
        .map(|text| text.map(|text| String::from_utf8(text).unwrap()))
}

fn turn(stream: &Stream, waker: &Waker) -> Poll<Turn> {
    stream.poll_turn(&mut Context::from_waker(waker))
}

#[test]
fn who_speaks_waits_for_the_pump_and_for_a_reader_but_not_for_nobody() {
    let stream = stream(KNOWN, 2);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let (reader, _) = stream.attach().unwrap();
    for _ in 0..2 {
        assert!(note(&stream, &waker).is_ready());
    }
    assert!(note(&stream, &waker).is_pending());
    flush(&stream);
    assert!(count.0.load(Relaxed) > 0);
    // The pump has taken them, the reader has not.
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
fn a_new_reader_replaces_the_old_one_and_hears_only_what_follows() {
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
fn the_answer_ends_the_turn_and_takes_questions_back_before() {
    let stream = stream(KNOWN, 8);
    let (reader, _) = stream.attach().unwrap();
    assert_eq!(stream.ask(OWNER, &5.into(), Serial(2), b"question".to_vec()), Ok(()));
    assert_eq!(turn(&stream, Waker::noop()), Poll::Ready(Turn::Said));
    flush(&stream);
    assert!(turn(&stream, Waker::noop()).is_pending());
    let left = Left { id: 5.into(), serial: Serial(2), executed: Executed::Maybe };
    assert_eq!(stream.answer(Serial(1), b"answer".to_vec()), [left]);
    // It has ended, though it has not been read.
    assert_eq!(stream.ask(OWNER, &6.into(), Serial(3), Vec::new()), Err(Ended));
    assert!(note(&stream, Waker::noop()).is_ready());
    flush(&stream);
    assert_eq!(turn(&stream, Waker::noop()), Poll::Ready(Turn::Over));
    assert_eq!(stream.end(), []);
    let Poll::Ready(Some(text)) = read(&stream, reader) else { panic!("nothing") };
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in {text}"));
    assert!(at("question") < at("cancelled") && at("cancelled") < at("answer"));
    assert!(!text.contains("a/b"), "{text}");
    assert_eq!(read(&stream, reader), Poll::Ready(None));
}

#[test]
fn of_several_requests_each_speaks_until_it_has_ended() {
    let stream = stream(KNOWN, 8);
    stream.join(&2.into(), Serial(2));
    stream.leave(Serial(1));
    assert!(note(&stream, Waker::noop()).is_ready());
    assert!(!stream.has_said());
    assert_eq!(stream.ask(OWNER, &6.into(), Serial(3), Vec::new()), Err(Ended));
    let other = Owner::Request(Serial(2));
    assert_eq!(stream.ask(other, &6.into(), Serial(3), Vec::new()), Ok(()));
    assert!(stream.has_said());
}

#[test]
fn a_question_can_be_taken_back_until_the_pump_has_it() {
    let stream = stream(KNOWN, 8);
    assert_eq!(stream.ask(OWNER, &5.into(), Serial(2), b"question".to_vec()), Ok(()));
    assert_eq!(stream.unask(Serial(2)), Unasked::Unwritten);
    assert!(stream.take().is_none());
    assert_eq!(stream.ask(OWNER, &6.into(), Serial(3), b"question".to_vec()), Ok(()));
    assert!(stream.take().is_some());
    assert_eq!(stream.unask(Serial(3)), Unasked::Written);
    assert_eq!(stream.unask(Serial(3)), Unasked::Ended);
    assert_eq!(stream.end(), []);
}

#[test]
fn what_is_killed_is_not_read_and_nobody_waits_for_it() {
    let stream = stream(KNOWN, 1);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let (reader, _) = stream.attach().unwrap();
    assert!(note(&stream, &waker).is_ready());
    flush(&stream);
    assert!(note(&stream, &waker).is_pending());
    stream.kill();
    assert_eq!(count.0.load(Relaxed), 1);
    assert_eq!(read(&stream, reader), Poll::Ready(None));
    assert!(note(&stream, &waker).is_ready());
    stream.answer(Serial(1), b"answer".to_vec());
    stream.deliver(9, b"late");
    assert!(stream.take().is_none());
    assert_eq!(read(&stream, reader), Poll::Ready(None));
    assert_eq!(stream.attach(), Err(Ended));
}

#[test]
fn a_reader_is_let_go_after_what_was_said_if_it_can_come_back() {
    for (shape, said, expected) in [
        (KNOWN, 0, Some("data:\n\n")),
        (KNOWN, 1, Some("data:\n\n")),
        (UNKNOWN, 0, None),
        (UNKNOWN, 1, Some("retry: 5\n")),
    ] {
        let stream = stream(shape, 8);
        let (reader, _) = stream.attach().unwrap();
        stream.prime();
        for _ in 0..said {
            assert!(note(&stream, Waker::noop()).is_ready());
        }
        stream.release();
        stream.release();
        flush(&stream);
        assert!(note(&stream, Waker::noop()).is_ready());
        flush(&stream);
        let Poll::Ready(Some(text)) = read(&stream, reader) else { panic!("{shape:?} {said}") };
        match expected {
            Some(end) => {
                assert!(text.ends_with(end), "{text:?}");
                assert_eq!(text.matches("a/b").count(), said);
                assert_eq!(read(&stream, reader), Poll::Ready(None));
            }
            None => {
                assert_eq!(text.matches("a/b").count(), 1);
                assert!(read(&stream, reader).is_pending());
            }
        }
        let (_, last) = stream.attach().unwrap();
        assert_eq!(last, said as u64 + 1);
    }
}

#[test]
fn as_json_only_answers_are_written() {
    let stream = stream(Shape::Json, 1);
    stream.join(&2.into(), Serial(2));
    let (reader, _) = stream.attach().unwrap();
    stream.prime();
    stream.release();
    for _ in 0..3 {
        assert!(note(&stream, Waker::noop()).is_ready());
    }
    assert!(!stream.has_said());
    stream.answer(Serial(1), b"1".to_vec());
    flush(&stream);
    assert_eq!(read(&stream, reader), Poll::Ready(Some("1".to_owned())));
    stream.answer(Serial(2), b"2".to_vec());
    flush(&stream);
    assert_eq!(read(&stream, reader), Poll::Ready(Some(",2".to_owned())));
}

#[test]
fn the_pump_of_no_request_is_told_when_it_is_alone() {
    let stream = Stream::new(StreamNumber::aside(), KNOWN, 8).after(7);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert_eq!(turn(&stream, &waker), Poll::Ready(Turn::Alone));
    let (reader, last) = stream.attach().unwrap();
    assert_eq!((last, count.0.load(Relaxed)), (7, 1));
    assert!(turn(&stream, &waker).is_pending());
    stream.detach(reader);
    assert_eq!(count.0.load(Relaxed), 2);
    assert_eq!(turn(&stream, &waker), Poll::Ready(Turn::Alone));
}

#[test]
fn a_question_that_is_taken_back_makes_room() {
    let stream = stream(KNOWN, 1);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    stream.ask(OWNER, &5.into(), Serial(2), b"?".to_vec()).unwrap();
    assert!(note(&stream, &waker).is_pending());
    assert_eq!(stream.unask(Serial(2)), Unasked::Unwritten);
    assert_eq!(count.0.load(Relaxed), 1);
    assert!(note(&stream, &waker).is_ready());
}

#[test]
fn the_last_answer_takes_back_what_was_written_and_drops_what_was_not() {
    let stream = stream(KNOWN, 8);
    for (id, serial) in [(5, 2), (6, 3)] {
        stream.ask(OWNER, &id.into(), Serial(serial), b"?".to_vec()).unwrap();
        if serial == 2 {
            flush(&stream);
        }
    }
    stream.ask(OWNER, &7.into(), Serial(4), b"?".to_vec()).unwrap();
    stream.answered(&"7".into());
    let left = stream.answer(Serial(1), b"done".to_vec());
    let executed: Vec<_> = left.iter().map(|left| (left.serial.0, left.executed)).collect();
    assert_eq!(executed, [(2, Executed::Maybe), (3, Executed::No)]);
    let mut said = Vec::new();
    while let Some((_, Said::Frame { text, .. })) = stream.take() {
        said.push(String::from_utf8(text.to_vec()).unwrap());
    }
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[1].contains("notifications/cancelled") && said[1].contains('5'), "{said:?}");
    assert_eq!(stream.unask(Serial(2)), Unasked::Ended, "so that nobody cancels it again");
}
