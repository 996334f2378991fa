//! Layers around groups and single offers, and what they hand on.

use std::{future::IntoFuture as _, time::Duration};

use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle::{
    Principal, Server,
    middleware::server::{Audit, Next, RATE_LIMITED, RateLimit, Request, Timeout},
    prompt, resource,
    server::{Extension, Group, Typed, blocking_tool},
    template, tool,
};

use crate::support::{Guard, LEGACY, Log, MODERN, WAYS, Wire, connect, eventually};

async fn done() -> &'static str {
    "done"
}

async fn suggest(Typed(typed): Typed) -> Vec<String> {
    vec![typed]
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    #[expect(dead_code, reason = "only its name matters")]
    language: String,
}

#[tokio::test]
async fn the_server_stands_around_the_group_and_that_around_the_tool() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let around = |name| Guard::telling(name, &log);
        let inner = Group::new()
            .tool(tool("deep", done).layer(around("tool 1")).layer(around("tool 2")))
            .layer(around("inner"));
        let server = Server::new("test", "1")
            .layer(around("server 1"))
            // The layers of a group are around what is added after them as well.
            .group(Group::new().layer(around("outer")).group(inner).tool(tool("flat", done)))
            .tool(tool("free", done))
            .layer(around("server 2"));
        let client = connect(&server, wire, revision).await;
        let passed = async |name: &str| {
            log.take();
            client.call_tool(name, json!({})).await.unwrap();
            let end = format!(": tools/call {name}");
            let of = |entry: String| entry.strip_suffix(&end).unwrap().to_owned();
            log.take().into_iter().map(of).collect::<Vec<_>>().join(", ")
        };
        let deep = "server 1, server 2, outer, inner, tool 1, tool 2";
        assert_eq!(passed("deep").await, deep, "{wire:?}");
        assert_eq!(passed("flat").await, "server 1, server 2, outer");
        assert_eq!(passed("free").await, "server 1, server 2");
    }
}

#[tokio::test]
async fn prompts_resources_templates_and_completions_have_layers_too() {
    let log = Log::default();
    let review = |turnbuckle::Args(_): turnbuckle::Args<Review>| async { "review" };
    let server = Server::new("test", "1")
        .prompt(
            prompt("review", review)
                .complete("language", suggest)
                .layer(Guard::telling("prompt", &log)),
        )
        .resource(resource("test://one", done).layer(Guard::telling("resource", &log)))
        .template(template("test://{id}/x", done).layer(Guard::telling("template", &log)));
    for revision in [MODERN, LEGACY] {
        let client = connect(&server, Wire::Memory, revision).await;
        let ask = async |method: &str, params| {
            client.request(method, params).await.unwrap();
            log.take()
        };
        let arguments = json!({"language": "rust"});
        let get = json!({"name": "review", "arguments": arguments});
        assert_eq!(ask("prompts/get", get).await, ["prompt: prompts/get review"]);
        let complete = json!({
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "language", "value": "ru"},
        });
        assert_eq!(
            ask("completion/complete", complete).await,
            ["prompt: completion/complete review"]
        );
        let read = json!({"uri": "test://one"});
        assert_eq!(ask("resources/read", read).await, ["resource: resources/read test://one"]);
        let read = json!({"uri": "test://7/x"});
        assert_eq!(ask("resources/read", read).await, ["template: resources/read test://7/x"]);
        if revision == LEGACY {
            for (uri, layer) in [("test://one", "resource"), ("test://7/x", "template")] {
                let passed = ask("resources/subscribe", json!({"uri": uri})).await;
                assert_eq!(passed, [format!("{layer}: resources/subscribe {uri}")]);
            }
        }
    }
}

#[tokio::test]
async fn what_a_layer_refuses_does_not_run() {
    let (log, handled) = (Log::default(), Log::default());
    let handler = handled.clone();
    let run = move || {
        handler.add("ran");
        "done"
    };
    let server =
        Server::new("test", "1").tool(blocking_tool("t", run).layer(Guard::refusing(7, &log)));
    for (wire, revision) in WAYS {
        let client = connect(&server, wire, revision).await;
        let error = client.call_tool("t", json!({})).await.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().code, 7, "{wire:?}");
    }
    assert_eq!(handled.len(), 0);
}

#[tokio::test]
async fn a_panic_costs_only_itself() {
    async fn panics() -> &'static str {
        panic!("on purpose")
    }
    let log = Log::default();
    let told = log.clone();
    let audit = Audit::new(move |entry| told.add(format!("{:?}: {}", entry.name, entry.outcome)));
    let server =
        Server::new("test", "1").layer(audit).tool(tool("panics", panics)).tool(tool("t", done));
    for (wire, revision) in WAYS {
        let client = connect(&server, wire, revision).await;
        log.take();
        let error = client.call_tool("panics", json!({})).await.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().message, "internal error", "{wire:?}");
        client.call_tool("t", json!({})).await.unwrap();
        assert_eq!(log.take(), ["Some(\"panics\"): panicked", "Some(\"t\"): ok"], "{wire:?}");
    }
}

#[tokio::test]
async fn cancelling_drops_through_layers() {
    struct Tell(Log);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.add("handler dropped");
        }
    }
    for (wire, revision) in WAYS {
        let log = Log::default();
        let (told, dropped) = (log.clone(), log.clone());
        let (begin, mut begun) = mpsc::channel(1);
        let holds = move || {
            let (tell, begin) = (Tell(dropped.clone()), begin.clone());
            async move {
                let _tell = tell;
                begin.send(()).await.unwrap();
                std::future::pending::<&'static str>().await
            }
        };
        let server = Server::new("test", "1")
            .layer(Audit::new(move |entry| told.add(format!("{} {}", entry.method, entry.outcome))))
            .tool(tool("holds", holds).layer(Timeout::new(Duration::from_secs(3_600))));
        let client = connect(&server, wire, revision).await;
        log.take();
        let call = tokio::spawn(client.call_tool("holds", json!({})).no_timeouts().into_future());
        begun.recv().await.unwrap();
        call.abort();
        eventually(|| log.len() == 2).await;
        let mut happened = log.take();
        happened.sort();
        assert_eq!(happened, ["handler dropped", "tools/call cancelled"], "{wire:?} {revision}");
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Tenant(&'static str);

#[tokio::test]
async fn a_value_that_a_layer_adds_reaches_the_handler() {
    async fn whose(Extension(Tenant(name)): Extension<Tenant>) -> &'static str {
        name
    }
    let add = tower_layer::layer_fn(|next: Next| {
        tower::ServiceExt::map_request(next, |mut request: Request| {
            assert_eq!(request.extension::<Tenant>(), None);
            request.insert(Tenant("blue"));
            request
        })
    });
    let server = Server::new("test", "1").layer(add).tool(tool("whose", whose));
    for (wire, revision) in WAYS {
        let client = connect(&server, wire, revision).await;
        let told = client.call_tool("whose", json!({})).await.unwrap();
        assert_eq!(told.to_text(), "blue", "{wire:?}");
    }
}

#[tokio::test]
async fn each_principal_has_a_rate_of_their_own() {
    let limit = RateLimit::new(1, Duration::from_secs(3_600)).per_principal();
    let server = Server::new("test", "1").tool(tool("t", done).layer(limit));
    let connect = async |name: &str| {
        let (ours, theirs) = tokio::io::duplex(4096);
        let serving = server.serve(theirs).extension(Principal::new(name));
        tokio::spawn(serving.into_future());
        turnbuckle::Client::builder().revision(MODERN).over(ours).await.unwrap()
    };
    let (alice, alice_again, bob) =
        (connect("alice").await, connect("alice").await, connect("bob").await);
    alice.call_tool("t", json!({})).await.unwrap();
    let error = alice_again.call_tool("t", json!({})).await.unwrap_err();
    assert_eq!(error.as_rpc().unwrap().code, RATE_LIMITED);
    bob.call_tool("t", json!({})).await.unwrap();
}
