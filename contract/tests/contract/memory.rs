//! Line 34: what 10,000 abandoned requests leave behind, which is nothing.

use serde_json::json;

use crate::rig::{Rig, contract};

contract! { everywhere alone on [memory stdio unix direct http] in [legacy modern]:
    e34_ten_thousand_abandoned_requests_leave_nothing,
}

/// How far memory may rise over 5,000 requests: 200 bytes for each. An allocator keeps what it
/// likes, once; what leaks, leaks each time.
const SLACK: u64 = 1 << 20;

async fn e34_ten_thousand_abandoned_requests_leave_nothing(rig: &Rig) {
    // First to warm up: buffers and tables keep the room they once needed.
    abandon(rig, 5_000).await;
    let mut levels = vec![resident(rig).await];
    loop {
        abandon(rig, 5_000).await;
        levels.push(resident(rig).await);
        let rises = levels.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        if levels.len() > 2 && rises.min().unwrap() < SLACK {
            break;
        }
        assert!(levels.len() < 8, "bytes after each 5,000: {levels:?}");
    }
    let ledger = rig.report().await;
    assert_eq!(ledger.in_flight, 0);
    let count = ledger.of("k");
    let all = 5_000 * levels.len() as u64;
    assert_eq!((count.started, count.dropped, count.finished), (all, all, 0));
    assert_eq!(rig.client.counters().late_answers, 0);
    rig.alive().await;
}

async fn abandon(rig: &Rig, requests: u64) {
    const AT_ONCE: u64 = 500;
    for _ in 0..requests / AT_ONCE {
        let before = rig.report().await.of("k");
        let mut flights = Vec::new();
        for _ in 0..AT_ONCE {
            flights.push(rig.enter(rig.tool("hold", json!({"key": "k"}))).await);
        }
        rig.until(|ledger| ledger.of("k").started == before.started + AT_ONCE).await;
        for flight in flights {
            flight.abandon().await;
        }
        rig.until(|ledger| ledger.of("k").dropped == before.dropped + AT_ONCE).await;
    }
}

/// Resident memory of the server, and of this process where that is another.
async fn resident(rig: &Rig) -> u64 {
    let theirs = rig.report().await;
    let ours = turnbuckle_contract::Fixture::default().ledger();
    if theirs.process == ours.process {
        ours.resident_bytes
    } else {
        theirs.resident_bytes + ours.resident_bytes
    }
}
