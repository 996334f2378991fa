//! Many servers as one: those that start, those that hang, those that fail, in any order.

use std::{
    future::{Future, IntoFuture, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::sync::{Notify, Semaphore, mpsc};
use turnbuckle::{Client, Ctx, ErrorKind, Result, Server, prompt, tool, transport::child_process};
use turnbuckle_host::{
    ClientGroup, GroupOptions, GroupTools, Health, McpConfig, ProcessConfig, Status,
};

/// Never waited for: a test that needs it has failed.
const LONG: Duration = Duration::from_secs(60);

/// A server whose tools say its name and theirs.
fn server(name: &'static str, tools: &[&'static str]) -> Server {
    tools.iter().fold(Server::new(name, "1.0"), |server, own| {
        let own = *own;
        server.tool(tool(own, move || async move { format!("{own} of {name}") }))
    })
}

async fn connected(name: &'static str, tools: &[&'static str]) -> Client {
    Client::in_process(&server(name, tools)).await.unwrap()
}

/// A group of servers that are connected.
async fn group(servers: &[(&'static str, &[&'static str])]) -> ClientGroup {
    let group = ClientGroup::new();
    for (name, tools) in servers {
        group.add(name, connected(name, tools).await).unwrap();
    }
    group
}

fn status(group: &ClientGroup, name: &str) -> Status {
    group.servers().into_iter().find(|health| health.server == name).unwrap().status
}

fn names(tools: &GroupTools) -> Vec<&str> {
    tools.tools.iter().map(|tool| tool.name.as_str()).collect()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.expect("it comes to an end")
}

/// Tells when it is dropped.
struct Dropped(mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

/// A start that never ends, and says when it begins and when it is given up.
fn hangs(group: &ClientGroup, name: &str) -> (Arc<Notify>, mpsc::Receiver<()>) {
    let (dropped, gone) = mpsc::channel(1);
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let open = move || {
        told.notify_one();
        let dropped = Dropped(dropped.clone());
        async move {
            let _dropped = dropped;
            pending::<Result<Client>>().await
        }
    };
    group.start_with(name, open).unwrap();
    (begun, gone)
}

#[tokio::test]
async fn servers_stop_in_any_order_while_others_start() {
    let orders: [[&'static str; 3]; 6] = [
        ["a", "b", "c"],
        ["a", "c", "b"],
        ["b", "a", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["c", "b", "a"],
    ];
    for started in orders {
        for stopped in orders {
            let group = ClientGroup::new();
            let gate = Arc::new(Semaphore::new(0));
            for name in started {
                let gate = gate.clone();
                let open = move || {
                    let gate = gate.clone();
                    async move {
                        gate.acquire().await.unwrap().forget();
                        Ok(connected(name, &["x"]).await)
                    }
                };
                group.start_with(name, open).unwrap();
            }
            // One is stopped before it could start, one before or after, one after.
            let [first, second, third] = stopped;
            within(group.stop(first)).await;
            gate.add_permits(2);
            let third_client = within(group.ready(third)).await.unwrap();
            within(group.stop(second)).await;
            assert_eq!(
                third_client.call_tool("x", ()).await.unwrap().to_text(),
                format!("x of {third}")
            );
            assert_eq!(names(&within(group.tools()).await), ["x"]);
            within(group.stop(third)).await;
            assert!(group.servers().iter().all(|health| health.status == Status::Stopped));
            assert!(third_client.call_tool("x", ()).await.unwrap_err().is_closed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_costs_only_itself() {
    let group = ClientGroup::with(GroupOptions::default().patience(Duration::from_secs(3)));
    let (begun, mut gone) = hangs(&group, "hangs");
    group.add("a", connected("a", &["x"]).await).unwrap();
    within(begun.notified()).await;
    assert_eq!(group.client("a").unwrap().call_tool("x", ()).await.unwrap().to_text(), "x of a");

    let started = tokio::time::Instant::now();
    let tools = group.tools().await;
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    assert_eq!(names(&tools), ["x"]);
    let [(server, error)] = tools.failed.as_slice() else { panic!("{tools:?}") };
    assert_eq!((server.as_str(), error.is_timeout()), ("hangs", true));

    assert!(group.stop("hangs").await.is_none());
    within(gone.recv()).await.expect("its start was given up");
    let started = tokio::time::Instant::now();
    assert!(group.tools().await.failed.is_empty());
    assert_eq!(started.elapsed(), Duration::ZERO, "nobody waits for one that was stopped");
}

#[tokio::test(start_paused = true)]
async fn starts_are_bounded_and_one_that_hangs_gives_its_place_up() {
    let group = ClientGroup::with(GroupOptions::default().starts_at_once(1));
    let (begun, _gone) = hangs(&group, "hangs");
    within(begun.notified()).await;
    group.start_with("a", || async { Ok(connected("a", &[]).await) }).unwrap();
    let mut ready = std::pin::pin!(group.ready("a"));
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut ready).await.is_err());
    within(ready).await.unwrap();
    assert_eq!(status(&group, "hangs"), Status::Starting);
}

#[cfg(unix)]
#[tokio::test]
async fn one_that_exits_at_once_is_listed_with_its_last_words_and_can_be_started_again() {
    let group = group(&[("a", &["x"])]).await;
    let config = ProcessConfig::new("sh").args(["-c", "echo no database >&2; exit 3"]);
    group.start("broken", Client::builder, config).unwrap();
    let error = within(group.ready("broken")).await.unwrap_err();
    assert!(error.to_string().contains("the server `broken` has failed"), "{error}");
    assert!(error.to_string().contains("no database"), "{error}");
    let Status::Failed(why) = status(&group, "broken") else { panic!("{group:?}") };
    assert!(why.contains("no database"), "{why}");

    let tools = within(group.tools()).await;
    assert_eq!((names(&tools), tools.failed.len()), (vec!["x"], 1));
    group.start_again("broken").unwrap();
    assert_eq!(status(&group, "broken"), Status::Starting);
    let error = group.start_again("broken").unwrap_err();
    assert!(error.to_string().contains("stop it first"), "{error}");
    assert!(within(group.ready("broken")).await.is_err());
}

#[cfg(unix)]
#[tokio::test]
async fn one_that_dies_later_has_failed_and_can_be_started_again() {
    let group = ClientGroup::new();
    let mut health = group.health();
    // With this revision pinned it is ready without a word; it dies of the first that it hears.
    let pinned = || Client::builder().revision(turnbuckle::Revision::V2026_07_28);
    let frail = ProcessConfig::new("sh").args(["-c", "read line; echo ouch >&2; exit 5"]);
    group.start("frail", pinned, frail).unwrap();
    let client = within(group.ready("frail")).await.unwrap();
    // The first time it is started anew, which is no failure; the second time is the last.
    for _ in 0..2 {
        assert!(within(client.call_tool("x", ()).into_future()).await.unwrap_err().is_closed());
    }
    loop {
        match within(health.next()).await.unwrap().status {
            Status::Starting | Status::Ready | Status::Reconnecting => {}
            Status::Failed(why) => {
                break assert!(
                    why.contains("status 5") && why.ends_with("its stderr says: ouch"),
                    "{why}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(group.client("frail").is_none());
    group.start_again("frail").unwrap();
    within(group.ready("frail")).await.unwrap();
    // What is still told of the first one does not count.
    drop(client);
    tokio::task::yield_now().await;
    assert_eq!(status(&group, "frail"), Status::Ready);
    group.stop("frail").await;
    assert_eq!(status(&group, "frail"), Status::Stopped);
}

/// The next that is told of how a server is.
async fn told(health: &mut turnbuckle_host::HealthStream) -> Status {
    within(health.next()).await.expect("the group is there").status
}

#[tokio::test]
async fn a_connection_that_is_made_again_is_told_as_such() {
    let group = ClientGroup::new();
    let (ask, mut asked) = mpsc::channel::<tokio::sync::oneshot::Sender<_>>(1);
    let make = move || {
        let ask = ask.clone();
        async move {
            let (give, given) = tokio::sync::oneshot::channel();
            ask.send(give).await.map_err(std::io::Error::other)?;
            given.await.map_err(std::io::Error::other)
        }
    };
    group.start_with("a", move || Client::builder().dial(make.clone())).unwrap();
    let mut health = group.health();
    assert_eq!(told(&mut health).await, Status::Starting);
    let mut serve = async || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        within(asked.recv()).await.unwrap().send(ours).unwrap();
        tokio::spawn(server("a", &["x"]).serve(theirs).into_future()).abort_handle()
    };
    let serving = serve().await;
    assert_eq!(told(&mut health).await, Status::Ready);
    serving.abort();
    assert_eq!(told(&mut health).await, Status::Reconnecting);
    // Until there is another stream nothing changes.
    assert_eq!(status(&group, "a"), Status::Reconnecting);
    serve().await;
    assert_eq!(told(&mut health).await, Status::Ready);
    assert_eq!(status(&group, "a"), Status::Ready);
}

#[tokio::test]
async fn dropping_the_group_gives_starts_up_and_closes_clients() {
    let group = ClientGroup::new();
    let (begun, mut gone) = hangs(&group, "hangs");
    within(begun.notified()).await;
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(server("a", &["x"]).serve(theirs).into_future());
    group.add("a", Client::builder().over(ours).await.unwrap()).unwrap();
    let mut health = group.health();
    let other = group.clone();
    drop(group);
    assert!(other.client("a").is_some(), "another handle keeps it");
    drop(other);
    within(gone.recv()).await.expect("its start was given up");
    within(serving).await.unwrap().unwrap();
    assert_eq!(within(health.next()).await, None);
}

#[tokio::test]
async fn a_start_that_was_overtaken_has_no_say() {
    let group = ClientGroup::new();
    let tries = Arc::new(AtomicUsize::new(0));
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let open = move || {
        let nth = tries.fetch_add(1, Ordering::SeqCst);
        told.notify_one();
        async move { if nth == 0 { pending().await } else { Ok(connected("a", &["x"]).await) } }
    };
    group.start_with("a", open).unwrap();
    within(begun.notified()).await;
    // Not polled to its end: the group has let go of it all the same.
    let mut stopping = Box::pin(group.stop("a"));
    let _ = tokio::time::timeout(Duration::ZERO, stopping.as_mut()).await;
    drop(stopping);
    assert_eq!(status(&group, "a"), Status::Stopped);
    assert_eq!(group.ready("a").await.unwrap_err().kind(), ErrorKind::Closed);
    // The end of the first start comes while the second is under way.
    group.start_again("a").unwrap();
    assert_eq!(status(&group, "a"), Status::Starting);
    within(group.ready("a")).await.unwrap();
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&group, "a"), Status::Ready);
}

#[tokio::test]
async fn a_start_that_panics_is_one_that_failed() {
    let group = ClientGroup::new();
    group.start_with("at once", || -> std::future::Ready<Result<Client>> { panic!("no") }).unwrap();
    group.start_with("later", || async { panic!("no") }).unwrap();
    for name in ["at once", "later"] {
        let error = within(group.ready(name)).await.unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }
    assert_eq!(within(group.settled()).await.len(), 2);
}

#[tokio::test]
async fn health_tells_all_first_and_then_the_latest_of_each() {
    let group = group(&[("a", &[]), ("b", &[])]).await;
    let mut health = group.health();
    let of = |server: &str, status| (server.to_owned(), status);
    async fn next(health: &mut turnbuckle_host::HealthStream) -> (String, Status) {
        let Health { server, status, .. } = within(health.next()).await.unwrap();
        (server, status)
    }
    assert_eq!(next(&mut health).await, of("a", Status::Ready));
    assert_eq!(next(&mut health).await, of("b", Status::Ready));
    let quiet = tokio::time::timeout(Duration::ZERO, health.next()).await;
    assert!(quiet.is_err(), "nothing has changed");

    // A hundred changes that nobody reads are one each.
    for _ in 0..50 {
        for name in ["b", "a"] {
            group.stop(name).await;
            group.add(name, connected(name, &[]).await).unwrap();
        }
    }
    group.stop("a").await;
    assert_eq!(next(&mut health).await, of("b", Status::Ready));
    assert_eq!(next(&mut health).await, of("a", Status::Stopped));
    assert!(tokio::time::timeout(Duration::ZERO, health.next()).await.is_err());

    let waiting = tokio::spawn(async move { next(&mut health).await });
    tokio::task::yield_now().await;
    group.stop("b").await;
    assert_eq!(within(waiting).await.unwrap(), of("b", Status::Stopped));
}

#[tokio::test]
async fn whoever_names_nothing_like_a_tool_is_told_which_there_are() {
    let told = async |tools: &[&'static str]| {
        let group = group(&[("a", tools)]).await;
        group.call_tool("nope", ()).await.unwrap_err().to_string()
    };
    let none = "no server of this group has a tool `nope`";
    assert_eq!(told(&["wipe"]).await, format!("{none}; its tools: `wipe`"));
    let five = format!("{none}; its tools: `t1`, `t2`, `t3`, `t4`, `t5`");
    assert_eq!(told(&["t1", "t2", "t3", "t4", "t5"]).await, five);
    let all = told(&["t1", "t2", "t3", "t4", "t5", "t6", "t7"]).await;
    assert_eq!(all, format!("{five} and 2 more"));
}

#[tokio::test]
async fn tools_are_called_by_the_names_they_are_listed_under() {
    let long: &'static str = "l".repeat(80).leak();
    let group = group(&[("a", &["search", "read"]), ("b", &["search", "list.all", long])]).await;
    // Nothing was listed yet.
    assert_eq!(group.call_tool("read", ()).await.unwrap().to_text(), "read of a");
    let tools = group.tools().await;
    assert!(tools.failed.is_empty());
    let listed = names(&tools);
    assert_eq!(listed[..3], ["a_search", "read", "b_search"]);
    assert!(listed[3].starts_with("list_all_") && listed[4].len() == 64, "{listed:?}");
    for tool in &tools.tools {
        let said = group.call_tool(&tool.name, ()).await.unwrap().to_text();
        assert_eq!(said, format!("{} of {}", tool.tool.name, tool.server));
    }
    let routed = group.tool("b_search").await.unwrap();
    assert_eq!((routed.server.as_str(), routed.name.as_str()), ("b", "search"));

    let error = group.call_tool("search", ()).await.unwrap_err();
    assert!(error.to_string().contains("`a_search`, `b_search`"), "{error}");
    let error = group.call_tool("raed", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let told = "no server of this group has a tool `raed`; did you mean `read`?";
    assert_eq!(error.to_string(), told);
    let error = group.call_tool("searhc", ()).await.unwrap_err();
    assert!(error.to_string().ends_with("; did you mean `a_search` or `b_search`?"), "{error}");
    let error = group.call_tool("read", [1]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Codec);
}

#[tokio::test]
async fn a_server_that_comes_later_is_found() {
    let group = group(&[("a", &["x"])]).await;
    assert_eq!(names(&group.tools().await), ["x"]);
    group.add("b", connected("b", &["y"]).await).unwrap();
    assert_eq!(group.call_tool("y", ()).await.unwrap().to_text(), "y of b");
    group.stop("b").await;
    let error = group.call_tool("y", ()).await.unwrap_err();
    assert!(error.is_closed() && error.to_string().contains("`b` is stopped"), "{error}");
}

#[tokio::test]
async fn names_do_not_change_because_a_server_fails_today() {
    let group = group(&[("a", &["x"]), ("b", &["x"])]).await;
    assert_eq!(names(&group.tools().await), ["a_x", "b_x"]);
    // Its connection is gone, and the group has not been told.
    group.client("b").unwrap().close().await;
    let tools = group.tools().await;
    assert_eq!((names(&tools), tools.failed[0].0.as_str()), (vec!["a_x"], "b"));
    assert!(group.call_tool("b_x", ()).await.unwrap_err().is_closed());
    // When it is stopped it counts no more.
    group.stop("b").await;
    assert_eq!(names(&group.tools().await), ["x"]);
    assert_eq!(group.call_tool("a_x", ()).await.unwrap().to_text(), "x of a", "as it was before");
}

#[tokio::test]
async fn many_first_calls_list_once() {
    let listed = Arc::new(AtomicUsize::new(0));
    let group = ClientGroup::new();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let counted = listed.clone();
    let server = server("a", &["x"]).visible(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        true
    });
    let _serving = tokio::spawn(server.serve(theirs).into_future());
    group.add("a", Client::builder().over(ours).await.unwrap()).unwrap();
    let calls: Vec<_> =
        (0..10).map(|_| tokio::spawn(group.call_tool("x", ()).into_future())).collect();
    for call in calls {
        assert_eq!(within(call).await.unwrap().unwrap().to_text(), "x of a");
    }
    // Each call looks once whether the tool may be seen, and so does the one listing.
    assert_eq!(listed.load(Ordering::SeqCst), 11);
}

#[tokio::test]
async fn dropping_a_call_cancels_it_at_its_server() {
    let (dropped, mut gone) = mpsc::channel(1);
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let slow = tool("slow", move || {
        let (dropped, told) = (Dropped(dropped.clone()), told.clone());
        async move {
            let _dropped = dropped;
            told.notify_one();
            pending::<String>().await
        }
    });
    let group = ClientGroup::new();
    let client = Client::in_process(&Server::new("a", "1").tool(slow)).await.unwrap();
    group.add("a", client).unwrap();
    let call = tokio::spawn(group.call_tool("slow", ()).into_future());
    within(begun.notified()).await;
    call.abort();
    within(gone.recv()).await.expect("the handler was dropped");
    let timed = group.call_tool("slow", ()).with(|call| call.timeout(Duration::from_millis(5)));
    assert!(within(timed.into_future()).await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn a_call_of_a_group_has_a_timeout_and_hears_of_progress() {
    let steps = tool("steps", async |ctx: Ctx| {
        ctx.progress(1).await;
        ctx.progress(2).await;
        pending::<String>().await
    });
    let group = ClientGroup::new();
    let client = Client::in_process(&Server::new("a", "1").tool(steps)).await.unwrap();
    group.add("a", client).unwrap();
    let (tell, mut told) = mpsc::channel(2);
    tokio::time::pause();
    let call = group
        .call_tool("steps", ())
        .timeout(Duration::from_secs(7))
        .on_progress(move |progress| tell.try_send(progress.progress.to_string()).unwrap());
    let began = tokio::time::Instant::now();
    assert!(call.await.unwrap_err().is_timeout());
    assert_eq!(began.elapsed().as_secs(), 7);
    assert_eq!(told.recv().await.as_deref(), Some("1"));
    assert_eq!(told.recv().await.as_deref(), Some("2"));
}

#[tokio::test]
async fn prompts_have_names_and_resources_have_servers() {
    let group = ClientGroup::new();
    for name in ["a", "b"] {
        let server = Server::new(name, "1")
            .prompt(prompt("hello", move || async move { format!("hello of {name}") }))
            .resource(turnbuckle::resource("note://1", move || async move { name }));
        group.add(name, Client::in_process(&server).await.unwrap()).unwrap();
    }
    // One that has neither, and says so.
    group.add("c", connected("c", &["x"]).await).unwrap();
    let prompts = group.prompts().await;
    assert!(prompts.failed.is_empty());
    let listed: Vec<&str> = prompts.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(listed, ["a_hello", "b_hello"]);
    let said = group.get_prompt("b_hello", ()).await.unwrap();
    assert!(serde_json::to_string(&said.messages).unwrap().contains("hello of b"));
    assert!(group.prompt("hi").await.is_err());

    let resources = group.resources().await;
    assert!(resources.failed.is_empty(), "{:?}", resources.failed);
    let servers: Vec<&str> =
        resources.resources.iter().map(|(server, _)| server.as_str()).collect();
    assert_eq!(servers, ["a", "b"]);
    assert_eq!(group.read_resource("b", "note://1").await.unwrap().to_text(), "b");
    let error = group.read_resource("d", "note://1").await.unwrap_err();
    assert!(error.to_string().contains("no server `d`"), "{error}");
}

#[tokio::test]
async fn a_configuration_starts_all_it_can() {
    let text = json!({"mcpServers": {
        "missing": {"command": "/no/such/program"},
        "broken": {"command": "x", "url": "y"},
        "off": {"command": "/no/such/program", "disabled": true},
    }})
    .to_string();
    let config = McpConfig::parse(&text).unwrap();
    let group = ClientGroup::start_all(&config, |name| Client::builder().info(name, "1")).unwrap();
    let all = within(group.settled()).await;
    let names: Vec<&str> = all.iter().map(|health| health.server.as_str()).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(status(&group, "off"), Status::Stopped);
    let Status::Failed(why) = status(&group, "broken") else { panic!("{group:?}") };
    assert!(why.contains("server `broken`: `command` and `url` are both there"), "{why}");
    assert!(matches!(status(&group, "missing"), Status::Failed(why) if why.contains("/no/such")));

    let error = group.start_again("broken").unwrap_err();
    assert!(error.to_string().contains("not known"), "{error}");
    group.start_again("off").unwrap();
    assert!(within(group.ready("off")).await.is_err());
    assert!(group.start_again("nobody").unwrap_err().to_string().contains("no server `nobody`"));
    // Read again, it starts what does not run.
    group.start_from(&config, |_| Client::builder()).unwrap();
    assert_eq!(within(group.settled()).await.len(), 3);
}

#[test]
fn nothing_starts_without_a_runtime_and_nothing_panics() {
    let config = McpConfig::parse(r#"{"servers": {"a": {"command": "a"}}}"#).unwrap();
    assert!(ClientGroup::start_all(&config, |_| Client::builder()).is_err());
    let group = ClientGroup::new();
    assert!(group.start("a", Client::builder, ProcessConfig::new("a")).is_err());
    assert!(group.servers().is_empty());
}

#[tokio::test]
async fn a_name_in_use_is_refused() {
    let group = group(&[("a", &["x"])]).await;
    let error = group.add("a", connected("a", &["y"]).await).unwrap_err();
    assert!(error.to_string().contains("a server `a` already"), "{error}");
    assert!(group.start_with("a", || async { unreachable!() }).is_err());
    assert_eq!(group.call_tool("x", ()).await.unwrap().to_text(), "x of a");
    assert!(group.stop("nobody").await.is_none());
}

#[cfg(unix)]
#[tokio::test]
async fn all_stop_at_once_those_that_start_too() {
    let group = group(&[("a", &[]), ("b", &[])]).await;
    let (begun, mut gone) = hangs(&group, "hangs");
    within(begun.notified()).await;
    let report = within(group.stop_all(LONG)).await;
    let mut stopped: Vec<&str> = report.stopped.iter().map(|(name, _)| name.as_str()).collect();
    stopped.sort_unstable();
    assert_eq!((stopped, report.late.len()), (vec!["a", "b", "hangs"], 0));
    within(gone.recv()).await.expect("its start was given up");
    assert!(within(group.stop_all(LONG)).await.stopped.is_empty(), "there is nothing left");
}

#[cfg(unix)]
#[tokio::test]
async fn one_that_takes_long_to_end_is_late() {
    let group = ClientGroup::new();
    // With this revision pinned it is ready without a word. It ends when it is told to by a signal,
    // which comes after seconds.
    let deaf = ProcessConfig::new("sh").args(["-c", "exec tail -f /dev/null > /dev/null"]);
    let pinned = || Client::builder().revision(turnbuckle::Revision::V2026_07_28);
    group.start("deaf", pinned, deaf).unwrap();
    within(group.ready("deaf")).await.unwrap();
    let report = within(group.stop_all(Duration::ZERO)).await;
    assert_eq!((report.late, report.stopped.len()), (vec!["deaf".to_owned()], 0));
    assert_eq!(status(&group, "deaf"), Status::Stopped);
    let settled = tokio::task::spawn_blocking(|| child_process::settle(LONG)).await.unwrap();
    assert_eq!(settled, child_process::Settled::AllGone, "it goes on ending");
}
