//! What is refused, and in which words.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt;
use turnbuckle::{Limits, http::HttpBody};

use crate::support::{Fed, Progress::Unwanted, ask, call, server, server_with, text};

async fn refused(limits: Limits, request: Request<Fed>) -> (u16, Value, http::HeaderMap) {
    let (server, mut watch) = server_with(limits);
    let response = ask(&server.http_service(), request).await;
    let (head, body) = response.into_parts();
    assert_eq!(head.headers["content-type"], "application/json");
    watch.nothing();
    let body = serde_json::from_str(&text(body).await).unwrap();
    (head.status.as_u16(), body, head.headers)
}

fn with(change: impl FnOnce(&mut Request<Fed>)) -> Request<Fed> {
    let mut request = call(json!(1), "wait", json!({"text": "a"}), Unwanted).request();
    change(&mut request);
    request
}

fn header(name: &'static str, value: &'static str) -> Request<Fed> {
    with(|request| drop(request.headers_mut().insert(name, value.parse().unwrap())))
}

fn with_two_hosts() -> Request<Fed> {
    with(|request| {
        *request.version_mut() = http::Version::HTTP_2;
        *request.uri_mut() = "http://127.0.0.1/mcp".parse().unwrap();
    })
}

// req: hosting:http:method-405, hosting:http:accept-406, hosting:http:content-type-415
// req: transport:streamable-http:origin-validation
#[tokio::test]
async fn what_http_refuses_has_its_status_and_no_id() {
    for (request, expected) in [
        (with(|request| *request.method_mut() = Method::GET), 405),
        (with(|request| *request.method_mut() = Method::DELETE), 405),
        (header("accept", "application/json"), 406),
        (header("content-type", "text/plain"), 415),
        (with(|request| drop(request.headers_mut().remove("content-type"))), 415),
        (header("content-type", "application/json; charset=utf-16"), 415),
        (header("content-encoding", "gzip"), 415),
        (with_two_hosts(), 400),
        (header("host", "evil.example.com"), 403),
        (header("origin", "https://evil.example.com"), 403),
        (header("origin", "null"), 403),
    ] {
        let (status, body, headers) = refused(Limits::default(), request).await;
        assert_eq!(status, expected, "{body}");
        assert_eq!(headers.contains_key("allow"), expected == 405);
        assert!(body.get("id").is_none());
        assert!(body["error"]["message"].is_string());
    }
}

// req: hosting:http:onerror
#[tokio::test]
async fn whoever_stands_around_the_endpoint_sees_what_it_refuses_and_why() {
    let (server, mut watch) = server();
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = {
        let told = told.clone();
        async move |response: http::Response<HttpBody>| {
            let (head, body) = response.into_parts();
            let body = text(body).await;
            if !head.status.is_success() {
                let said: Value = serde_json::from_str(&body).unwrap();
                let reason = said["error"]["message"].as_str().unwrap().to_owned();
                told.lock().unwrap().push((head.status.as_u16(), reason));
            }
            Ok(http::Response::from_parts(head, body))
        }
    };
    let endpoint = ServiceExt::<Request<Fed>>::and_then(server.http_service(), telling);
    let fine = call(json!(1), "echo", json!({"text": "a"}), Unwanted).request();
    let requests = [header("host", "evil.example.com"), fine, header("accept", "text/html")];
    for (request, status) in requests.into_iter().zip([403, 200, 406]) {
        let Ok::<_, Infallible>(response) = endpoint.clone().oneshot(request).await;
        assert_eq!(response.status(), status, "{}", response.body());
    }
    watch.nothing();
    let told = told.lock().unwrap();
    let refused: Vec<u16> = told.iter().map(|(status, _)| *status).collect();
    assert_eq!(refused, [403, 406]);
    assert!(told[0].1.contains("evil.example.com"), "{told:?}");
    assert!(told[1].1.contains("Accept"), "{told:?}");
}

// req: hosting:http:dns-rebinding
#[tokio::test]
async fn a_page_that_rebinds_its_name_to_this_machine_is_refused() {
    let mut request = header("host", "evil.example.com");
    request.headers_mut().insert("origin", "http://evil.example.com".parse().unwrap());
    let (status, body, _) = refused(Limits::default(), request).await;
    assert_eq!(status, 403);
    assert!(body["error"]["message"].as_str().unwrap().contains(".public_host("), "{body}");
}

#[tokio::test]
async fn a_stated_name_is_served() {
    let (server, _watch) = server();
    let service = server.http_service().public_host("mcp.example.com");
    let mut request = call(json!(1), "echo", json!({"text": "a"}), Unwanted).request();
    request.headers_mut().insert("host", "mcp.example.com".parse().unwrap());
    assert_eq!(ask(&service, request).await.status(), 200);
}

// req: hosting:http:parse-error-400, hosting:http:batch, hosting:http:modern:notification-post-202
#[tokio::test]
async fn what_is_no_request_is_refused_with_its_id_where_it_can_be_read() {
    for (body, code, id) in [
        ("{", -32700, None),
        ("", -32700, None),
        ("[]", -32600, None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#, -32600, Some(json!(7))),
        (r#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#, -32600, Some(json!("x"))),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#, -32600, None),
        ("7", -32600, None),
    ] {
        let request = call(json!(1), "wait", json!({"text": "a"}), Unwanted);
        let request = request.request_with(Fed::whole(body));
        let (status, answer, _) = refused(Limits::default(), request).await;
        assert_eq!((status, answer["error"]["code"].as_i64()), (400, Some(code)), "{body}");
        assert_eq!(answer.get("id"), id.as_ref(), "{body}");
    }
}

// req: sep-2243:std-header:mismatch-rejected
#[tokio::test]
async fn headers_that_contradict_the_body_are_refused_with_its_id() {
    for request in [
        header("mcp-method", "tools/list"),
        header("mcp-name", "echo"),
        with(|request| drop(request.headers_mut().remove("mcp-protocol-version"))),
        with(|request| {
            request.headers_mut().append("mcp-name", "wait".parse().unwrap());
        }),
    ] {
        let (status, answer, _) = refused(Limits::default(), request).await;
        assert_eq!((status, answer["error"]["code"].as_i64()), (400, Some(-32020)));
        assert_eq!(answer["id"], 1);
    }
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused_as_soon_as_it_is() {
    let message = call(json!(1), "echo", json!({"text": "x".repeat(500)}), Unwanted);
    let (sender, body) = Fed::new();
    for piece in message.text.as_bytes().chunks(100) {
        sender.try_send(Ok(piece.to_vec().into())).unwrap();
    }
    // The sender stays: whoever waited for the end would wait for ever.
    let (status, answer, _) =
        refused(Limits::default().body_bytes(300), message.request_with(body)).await;
    assert_eq!(status, 413);
    assert!(answer["error"]["message"].as_str().unwrap().contains("300"));
    // Three pieces were taken, the fourth was one too many.
    assert!(sender.is_closed());
    let limit = message.text.len();
    let request = message.request();
    let (server, _watch) = server_with(Limits::default().body_bytes(limit));
    assert_eq!(ask(&server.http_service(), request).await.status(), 200);
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_name() {
    let (server, _watch) = server();
    for address in ["0.0.0.0:8080", "[::]:8080", "192.0.2.1:8080"] {
        let error = server.serve_http(address).bind().await.unwrap_err().to_string();
        assert!(error.starts_with(address), "{error}");
        assert!(error.contains(".public_host(\"mcp.example.com\")"), "{error}");
        assert!(error.contains("127.0.0.1:8080"), "{error}");
    }
    let error = server.serve_http("127.0.0.1:0").path("mcp").bind().await.unwrap_err();
    assert!(error.to_string().contains("slash"));
    let error = server.serve_http("no port").bind().await.unwrap_err().to_string();
    assert!(error.contains("`no port`"), "{error}");
}
