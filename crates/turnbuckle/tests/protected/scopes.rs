//! What offers demand of a token: who lacks it does not see them, and is told what to ask for.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use serde_json::{Value, json};
use turnbuckle::{
    Client, Ctx, Server, State,
    auth::{Scopes, Secret, resource_server::ResourceServer},
    prompt, resource, template, tool,
};

use crate::support::{Answer, Ask, Plan, World, call, until};

type Runs = Arc<AtomicUsize>;

async fn run(State(runs): State<Runs>) -> &'static str {
    runs.fetch_add(1, SeqCst);
    "ran"
}

/// Wipe everything.
#[tool(scopes = ["files:write", "files:admin"])]
async fn wipe(State(runs): State<Runs>) -> &'static str {
    run(State(runs)).await
}

/// Write everything down.
#[prompt(scopes = ["files:write", "files:admin"])]
async fn write_down(State(runs): State<Runs>) -> &'static str {
    run(State(runs)).await
}

/// Everything.
#[resource("x://everything", scopes = ["files:write", "files:admin"])]
async fn everything(State(runs): State<Runs>) -> &'static str {
    run(State(runs)).await
}

/// One of everything.
#[resource("x://everything/{id}", scopes = ["files:write", "files:admin"])]
async fn one(State(runs): State<Runs>, id: String) -> String {
    format!("{id} {}", run(State(runs)).await)
}

fn server(runs: &Runs) -> Server {
    Server::new("test", "1.0")
        .state(runs.clone())
        .tool(tool("read", run))
        .tool(tool("write", run).scopes(["files:write"]))
        .tool(wipe)
        .prompt(write_down)
        .resource(everything)
        .template(one)
        .prompt(prompt("read", run))
        .prompt(prompt("write", run).scopes(["files:write"]))
        .resource(resource("x://read", run))
        .resource(resource("x://write", run).scopes(["files:write"]))
        .template(template("x://open/{id}", run))
        .template(
            template("x://closed/{id}", run).scopes(["files:write"]).complete_values("id", ["1"]),
        )
}

async fn world() -> (World, Runs) {
    let runs = Runs::default();
    let mut plan = Plan::of(server(&runs));
    plan.resource = |resource| resource.require(Scopes::from_iter(["mcp"]));
    (plan.start().await, runs)
}

/// What `files:write` is needed for.
fn guarded() -> Vec<(&'static str, Value)> {
    let reference = json!({"type": "ref/resource", "uri": "x://closed/{id}"});
    vec![
        ("tools/call", json!({"name": "write", "arguments": {}})),
        ("prompts/get", json!({"name": "write"})),
        ("resources/read", json!({"uri": "x://write"})),
        ("resources/read", json!({"uri": "x://closed/1"})),
        ("completion/complete", json!({"ref": reference, "argument": {"name": "id", "value": ""}})),
    ]
}

fn is_insufficient(answer: &Answer, scopes: &[&str]) {
    assert_eq!(answer.status, 403, "{answer:?}");
    let challenge = answer.challenge();
    assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
    assert_eq!(challenge.scope, Some(scopes.iter().copied().collect()));
    assert!(challenge.resource_metadata.unwrap().ends_with("/oauth-protected-resource/mcp"));
}

// req: hosting:auth:scope-403, typescript:hosting:entry:auth:insufficient-scope-403
#[tokio::test]
async fn whoever_lacks_a_scope_is_told_all_that_is_needed_before_anything_runs() {
    let (world, runs) = world().await;
    let (little, enough) = (world.token("ann", "mcp"), world.token("ann", "mcp files:write"));
    for (method, params) in guarded() {
        runs.store(0, SeqCst);
        for ask in world.both_eras(method, params.clone(), &little).await {
            is_insufficient(&world.ask(&ask).await, &["files:write", "mcp"]);
        }
        assert_eq!(runs.load(SeqCst), 0, "{method}");
        for ask in world.both_eras(method, params, &enough).await {
            let answer = world.ask(&ask).await;
            assert_eq!(answer.status, 200, "{method}");
            assert!(answer.json()["result"].is_object(), "{method} {answer:?}");
        }
    }
}

#[tokio::test]
async fn what_is_written_above_a_function_is_needed_for_it() {
    let (world, runs) = world().await;
    let enough = world.token("ann", "mcp files:write");
    let all = world.token("ann", "mcp files:write files:admin");
    for (method, params, list, name) in [
        ("tools/call", json!({"name": "wipe", "arguments": {}}), "tools/list", "wipe"),
        ("prompts/get", json!({"name": "write_down"}), "prompts/list", "write_down"),
        ("resources/read", json!({"uri": "x://everything"}), "resources/list", "x://everything"),
        (
            "resources/read",
            json!({"uri": "x://everything/1"}),
            "resources/templates/list",
            "x://everything/{id}",
        ),
    ] {
        runs.store(0, SeqCst);
        for ask in world.both_eras(method, params.clone(), &enough).await {
            is_insufficient(&world.ask(&ask).await, &["files:admin", "files:write", "mcp"]);
        }
        assert_eq!(runs.load(SeqCst), 0, "{name}");
        for ask in world.both_eras(method, params, &all).await {
            let answer = world.ask(&ask).await;
            assert!(answer.status == 200 && answer.body.contains("ran"), "{name} {answer:?}");
        }
        assert_eq!(runs.load(SeqCst), 2, "{name}");
        for (token, is_listed) in [(&enough, false), (&all, true)] {
            for names in listed(&world, list, token).await {
                assert_eq!(names.iter().any(|it| it == name), is_listed, "{names:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_broader_scope_is_good_for_the_narrower_ones_that_it_implies() {
    let mut plan = Plan::of(server(&Runs::default()));
    plan.resource = |resource| {
        let resource = resource.require(Scopes::from_iter(["mcp"]));
        resource.implies("all", ["files:write"]).implies("files:write", ["mcp"])
    };
    let world = plan.start().await;
    let (broad, narrow) = (world.token("ann", "all"), world.token("ann", "mcp"));
    for (method, params) in guarded() {
        for ask in world.both_eras(method, params.clone(), &broad).await {
            assert_eq!(world.ask(&ask).await.status, 200, "{method}");
        }
        for ask in world.both_eras(method, params, &narrow).await {
            is_insufficient(&world.ask(&ask).await, &["files:write", "mcp"]);
        }
    }
}

#[tokio::test]
async fn what_needs_no_scope_is_for_everyone_who_is_let_in() {
    let (world, _) = world().await;
    let token = world.token("ann", "mcp");
    for (method, params) in [
        ("tools/call", json!({"name": "read", "arguments": {}})),
        ("prompts/get", json!({"name": "read"})),
        ("resources/read", json!({"uri": "x://read"})),
        ("resources/read", json!({"uri": "x://open/1"})),
    ] {
        for ask in world.both_eras(method, params, &token).await {
            let answer = world.ask(&ask).await;
            assert!(answer.status == 200 && answer.body.contains("ran"), "{answer:?}");
        }
    }
}

/// The names in a list.
async fn listed(world: &World, method: &'static str, token: &Secret) -> [Vec<String>; 2] {
    let mut lists = Vec::new();
    for ask in world.both_eras(method, json!({}), token).await {
        let answer = world.ask(&ask).await.json();
        let result = answer["result"].as_object().unwrap();
        let items = result.values().find_map(Value::as_array).unwrap();
        let name = |item: &Value| {
            let keys = ["uriTemplate", "uri", "name"];
            keys.iter().find_map(|key| item[key].as_str()).unwrap().to_owned()
        };
        lists.push(items.iter().map(name).collect());
    }
    lists.try_into().unwrap()
}

#[tokio::test]
async fn what_someone_may_not_have_is_not_listed_for_them() {
    let (world, _) = world().await;
    let (little, enough) = (world.token("ann", "mcp"), world.token("ann", "mcp files:write"));
    for (method, open, closed) in [
        ("tools/list", "read", "write"),
        ("prompts/list", "read", "write"),
        ("resources/list", "x://read", "x://write"),
        ("resources/templates/list", "x://open/{id}", "x://closed/{id}"),
    ] {
        for list in listed(&world, method, &little).await {
            assert_eq!(list, [open], "{method}");
        }
        for list in listed(&world, method, &enough).await {
            assert_eq!(list, [open, closed], "{method}");
        }
    }
}

#[tokio::test]
async fn a_subscription_needs_what_its_resource_needs() {
    let (world, _) = world().await;
    let (little, enough) = (world.token("ann", "mcp"), world.token("ann", "mcp files:write"));
    let params = || json!({"uri": "x://write"});
    let [_, ask] = world.both_eras("resources/subscribe", params(), &little).await;
    is_insufficient(&world.ask(&ask).await, &["files:write", "mcp"]);
    let [_, ask] = world.both_eras("resources/subscribe", params(), &enough).await;
    assert_eq!(world.ask(&ask).await.status, 200);
    // A stream is told of what there is for its client.
    let asked = json!({"notifications": {"resourceSubscriptions": ["x://read", "x://write"]}});
    for (token, granted) in [(&little, false), (&enough, true)] {
        let ask = Ask::modern("subscriptions/listen", asked.clone()).bearer(token);
        let mut stream = world.send(&ask).await;
        let first = until(&mut stream, "}}\n\n").await;
        assert!(first.contains("x://read"), "{first}");
        assert_eq!(first.contains("x://write"), granted, "{first}");
    }
}

// req: hosting:auth:scope-403
#[tokio::test]
async fn of_a_batch_nothing_runs_if_one_of_it_needs_more() {
    let (world, runs) = world().await;
    let token = world.token("ann", "mcp");
    let session = world.session(&token).await;
    let call = |id, name| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": {}}})
    };
    let batch =
        |items: Value| Ask::message(&items).header("mcp-session-id", &session).bearer(&token);
    let answer =
        world.ask(&batch(json!([call(1, "read"), call(2, "write"), call(3, "wipe")]))).await;
    is_insufficient(&answer, &["files:admin", "files:write", "mcp"]);
    assert_eq!(runs.load(SeqCst), 0);
    assert_eq!(world.ask(&batch(json!([call(1, "read"), call(2, "read")]))).await.status, 200);
    assert_eq!(runs.load(SeqCst), 2);
}

/// Also in a session that was opened with another token.
#[tokio::test]
async fn over_http_with_server_sent_events_it_is_the_token_of_each_message_that_counts() {
    let (world, runs) = world().await;
    let (little, enough) = (world.token("ann", "mcp"), world.token("ann", "mcp files:write"));
    let mut sse = world.sse(&little).await;
    let write = sse.post("tools/call", json!({"name": "write", "arguments": {}}));
    is_insufficient(&world.ask(&write.clone().bearer(&little)).await, &["files:write", "mcp"]);
    assert_eq!(runs.load(SeqCst), 0);
    assert_eq!(world.ask(&write.clone().bearer(&enough)).await.status, 202);
    sse.hear("ran").await;
    is_insufficient(&world.ask(&write.bearer(&little)).await, &["files:write", "mcp"]);
    assert_eq!(runs.load(SeqCst), 1);
}

/// What someone may not know of can't be told from what isn't there, whatever it demands.
#[tokio::test]
async fn a_challenge_tells_nothing_of_what_a_rule_hides() {
    let runs = Runs::default();
    let is_root =
        |ctx: &Ctx| ctx.principal::<()>().is_some_and(|who| who.name().ends_with("|root"));
    let server = Server::new("test", "1.0")
        .state(runs.clone())
        .tool(tool("write", run).scopes(["files:write"]).visible_to(is_root))
        .prompt(prompt("write", run).scopes(["files:write"]).visible_to(is_root))
        .resource(resource("x://write", run).scopes(["files:write"]).visible_to(is_root))
        .template(
            template("x://closed/{id}", run)
                .scopes(["files:write"])
                .visible_to(is_root)
                .complete_values("id", ["1"]),
        )
        .tool(tool("panics", run).scopes(["files:write"]).visible_to(|_| panic!("a rule")));
    let world = Plan::of(server).start().await;
    let (ann, root) = (world.token("ann", "a"), world.token("root", "a"));
    for (method, params) in guarded() {
        let text = params.to_string();
        let absent = text.replace("write", "absent").replace("closed", "absent");
        let absent: Value = serde_json::from_str(&absent).unwrap();
        let hidden = world.both_eras(method, params.clone(), &ann).await;
        let unknown = world.both_eras(method, absent, &ann).await;
        for (hidden, unknown) in hidden.iter().zip(&unknown) {
            let (hidden, unknown) = (world.ask(hidden).await, world.ask(unknown).await);
            assert_eq!(hidden.status, unknown.status, "{method} {hidden:?} {unknown:?}");
            assert_eq!(hidden.header("www-authenticate"), None);
            let body = hidden.body.replace("write", "absent").replace("closed", "absent");
            assert_eq!(body, unknown.body, "{method}");
        }
        // Who may know of it is told what to ask for.
        for ask in world.both_eras(method, params, &root).await {
            is_insufficient(&world.ask(&ask).await, &["files:write"]);
        }
    }
    let (method, params) = call("panics");
    for ask in world.both_eras(method, params, &root).await {
        assert_eq!(world.ask(&ask).await.header("www-authenticate"), None);
    }
    // The same where messages are posted to a stream.
    let mut sse = world.sse(&ann).await;
    let post = sse.post("tools/call", json!({"name": "write", "arguments": {}})).bearer(&ann);
    assert_eq!(world.ask(&post).await.status, 202);
    sse.hear("there is no tool named").await;
    assert_eq!(runs.load(SeqCst), 0);
}

#[tokio::test]
async fn a_client_that_has_the_server_to_itself_has_everything() {
    let runs = Runs::default();
    let resource = ResourceServer::new("https://mcp.example.com/mcp").issuer("https://a.example");
    for server in [server(&runs), server(&runs).protect(resource)] {
        let client = Client::in_process(&server).await.unwrap();
        for (method, params) in guarded() {
            client.request(method, params).await.unwrap();
        }
        let tools = client.request("tools/list", json!({})).await.unwrap();
        assert!(tools.as_str().contains("\"wipe\""));
    }
}

#[tokio::test]
async fn scopes_without_anyone_who_looks_at_tokens_are_a_mistake() {
    let runs = Runs::default();
    let told = server(&runs).http_service().check().unwrap_err().to_string();
    assert!(told.contains("the tool `write` needs scopes"), "{told}");
    assert!(server(&runs).sse_service("/sse").check().is_err());
    let wrong = Server::new("t", "1").tool(tool("a", async || ()).scopes(["files write"]));
    let told = wrong.check().unwrap_err().to_string();
    assert!(told.contains("`files write` is no scope"), "{told}");
}
