//! What is given to one caller is of no use to another.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle::{
    Ctx, Server, ToolError, auth::Secret, elicit::elicit, server::Cache, template, tool,
    types::Resource,
};

use crate::support::{Ask, Issuers, Plan, World, call};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// Asks its caller something.
async fn question(ctx: Ctx) -> Result<String, ToolError> {
    let Name { name } = ctx.ask("name", elicit("Who are you?")).await?;
    Ok(format!("Hello, {name}!"))
}

/// Says something before it is done.
async fn tell(ctx: Ctx) -> &'static str {
    ctx.progress(1).message("for ann").await;
    "done"
}

fn server() -> Server {
    let tools = (0..3).map(|number| tool(format!("tool{number}"), async || "done"));
    Server::new("test", "1.0")
        .tools(tools)
        .tool(tool("question", question))
        .tool(tool("tell", tell))
        .page_size(2)
}

async fn world() -> World {
    Plan::of(server()).start().await
}

#[tokio::test]
async fn a_session_answers_only_to_whoever_opened_it() {
    let world = world().await;
    let (ann, bob) = (world.token("ann", "a"), world.token("bob", "a"));
    let session = world.session(&ann).await;
    let (method, params) = call("tool0");
    let asks = [
        Ask::legacy(method, params),
        Ask::new("GET", "/mcp").header("accept", "text/event-stream"),
        Ask::new("DELETE", "/mcp"),
    ];
    for ask in &asks {
        let ask = ask.clone().header("mcp-session-id", &session);
        assert_eq!(world.ask(&ask.clone().bearer(&bob)).await.status, 404, "{ask:?}");
        assert_eq!(world.ask(&ask).await.status, 401);
    }
    // Another token of the same person is as good.
    let later = world.token("ann", "b");
    let [call, _, delete] = asks.map(|ask| ask.header("mcp-session-id", &session).bearer(&later));
    assert_eq!(world.ask(&call).await.said(), "done");
    assert_eq!(world.ask(&delete).await.status, 204);
}

#[tokio::test]
async fn nobody_is_taken_for_another_by_the_subject_alone() {
    let world = world().await;
    let session = world.session(&world.token("ann", "a")).await;
    for subject in ["ANN", "ann ", "an", "x|ann"] {
        let (method, params) = call("tool0");
        let ask = Ask::legacy(method, params).header("mcp-session-id", &session);
        assert_eq!(world.ask(&ask.bearer(&world.token(subject, "a"))).await.status, 404);
    }
}

#[tokio::test]
async fn events_are_told_again_only_to_whom_they_were_told() {
    let world = world().await;
    let (ann, bob) = (world.token("ann", "a"), world.token("bob", "a"));
    let (session, id) = told(&world, &ann).await;
    let again = |session: &str| again(session, &id);
    assert_eq!(world.ask(&again(&session).bearer(&bob)).await.status, 404);
    let resumed = world.ask(&again(&session).bearer(&ann)).await;
    assert!(resumed.status == 200 && resumed.body.contains("for ann"), "{resumed:?}");
    // Nor in a session of one's own: nothing of another's is told there.
    let own = world.session_in("2025-11-25", &bob).await;
    let foreign = world.ask(&again(&own).bearer(&bob)).await;
    assert!(!foreign.body.contains("data: {"), "{foreign:?}");
}

/// A session in which something was told, and the event that it was told after.
async fn told(world: &World, ann: &Secret) -> (String, String) {
    // In this revision a stream begins with an event to come back for.
    let session = world.session_in("2025-11-25", ann).await;
    let (method, mut params) = call("tell");
    params["_meta"] = json!({"progressToken": 1});
    let ask = Ask::legacy(method, params).header("mcp-session-id", &session).bearer(ann);
    let answer = world.ask(&ask).await;
    assert!(answer.body.contains("for ann"), "{answer:?}");
    let id = answer.body.split("id: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    (session, id.to_owned())
}

/// Asks for what came after an event.
fn again(session: &str, id: &str) -> Ask {
    Ask::new("GET", "/mcp")
        .header("accept", "text/event-stream")
        .header("mcp-session-id", session)
        .header("last-event-id", id)
}

/// Of a list that is the same for everyone as much as of one that is not, or that is asked for.
#[tokio::test]
async fn a_cursor_leads_on_only_whoever_it_was_given_to() {
    let members =
        || async { ["x://1", "x://2", "x://3"].map(|uri| Resource::new(uri, uri)).to_vec() };
    let listed = || server().template(template("x://{id}", async || "").list(members));
    let servers = [
        ("tools/list", "tools", server()),
        ("tools/list", "tools", server().visible(|_, _| true)),
        ("resources/list", "resources", listed()),
        ("resources/list", "resources", listed().visible(|_, _| true)),
    ];
    for (method, items, server) in servers {
        // Whatever an author says: a cursor of someone's is for nobody else to keep.
        let cache = Cache::new(Duration::from_secs(60)).public();
        let world = Plan::of(server.cache(cache)).start().await;
        let (ann, bob) = (world.token("ann", "a"), world.token("bob", "a"));
        let list = |params: Value| Ask::modern(method, params);
        let first = world.ask(&list(json!({})).bearer(&ann)).await.json();
        let cursor = &first["result"]["nextCursor"];
        assert!(cursor.is_string(), "{first}");
        assert_eq!(first["result"]["cacheScope"], "private", "{first}");
        let next = list(json!({"cursor": cursor}));
        let refused = world.ask(&next.clone().bearer(&bob)).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32602)));
        let same = world.ask(&next.bearer(&world.token("ann", "b"))).await.json();
        assert_ne!(same["result"][items], json!([]), "{same}");
        assert_eq!(same["result"]["cacheScope"], "private", "{same}");
        // What they list is the same.
        let others = world.ask(&list(json!({})).bearer(&bob)).await.json();
        assert_eq!(others["result"][items], first["result"][items]);
    }
}

#[tokio::test]
async fn what_a_request_had_its_client_keep_is_worth_nothing_to_another() {
    let world = world().await;
    let (ann, bob) = (world.token("ann", "a"), world.token("bob", "a"));
    let (method, params) = call("question");
    let first = world.ask(&Ask::modern(method, params.clone()).bearer(&ann)).await.json();
    let state = &first["result"]["requestState"];
    assert!(state.is_string(), "{first}");
    let mut retry = params;
    retry["requestState"] = state.clone();
    retry["inputResponses"] = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let retry = Ask::modern(method, retry);
    let refused = world.ask(&retry.clone().bearer(&bob)).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32602)));
    assert_eq!(world.ask(&retry.bearer(&ann)).await.said(), "Hello, Ada!");
}

/// Names are issuer and subject: whoever another issuer calls the same is someone else.
#[tokio::test]
async fn the_same_subject_of_another_issuer_is_another_principal() {
    let world = Plan { issuers: Issuers::Two, ..Plan::of(server()) }.start().await;
    let (ann, other) = (world.token("ann", "a"), world.token_elsewhere("ann", "a"));
    let (method, params) = call("tool0");
    assert_eq!(world.ask(&Ask::modern(method, params.clone()).bearer(&other)).await.said(), "done");

    let session = world.session(&ann).await;
    let in_session = Ask::legacy(method, params.clone()).header("mcp-session-id", &session);
    assert_eq!(world.ask(&in_session.clone().bearer(&other)).await.status, 404);
    assert_eq!(world.ask(&in_session.bearer(&ann)).await.said(), "done");

    let mut sse = world.sse(&ann).await;
    let post = sse.post(method, params);
    assert_eq!(world.ask(&post.clone().bearer(&other)).await.status, 404);
    assert_eq!(world.ask(&post.bearer(&ann)).await.status, 202);
    sse.hear("done").await;

    let list = |params: Value| Ask::modern("tools/list", params);
    let first = world.ask(&list(json!({})).bearer(&ann)).await.json();
    let next = list(json!({"cursor": first["result"]["nextCursor"]}));
    assert_eq!(world.ask(&next.clone().bearer(&other)).await.status, 400);
    assert_eq!(world.ask(&next.bearer(&ann)).await.status, 200);

    let (method, params) = call("question");
    let first = world.ask(&Ask::modern(method, params.clone()).bearer(&ann)).await.json();
    let mut retry = params;
    retry["requestState"] = first["result"]["requestState"].clone();
    retry["inputResponses"] = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let retry = Ask::modern(method, retry);
    assert_eq!(world.ask(&retry.clone().bearer(&other)).await.status, 400);
    assert_eq!(world.ask(&retry.bearer(&ann)).await.said(), "Hello, Ada!");

    // Events that were told in a session are told again to nobody else either.
    let (session, id) = told(&world, &ann).await;
    assert_eq!(world.ask(&again(&session, &id).bearer(&other)).await.status, 404);
    let own = world.session_in("2025-11-25", &other).await;
    let foreign = world.ask(&again(&own, &id).bearer(&other)).await;
    assert!(!foreign.body.contains("data: {"), "{foreign:?}");
    assert!(world.ask(&again(&session, &id).bearer(&ann)).await.body.contains("for ann"));
}
