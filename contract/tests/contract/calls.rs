//! Calls and their options: clocks, progress, pages, verbs that an era lacks.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle::{Client, ErrorKind, subscribe::Filter, types::Era};

use crate::{
    raw::{Peer, client, client_with, in_both_eras, said},
    rig::{Rig, Wire, poll_once, virtually},
};

in_both_eras! {
    a_call_has_half_an_hour_and_a_minute_between_signs_of_life,
    // req: protocol:timeout:reset-on-progress, protocol:timeout:max-total
    // req: errors:timeout:sdkerror-request-timeout
    progress_resets_the_idle_clock_but_never_the_total,
    each_clock_can_be_switched_off,
    an_answer_in_the_last_moment_counts,
    // req: protocol:timeout:session-default
    a_clients_own_timeouts_hold_for_every_call,
    // req: protocol:progress:token-injected, protocol:progress:no-token
    progress_is_asked_for_when_something_wants_it,
    every_page_is_asked_for_once,
    pages_past_the_cap_are_an_error,
    a_list_that_does_not_end_is_an_error,
    a_page_that_is_dropped_is_cancelled,
    // req: lifecycle:stateless:caller-meta-preserved
    own_meta_travels_along,
    what_is_no_object_is_refused_before_it_is_sent,
}

const SECOND: Duration = Duration::from_secs(1);

async fn pass(time: Duration) {
    tokio::time::timeout(time, std::future::pending::<()>()).await.unwrap_err();
}

fn progress(request: &Value, value: u64) -> Value {
    let params = json!({"progressToken": request["id"], "progress": value});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

async fn a_call_has_half_an_hour_and_a_minute_between_signs_of_life(era: Era) {
    let (mut peer, client) = client(era).await;
    let before = Instant::now();
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(before.elapsed().as_secs(), 60);
    peer.read().await;
    assert_eq!(peer.read().await["method"], "notifications/cancelled");
    let before = Instant::now();
    let call = client.call_tool("t", ());
    let signs = async {
        let request = peer.read().await;
        for value in 1.. {
            pass(SECOND * 50).await;
            peer.say(progress(&request, value)).await;
        }
    };
    let error = tokio::select! {
        ended = call => ended.unwrap_err(),
        () = signs => unreachable!(),
    };
    assert!(error.is_timeout(), "{error}");
    assert_eq!(before.elapsed().as_secs(), 30 * 60);
}

async fn progress_resets_the_idle_clock_but_never_the_total(era: Era) {
    let (mut peer, client) = client(era).await;
    let before = Instant::now();
    let mut call =
        client.call_tool("t", ()).idle_timeout(SECOND * 10).timeout(SECOND * 35).into_future();
    assert!(poll_once(&mut call).await.is_none());
    let call = tokio::spawn(call);
    let request = peer.read().await;
    for value in 1..=3 {
        pass(SECOND * 9).await;
        peer.say(progress(&request, value)).await;
    }
    // 27 seconds are gone; the total ends what progress would have allowed.
    let error = call.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("35s"), "{error}");
    assert_eq!(before.elapsed().as_secs(), 35);
    let cancel = peer.read().await;
    assert_eq!(cancel["params"]["reason"], "timed out after 35s");
}

async fn each_clock_can_be_switched_off(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut call = client.call_tool("t", ()).no_timeouts().into_future();
    assert!(poll_once(&mut call).await.is_none());
    let request = peer.read().await;
    assert!(tokio::time::timeout(SECOND * 86_400, &mut call).await.is_err());
    peer.answer(&request, said("a day later")).await;
    assert_eq!(call.await.unwrap().to_text(), "a day later");
}

async fn an_answer_in_the_last_moment_counts(era: Era) {
    let (mut peer, client) = client(era).await;
    let call = tokio::spawn(client.call_tool("t", ()).timeout(SECOND * 5).into_future());
    let request = peer.read().await;
    pass(SECOND * 5 - Duration::from_millis(2)).await;
    peer.answer(&request, said("just in time")).await;
    assert_eq!(call.await.unwrap().unwrap().to_text(), "just in time");
    peer.quiet().await;
}

async fn a_clients_own_timeouts_hold_for_every_call(era: Era) {
    let builder = Client::builder().timeout(SECOND * 7).idle_timeout(SECOND * 100);
    let (_peer, client) = client_with(era, builder, 1 << 20).await;
    let before = Instant::now();
    assert!(client.list_tools().await.unwrap_err().is_timeout());
    assert_eq!(before.elapsed().as_secs(), 7);
    let before = Instant::now();
    let call = client.request("anything/at-all", ()).timeout(SECOND * 2);
    assert!(call.await.unwrap_err().is_timeout());
    assert_eq!(before.elapsed().as_secs(), 2);
}

async fn progress_is_asked_for_when_something_wants_it(era: Era) {
    let (mut peer, client) = client_with(era, Client::builder().no_timeouts(), 1 << 20).await;
    let calls = [
        (client.call_tool("t", ()), false),
        (client.call_tool("t", ()).timeout(SECOND), false),
        (client.call_tool("t", ()).on_progress(|_| ()), true),
        (client.call_tool("t", ()).idle_timeout(SECOND), true),
    ];
    for (call, wanted) in calls {
        let mut call = call.into_future();
        assert!(poll_once(&mut call).await.is_none());
        let request = peer.read().await;
        let token = request["params"]["_meta"].get("progressToken");
        assert_eq!(token, wanted.then_some(&request["id"]), "{request}");
        drop(call);
        assert_eq!(peer.read().await["method"], "notifications/cancelled");
    }
}

fn page(names: &[&str], next: Option<&str>) -> Value {
    let tools: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    let mut page =
        json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
    if let Some(next) = next {
        page["nextCursor"] = json!(next);
    }
    page
}

/// Answers requests for pages, and tells which cursors were asked for.
async fn paged(peer: &mut Peer, pages: &[Value]) -> Vec<Option<String>> {
    let mut cursors = Vec::new();
    for page in pages {
        let request = peer.read().await;
        assert_eq!(request["method"], "tools/list");
        cursors.push(
            request["params"].get("cursor").map(|cursor| cursor.as_str().unwrap().to_owned()),
        );
        peer.answer(&request, page.clone()).await;
    }
    cursors
}

async fn every_page_is_asked_for_once(era: Era) {
    let (mut peer, client) = client(era).await;
    let pages = [page(&["a", "b"], Some("one")), page(&[], Some("two")), page(&["c"], None)];
    let (tools, cursors) = tokio::join!(client.tools().all(), paged(&mut peer, &pages));
    let names: Vec<String> = tools.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(cursors, [None, Some("one".to_owned()), Some("two".to_owned())]);
    peer.quiet().await;
    // As a stream it asks for a page when it needs one.
    let mut tools = client.tools();
    let first = async { tools.next().await.unwrap().unwrap().name };
    let (first, _) = tokio::join!(first, paged(&mut peer, &pages[..1]));
    assert_eq!(
        (first, tools.next().await.unwrap().unwrap().name),
        ("a".to_owned(), "b".to_owned())
    );
    peer.quiet().await;
    let (third, _) = tokio::join!(tools.next(), paged(&mut peer, &pages[1..]));
    assert_eq!(third.unwrap().unwrap().name, "c");
    assert!(tools.next().await.is_none());
    peer.quiet().await;
    // One page is one request.
    let (listed, _) = tokio::join!(client.list_tools(), paged(&mut peer, &pages[..1]));
    assert_eq!(listed.unwrap().next_cursor.as_deref(), Some("one"));
}

async fn pages_past_the_cap_are_an_error(era: Era) {
    let (mut peer, client) = client(era).await;
    let pages = [page(&["a"], Some("1")), page(&["b"], Some("2")), page(&["c"], Some("3"))];
    let (tools, _) = tokio::join!(client.tools().max_pages(3).all(), paged(&mut peer, &pages));
    let error = tools.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    peer.quiet().await;
}

async fn a_list_that_does_not_end_is_an_error(era: Era) {
    let (mut peer, client) = client(era).await;
    let server = async {
        loop {
            let request = peer.read().await;
            peer.answer(&request, page(&["again"], Some("same"))).await;
        }
    };
    let error = tokio::select! {
        tools = client.tools().all() => tools.unwrap_err(),
        () = server => unreachable!(),
    };
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    assert!(error.to_string().contains("cursor"), "{error}");
}

async fn a_page_that_is_dropped_is_cancelled(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut tools = client.tools();
    let mut next = Box::pin(tools.next());
    assert!(poll_once(&mut next).await.is_none());
    let request = peer.read().await;
    drop(next);
    peer.quiet().await; // The stream still wants its page.
    drop(tools);
    let cancel = peer.read().await;
    assert_eq!(cancel["params"]["requestId"], request["id"]);
    peer.quiet().await;
}

async fn own_meta_travels_along(era: Era) {
    let (mut peer, client) = client(era).await;
    let call = client.call_tool("t", json!({"a": 1})).meta("example.com/trace", json!({"id": 7}));
    let mut call = call.into_future();
    assert!(poll_once(&mut call).await.is_none());
    let request = peer.read().await;
    assert_eq!(request["params"]["_meta"]["example.com/trace"], json!({"id": 7}));
    assert_eq!(request["params"]["arguments"], json!({"a": 1}));
    drop(call);
    peer.read().await;
    let params = json!({"x": 1, "_meta": {"example.com/own": true}});
    let mut call = client.request("any/thing", params).into_future();
    assert!(poll_once(&mut call).await.is_none());
    let request = peer.read().await;
    assert_eq!((&request["method"], &request["params"]["x"]), (&json!("any/thing"), &json!(1)));
    assert_eq!(request["params"]["_meta"]["example.com/own"], true);
}

async fn what_is_no_object_is_refused_before_it_is_sent(era: Era) {
    let (mut peer, client) = client(era).await;
    assert_eq!(client.call_tool("t", [1, 2]).await.unwrap_err().kind(), ErrorKind::Codec);
    assert_eq!(client.request("m", "text").await.unwrap_err().kind(), ErrorKind::Codec);
    assert!(client.notify("m", 5).await.is_err());
    peer.quiet().await;
}

// req: lifecycle:ping, ping:client-to-server
#[tokio::test(start_paused = true)]
async fn ping_exists_in_the_legacy_era_only() {
    virtually(async {
        let (mut peer, modern) = client(Era::Modern).await;
        let error = modern.ping().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("discover"), "{error}");
        peer.quiet().await;
        let (mut peer, legacy) = client(Era::Legacy).await;
        let pong = async {
            let ping = peer.read().await;
            assert_eq!(ping["method"], "ping");
            peer.answer(&ping, json!({})).await;
        };
        let (pinged, ()) = tokio::join!(legacy.ping(), pong);
        pinged.unwrap();
        let error = legacy.discover().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_listen_stream_has_clocks_until_it_is_acknowledged() {
    virtually(async {
        let (mut peer, modern) = client(Era::Modern).await;
        let before = Instant::now();
        let error = modern.listen(Filter::new().tools()).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert_eq!(before.elapsed().as_secs(), 60);
        let request = peer.read().await;
        let cancel = peer.read().await;
        assert_eq!(cancel["params"]["requestId"], request["id"]);
        let refusal = async {
            let request = peer.read().await;
            peer.refuse(&request, json!({"code": -32601, "message": "no"})).await;
        };
        let (refused, ()) = tokio::join!(modern.listen(Filter::new().tools()), refusal);
        assert_eq!(refused.unwrap_err().as_rpc().unwrap().code, -32601);
        let (mut peer, legacy) = client(Era::Legacy).await;
        let error = legacy.listen(Filter::new().tools()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("on_notification"), "{error}");
        peer.quiet().await;
    })
    .await;
}

/// A client that takes this long to answer what its server asks.
fn thoughtful(time: Duration) -> turnbuckle::ClientBuilder {
    Client::builder().on_roots(move || async move {
        pass(time).await;
        Ok(Vec::new())
    })
}

#[tokio::test(start_paused = true)]
async fn both_clocks_stop_while_a_question_is_answered() {
    virtually(async {
        for wire in [Wire::Memory, Wire::Direct] {
            let rig = Rig::with(wire, Era::Legacy, thoughtful(SECOND * 600), &[]).await;
            let arguments = json!({"key": "k", "method": "roots/list"});
            let before = Instant::now();
            let call = rig.tool("ask", arguments).timeout(SECOND * 5).idle_timeout(SECOND * 2);
            assert_eq!(call.await.unwrap().to_text(), r#"{"roots":[]}"#, "{wire:?}");
            assert_eq!(before.elapsed().as_secs(), 600);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_clocks_go_on_after_a_question() {
    virtually(async {
        let (mut peer, client) = client_with(Era::Legacy, thoughtful(SECOND * 600), 1 << 20).await;
        let before = Instant::now();
        let call = client.call_tool("t", ()).timeout(SECOND * 5).idle_timeout(SECOND * 60);
        let server = async {
            peer.read().await;
            pass(SECOND * 2).await;
            peer.say(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
            assert!(peer.read().await["result"].is_object());
        };
        let (error, ()) = tokio::join!(call, server);
        assert!(error.unwrap_err().is_timeout());
        assert_eq!(before.elapsed().as_secs(), 605, "two seconds before, three after");
        assert_eq!(peer.read().await["method"], "notifications/cancelled");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_questions_at_once_stop_the_clocks_once() {
    virtually(async {
        let (mut peer, client) = client_with(Era::Legacy, thoughtful(SECOND * 100), 1 << 20).await;
        let before = Instant::now();
        let call = client.call_tool("t", ()).timeout(SECOND * 5);
        let server = async {
            peer.read().await;
            peer.say(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
            pass(SECOND * 50).await;
            peer.say(json!({"jsonrpc": "2.0", "id": 2, "method": "roots/list"})).await;
            peer.read().await;
            peer.read().await;
        };
        let (error, ()) = tokio::join!(call, server);
        assert!(error.unwrap_err().is_timeout());
        assert_eq!(before.elapsed().as_secs(), 155, "150 seconds did not count");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_in_order_to_a_callback_that_takes_its_time() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let call = client.call_tool("t", ()).on_progress({
            let seen = seen.clone();
            move |progress| {
                assert_eq!(progress.total, Some(50.0));
                seen.lock().unwrap().push((progress.progress, progress.message));
            }
        });
        let server = async {
            let request = peer.read().await;
            for value in 1..=50 {
                let mut note = progress(&request, value);
                note["params"]["total"] = json!(50);
                note["params"]["message"] = json!(format!("step {value}"));
                peer.say(note).await;
                tokio::task::yield_now().await;
            }
            peer.answer(&request, said("done")).await;
        };
        let (done, ()) = tokio::join!(call, server);
        done.unwrap();
        let expected: Vec<_> =
            (1..=50).map(|value| (f64::from(value), Some(format!("step {value}")))).collect();
        assert_eq!(*seen.lock().unwrap(), expected);
    })
    .await;
}
