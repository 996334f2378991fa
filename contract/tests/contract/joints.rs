//! Where calls, kept answers, streams of events and connections meet: a client, whose server is a
//! script.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Notify;
use turnbuckle::{
    Client,
    cache::ResponseCache,
    client::{CallEvent, Round},
    types::{ElicitAction, ElicitResult, Era},
};

use crate::{
    raw::{Peer, client_with, in_both_eras, said},
    reconnects::{connecting, noticed, welcome},
    rig::{poll_once, virtually},
    web::{abandon, launch},
};

in_both_eras! {
    a_fetch_that_runs_out_of_time_says_so,
    an_orderly_end_counts_all_who_wait_for_one_fetch,
}

const SECOND: Duration = Duration::from_secs(1);

/// A client that keeps what a legacy server says, too.
async fn keeping(era: Era) -> (Peer, Client) {
    let minute = ResponseCache::new().default_ttl(60 * SECOND);
    client_with(era, Client::builder().cache(minute), 1 << 20).await
}

fn tools() -> Value {
    json!({"resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": "private"})
}

/// Reads a cancel: whose it is, and the reason.
async fn cancelled(peer: &mut Peer) -> (Value, String) {
    let cancel = peer.read().await;
    assert_eq!(cancel["method"], "notifications/cancelled", "{cancel}");
    let params = &cancel["params"];
    (params["requestId"].clone(), params["reason"].as_str().unwrap_or_default().to_owned())
}

// req: protocol:timeout:basic
async fn a_fetch_that_runs_out_of_time_says_so(era: Era) {
    let (mut peer, client) = keeping(era).await;
    let short = launch(client.list_tools().timeout(2 * SECOND));
    let request = peer.read().await;
    let long = launch(client.list_tools().timeout(3 * SECOND));
    for one in [short, long] {
        assert!(one.await.unwrap().unwrap_err().is_timeout());
    }
    let (id, reason) = cancelled(&mut peer).await;
    assert_eq!((&id, &*reason), (&request["id"], "timed out after 3s"));
    peer.quiet().await;
    // The last who leaves has the last word.
    let short = launch(client.list_tools().timeout(2 * SECOND));
    let request = peer.read().await;
    let long = launch(client.list_tools());
    assert!(short.await.unwrap().unwrap_err().is_timeout());
    abandon(long).await;
    let (id, reason) = cancelled(&mut peer).await;
    assert_eq!((&id, &*reason), (&request["id"], "caller cancelled"));
    peer.quiet().await;
}

async fn an_orderly_end_counts_all_who_wait_for_one_fetch(era: Era) {
    let (mut peer, client) = keeping(era).await;
    let kept = launch(client.list_prompts());
    let request = peer.read().await;
    let mut prompts = tools();
    prompts["prompts"] = json!([]);
    peer.answer(&request, prompts).await;
    kept.await.unwrap().unwrap();
    let waiting: Vec<_> = (0..3).map(|_| launch(client.list_tools())).collect();
    let request = peer.read().await;
    let mut ending = Box::pin(client.clone().shutdown(60 * SECOND));
    assert!(poll_once(&mut ending).await.is_none());
    // No more calls: not even what is at hand.
    let error = client.list_prompts().await.unwrap_err();
    assert!(error.to_string().contains("shutting down"), "{error}");
    peer.answer(&request, tools()).await;
    for one in waiting {
        one.await.unwrap().unwrap();
    }
    let report = ending.await;
    assert_eq!((report.finished, report.abandoned), (3, 0));
}

fn asks() -> Value {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"mode": "form", "message": "well?", "requestedSchema": schema});
    let question = json!({"method": "elicitation/create", "params": params});
    json!({"resultType": "input_required", "inputRequests": {"a": question}, "requestState": "s"})
}

fn progress(request: &Value) -> Value {
    let token = &request["params"]["_meta"]["progressToken"];
    assert!(!token.is_null(), "{request}");
    let params = json!({"progressToken": token, "progress": 1});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

/// The stream of a round ends with it: what the next one says must not wait for who took it.
#[tokio::test(start_paused = true)]
async fn a_round_after_a_stream_of_events_waits_for_nobody() {
    virtually(async {
        let builder = Client::builder()
            .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Decline)));
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        let mut events = client.call_tool("t", ()).manual().events();
        let script = async {
            let request = peer.read().await;
            peer.say(progress(&request)).await;
            peer.answer(&request, asks()).await;
        };
        let (first, ()) = tokio::join!(events.next(), script);
        assert!(matches!(first, Some(CallEvent::Progress(_))), "{first:?}");
        let Some(CallEvent::Done(Ok(Round::Asks(mut questions)))) = events.next().await else {
            panic!("it asks")
        };
        questions.answer("a", ElicitResult::new(ElicitAction::Decline)).unwrap();
        let call = launch(questions.send());
        let request = peer.read().await;
        peer.say(progress(&request)).await;
        peer.answer(&request, said("ok")).await;
        let Round::Done(result) = call.await.unwrap().unwrap() else { panic!("it is done") };
        assert_eq!(result.to_text(), "ok");
        assert!(events.next().await.is_none());
    })
    .await;
}

/// Who answers was asked in the modern era; the server that comes back has no such answers.
#[tokio::test(start_paused = true)]
async fn answers_are_not_given_in_another_era() {
    virtually(async {
        let (asked, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let gates = (asked.clone(), answer.clone());
        let builder = Client::builder().on_elicitation(move |_| {
            let (asked, answer) = gates.clone();
            async move {
                asked.notify_one();
                answer.notified().await;
                Ok(ElicitResult::new(ElicitAction::Decline))
            }
        });
        let (mut desk, connecting) = connecting(builder);
        let mut peer = desk.give().await;
        let probe = peer.read().await;
        assert_eq!(probe["method"], "server/discover");
        let found = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
        });
        peer.answer(&probe, found).await;
        let client = connecting.await.unwrap().unwrap();
        let call = launch(client.call_tool("t", ()));
        let request = peer.read().await;
        peer.answer(&request, asks()).await;
        asked.notified().await;
        drop(peer);
        noticed(&client).await;
        let mut peer = desk.give().await;
        let probe = peer.read().await;
        peer.refuse(&probe, json!({"code": -32601, "message": "no such method"})).await;
        welcome(&mut peer).await;
        answer.notify_one();
        let error = call.await.unwrap().unwrap_err();
        assert!(error.maybe_executed(), "{error}");
        peer.quiet().await;
        // The client is sound.
        let call = launch(client.call_tool("u", ()));
        let request = peer.read().await;
        assert_eq!(request["params"]["name"], "u");
        peer.answer(&request, said("ok")).await;
        call.await.unwrap().unwrap();
    })
    .await;
}
