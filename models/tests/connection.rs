//! The pending table, the write queue, and calls that are dropped.

#![cfg(shuttle)]

use std::task::{Context, Waker};

use serde_json::Value;
use shuttle::{future::block_on, thread};
use turnbuckle::__seam::{Exchange, ExchangeEvent, models::ModelLink};
use turnbuckle_models::{ModelPeer, check};

/// Starts the writer of a connection.
fn start(link: &ModelLink, peer: &ModelPeer) -> thread::JoinHandle<()> {
    let (link, peer) = (link.clone(), peer.clone());
    thread::spawn(move || block_on(link.write_to(peer)))
}

/// Polls a call once. Returns whether it has ended.
fn poll(call: &mut Exchange) -> bool {
    let event = call.poll_event(&mut Context::from_waker(Waker::noop()));
    event.is_ready()
}

fn count(messages: &[Value], is_counted: impl Fn(&Value) -> bool) -> usize {
    messages.iter().filter(|message| is_counted(message)).count()
}

fn is_request(message: &Value) -> bool {
    message.get("id").is_some()
}

fn is_cancel(message: &Value) -> bool {
    message["method"] == "notifications/cancelled"
}

/// A call that is dropped is taken back, or cancelled exactly once, or was answered before.
fn drop_calls(calls: usize, room: usize) {
    let link = ModelLink::new();
    let peer = ModelPeer::answering(&link, room);
    let writer = start(&link, &peer);
    let callers: Vec<_> = (0..calls)
        .map(|_| {
            let mut call = link.open();
            thread::spawn(move || {
                let ended = poll(&mut call) || poll(&mut call);
                drop(call);
                usize::from(ended)
            })
        })
        .collect();
    let ended: usize = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
    assert_eq!(link.in_flight(), 0, "a dropped call stays in the table");
    // Answers to calls that were cancelled are late, and disturb nothing.
    let late = thread::spawn({
        let peer = peer.clone();
        move || peer.join()
    });
    let mut answers = late.join().unwrap();
    link.close();
    writer.join().unwrap();
    answers += peer.join();
    let messages = peer.messages();
    let requests = count(&messages, is_request);
    let cancels = count(&messages, is_cancel);
    assert_eq!(requests, answers);
    assert!(requests <= calls && ended + cancels <= requests, "{messages:?}");
    let in_time = answers - link.late_answers();
    assert_eq!(cancels + in_time, requests, "{messages:?}");
    for message in messages.iter().filter(|message| is_cancel(message)) {
        let id = &message["params"]["requestId"];
        assert_eq!(count(&messages, |other| other["id"] == *id), 1, "cancelled, but never sent");
        assert_eq!(count(&messages, |other| other["params"]["requestId"] == *id), 1);
    }
}

#[test]
fn a_dropped_call_is_cancelled_once() {
    check(|| drop_calls(1, usize::MAX));
}

#[test]
fn dropped_calls_leave_whole_lines_when_the_peer_reads_slowly() {
    check(|| drop_calls(2, 50));
}

/// Every call gets its own answer, whatever waits in the queue.
#[test]
fn every_call_is_answered_with_its_own_result() {
    check(|| {
        let link = ModelLink::new();
        let peer = ModelPeer::answering(&link, 60);
        let writer = start(&link, &peer);
        let calls = [(); 2].map(|()| {
            let call = link.open();
            thread::spawn(move || block_on(call.done()).unwrap().as_str().to_owned())
        });
        let mut results = calls.map(|call| call.join().unwrap());
        results.sort();
        assert_eq!(results, [r#"{"id":1}"#, r#"{"id":2}"#]);
        assert_eq!(link.in_flight(), 0);
        link.close();
        writer.join().unwrap();
        peer.join();
        assert_eq!(link.late_answers(), 0);
        assert_eq!(peer.messages().len(), 2, "nothing is sent twice");
    });
}

/// When a connection ends, each call that waits ends, and only once.
#[test]
fn every_call_ends_with_its_connection() {
    check(|| {
        let link = ModelLink::new();
        let peer = ModelPeer::silent(&link, 30);
        let writer = start(&link, &peer);
        let calls = [(); 2].map(|()| {
            let mut call = link.open();
            thread::spawn(move || {
                let end = block_on(std::future::poll_fn(|context| call.poll_event(context)));
                assert!(matches!(end, ExchangeEvent::Done(Err(_))));
            })
        });
        link.abort();
        calls.into_iter().for_each(|call| call.join().unwrap());
        writer.join().unwrap();
        assert_eq!(link.in_flight(), 0);
    });
}

/// A handler that ends while the peer cancels it sends at most one response, and the id is free after
/// both.
#[test]
fn a_response_that_races_a_cancellation_is_sent_once_or_not_at_all() {
    check(|| {
        let link = ModelLink::new();
        let peer = ModelPeer::silent(&link, usize::MAX);
        let writer = start(&link, &peer);
        let handler = link.accept(7);
        let finishing = thread::spawn(move || handler.finish());
        let cancelling = thread::spawn({
            let link = link.clone();
            move || {
                let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
                link.receive(cancel.to_owned());
                // The same id again, while the first handler may still run.
                link.accept(7)
            }
        });
        let second = cancelling.join().unwrap();
        finishing.join().unwrap();
        assert_eq!(link.in_flight(), 1, "the first handler has ended the second request");
        second.finish();
        link.close();
        writer.join().unwrap();
        let responses = count(&peer.messages(), is_request);
        assert!((1..=2).contains(&responses), "{responses}");
        assert_eq!(link.in_flight(), 0);
    });
}
