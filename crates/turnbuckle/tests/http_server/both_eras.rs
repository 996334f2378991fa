//! Both eras at one address, and what is refused to the older one with and without sessions.

use serde_json::json;

use crate::{
    legacy_support::{LATEST, Session, call, legacy_server, ping, post, refusal, send, value},
    support::{self, Fed, Progress::Unwanted, ask},
};

// req: hosting:http:modern:legacy-fallthrough, typescript:hosting:entry:dual-era-one-factory
// req: typescript:hosting:entry:byo-sessionful-legacy
#[tokio::test]
async fn both_eras_are_served_at_one_address() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let modern = || {
        let arguments = json!({"text": "modern"});
        support::call(json!(1), "echo", arguments, Unwanted)
    };
    let session = Session::open(&service, LATEST).await;
    for _ in 0..2 {
        let answer = value(ask(&service, modern().request()).await).await;
        assert_eq!(answer["result"]["content"][0]["text"], "modern");
        let answer = value(session.post(&call(1, "echo", json!({"text": "legacy"}))).await).await;
        assert_eq!(answer["result"]["content"][0]["text"], "legacy");
        assert!(answer["result"].get("resultType").is_none(), "{answer}");
    }
    assert_eq!(session.delete().await.status(), 204);
    assert_eq!(ask(&service, modern().request()).await.status(), 200);
}

// req: typescript:hosting:entry:parse-error-400, typescript:hosting:entry:legacy-accept-406
// req: typescript:hosting:entry:legacy-content-type-415, hosting:http:parse-error-400
// req: typescript:hosting:entry:legacy-protocol-version-header-400
// req: hosting:http:protocol-version-rejection-literal
#[tokio::test]
async fn what_http_refuses_is_refused_with_and_without_sessions() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    for service in [service, server.http_service().without_sessions()] {
        let with = |name: &'static str, text: &'static str| {
            let mut request = post().header("mcp-session-id", &session.id);
            if let Some(headers) = request.headers_mut() {
                headers.insert(name, text.parse().unwrap());
            }
            request
        };
        let broken = with("x-own", "1").body(Fed::whole("{")).unwrap();
        assert_eq!(refusal(ask(&service, broken).await).await, (400, -32700));
        for (request, status) in [
            (with("accept", "application/json"), 406),
            (with("accept", "text/event-stream"), 406),
            (with("content-type", "text/plain"), 415),
            (with("mcp-protocol-version", "1999-01-01"), 400),
        ] {
            let response = send(&service, request, &ping(1)).await;
            assert_eq!(response.status(), status);
            let message = value(response).await["error"]["message"].to_string();
            assert_eq!(message.contains(LATEST), status == 400, "{message}");
            assert_eq!(message.contains("Unsupported protocol version"), status == 400);
        }
        assert_eq!(send(&service, with("x-own", "1"), &ping(1)).await.status(), 200);
    }
}
