//! Answers that a client keeps for as long as the server says: how long, what makes them stale,
//! and that what several ask for at once is asked for once.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnbuckle::{
    Client, ErrorKind, Server, TraceContext,
    cache::{CacheMode, ResponseCache},
    middleware::{Metrics, RequestStarted},
    resource,
    server::{Cache, ItemKind},
    tool,
    types::{ElicitAction, ElicitResult, Era, Meta},
};

use crate::{
    live::{Heard, connect},
    raw::{Peer, client, client_with, in_both_eras},
    rig::{Wire, contract, eventually, virtually},
    web::{abandon, launch},
};

contract! { kept unconnected on [memory unix direct http] in [legacy modern]:
    an_answer_is_used_for_as_long_as_the_server_says,
}

contract! { evicted unconnected on [memory unix direct http sse] in [legacy modern]:
    an_event_makes_answers_stale,
}

contract! { coalesced unconnected on [memory unix direct http] in [modern]:
    what_several_ask_for_at_once_is_asked_for_once,
    a_fetch_is_cancelled_when_the_last_one_has_gone,
}

in_both_eras! {
    time_passes,
    what_was_asked_before_an_event_is_not_kept_after_it,
    nobody_waits_for_what_was_asked_before_an_event,
    a_call_that_says_more_is_made_for_itself,
    errors_are_shared_and_not_kept,
    a_cursor_that_is_refused_takes_all_pages_with_it,
    a_client_that_was_closed_has_no_answers,
}

/// Requests by their method.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<HashMap<&'static str, usize>>>);

impl Metrics for Requests {
    fn started(&self, started: &RequestStarted<'_>) {
        *self.0.lock().unwrap().entry(started.method).or_default() += 1;
    }
}

impl Requests {
    fn of(&self, method: &str) -> usize {
        self.0.lock().unwrap().get(method).copied().unwrap_or_default()
    }
}

fn seconds(seconds: u64) -> Cache {
    Cache::new(Duration::from_secs(seconds))
}

async fn an_answer_is_used_for_as_long_as_the_server_says(wire: Wire, era: Era) {
    let requests = Requests::default();
    let server = Server::new("s", "1")
        .tool(tool("a", async || ()))
        .resource(resource("x:kept", async || "kept").cache(seconds(60)))
        .resource(resource("x:made", async || "made").cache(seconds(0)))
        .metrics(requests.clone());
    let client = connect(Client::builder(), &server, wire, era).await;
    let times = |kept: usize, each: usize| if era == Era::Modern { kept } else { each };
    for _ in 0..3 {
        assert_eq!(client.list_tools().await.unwrap().tools[0].name, "a");
        assert_eq!(client.tools().all().await.unwrap().len(), 1);
        client.read_resource("x:kept").await.unwrap();
    }
    assert_eq!(requests.of("tools/list"), times(1, 6));
    assert_eq!(requests.of("resources/read"), times(1, 3));
    for _ in 0..3 {
        client.read_resource("x:made").await.unwrap();
    }
    assert_eq!(requests.of("resources/read"), times(4, 6), "each has a time of its own");
    for (mode, asks) in
        [(CacheMode::Refresh, 1), (CacheMode::Use, 0), (CacheMode::Bypass, 1), (CacheMode::Use, 0)]
    {
        let before = requests.of("tools/list");
        client.list_tools().cache(mode).await.unwrap();
        assert_eq!(requests.of("tools/list") - before, times(asks, 1), "{mode:?}");
    }
    let before = requests.of("tools/list");
    client.tools().cache(CacheMode::Refresh).all().await.unwrap();
    assert_eq!(requests.of("tools/list") - before, 1);
    // The trace that a call is made in has no part in what is answered, nor has what it carries along.
    let mut meta = Meta::new();
    meta.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
    meta.set_tracestate("own=1");
    meta.set_baggage("user=ada");
    let trace = TraceContext::from_meta(&meta);
    assert_eq!(trace.baggage(), Some("user=ada"));
    let builder = Client::builder().trace_context(move || Some(trace.clone()));
    let traced = connect(builder, &server, wire, era).await;
    let before = requests.of("tools/list");
    for _ in 0..2 {
        traced.list_tools().await.unwrap();
    }
    assert_eq!(requests.of("tools/list") - before, times(1, 2));
    let off = Client::builder().cache(ResponseCache::off());
    let other = connect(off, &server, wire, era).await;
    let before = requests.of("tools/list");
    for _ in 0..2 {
        other.list_tools().await.unwrap();
    }
    assert_eq!(requests.of("tools/list") - before, 2);
    if era == Era::Modern {
        let before = requests.of("server/discover");
        client.discover().await.unwrap();
        client.discover().await.unwrap();
        assert_eq!(requests.of("server/discover") - before, 2, "it tells whether one is there");
        client.discover().cache(CacheMode::Use).await.unwrap();
        assert_eq!(requests.of("server/discover") - before, 2);
    }
}

async fn an_event_makes_answers_stale(wire: Wire, era: Era) {
    let (requests, reads) = (Requests::default(), Arc::new(AtomicUsize::new(0)));
    let count = reads.clone();
    let read = move || {
        let read = count.fetch_add(1, Ordering::SeqCst).to_string();
        async { read }
    };
    let other = async || "other";
    let server = Server::new("s", "1")
        .tool(tool("a", async || ()))
        .cache_for(ItemKind::Tool, seconds(60))
        .cache_for(ItemKind::Prompt, seconds(60))
        .resource(resource("x:one", read).cache(seconds(60)))
        .resource(resource("x:other", other).cache(seconds(60)))
        .metrics(requests.clone());
    let (registry, changes) = (server.registry().unwrap(), server.changes());
    let minute = ResponseCache::new().default_ttl(Duration::from_secs(60));
    let builder = Client::builder().cache(minute);
    let (client, mut heard) =
        Heard::connect_as(builder, &server, (wire, era), ["x:one", "x:other"]).await;
    if era == Era::Legacy {
        client.request("resources/subscribe", json!({"uri": "x:one"})).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(client.list_tools().await.unwrap().tools.len(), 1);
        client.list_prompts().await.unwrap();
        client.read_resource("x:one").await.unwrap();
        client.read_resource("x:other").await.unwrap();
    }
    assert_eq!((requests.of("tools/list"), requests.of("resources/read")), (1, 2));
    registry.add_tool(tool("b", async || ())).unwrap();
    assert_eq!(heard.next().await, "tools");
    assert_eq!(client.list_tools().await.unwrap().tools.len(), 2);
    client.list_prompts().await.unwrap();
    assert_eq!((requests.of("tools/list"), requests.of("prompts/list")), (2, 1));
    changes.resource("x:one");
    assert_eq!(heard.next().await, "x:one");
    client.read_resource("x:one").await.unwrap();
    client.read_resource("x:other").await.unwrap();
    assert_eq!((reads.load(Ordering::SeqCst), requests.of("resources/read")), (2, 3));
}

/// A resource whose reading waits for a permit, and who began to read it or gave up.
fn gated() -> (Server, Arc<Semaphore>, Arc<[AtomicUsize; 2]>) {
    struct GivenUp(Arc<[AtomicUsize; 2]>);
    impl Drop for GivenUp {
        fn drop(&mut self) {
            self.0[1].fetch_add(1, Ordering::SeqCst);
        }
    }
    let (gate, counts) = (Arc::new(Semaphore::new(0)), Arc::<[AtomicUsize; 2]>::default());
    let (opened, counted) = (gate.clone(), counts.clone());
    let read = move || {
        let (opened, counted) = (opened.clone(), counted.clone());
        async move {
            counted[0].fetch_add(1, Ordering::SeqCst);
            let given_up = GivenUp(counted.clone());
            opened.acquire().await.unwrap().forget();
            std::mem::forget(given_up);
            "read"
        }
    };
    let server = Server::new("s", "1").resource(resource("x:gated", read).cache(seconds(60)));
    (server, gate, counts)
}

async fn what_several_ask_for_at_once_is_asked_for_once(wire: Wire, era: Era) {
    let (server, gate, counts) = gated();
    let client = connect(Client::builder(), &server, wire, era).await;
    let leader = launch(client.read_resource("x:gated"));
    eventually(|| counts[0].load(Ordering::SeqCst) == 1).await;
    let others: Vec<_> = (0..20).map(|_| launch(client.read_resource("x:gated"))).collect();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    abandon(leader).await;
    gate.add_permits(1);
    for other in others {
        assert_eq!(other.await.unwrap().unwrap().contents[0].uri(), "x:gated");
    }
    client.read_resource("x:gated").await.unwrap();
    assert_eq!(counts[0].load(Ordering::SeqCst), 1);
    assert_eq!(counts[1].load(Ordering::SeqCst), 0, "who began it left, and it went on");
}

async fn a_fetch_is_cancelled_when_the_last_one_has_gone(wire: Wire, era: Era) {
    let (server, gate, counts) = gated();
    let client = connect(Client::builder(), &server, wire, era).await;
    let leader = launch(client.read_resource("x:gated"));
    eventually(|| counts[0].load(Ordering::SeqCst) == 1).await;
    let follower = launch(client.read_resource("x:gated"));
    tokio::task::yield_now().await;
    abandon(leader).await;
    abandon(follower).await;
    eventually(|| counts[1].load(Ordering::SeqCst) == 1).await;
    gate.add_permits(1);
    client.read_resource("x:gated").await.unwrap();
    assert_eq!(counts[0].load(Ordering::SeqCst), 2, "the next one is asked for anew");
}

/// A client that keeps what a legacy server says, too.
async fn keeping(era: Era) -> (Peer, Client) {
    let minute = ResponseCache::new().default_ttl(Duration::from_secs(60));
    client_with(era, Client::builder().cache(minute), 1 << 20).await
}

fn tools(name: &str) -> Value {
    let tool = json!({"name": name, "inputSchema": {"type": "object"}});
    json!({"resultType": "complete", "tools": [tool], "ttlMs": 60_000, "cacheScope": "private"})
}

async fn name(client: &Client) -> String {
    client.list_tools().await.unwrap().tools.remove(0).name
}

/// Reads a request for the list of tools.
async fn listing(peer: &mut Peer) -> Value {
    let request = peer.read().await;
    assert_eq!(request["method"], "tools/list", "{request}");
    request
}

/// Lists the tools, which the server must be asked for.
async fn asked(peer: &mut Peer, client: &Client, answer: &str) {
    let call = launch(client.list_tools());
    let request = listing(peer).await;
    peer.answer(&request, tools(answer)).await;
    assert_eq!(call.await.unwrap().unwrap().tools[0].name, answer);
}

fn changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

async fn time_passes(era: Era) {
    let (mut peer, client) = keeping(era).await;
    asked(&mut peer, &client, "first").await;
    tokio::time::advance(Duration::from_millis(59_000)).await;
    assert_eq!(name(&client).await, "first");
    // The cache also reads the wall clock, which does not stand still in this test.
    tokio::time::advance(Duration::from_secs(60)).await;
    asked(&mut peer, &client, "second").await;
    assert_eq!(name(&client).await, "second");
}

async fn what_was_asked_before_an_event_is_not_kept_after_it(era: Era) {
    let (mut peer, client) = keeping(era).await;
    let call = launch(client.list_tools());
    let request = listing(&mut peer).await;
    peer.say(changed()).await;
    peer.answer(&request, tools("old")).await;
    assert_eq!(call.await.unwrap().unwrap().tools[0].name, "old");
    asked(&mut peer, &client, "new").await;
    assert_eq!(name(&client).await, "new");
}

async fn nobody_waits_for_what_was_asked_before_an_event(era: Era) {
    let (mut peer, client) = keeping(era).await;
    let old = launch(client.list_tools());
    let first = listing(&mut peer).await;
    peer.say(changed()).await;
    // What was said is heard by the time that this is answered.
    let echo = launch(client.call_tool("echo", ()));
    let request = peer.read().await;
    peer.answer(&request, crate::raw::said("heard")).await;
    echo.await.unwrap().unwrap();
    let new = launch(client.list_tools());
    let second = listing(&mut peer).await;
    peer.answer(&second, tools("new")).await;
    assert_eq!(new.await.unwrap().unwrap().tools[0].name, "new");
    peer.answer(&first, tools("old")).await;
    assert_eq!(old.await.unwrap().unwrap().tools[0].name, "old");
    assert_eq!(name(&client).await, "new", "what comes late replaces nothing");
}

async fn a_call_that_says_more_is_made_for_itself(era: Era) {
    let (mut peer, client) = keeping(era).await;
    asked(&mut peer, &client, "kept").await;
    for call in [
        client.list_tools().meta("a.test/b", json!(1)),
        client.list_tools().header("x-tenant", "other"),
    ] {
        let call = launch(call);
        let request = listing(&mut peer).await;
        peer.answer(&request, tools("its own")).await;
        assert_eq!(call.await.unwrap().unwrap().tools[0].name, "its own");
        assert_eq!(name(&client).await, "kept");
    }
    let call = launch(client.list_tools().request_id("mine"));
    let request = listing(&mut peer).await;
    assert_eq!(request["id"], "mine");
    peer.answer(&request, tools("newer")).await;
    call.await.unwrap().unwrap();
    assert_eq!(name(&client).await, "newer");
}

async fn errors_are_shared_and_not_kept(era: Era) {
    let (mut peer, client) = keeping(era).await;
    let calls = [launch(client.list_tools()), launch(client.list_tools())];
    let request = listing(&mut peer).await;
    peer.refuse(&request, json!({"code": -32603, "message": "not today"})).await;
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.as_rpc().unwrap().code), (ErrorKind::Remote, -32603));
    }
    asked(&mut peer, &client, "today").await;
}

async fn a_cursor_that_is_refused_takes_all_pages_with_it(era: Era) {
    let (mut peer, client) = keeping(era).await;
    let call = launch(client.list_tools());
    let request = listing(&mut peer).await;
    let mut first = tools("first");
    first["nextCursor"] = json!("2");
    peer.answer(&request, first).await;
    call.await.unwrap().unwrap();
    let all = tokio::spawn(client.tools().all());
    let request = listing(&mut peer).await;
    assert_eq!(request["params"]["cursor"], "2", "the first page is at hand");
    peer.refuse(&request, json!({"code": -32602, "message": "no such cursor"})).await;
    assert!(all.await.unwrap().is_err());
    asked(&mut peer, &client, "again").await;
}

async fn a_client_that_was_closed_has_no_answers(era: Era) {
    let (mut peer, client) = keeping(era).await;
    asked(&mut peer, &client, "kept").await;
    client.clone().close().await;
    assert!(client.list_tools().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn each_who_waits_has_clocks_of_its_own() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let hasty = launch(client.list_tools().timeout(Duration::from_secs(1)));
        let request = listing(&mut peer).await;
        let patient = launch(client.list_tools());
        assert!(hasty.await.unwrap().unwrap_err().is_timeout());
        peer.quiet().await;
        peer.answer(&request, tools("late")).await;
        assert_eq!(patient.await.unwrap().unwrap().tools[0].name, "late");
        let refresh = || client.list_tools().cache(CacheMode::Bypass);
        let call = launch(refresh().timeout(Duration::from_secs(1)));
        let request = listing(&mut peer).await;
        assert!(call.await.unwrap().unwrap_err().is_timeout());
        assert_eq!(peer.read().await["params"]["requestId"], request["id"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_last_one_whose_time_is_up_cancels_and_signs_of_life_count_for_all() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let idle = || client.list_tools().idle_timeout(Duration::from_secs(10));
        let calls = [launch(idle()), launch(idle())];
        let request = listing(&mut peer).await;
        let token = &request["params"]["_meta"]["progressToken"];
        assert!(!token.is_null(), "{request}");
        for progress in 1..5 {
            tokio::time::advance(Duration::from_secs(6)).await;
            let params = json!({"progressToken": token, "progress": progress});
            let method = "notifications/progress";
            peer.say(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
        }
        for call in calls {
            assert!(call.await.unwrap().unwrap_err().is_timeout());
        }
        let cancelled = peer.read().await;
        assert_eq!(cancelled["method"], "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_stale_when_it_comes_is_for_who_asked_for_it() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        for ttl in [json!(0), json!(-5), Value::Null] {
            let calls = [launch(client.list_prompts()), launch(client.list_prompts())];
            let mut asked = 0;
            for _ in 0..2 {
                let request = peer.read().await;
                asked += 1;
                let mut prompts = json!({"resultType": "complete", "prompts": []});
                if !ttl.is_null() {
                    prompts["ttlMs"] = ttl.clone();
                }
                peer.answer(&request, prompts).await;
            }
            for call in calls {
                call.await.unwrap().unwrap_or_else(|error| panic!("{ttl}: {error}"));
            }
            assert_eq!(asked, 2, "{ttl}");
        }
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_retry_is_not_kept() {
    virtually(async {
        let builder = Client::builder().on_elicitation(async |_| {
            let mut answer = ElicitResult::new(ElicitAction::Accept);
            answer.content = Some(json!({"name": "me"}).into());
            Ok(answer)
        });
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        for _ in 0..2 {
            let call = launch(client.read_resource("x:asks"));
            let request = peer.read().await;
            assert!(request["params"].get("inputResponses").is_none(), "{request}");
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
            let question = json!({"method": "elicitation/create", "params": params});
            let asks = json!({
                "resultType": "input_required",
                "inputRequests": {"who": question},
                "requestState": "s",
            });
            peer.answer(&request, asks).await;
            let request = peer.read().await;
            assert!(request["params"].get("inputResponses").is_some(), "{request}");
            let contents = json!([{"uri": "x:asks", "text": "for me"}]);
            let read = json!({"resultType": "complete", "contents": contents, "ttlMs": 60_000});
            peer.answer(&request, read).await;
            call.await.unwrap().unwrap();
        }
        peer.quiet().await;
    })
    .await;
}
