//! What a server offers, as clients see it on every wire and in both eras: lists and their pages,
//! what is hidden, what changes while the server runs, what may be kept.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use turnbuckle::{
    Client, Ctx, Principal, RpcError, Server, ToolError, prompt, resource,
    server::{Cache, Group, Item, ItemKind},
    subscribe::Filter,
    template, tool,
    types::{
        Annotations, Era, PromptArgument, ReadResourceResult, Resource, Role, TextResourceContents,
        ToolAnnotations,
    },
};

use crate::{
    live::{Heard, asked, connected, refused},
    rig::{Wire, contract, within},
};

contract! { listed unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: tools:list:basic, tools:list:metadata, prompts:list:basic, resources:list:basic, resources:templates:list, resources:annotations
    lists_have_everything_with_all_that_was_said_of_it,
}

contract! { paged unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: pagination:exhaustion, tools:list:pagination, prompts:list:pagination, resources:list:pagination, resources:templates:pagination
    lists_are_paged_in_the_order_of_registration,
}

contract! { cursors unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: pagination:invalid-cursor
    a_cursor_that_was_not_given_out_for_a_list_is_refused,
}

contract! { hidden unconnected on [memory unix direct http sse] in [legacy modern]:
    what_is_hidden_is_neither_listed_nor_reachable,
}

contract! { members unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: mcpserver:resource:template-list-callback, mcpserver:resource:metadata-override
    templates_list_their_members_after_the_resources,
}

contract! { kept unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: typescript:hosting:entry:modern-cacheable-stamping
    // req: typescript:hosting:entry:legacy-cacheable-suppression
    only_the_modern_era_hears_for_how_long_something_may_be_kept,
}

contract! { subscribed unconnected on [memory unix direct http sse] in [legacy]:
    // req: resources:subscribe, resources:unsubscribe, resources:subscribe:updated, resources:unsubscribe:stops-updates, resources:updated-notification
    a_client_hears_of_resources_that_exist_until_it_unsubscribes,
}

contract! { not_offered unconnected on [memory unix direct http sse] in [legacy]:
    // req: resources:subscribe:capability-required
    who_has_no_resources_has_no_subscriptions,
}

contract! { listening unconnected on [memory unix direct http] in [modern]:
    // req: resources:updated-notification
    a_stream_is_granted_the_resources_that_there_are,
}

/// The names of a list's items, as far as its first page goes.
fn names(page: &Value, list: &str) -> Vec<String> {
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    page[list].as_array().unwrap().iter().map(name).collect()
}

async fn lists_have_everything_with_all_that_was_said_of_it(wire: Wire, era: Era) {
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(true);
    let mut for_users = Annotations::new();
    for_users.audience = Some(vec![Role::User]);
    for_users.last_modified = Some("2026-01-12T15:00:58Z".into());
    let mut topic = PromptArgument::new("topic");
    topic.required = Some(true);
    let server = Server::new("s", "1")
        .tool(tool("b", async || ()).title("Bee").description("Buzzes.").annotations(annotations))
        .tool(tool("a", async || ()))
        .prompt(prompt("p", async || "").title("Pee").description("Asks.").argument(topic))
        .resource(
            resource("x://1", async || "")
                .name("one")
                .title("One")
                .description("The first.")
                .mime_type("text/plain")
                .size(7)
                .annotations(for_users.clone()),
        )
        .template(template("y://{id}", async || "").name("any").mime_type("text/css"));
    let client = connected(&server, wire, era).await;
    let tools = asked(&client, "tools/list", json!({})).await;
    assert_eq!(names(&tools, "tools"), ["b", "a"], "in the order of registration");
    let first = &tools["tools"][0];
    assert_eq!((&first["title"], &first["description"]), (&json!("Bee"), &json!("Buzzes.")));
    assert_eq!(first["annotations"]["readOnlyHint"], true);
    assert_eq!(first["inputSchema"]["type"], "object");
    let prompts = asked(&client, "prompts/list", json!({})).await;
    let arguments = json!([{"name": "topic", "required": true}]);
    let described =
        json!([{"name": "p", "title": "Pee", "description": "Asks.", "arguments": arguments}]);
    assert_eq!(prompts["prompts"], described);
    let resources = asked(&client, "resources/list", json!({})).await;
    let annotated = json!({"audience": ["user"], "lastModified": "2026-01-12T15:00:58Z"});
    assert_eq!(
        resources["resources"],
        json!([{
            "uri": "x://1", "name": "one", "title": "One", "description": "The first.",
            "mimeType": "text/plain", "size": 7, "annotations": annotated,
        }])
    );
    let templates = asked(&client, "resources/templates/list", json!({})).await;
    assert_eq!(
        templates["resourceTemplates"],
        json!([{"uriTemplate": "y://{id}", "name": "any", "mimeType": "text/css"}])
    );
}

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// Five of each kind.
fn five_of_each() -> Server {
    (0..5).fold(Server::new("s", "1").page_size(2), |server, number| {
        server
            .tool(tool(format!("{number}"), async || ()))
            .prompt(prompt(format!("{number}"), async || ""))
            .resource(resource(format!("x:{number}"), async || "").name(format!("{number}")))
            .template(
                template(format!("y{number}://{{id}}"), async || "").name(format!("{number}")),
            )
    })
}

async fn lists_are_paged_in_the_order_of_registration(wire: Wire, era: Era) {
    let client = connected(&five_of_each(), wire, era).await;
    for (method, list) in LISTS {
        let mut pages = Vec::new();
        let mut params = json!({});
        loop {
            let page = asked(&client, method, params).await;
            pages.push(names(&page, list));
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
        assert_eq!(pages, [vec!["0", "1"], vec!["2", "3"], vec!["4"]], "{method}");
    }
}

async fn a_cursor_that_was_not_given_out_for_a_list_is_refused(wire: Wire, era: Era) {
    let client = connected(&five_of_each(), wire, era).await;
    let stranger = connected(&five_of_each(), wire, era).await;
    let mut cursors = vec![json!(""), json!("2"), json!("AAAA"), json!("x".repeat(5_000))];
    for (method, _) in LISTS {
        cursors.push(asked(&stranger, method, json!({})).await["nextCursor"].clone());
        cursors.push(asked(&client, method, json!({})).await["nextCursor"].clone());
    }
    for (index, (method, _)) in LISTS.into_iter().enumerate() {
        let own = 4 + 2 * index + 1;
        for (at, cursor) in cursors.iter().enumerate().filter(|(at, _)| *at != own) {
            let error = refused(&client, method, json!({"cursor": cursor})).await;
            assert_eq!(error.code, -32602, "{method} with cursor {at}");
        }
        asked(&client, method, json!({"cursor": cursors[own]})).await;
    }
}

const FRIEND: &str = "example.com/friend";

fn is_friend(ctx: &Ctx) -> bool {
    ctx.meta().value(FRIEND).is_some()
}

/// A server of which friends see more.
fn with_secrets() -> Server {
    let strict = json!({"type": "object", "required": ["a"]});
    let secrets = Group::new()
        .tool(tool("secret", async || "told").input_schema(&strict))
        .prompt(
            prompt("secret", async || "told")
                .argument(PromptArgument::new("x"))
                .complete_values("x", ["told"]),
        )
        .resource(resource("x:secret", async || "told").name("secret"))
        .template(
            template("secret://{x}", async || "told")
                .name("secret")
                .complete_values("x", ["told"])
                .list(async || vec![Resource::new("secret://1", "member")]),
        )
        .visible_to(is_friend);
    Server::new("s", "1")
        .tool(tool("open", async || "said"))
        .prompt(prompt("open", async || "said"))
        .resource(resource("x:open", async || "said").name("open"))
        .template(template("open://{x}", async || "said").name("open"))
        .group(secrets)
        .tool(tool("admin-stop", async || "stopped"))
        .visible(|ctx: &Ctx, item: &Item<'_>| {
            let is_admins = item.kind == ItemKind::Tool && item.name.starts_with("admin-");
            !is_admins || is_friend(ctx)
        })
}

/// What a request is told of something, and what of nothing at all.
async fn same_as_unknown(client: &Client, method: &str, params: Value, name: &str) -> RpcError {
    let unknown = |text: &str| text.replace(name, "nothing");
    let other = serde_json::from_str::<Value>(&unknown(&params.to_string())).unwrap();
    let error = refused(client, method, params.clone()).await;
    let expected = refused(client, method, other).await;
    let seen = (
        error.code,
        unknown(&error.message),
        error.data.as_ref().map(|data| unknown(data.as_str())),
    );
    let data = expected.data.as_ref().map(|data| data.as_str().to_owned());
    assert_eq!(seen, (expected.code, expected.message.into_owned(), data), "{method} {params}");
    error
}

async fn what_is_hidden_is_neither_listed_nor_reachable(wire: Wire, era: Era) {
    let client = connected(&with_secrets(), wire, era).await;
    let friend =
        |method: &str, params: Value| client.request(method, params).meta(FRIEND, json!(1));
    let (open, all) = (vec!["open"], vec!["open", "secret"]);
    for (method, list) in LISTS {
        assert_eq!(names(&asked(&client, method, json!({})).await, list), open, "{method}");
        let mut seen = all.clone();
        match list {
            "tools" => seen.push("admin-stop"),
            "resources" => seen.push("member"),
            _ => {}
        }
        let page = friend(method, json!({})).await.unwrap().decode().unwrap();
        assert_eq!(names(&page, list), seen, "{method}");
    }
    let complete =
        |reference: Value| json!({"ref": reference, "argument": {"name": "x", "value": ""}});
    let by_prompt = complete(json!({"type": "ref/prompt", "name": "secret"}));
    let by_template = complete(json!({"type": "ref/resource", "uri": "secret://{x}"}));
    for (method, params, works) in [
        ("tools/call", json!({"name": "secret", "arguments": {"a": 1}}), true),
        // Nor is told what its arguments should be.
        ("tools/call", json!({"name": "secret", "arguments": {}}), true),
        ("tools/call", json!({"name": "secret", "arguments": []}), false),
        ("prompts/get", json!({"name": "secret"}), true),
        ("resources/read", json!({"uri": "x:secret"}), true),
        ("resources/read", json!({"uri": "secret://1"}), true),
        ("completion/complete", by_prompt, true),
        ("completion/complete", by_template, true),
    ] {
        same_as_unknown(&client, method, params.clone(), "secret").await;
        assert_eq!(friend(method, params).await.is_ok(), works, "{method}");
    }
    let stop = json!({"name": "admin-stop", "arguments": {}});
    same_as_unknown(&client, "tools/call", stop.clone(), "admin-stop").await;
    friend("tools/call", stop).await.unwrap();
    if era == Era::Legacy {
        for uri in ["x:secret", "secret://1"] {
            let params = json!({"uri": uri});
            let error =
                same_as_unknown(&client, "resources/subscribe", params.clone(), "secret").await;
            assert_eq!(error.code, -32002);
            friend("resources/subscribe", params).await.unwrap();
        }
        return;
    }
    let watch =
        Filter::new().tools().resource("x:secret").resource("x:open").resource("secret://1");
    let listening = client.listen(watch).await.unwrap();
    let granted = listening.granted().resource_subscriptions.clone();
    assert_eq!(granted, Some(vec!["x:open".to_owned()]));
}

#[tokio::test]
async fn a_cursor_answers_only_to_whoever_it_was_made_for() {
    within(async {
        let server = (0..4).fold(Server::new("s", "1").page_size(2), |server, number| {
            server.tool(tool(format!("{number}"), async || ()).visible_to(|_| true))
        });
        let client = async |name: &str| {
            let (ours, theirs) = tokio::io::duplex(4096);
            let serving = server.serve(theirs).extension(Principal::new(name));
            tokio::spawn(serving.into_future());
            Client::builder().over(ours).await.unwrap()
        };
        let (alice, again, bob) =
            (client("alice").await, client("alice").await, client("bob").await);
        let cursor = asked(&alice, "tools/list", json!({})).await["nextCursor"].clone();
        let params = json!({"cursor": cursor});
        let page = asked(&again, "tools/list", params.clone()).await;
        assert_eq!(names(&page, "tools"), ["2", "3"]);
        assert_eq!(refused(&bob, "tools/list", params).await.code, -32602);
    })
    .await;
}

async fn templates_list_their_members_after_the_resources(wire: Wire, era: Era) {
    async fn numbers() -> Vec<Resource> {
        let mut two = Resource::new("n://2", "two");
        two.description = Some("Its own.".into());
        two.mime_type = Some("text/css".into());
        // The one that is registered is the one that is read.
        vec![Resource::new("n://1", "one"), Resource::new("n://0", "zero"), two]
    }
    async fn broken() -> Result<Vec<Resource>, ToolError> {
        Err(ToolError::new("the disk is gone"))
    }
    async fn panics() -> Vec<Resource> {
        panic!("the disk is on fire")
    }
    let letters =
        async || ["a", "b", "c"].map(|name| Resource::new(format!("l://{name}"), name)).to_vec();
    let server = Server::new("s", "1")
        .page_size(2)
        .template(
            template("n://{id}", async || "")
                .description("A number.")
                .mime_type("text/plain")
                .list(numbers),
        )
        .template(template("b://{id}", async || "").list(broken))
        .template(template("p://{id}", async || "").list(panics))
        .template(template("l://{id}", async || "").list(letters))
        .resource(resource("n://0", async || "").name("nought"));
    let client = connected(&server, wire, era).await;
    let (mut all, mut sizes, mut params) = (Vec::new(), Vec::new(), json!({}));
    loop {
        let page = asked(&client, "resources/list", params).await;
        let resources = page["resources"].as_array().unwrap();
        sizes.push(resources.len());
        all.extend(resources.clone());
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(names(&json!({"all": all}), "all"), ["nought", "one", "two", "a", "b", "c"]);
    assert_eq!(sizes, [2, 2, 2]);
    let described = |item: &Value| [item["description"].clone(), item["mimeType"].clone()];
    assert_eq!(described(&all[0]), [Value::Null, Value::Null]);
    assert_eq!(described(&all[1]), [json!("A number."), json!("text/plain")]);
    assert_eq!(described(&all[2]), [json!("Its own."), json!("text/css")]);
}

async fn only_the_modern_era_hears_for_how_long_something_may_be_kept(wire: Wire, era: Era) {
    let seconds = |seconds| Cache::new(Duration::from_secs(seconds));
    let own = async || {
        let mut result = ReadResourceResult::new([TextResourceContents::new("", "text").into()]);
        result.ttl_ms = Some(7);
        result
    };
    let server = Server::new("s", "1")
        .tool(tool("t", async || ()))
        .prompt(prompt("p", async || ""))
        .cache_for(ItemKind::Prompt, seconds(9).private())
        .resource(resource("x:plain", async || ""))
        .resource(resource("x:kept", async || "").cache(seconds(60).public()))
        .resource(resource("x:own", own).cache(seconds(60).public()))
        .template(template("y://{id}", async || "").cache(seconds(1)));
    let client = connected(&server, wire, era).await;
    let read = |uri: &str| ("resources/read", json!({"uri": uri}));
    for ((method, params), ttl, scope) in [
        (("tools/list", json!({})), 300_000, "public"),
        (("prompts/list", json!({})), 9_000, "private"),
        (("resources/list", json!({})), 300_000, "public"),
        (read("x:plain"), 0, "private"),
        (read("x:kept"), 60_000, "public"),
        (read("x:own"), 7, "public"),
        (read("y://1"), 1_000, "private"),
    ] {
        let result = asked(&client, method, params.clone()).await;
        let hint = (result.get("ttlMs").cloned(), result.get("cacheScope").cloned());
        let expected = match era {
            Era::Legacy => (None, None),
            _ => (Some(json!(ttl)), Some(json!(scope))),
        };
        assert_eq!(hint, expected, "{method} {params}");
    }
    if era == Era::Modern {
        let discovered = client.discover().await.unwrap();
        assert_eq!(discovered.ttl_ms, Some(300_000));
    }
}

async fn a_client_hears_of_resources_that_exist_until_it_unsubscribes(wire: Wire, era: Era) {
    let server = with_secrets();
    let changes = server.changes();
    let (client, mut heard) = Heard::connect(&server, wire, era, []).await;
    for uri in ["x:open", "open://1"] {
        let done = asked(&client, "resources/subscribe", json!({"uri": uri})).await;
        assert_eq!(done, json!({}));
        changes.resource(uri);
        assert_eq!(heard.next().await, uri);
    }
    for uri in ["x:nothing", "nothing://1", "x:secret", ""] {
        let error = refused(&client, "resources/subscribe", json!({"uri": uri})).await;
        assert_eq!(error.code, -32002, "{uri}");
        assert_eq!(error.data.unwrap().decode::<Value>().unwrap(), json!({"uri": uri}));
    }
    asked(&client, "resources/unsubscribe", json!({"uri": "x:open"})).await;
    for uri in ["x:open", "x:nothing", "x:secret", "open://2", "open://1"] {
        changes.resource(uri);
    }
    assert_eq!(heard.next().await, "open://1", "and of nothing before that");
}

async fn who_has_no_resources_has_no_subscriptions(wire: Wire, era: Era) {
    let client = connected(&Server::new("s", "1").tool(tool("t", async || ())), wire, era).await;
    assert!(client.server_capabilities().unwrap().resources.is_none());
    for method in ["resources/subscribe", "resources/unsubscribe", "resources/list"] {
        let error = refused(&client, method, json!({"uri": "x:open"})).await;
        assert_eq!(error.code, -32601, "{method}");
    }
}

async fn a_stream_is_granted_the_resources_that_there_are(wire: Wire, era: Era) {
    let server = Server::new("s", "1")
        .resource(resource("x:1", async || ""))
        .template(template("y://{id}", async || ""));
    let uris = ["x:1", "x:2", "y://1", "z://1"];
    let (client, mut heard) = Heard::connect(&server, wire, era, uris).await;
    let granted: BTreeSet<_> = heard.granted().unwrap().into_iter().collect();
    assert_eq!(granted, BTreeSet::from(["x:1".to_owned(), "y://1".to_owned()]));
    let changes = server.changes();
    uris.into_iter().for_each(|uri| changes.resource(uri));
    assert_eq!([heard.next().await, heard.next().await], ["x:1", "y://1"]);
    let error = refused(&client, "resources/read", json!({"uri": "x:2"})).await;
    assert_eq!((error.code, error.data.unwrap().as_str()), (-32602, r#"{"uri":"x:2"}"#));
}
