//! A connection that is lost and made anew: what becomes of calls, who is told, what it costs. The
//! server is a script behind a stream that a function makes; time is paused.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::DuplexStream,
    sync::{mpsc, oneshot},
    time::Instant,
};
use turnbuckle::{
    Client, ClientBuilder, ErrorKind, Revision,
    client::{ConnectionState, ConnectionStates, Reconnect, Retry},
    types::Era,
};

use crate::{
    raw::{Peer, in_both_eras, initialized, said},
    rig::{pinned, poll_once, virtually},
    web::{abandon, launch},
};

in_both_eras! {
    what_may_have_run_is_not_made_again_and_the_next_call_is,
    a_hundred_calls_wait_for_one_connection,
}

pub(crate) type Given = oneshot::Sender<io::Result<DuplexStream>>;

/// Where a client asks for its streams.
pub(crate) struct Desk(mpsc::Receiver<Given>);

impl Desk {
    /// The next time that a stream is asked for.
    pub(crate) async fn asked(&mut self) -> Given {
        self.0.recv().await.expect("the client is there")
    }

    /// Gives it.
    pub(crate) async fn give(&mut self) -> Peer {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        self.asked().await.send(Ok(ours)).expect("nobody waits for it");
        Peer::new(theirs)
    }

    pub(crate) async fn refuse(&mut self) {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "nobody there");
        self.asked().await.send(Err(refused)).expect("nobody waits for it");
    }

    /// Gives a stream whose server has opened the connection, if its era has an opening.
    pub(crate) async fn open(&mut self, era: Era) -> Peer {
        let mut peer = self.give().await;
        if era == Era::Legacy {
            welcome(&mut peer).await;
        }
        peer
    }
}

pub(crate) async fn welcome(peer: &mut Peer) {
    let initialize = peer.read().await;
    assert_eq!(initialize["method"], "initialize");
    peer.answer(&initialize, initialized("2025-11-25")).await;
    assert_eq!(peer.read().await["method"], "notifications/initialized");
}

/// A client that is being connected at a desk.
pub(crate) fn connecting(
    builder: ClientBuilder,
) -> (Desk, tokio::task::JoinHandle<turnbuckle::Result<Client>>) {
    let (ask, asked) = mpsc::channel::<Given>(64);
    let dial = move || {
        let ask = ask.clone();
        async move {
            let (give, given) = oneshot::channel();
            ask.send(give).await.expect("the desk is there");
            given.await.unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
        }
    };
    (Desk(asked), tokio::spawn(builder.dial(dial)))
}

pub(crate) async fn connected(era: Era, builder: ClientBuilder) -> (Desk, Peer, Client) {
    let (mut desk, connecting) = connecting(builder.revision(pinned(era)));
    let peer = desk.open(era).await;
    (desk, peer, connecting.await.unwrap().unwrap())
}

/// Waits until the client knows that its connection is lost.
pub(crate) async fn noticed(client: &Client) {
    let mut states = client.states();
    while !matches!(states.next().await, Some(ConnectionState::Reconnecting { .. })) {}
}

async fn reason(states: &mut ConnectionStates) -> String {
    loop {
        match states.next().await {
            Some(ConnectionState::Closed { reason }) => return reason.to_string(),
            Some(_) => {}
            None => panic!("it ended without a reason"),
        }
    }
}

async fn what_may_have_run_is_not_made_again_and_the_next_call_is(era: Era) {
    let (mut desk, mut peer, client) = connected(era, Client::builder()).await;
    let call = launch(client.call_tool("first", ()));
    assert_eq!(peer.read().await["params"]["name"], "first");
    drop(peer);
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_closed() && error.maybe_executed(), "{error}");
    assert!(error.to_string().ends_with("; the call may have run"), "{error}");
    // A clone is the same client.
    let call = launch(client.clone().call_tool("second", ()));
    let mut peer = desk.open(era).await;
    let request = peer.read().await;
    assert_eq!(request["params"]["name"], "second", "{request}");
    peer.answer(&request, said("ok")).await;
    assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
    assert!(matches!(client.state(), ConnectionState::Ready { generation: 2, .. }));
    peer.quiet().await;
}

async fn a_hundred_calls_wait_for_one_connection(era: Era) {
    let (mut desk, peer, client) = connected(era, Client::builder()).await;
    drop(peer);
    noticed(&client).await;
    let calls: Vec<_> = (0..100).map(|_| launch(client.call_tool("t", ()))).collect();
    let mut peer = desk.open(era).await;
    for _ in 0..100 {
        let request = peer.read().await;
        peer.answer(&request, said("ok")).await;
    }
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
    }
    peer.quiet().await;
    assert!(desk.0.try_recv().is_err(), "more than one connection was made");
}

#[tokio::test(start_paused = true)]
async fn what_does_no_harm_is_made_again_once_if_that_is_allowed() {
    virtually(async {
        let (mut desk, mut peer, client) = connected(Era::Modern, Client::builder()).await;
        let list = launch(client.list_tools().retry(Retry::Idempotent));
        let tool = launch(client.call_tool("t", ()).retry(Retry::Idempotent));
        let careful = launch(client.list_tools());
        for _ in 0..3 {
            peer.read().await;
        }
        drop(peer);
        for error in [tool.await.unwrap().unwrap_err(), careful.await.unwrap().unwrap_err()] {
            assert!(error.is_closed() && error.maybe_executed(), "{error}");
        }
        let mut peer = desk.give().await;
        assert_eq!(peer.read().await["method"], "tools/list");
        peer.quiet().await;
        drop(peer);
        let error = list.await.unwrap().unwrap_err();
        assert!(error.maybe_executed(), "it is not made a third time: {error}");
        let mut peer = desk.give().await;
        peer.quiet().await;
    })
    .await;
}

/// It ran once, whatever became of waiting for the second time.
#[tokio::test(start_paused = true)]
async fn an_error_says_what_may_have_run_even_if_the_repetition_did_not() {
    virtually(async {
        let builder = Client::builder().reconnect(Reconnect::new().attempts(1));
        let (mut desk, mut peer, client) = connected(Era::Modern, builder).await;
        let list = launch(client.list_tools().retry(Retry::Idempotent));
        peer.read().await;
        drop(peer);
        desk.refuse().await;
        let error = list.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        assert!(error.to_string().contains("nobody there"), "{error}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_wants_no_retry_fails_at_once() {
    virtually(async {
        let (_desk, peer, client) = connected(Era::Modern, Client::builder()).await;
        drop(peer);
        noticed(&client).await;
        let since = Instant::now();
        let error = client.call_tool("t", ()).retry(Retry::Never).await.unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
        assert_eq!(since.elapsed(), Duration::ZERO);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn attempts_have_growing_pauses_and_one_budget_and_the_end_says_why() {
    virtually(async {
        let (mut desk, peer, client) = connected(Era::Modern, Client::builder()).await;
        let (mut states, mut attempts) = (client.states(), Vec::new());
        let call = launch(client.call_tool("t", ()));
        tokio::task::yield_now().await;
        drop(peer);
        let (since, mut longest) = (Instant::now(), Duration::ZERO);
        for attempt in 1..=5u32 {
            desk.refuse().await;
            longest += Duration::from_millis(250) * (1 << (attempt - 1));
            attempts.push(client.state());
        }
        let told = reason(&mut states).await;
        assert!(since.elapsed() <= longest, "{:?}", since.elapsed());
        assert!(since.elapsed() > Duration::ZERO);
        assert!(told.contains("peer closed") && told.contains("nobody there"), "{told}");
        assert_eq!(told.matches("could not be made again").count(), 1, "{told}");
        for (state, count) in attempts.iter().zip(1..) {
            let ConnectionState::Reconnecting { attempt, .. } = state else {
                panic!("{count}: {state:?}")
            };
            assert_eq!(*attempt, count);
        }
        assert!(states.next().await.is_none());
        assert!(call.await.unwrap().unwrap_err().is_closed());
        let later = client.call_tool("t", ()).await.unwrap_err();
        assert!(later.is_closed() && !later.maybe_executed());
        assert!(later.to_string().contains("nobody there"), "{later}");
        assert!(desk.0.try_recv().is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_lasted_makes_the_budget_whole() {
    virtually(async {
        let policy = Reconnect::new().attempts(1).healthy_after(Duration::from_secs(60));
        let (mut desk, mut peer, client) =
            connected(Era::Modern, Client::builder().reconnect(policy)).await;
        let mut states = client.states();
        for expected in 1..=4 {
            loop {
                match states.next().await {
                    Some(ConnectionState::Ready { generation }) if generation == expected => break,
                    Some(ConnectionState::Closed { reason }) => panic!("{expected}: {reason}"),
                    _ => {}
                }
            }
            if expected < 4 {
                tokio::time::advance(Duration::from_secs(61)).await;
                drop(peer);
                peer = desk.give().await;
            }
        }
        drop(peer);
        let told = reason(&mut states).await;
        assert!(told.contains("as often as it may be"), "{told}");
        assert!(desk.0.try_recv().is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_clocks_of_a_call_run_while_it_waits() {
    virtually(async {
        let (mut desk, peer, client) = connected(Era::Modern, Client::builder()).await;
        drop(peer);
        noticed(&client).await;
        let _unanswered = desk.asked().await;
        let since = Instant::now();
        let error = client.call_tool("t", ()).timeout(Duration::from_secs(1)).await.unwrap_err();
        assert!(error.is_timeout() && !error.maybe_executed(), "{error}");
        assert!(error.to_string().ends_with("; the call was not sent"), "{error}");
        assert_eq!(since.elapsed(), Duration::from_secs(1));
    })
    .await;
}

// req: protocol:error:reconnect-no-stale-timers
#[tokio::test(start_paused = true)]
async fn the_clock_of_a_call_that_was_lost_says_nothing_on_the_next_connection() {
    virtually(async {
        let (mut desk, mut peer, client) = connected(Era::Modern, Client::builder()).await;
        let call = launch(client.call_tool("t", ()).timeout(Duration::from_secs(2)));
        peer.read().await;
        drop(peer);
        assert!(call.await.unwrap().unwrap_err().is_closed());
        let mut peer = desk.give().await;
        peer.quiet().await;
        let call = launch(client.call_tool("t", ()));
        let request = peer.read().await;
        peer.answer(&request, said("ok")).await;
        call.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_is_never_made() {
    virtually(async {
        let (mut desk, peer, client) = connected(Era::Modern, Client::builder()).await;
        drop(peer);
        noticed(&client).await;
        let call = launch(client.call_tool("t", ()));
        tokio::task::yield_now().await;
        abandon(call).await;
        desk.give().await.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_close_in_the_middle_of_it_ends_the_attempt_and_whoever_waits() {
    virtually(async {
        let (mut desk, peer, client) = connected(Era::Modern, Client::builder()).await;
        let mut states = client.states();
        drop(peer);
        let mut attempt = desk.asked().await;
        let call = launch(client.call_tool("t", ()));
        tokio::task::yield_now().await;
        client.close().await;
        attempt.closed().await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
        assert!(reason(&mut states).await.contains("closed on this side"));
        assert!(desk.0.recv().await.is_none(), "nothing is left that could ask");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dropping_all_handles_in_the_middle_of_it_leaves_nothing() {
    virtually(async {
        let (mut desk, peer, client) = connected(Era::Modern, Client::builder()).await;
        drop(peer);
        let mut attempt = desk.asked().await;
        drop((client.clone(), client));
        attempt.closed().await;
        assert!(desk.0.recv().await.is_none(), "nothing is left that could ask");
    })
    .await;
}

/// A connection that is there a moment too late is closed, not used.
#[tokio::test(start_paused = true)]
async fn a_stream_that_comes_after_the_close_is_closed() {
    virtually(async {
        let (mut desk, peer, client) = connected(Era::Legacy, Client::builder()).await;
        drop(peer);
        let mut peer = desk.give().await;
        assert_eq!(peer.read().await["method"], "initialize");
        drop(client);
        peer.rest().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_never_made_again_stays_lost() {
    virtually(async {
        let builder = Client::builder().reconnect(Reconnect::never());
        let (mut desk, peer, client) = connected(Era::Modern, builder).await;
        let mut states = client.states();
        drop(peer);
        assert!(reason(&mut states).await.contains("peer closed"));
        let error = client.call_tool("t", ()).await.unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
        assert!(desk.0.try_recv().is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_connection_is_tried_once() {
    virtually(async {
        let (mut desk, connecting) = connecting(Client::builder());
        desk.refuse().await;
        let error = connecting.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        assert!(desk.0.recv().await.is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_states_come_one_after_the_other() {
    virtually(async {
        let (mut desk, peer, client) = connected(Era::Modern, Client::builder()).await;
        let mut states = client.states();
        assert!(matches!(states.next().await, Some(ConnectionState::Ready { generation: 1, .. })));
        drop(peer);
        assert!(matches!(
            states.next().await,
            Some(ConnectionState::Reconnecting { attempt: 1, .. })
        ));
        let _peer = desk.give().await;
        assert!(matches!(states.next().await, Some(ConnectionState::Ready { generation: 2, .. })));
        drop(client);
        assert!(matches!(states.next().await, Some(ConnectionState::Closed { .. })));
        assert!(states.next().await.is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_become_another_is_spoken_to_in_its_own_words() {
    virtually(async {
        let (mut desk, connecting) = connecting(Client::builder());
        let mut peer = desk.give().await;
        let probe = peer.read().await;
        assert_eq!(probe["method"], "server/discover");
        let found = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "private",
        });
        peer.answer(&probe, found).await;
        let client = connecting.await.unwrap().unwrap();
        assert_eq!(client.revision(), Revision::V2026_07_28);
        drop(peer);
        noticed(&client).await;
        let (tool, list) = (launch(client.call_tool("t", ())), launch(client.list_tools()));
        let mut peer = desk.give().await;
        let probe = peer.read().await;
        peer.refuse(&probe, json!({"code": -32601, "message": "no"})).await;
        welcome(&mut peer).await;
        for _ in 0..2 {
            let request = peer.read().await;
            let stamped = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            assert_eq!(*stamped, Value::Null, "{request}");
            let result = match request["method"].as_str() {
                Some("tools/call") => json!({"content": [{"type": "text", "text": "ok"}]}),
                _ => json!({"tools": []}),
            };
            peer.answer(&request, result).await;
        }
        assert_eq!(tool.await.unwrap().unwrap().to_text(), "ok");
        assert!(list.await.unwrap().unwrap().tools.is_empty());
        assert_eq!(client.revision(), Revision::V2025_11_25);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_log_level_is_set_again_before_anything_else_is_said() {
    virtually(async {
        let (mut desk, mut peer, client) = connected(Era::Legacy, Client::builder()).await;
        for level in ["info", "debug"] {
            let set = launch(client.request("logging/setLevel", json!({"level": level})));
            let request = peer.read().await;
            peer.answer(&request, json!({})).await;
            set.await.unwrap().unwrap();
        }
        // One that was refused is not in force.
        let set = launch(client.request("logging/setLevel", json!({"level": "loud"})));
        let request = peer.read().await;
        peer.refuse(&request, json!({"code": -32602, "message": "no"})).await;
        set.await.unwrap().unwrap_err();
        drop(peer);
        noticed(&client).await;
        let call = launch(client.call_tool("t", ()));
        let mut peer = desk.open(Era::Legacy).await;
        let request = peer.read().await;
        assert_eq!(request["method"], "logging/setLevel");
        assert_eq!(request["params"]["level"], "debug");
        peer.refuse(&request, json!({"code": -32601, "message": "not any more"})).await;
        let request = peer.read().await;
        assert_eq!(request["method"], "tools/call");
        peer.answer(&request, said("ok")).await;
        call.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_function_that_panics_closes_the_client_and_nobody_waits_for_ever() {
    virtually(async {
        let calls = AtomicUsize::new(0);
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let first = std::sync::Mutex::new(Some(ours));
        let dial = move || {
            assert_eq!(calls.fetch_add(1, Relaxed), 0, "this panic is part of the test");
            let stream = first.lock().unwrap().take().unwrap();
            async move { Ok(stream) }
        };
        let client = Client::builder().revision(Revision::LATEST).dial(dial).await.unwrap();
        drop(theirs);
        noticed(&client).await;
        let error = client.call_tool("t", ()).no_timeouts().await.unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    })
    .await;
}

#[test]
fn a_client_whose_runtime_has_ended_fails_its_calls() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let streams = Arc::new(std::sync::Mutex::new(Some(ours)));
    let dial = move || {
        let stream = streams.lock().unwrap().take();
        async move { stream.ok_or_else(|| io::ErrorKind::NotConnected.into()) }
    };
    let first = runtime();
    let connecting = Client::builder().revision(Revision::LATEST).dial(dial);
    let client = first.block_on(connecting).unwrap();
    drop(first);
    let call = async { client.call_tool("t", ()).no_timeouts().await };
    let error = runtime().block_on(crate::rig::within(call)).unwrap_err();
    assert!(error.is_closed() && !error.maybe_executed(), "{error}");
    drop((client, theirs));
}

#[tokio::test(start_paused = true)]
async fn an_orderly_end_waits_for_calls_and_takes_no_more() {
    virtually(async {
        let (_desk, mut peer, client) = connected(Era::Modern, Client::builder()).await;
        let call = launch(client.call_tool("t", ()));
        let request = peer.read().await;
        let ending = tokio::spawn(client.clone().shutdown(Duration::from_secs(60)));
        tokio::task::yield_now().await;
        let error = client.call_tool("late", ()).await.unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
        assert!(error.to_string().contains("shutting down"), "{error}");
        let since = Instant::now();
        peer.answer(&request, said("ok")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        let report = ending.await.unwrap();
        assert_eq!((report.finished, report.abandoned), (1, 0));
        assert!(report.exit.is_none());
        assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
        peer.ended().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_orderly_end_cuts_off_what_takes_too_long_and_counts_it() {
    virtually(async {
        let (_desk, mut peer, client) = connected(Era::Modern, Client::builder()).await;
        let (quick, slow) =
            (launch(client.call_tool("quick", ())), launch(client.call_tool("slow", ())));
        let (request, _) = (peer.read().await, peer.read().await);
        let since = Instant::now();
        let ending = tokio::spawn(client.shutdown(Duration::from_secs(5)));
        peer.answer(&request, said("ok")).await;
        quick.await.unwrap().unwrap();
        let error = slow.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        let report = ending.await.unwrap();
        assert_eq!((report.finished, report.abandoned), (1, 1));
        assert!(since.elapsed() >= Duration::from_secs(5));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_orderly_end_that_is_dropped_closes_at_once() {
    virtually(async {
        let (_desk, mut peer, client) = connected(Era::Modern, Client::builder()).await;
        let call = launch(client.call_tool("t", ()));
        peer.read().await;
        let mut ending = Box::pin(client.clone().shutdown(Duration::from_secs(60)));
        assert!(poll_once(&mut ending).await.is_none());
        drop(ending);
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_closed(), "{error}");
        assert!(matches!(client.state(), ConnectionState::Closed { .. }));
        peer.ended().await;
    })
    .await;
}

/// A stream of notifications is nobody's answer: it does not hold the end up.
#[tokio::test(start_paused = true)]
async fn an_orderly_end_does_not_wait_for_streams_or_for_what_was_dropped() {
    virtually(async {
        let (_desk, mut peer, client) = connected(Era::Modern, Client::builder()).await;
        let mut opening = client.listen(turnbuckle::subscribe::Filter::new().tools()).into_future();
        assert!(poll_once(&mut opening).await.is_none());
        let id = peer.read().await["id"].clone();
        peer.say(json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {
                "notifications": {}, "_meta": {"io.modelcontextprotocol/subscriptionId": id},
            },
        }))
        .await;
        let _listening = opening.await.unwrap();
        let call = launch(client.call_tool("t", ()));
        peer.read().await;
        abandon(call).await;
        let since = Instant::now();
        let report = client.clone().shutdown(Duration::from_secs(3600)).await;
        assert_eq!((report.finished, report.abandoned), (0, 0));
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
    })
    .await;
}
