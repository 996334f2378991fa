use std::sync::Mutex;

use super::*;

fn log() -> (WireLog, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = lines.clone();
    (WireLog::new(move |line| told.lock().unwrap().push(line.to_string())), lines)
}

fn note(text: &str, log: &WireLog) -> WireLine {
    WireLine::new(WireDirection::Received, WireKind::Notification).json(text, log)
}

#[test]
fn a_line_is_one_line() {
    let (log, _) = log();
    let line = WireLine::new(WireDirection::Sent, WireKind::Cancelled)
        .of("odd\nmethod")
        .with_id(Some(&7.into()))
        .plain("two\nlines", &log);
    assert_eq!(line.to_string(), r"-> cancelled #7 odd\nmethod two lines");
    let long = note(&format!("[{}]", "1,".repeat(5_000)), &log.clone().longest(10));
    assert_eq!(long.text, "[1,1,1,1,1… (9992 bytes more)");
}

#[test]
fn what_a_request_brings_is_told_after_it() {
    let (log, lines) = log();
    let outer = log.hold();
    log.tell(|| note("1", &log));
    let inner = log.hold();
    log.tell(|| note("2", &log));
    inner.first(note("3", &log));
    outer.first(note("4", &log));
    log.tell(|| note("5", &log));
    let told = lines.lock().unwrap().join(" ");
    assert_eq!(told.replace("<- notification ", ""), "3 4 1 2 5");
}

#[test]
fn whoever_reads_may_panic() {
    let log = WireLog::new(|_| std::panic::resume_unwind(Box::new("on purpose")));
    log.tell(|| note("1", &log));
    log.hold().first(note("2", &log));
}
