//! Clients that read slowly or not at all: law 8, and the lost answers of others.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use turnbuckle::{Limits, types::Era};

use crate::{
    raw::{Peer, in_both_eras, opened_with, request},
    rig::eventually,
};

in_both_eras! {
    law01_two_hundred_large_answers_reach_a_slow_reader,
    law01_a_slow_reader_that_cancels_gets_whole_lines_and_one_answer_each,
    law04_a_client_that_does_not_read_is_still_heard,
    law08_a_handler_that_is_faster_than_its_client_waits,
    e32_a_handler_that_waits_for_its_client_is_stopped_too,
    law08_a_client_that_never_reads_errors_is_let_go,
    law08_a_client_that_never_reads_quick_answers_is_let_go,
    law08_a_client_that_never_reads_its_tools_answers_is_let_go,
    law08_a_client_that_stops_reading_is_let_go_in_time,
}

async fn law01_two_hundred_large_answers_reach_a_slow_reader(era: Era) {
    let mut served = opened_with(era, Limits::default(), 2048).await;
    // The reader of the server must not wait for its writer, or these would never all arrive.
    for id in 0..200 {
        let call = served.tool(id, "huge", json!({"bytes": 65_536}));
        served.peer.say(call).await;
    }
    let (mut read, _write) = tokio::io::split(served.peer.into_stream());
    let (mut seen, mut line, mut chunk) = ([0; 200], Vec::new(), [0; 1000]);
    while seen.contains(&0) {
        let length = read.read(&mut chunk).await.unwrap();
        assert_ne!(length, 0, "the stream ended early");
        for byte in &chunk[..length] {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            let answer: Value = serde_json::from_slice(&line).unwrap();
            line.clear();
            assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), 65_536);
            seen[answer["id"].as_u64().unwrap() as usize] += 1;
        }
        tokio::task::yield_now().await;
    }
    assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
}

/// Answers short and long, progress, and cancels of every third request, through a pipe that is
/// read in crumbs: wherever the writer is held up, lines stay whole and in order.
async fn law01_a_slow_reader_that_cancels_gets_whole_lines_and_one_answer_each(era: Era) {
    const CALLS: u64 = 150;
    let served = opened_with(era, Limits::default(), 700).await;
    let tool = |id: u64, name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": id}});
        request(era, id, "tools/call", params)
    };
    let mut lines = Vec::new();
    for id in 0..CALLS {
        lines.push(match id % 5 {
            0 => tool(id, "huge", json!({"bytes": 40_000})),
            1 => tool(id, "echo", json!({"text": "short"})),
            2 => tool(id, "progress", json!({"n": 30})),
            3 => tool(id, "progress_then_hold", json!({"key": "k", "n": 30})),
            _ => tool(id, "huge", json!({"bytes": 300})),
        });
        if id % 5 == 3 {
            lines.push(crate::raw::cancelled(id));
        }
        if id >= 10 && id % 3 == 0 {
            lines.push(crate::raw::cancelled(id - 10));
        }
    }
    let cancelled: Vec<u64> =
        lines.iter().filter_map(|line| line["params"]["requestId"].as_u64()).collect();
    let (read, mut write) = tokio::io::split(served.peer.into_stream());
    let talking = async {
        for line in &lines {
            let text = format!("{line}\n");
            tokio::io::AsyncWriteExt::write_all(&mut write, text.as_bytes()).await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    let said = tokio::select! {
        said = crumbs(read) => said,
        () = talking => unreachable!(),
    };
    let (mut answers, mut steps) = (vec![0; CALLS as usize], vec![0; CALLS as usize]);
    for message in &said {
        if let Some(id) = message["id"].as_u64() {
            answers[id as usize] += 1;
            assert!(message["result"].is_object(), "{message}");
            continue;
        }
        let id = message["params"]["progressToken"].as_u64().unwrap() as usize;
        assert_eq!(answers[id], 0, "progress after the answer");
        steps[id] += 1;
        assert_eq!(message["params"]["progress"], steps[id], "out of order");
    }
    for id in 0..CALLS {
        let (answered, given_up) = (answers[id as usize], cancelled.contains(&id));
        assert!(answered == 1 || (answered == 0 && given_up), "{id}: {answered} answers");
        if id % 5 == 3 {
            assert_eq!(answered, 0, "{id} was held until it was cancelled");
        }
    }
    assert_eq!(served.fixture.ledger().in_flight, 0);
}

/// Reads messages a few bytes at a time, until nothing more comes.
async fn crumbs(mut read: impl tokio::io::AsyncRead + Unpin) -> Vec<Value> {
    let (mut said, mut line, mut crumb) = (Vec::new(), Vec::new(), [0; 97]);
    while let Ok(length) = tokio::time::timeout(crate::raw::SILENCE, read.read(&mut crumb)).await {
        for byte in &crumb[..length.unwrap()] {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            let message = serde_json::from_slice(&line);
            said.push(message.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&line))));
            line.clear();
        }
        tokio::task::yield_now().await;
    }
    assert!(line.is_empty(), "half a line is left");
    said
}

async fn law04_a_client_that_does_not_read_is_still_heard(era: Era) {
    let mut served = opened_with(era, Limits::default(), 2048).await;
    let call = served.tool(1, "huge", json!({"bytes": 500_000}));
    served.peer.say(call).await;
    served.peer.taste().await;
    // The writer is stuck; requests and cancels are still taken.
    for id in 2..50 {
        served.hold(id, "hold", "k").await;
    }
    for id in 2..50 {
        served.peer.say(crate::raw::cancelled(id)).await;
    }
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").dropped == 48).await;
    let said = served.peer.lull().await;
    assert_eq!((said.len(), &said[0]["id"]), (1, &json!(1)));
    served.alive().await;
}

async fn law08_a_handler_that_is_faster_than_its_client_waits(era: Era) {
    let limits = Limits::default().queued_notifications(4);
    let mut served = opened_with(era, limits, 512).await;
    let arguments = json!({"key": "k", "n": 1_000});
    let params = json!({"name": "progress_then_hold", "arguments": arguments, "_meta": {"progressToken": 1}});
    served.peer.say(request(era, 1, "tools/call", params)).await;
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").started == 1).await;
    let pass = tokio::time::timeout(Duration::from_secs(60), std::future::pending::<()>());
    pass.await.unwrap_err();
    assert_eq!(fixture.of("k").reached, 0, "a thousand reports went into a queue of four");
    fixture.release("k");
    for step in 1..=1_000 {
        assert_eq!(served.peer.read().await["params"]["progress"], step);
    }
    assert_eq!(served.peer.read().await["id"], 1);
}

async fn e32_a_handler_that_waits_for_its_client_is_stopped_too(era: Era) {
    let limits = Limits::default().queued_notifications(4);
    let mut served = opened_with(era, limits, 512).await;
    let arguments = json!({"key": "k", "n": 1_000});
    let params = json!({
        "name": "progress_then_hold",
        "arguments": arguments,
        "_meta": {"progressToken": 1},
    });
    served.peer.say(request(era, 1, "tools/call", params)).await;
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").started == 1).await;
    served.peer.say(crate::raw::cancelled(1)).await;
    eventually(|| fixture.of("k").dropped == 1).await;
    let said = served.peer.lull().await;
    assert!(said.len() < 20, "{} reports of a cancelled request", said.len());
    served.alive().await;
}

const LIMIT: usize = 64 * 1024;

/// A server does not keep a connection whose peer reads nothing for minutes, however little waits.
async fn law08_a_client_that_stops_reading_is_let_go_in_time(era: Era) {
    let mut served = opened_with(era, Limits::default(), 2048).await;
    let call = served.tool(1, "huge", json!({"bytes": 65_536}));
    served.peer.say(call).await;
    let start = tokio::time::Instant::now();
    served.serving.await.unwrap().unwrap();
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(300) && waited < Duration::from_secs(600), "{waited:?}");
}

/// Says these lines over and over, without reading, until the server lets go.
async fn never_read(era: Era, lines: &[Value]) {
    let limits = Limits::default().unsent_bytes(LIMIT).in_flight(1 << 20);
    let served = opened_with(era, limits, 2048).await;
    let peer: Peer = served.peer;
    let (_unread, mut write) = tokio::io::split(peer.into_stream());
    let mut id = 0;
    let talking = async {
        // Far more than the limit and a margin of refusals, whatever a line is answered with.
        for _ in 0..40_000 {
            for line in lines {
                let mut line = line.clone();
                id += 1;
                line["id"] = json!(id);
                let text = format!("{line}\n");
                if tokio::io::AsyncWriteExt::write_all(&mut write, text.as_bytes()).await.is_err() {
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(30);
    tokio::select! {
        ended = served.serving => ended.unwrap().unwrap(),
        () = async { talking.await; let _ = tokio::time::timeout(patience, std::future::pending::<()>()).await; } => {
            panic!("{id} requests, and the server still keeps their answers");
        }
    }
}

async fn law08_a_client_that_never_reads_errors_is_let_go(era: Era) {
    never_read(era, &[json!({"jsonrpc": "2.0", "id": 0, "method": 5})]).await;
}

async fn law08_a_client_that_never_reads_quick_answers_is_let_go(era: Era) {
    never_read(era, &[request(era, 0, "tools/list", json!({}))]).await;
}

async fn law08_a_client_that_never_reads_its_tools_answers_is_let_go(era: Era) {
    let params = json!({"name": "huge", "arguments": {"bytes": 1_000}});
    never_read(era, &[request(era, 0, "tools/call", params)]).await;
}
