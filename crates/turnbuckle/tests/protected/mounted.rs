//! The authorization server for tests among the routes of someone else's program.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    routing::get,
};
use serde_json::Value;
use tower::ServiceExt as _;
use turnbuckle_auth::testing::InsecureAuthorizationServer;

// req: hosting:auth:as-router
#[tokio::test]
async fn an_authorization_server_for_tests_is_a_function_that_any_router_takes() {
    let issuer = "https://auth.example.com/tenant";
    let provider = Arc::new(InsecureAuthorizationServer::new(issuer));
    let answer = move |request: Request| {
        let provider = provider.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = to_bytes(body, 1 << 16).await.unwrap();
            provider.handle(Request::from_parts(head, body)).map(Body::from)
        }
    };
    let routes = Router::new().route("/healthz", get(async || "fine")).fallback(answer);
    let asked = async |request: Request| {
        let response = routes.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        (status, to_bytes(response.into_body(), 1 << 16).await.unwrap())
    };
    let path = "/.well-known/oauth-authorization-server/tenant";
    let (status, body) = asked(Request::get(path).body(Body::empty()).unwrap()).await;
    let metadata: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &metadata["issuer"]), (200, &Value::from(issuer)));
    let token = Request::post("/tenant/token").body(Body::from("grant_type=x")).unwrap();
    let (status, body) = asked(token).await;
    let refused: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &refused["error"]), (400, &Value::from("unsupported_grant_type")));
    let (status, body) = asked(Request::get("/healthz").body(Body::empty()).unwrap()).await;
    assert_eq!((status, &body[..]), (200, &b"fine"[..]));
}
