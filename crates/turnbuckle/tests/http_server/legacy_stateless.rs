//! The legacy era without sessions.

use http::Request;
use serde_json::{Value, json};

use crate::{
    legacy_support::{
        Events, LATEST, call, initialize, legacy_server, ping, post, send, value, wait,
    },
    support::{Fed, ask, frame, text},
};

// req: hosting:stateless:no-session-id, hosting:stateless:no-reuse
// req: typescript:hosting:entry:no-session-id, typescript:hosting:entry:notification-202
// req: typescript:hosting:entry:method-405
#[tokio::test]
async fn there_is_no_id_and_each_request_is_served_for_itself() {
    let (server, _watch) = legacy_server();
    let service = server.http_service().without_sessions();
    let response = send(&service, post(), &initialize(LATEST)).await;
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert_eq!(value(response).await["result"]["protocolVersion"], LATEST);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(send(&service, post(), &note).await.status(), 202);
    // An id of before is no hindrance.
    for request in [post(), post().header("mcp-session-id", "old")] {
        let answer = value(send(&service, request, &ping(1)).await).await;
        assert_eq!(answer["result"], json!({}));
    }
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "x/y"});
    let response = send(&service, post(), &unknown).await;
    assert_eq!(response.status(), 200);
    assert_eq!(value(response).await["error"]["code"], -32601);
    let response = send(&service, post(), &call(1, "fail_later", json!({}))).await;
    assert_eq!(response.status(), 200);
    for method in ["GET", "DELETE"] {
        let request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
        let response = ask(&service, request.body(Fed::whole("")).unwrap()).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["allow"] == "POST"),
            (405, true)
        );
    }
}

// req: hosting:http:protocol-version-default
// req: typescript:hosting:entry:legacy-protocol-version-default
#[tokio::test]
async fn the_revision_is_that_of_the_header_or_2025_03_26() {
    let (server, _watch) = legacy_server();
    let server = server.tool(turnbuckle::tool("revision", async |ctx: turnbuckle::Ctx| {
        ctx.revision().to_string()
    }));
    let service = server.http_service().without_sessions();
    let revision = call(1, "revision", json!({}));
    let said = |answer: Value| answer["result"]["content"][0]["text"].clone();
    let answer = value(send(&service, post(), &revision).await).await;
    assert_eq!(said(answer), "2025-03-26");
    let with = post().header("mcp-protocol-version", LATEST);
    assert_eq!(said(value(send(&service, with, &revision).await).await), LATEST);
    let batch = json!([ping(1), revision]);
    let answer = value(send(&service, post(), &batch).await).await;
    assert_eq!(said(answer[1].clone()), "2025-03-26");
    let with = post().header("mcp-protocol-version", LATEST);
    assert_eq!(send(&service, with, &batch).await.status(), 400);
}

#[tokio::test]
async fn the_handler_runs_in_its_answer_and_goes_with_it() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service().without_sessions();
    let response = send(&service, post(), &wait(1, "a")).await;
    let mut body = response.into_body();
    let first = frame(&mut body).await.unwrap();
    assert!(first.starts_with("data: ") && !first.contains("id: "), "{first}");
    assert_eq!(watch.next().await, "a started");
    drop(body);
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, ["a dropped", "a heard"]);
    let json = service.json_only();
    let posting = tokio::spawn({
        let json = json.clone();
        async move { text(send(&json, post(), &wait(1, "b")).await.into_body()).await }
    });
    assert_eq!(watch.next().await, "b started");
    watch.release();
    let answer: Value = serde_json::from_str(&posting.await.unwrap()).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "released");
    let service = server.http_service().without_sessions();
    let counted = send(&service, post(), &call(1, "count", json!({"n": 3}))).await;
    assert_eq!(Events::of(counted).rest().await.len(), 4);
}
