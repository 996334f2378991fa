//! What a client sends over HTTP besides the message: the headers that repeat it, those that
//! the user adds, and where all of that goes when it is redirected.

use serde_json::{Value, json};
use turnbuckle::{Client, ErrorKind, client::CustomMethod, http::Redirects};

use crate::{
    raw::said,
    rig::within,
    web::{Post, Web, abandon, client, launch, modern, settle},
};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Sends a request; what arrived.
async fn sent(method: &str, params: Value) -> Post {
    let mut web = Web::new().await;
    let client = client(&web).await;
    let call = launch(client.request(method, params));
    let post = web.post().await;
    post.result(json!({})).await;
    call.await.unwrap().unwrap();
    post
}

// req: lifecycle:envelope:header-matches-meta, client-transport:http:accept-header-post
// req: client-transport:http:protocol-version-header, client-transport:http:body-derived-headers
#[tokio::test]
async fn headers_repeat_what_the_body_says() {
    within(async {
        for (method, params, name) in [
            ("tools/call", json!({"name": "add", "arguments": {}}), Some("add")),
            ("tools/call", json!({"name": "größe"}), Some("=?base64?Z3LDtsOfZQ==?=")),
            ("tools/call", json!({"name": " a"}), Some("=?base64?IGE=?=")),
            ("resources/read", json!({"uri": "file:///a%20b"}), Some("file:///a%20b")),
            ("prompts/get", json!({"name": "greet\n"}), Some("=?base64?Z3JlZXQK?=")),
            ("tools/list", json!({"name": "not a subject"}), None),
            ("acme/own", json!({"name": "not a subject"}), None),
        ] {
            let post = sent(method, params.clone()).await;
            assert!(post.head.starts_with("POST /mcp HTTP/1.1\r\n"), "{}", post.head);
            assert_eq!(post.header("mcp-method"), Some(method));
            assert_eq!(post.method(), method);
            assert_eq!(post.header("mcp-name"), name, "{method} {params}");
            let version = post.header("mcp-protocol-version").unwrap();
            assert_eq!(version, "2026-07-28");
            assert_eq!(post.body["params"]["_meta"][VERSION], version);
            assert_eq!(post.header("content-type"), Some("application/json"));
            let accept = post.header("accept").unwrap();
            assert!(accept.contains("application/json") && accept.contains("text/event-stream"));
            assert!(post.header("host").unwrap().starts_with("127.0.0.1:"));
            assert!(post.header("mcp-session-id").is_none());
            assert!(post.header("content-length").is_some(), "{}", post.head);
        }
    })
    .await;
}

// req: client-transport:http:vendor-name-param-header
#[tokio::test]
async fn a_method_of_ones_own_says_which_of_its_params_is_the_name() {
    struct Rotate;
    impl CustomMethod for Rotate {
        const NAME: &'static str = "example.com/rotate";
        const NAMED_BY: Option<&'static str> = Some("key");
        type Params = Value;
        type Result = Value;
    }
    within(async {
        for (params, name) in [
            (json!({"key": "main", "name": "not this"}), Some("main")),
            (json!({"key": "größe"}), Some("=?base64?Z3LDtsOfZQ==?=")),
            (json!({"key": 7}), None),
            (json!({}), None),
        ] {
            let mut web = Web::new().await;
            let client = client(&web).await;
            let call = launch(client.method::<Rotate>(&params));
            let post = web.post().await;
            assert_eq!(post.header("mcp-method"), Some("example.com/rotate"));
            assert_eq!(post.header("mcp-name"), name, "{params}");
            post.result(json!({})).await;
            call.await.unwrap().unwrap();
        }
    })
    .await;
}

// req: client-transport:http:stateless-ignores-session-id
#[tokio::test]
async fn a_session_that_nobody_opened_is_not_taken_up() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        for _ in 0..3 {
            let call = launch(client.call_tool("t", ()));
            let post = web.post().await;
            assert_eq!((post.verb(), post.header("mcp-session-id")), ("POST", None));
            post.result_in("unasked-for", said("ok")).await;
            call.await.unwrap().unwrap();
        }
        // Nor is it ended, nor listened to.
        assert_eq!(web.ends_with(client).await, 3);
    })
    .await;
}

#[tokio::test]
async fn a_method_that_fits_no_header_is_not_sent() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        for method in ["acme/größe", "acme/ x", ""] {
            let error = client.request(method, json!({})).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        }
        assert_eq!(web.ends_with(client).await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_large_message_arrives_as_it_is() {
    within(async {
        let text: String = (0..40_000).map(|number| format!("{number} ü ")).collect();
        let params = json!({"name": "t", "arguments": {"text": text}});
        let post = sent("tools/call", params.clone()).await;
        assert_eq!(post.body["params"]["arguments"], params["arguments"]);
        assert!(post.header("transfer-encoding").is_none());
    })
    .await;
}

fn tool(name: &str, properties: Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn listing(tools: &[Value]) -> Value {
    json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
}

fn annotated() -> Value {
    tool(
        "query",
        json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "deep": {"type": "object", "properties": {"er": {"type": "string", "x-mcp-header": "Deeper"}}},
            "sql": {"type": "string"},
        }),
    )
}

/// Lists the tools of a server.
async fn listed(web: &mut Web, client: &Client, tools: &[Value]) -> Vec<String> {
    let call = launch(client.list_tools());
    let post = web.post().await;
    assert_eq!(post.method(), "tools/list");
    post.result(listing(tools)).await;
    call.await.unwrap().unwrap().tools.into_iter().map(|tool| tool.name).collect()
}

// req: client-transport:http:custom-param-headers
#[tokio::test]
async fn arguments_are_repeated_as_the_listed_tool_wishes() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        listed(&mut web, &client, &[annotated()]).await;
        let arguments =
            json!({"region": "zürich", "limit": 7, "dry": true, "deep": {"er": "x"}, "sql": "no"});
        let call = launch(client.call_tool("query", &arguments));
        let post = web.post().await;
        assert_eq!(post.header("mcp-param-region"), Some("=?base64?esO8cmljaA==?="));
        assert_eq!(post.header("mcp-param-limit"), Some("7"));
        assert_eq!(post.header("mcp-param-dry"), Some("true"));
        assert_eq!(post.header("mcp-param-deeper"), Some("x"));
        let params = post.headers().keys().filter(|name| name.starts_with("mcp-param-")).count();
        assert_eq!(params, 4);
        assert_eq!(post.body["params"]["arguments"], arguments);
        post.result(said("ok")).await;
        call.await.unwrap().unwrap();
        // The same for a request that was written by hand.
        let params = json!({"name": "query", "arguments": {"region": "here"}});
        let call = launch(client.request("tools/call", params));
        let post = web.post().await;
        assert_eq!(post.header("mcp-param-region"), Some("here"));
        post.result(said("ok")).await;
        call.await.unwrap().unwrap();
        // What is absent or null is not repeated.
        let call = launch(client.call_tool("query", json!({"region": null})));
        let post = web.post().await;
        assert!(!post.head.to_ascii_lowercase().contains("mcp-param-"), "{}", post.head);
        post.result(said("ok")).await;
        call.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_tool_with_invalid_annotations_is_left_out_of_a_listing() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let twice = json!({
            "a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string", "x-mcp-header": "same"},
        });
        let tools = [
            annotated(),
            tool("empty", json!({"a": {"type": "string", "x-mcp-header": ""}})),
            tool("spaced", json!({"a": {"type": "string", "x-mcp-header": "a b"}})),
            tool("array", json!({"a": {"type": "array", "x-mcp-header": "A"}})),
            tool("twice", twice),
            tool("plain", json!({})),
        ];
        assert_eq!(listed(&mut web, &client, &tools).await, ["query", "plain"]);
    })
    .await;
}

// req: client-transport:http:custom-param-headers
#[tokio::test]
async fn a_call_refused_for_its_headers_is_repeated_once_after_a_listing() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let call = launch(client.call_tool("query", json!({"region": "here"})).request_id("one"));
        let post = web.post().await;
        assert_eq!(post.header("mcp-param-region"), None);
        post.error(400, -32020, Value::Null).await;
        let list = web.post().await;
        assert_eq!(list.method(), "tools/list");
        list.result(listing(&[annotated()])).await;
        let again = web.post().await;
        assert_eq!(again.header("mcp-param-region"), Some("here"));
        assert_eq!(again.body, post.body);
        again.result(said("at last")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "at last");

        // Not twice.
        let call = launch(client.call_tool("query", json!({"region": "here"})));
        web.post().await.error(400, -32020, Value::Null).await;
        let mut renamed = annotated();
        renamed["inputSchema"]["properties"]["region"]["x-mcp-header"] = json!("Place");
        web.post().await.result(listing(&[renamed.clone()])).await;
        web.post().await.error(400, -32020, Value::Null).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.as_rpc().unwrap().code, error.status()), (-32020, Some(400)));
        assert!(!error.maybe_executed());

        // Not at all where it would say the same again.
        let call = launch(client.call_tool("query", json!({"region": "here"})));
        web.post().await.error(400, -32020, Value::Null).await;
        web.post().await.result(listing(&[renamed])).await;
        assert_eq!(call.await.unwrap().unwrap_err().status(), Some(400));

        // Dropped while it lists: that is closed, and nothing follows.
        let call = launch(client.call_tool("query", json!({"region": "here"})));
        web.post().await.error(400, -32020, Value::Null).await;
        let list = web.post().await;
        abandon(call).await;
        list.closed().await;
        assert_eq!(web.ends_with(client).await, 10);
    })
    .await;
}

// req: client-transport:http:custom-headers
#[tokio::test]
async fn a02_headers_of_the_user_go_along() {
    within(async {
        let mut web = Web::new().await;
        let client = modern()
            .header("Authorization", "Bearer 1")
            .header("X-Tag", "a")
            .header("X-Tag", "b")
            .connect(web.url())
            .await
            .unwrap();
        let call = launch(client.call_tool("t", ()).header("X-Trace", "42"));
        let post = web.post().await;
        assert_eq!(post.header("authorization"), Some("Bearer 1"));
        assert_eq!(post.headers()["x-tag"], ["a", "b"]);
        assert_eq!(post.header("x-trace"), Some("42"));
        post.result(said("ok")).await;
        call.await.unwrap().unwrap();
        // Those of one call are for that call.
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        assert_eq!(post.header("authorization"), Some("Bearer 1"));
        assert_eq!(post.header("x-trace"), None);
        post.result(said("ok")).await;
        call.await.unwrap().unwrap();
        // Those of the protocol are not for users.
        for ours in ["Mcp-Name", "mcp-param-x", "MCP-Protocol-Version", "Accept", "Content-Length"]
        {
            let error = client.call_tool("t", ()).header(ours, "x").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{ours}");
            let error = modern().header(ours, "x").connect(web.url()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{ours}");
        }
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

async fn redirect(post: &Post, status: u16, to: &str) {
    post.say(format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"))
        .await;
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_everything() {
    within(async {
        let mut web = Web::new().await;
        let client = modern().header("authorization", "Bearer 1").connect(web.url()).await.unwrap();
        for status in [307, 308] {
            let call = launch(client.call_tool("t", json!({"a": 1})).header("x-trace", "42"));
            let post = web.post().await;
            redirect(&post, status, "other?x=1").await;
            let again = web.post().await;
            assert!(again.head.starts_with("POST /other?x=1 HTTP/1.1\r\n"), "{}", again.head);
            assert_eq!(again.body, post.body);
            assert_eq!(again.headers(), post.headers());
            assert_eq!(again.header("authorization"), Some("Bearer 1"));
            assert_eq!(again.header("x-trace"), Some("42"));
            again.result(said("there")).await;
            assert_eq!(call.await.unwrap().unwrap().to_text(), "there");
        }
    })
    .await;
}

#[tokio::test]
async fn c21_dropped_after_a_redirect() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let call = launch(client.call_tool("t", ()).request_id(1));
        redirect(&web.post().await, 307, "/other").await;
        let again = web.post().await;
        let taken = client.call_tool("t", ()).request_id(1).await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::Refused);
        abandon(call).await;
        again.closed().await;
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn other_redirects_are_refused() {
    within(async {
        let (mut web, elsewhere) = (Web::new().await, Web::new().await);
        let client = client(&web).await;
        for (status, to, why) in [
            (307, elsewhere.url(), "another origin"),
            (302, "/other".to_owned(), "302"),
            (301, "/other".to_owned(), "301"),
            (303, "/other".to_owned(), "303"),
            (307, "ftp://127.0.0.1/".to_owned(), "no address"),
        ] {
            let call = launch(client.call_tool("t", ()));
            redirect(&web.post().await, status, &to).await;
            let error = call.await.unwrap().unwrap_err();
            assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(status)));
            assert!(error.to_string().contains(why), "{error}");
            // The others may come after the work.
            assert_eq!(error.maybe_executed(), status != 307);
            settle().await;
        }
        assert_eq!((elsewhere.connections(), web.ends_with(client).await), (0, 5));
        let client = modern().redirects(Redirects::Never).connect(web.url()).await.unwrap();
        let call = launch(client.call_tool("t", ()));
        redirect(&web.post().await, 307, "/other").await;
        assert_eq!(call.await.unwrap().unwrap_err().status(), Some(307));
    })
    .await;
}

#[tokio::test]
async fn redirects_come_to_an_end() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let call = launch(client.call_tool("t", ()));
        for hop in 0..6 {
            redirect(&web.post().await, 307, &format!("/{hop}")).await;
        }
        let error = call.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("five"), "{error}");
        assert_eq!(web.ends_with(client).await, 6);
    })
    .await;
}

#[tokio::test]
async fn what_the_user_added_does_not_go_to_another_origin() {
    within(async {
        let (mut web, mut elsewhere) = (Web::new().await, Web::new().await);
        let client = modern()
            .redirects(Redirects::AnyOrigin)
            .header("authorization", "Bearer 1")
            .connect(web.url())
            .await
            .unwrap();
        let call = launch(client.call_tool("t", ()).header("x-trace", "42"));
        let post = web.post().await;
        redirect(&post, 307, &elsewhere.url()).await;
        let there = elsewhere.post().await;
        assert_eq!(there.body, post.body);
        assert_eq!(there.header("authorization"), None);
        assert_eq!(there.header("x-trace"), None);
        for ours in ["mcp-method", "mcp-name", "mcp-protocol-version", "accept", "content-type"] {
            assert_eq!(there.header(ours), post.header(ours), "{ours}");
        }
        // Nor does it come back with a second redirect.
        redirect(&there, 307, &web.url()).await;
        let back = web.post().await;
        assert_eq!(back.header("authorization"), None);
        assert_eq!(back.header("x-trace"), None);
        back.result(said("there")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "there");
    })
    .await;
}
