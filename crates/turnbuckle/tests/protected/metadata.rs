//! What a protected server tells of itself, and where.

use serde_json::{Value, json};
use tokio::net::TcpListener;
use turnbuckle::{Client, Server, auth::resource_server::ResourceServer};

use crate::support::{Ask, Plan, call, server, world};

const PATH: &str = "/.well-known/oauth-protected-resource/mcp";

// req: hosting:auth:metadata-endpoints, hosting:auth:prm:authorization-servers-field
#[tokio::test]
async fn the_document_is_there_for_everyone() {
    let mut plan = Plan::of(server().required_scopes(["mcp"]));
    plan.resource = |resource| resource.name("Test");
    let world = plan.start().await;
    let answer = world.ask(&Ask::new("GET", PATH)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type").unwrap(), "application/json");
    assert_eq!(answer.header("access-control-allow-origin").unwrap(), "*");
    let document = answer.json();
    assert_eq!(document["resource"], world.resource);
    assert_eq!(document["authorization_servers"], json!([world.auth.issuer()]));
    assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    assert_eq!(document["scopes_supported"], json!(["mcp"]));
    assert_eq!(document["resource_name"], "Test");
    // The challenge leads there.
    let (method, params) = call("who");
    let challenge = world.ask(&Ask::modern(method, params)).await.challenge();
    assert!(challenge.resource_metadata.unwrap().ends_with(PATH));
}

#[tokio::test]
async fn nothing_else_is_there_and_nothing_can_be_sent_there() {
    let world = world().await;
    let answer = world.ask(&Ask::new("POST", PATH)).await;
    assert_eq!((answer.status, answer.header("allow").as_deref()), (405, Some("GET, HEAD")));
    let answer = world.ask(&Ask::new("HEAD", PATH)).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/other", "/"] {
        assert_eq!(world.ask(&Ask::new("GET", path)).await.status, 404, "{path}");
    }
    let foreign = Ask::new("GET", PATH).header("origin", "https://evil.example.com");
    assert_eq!(world.ask(&foreign).await.status, 403);
}

// req: hosting:auth:metadata-endpoints
#[tokio::test]
async fn a_server_that_is_mounted_somewhere_has_it_beside() {
    let resource = ResourceServer::new("http://localhost/tools/mcp").issuer("https://a.example");
    let server = server().protect(resource);
    let metadata = server.metadata_service();
    let path = metadata.path().to_owned();
    assert_eq!(path, "/.well-known/oauth-protected-resource/tools/mcp");
    let app = axum::Router::new()
        .nest_service("/tools/mcp", server.http_service())
        .route_service(&path, metadata);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app).into_future());
    let answer = crate::support::ask_at(&address.to_string(), &Ask::new("GET", &path)).await;
    assert_eq!(answer.json()["resource"], "http://localhost/tools/mcp");
    let preflight = Ask::new("OPTIONS", &path).header("origin", "https://app.example.com");
    let answer = crate::support::ask_at(&address.to_string(), &preflight).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin").unwrap(), "*");
    let (method, params) = call("who");
    let ask = Ask::modern(method, params).at("/tools/mcp");
    assert_eq!(crate::support::ask_at(&address.to_string(), &ask).await.status, 401);
}

#[tokio::test]
async fn settings_that_would_let_nobody_in_or_everybody_are_refused() {
    let told = |server: &Server| server.http_service().check().unwrap_err().to_string();
    let no_issuer = server().protect(ResourceServer::new("https://mcp.example.com/mcp"));
    assert!(told(&no_issuer).contains("no issuer is trusted"), "{}", told(&no_issuer));
    assert!(no_issuer.sse_service("/sse").check().is_err());
    let open = server().required_scopes(["mcp"]);
    assert!(told(&open).contains("call Server::protect"), "{}", told(&open));
    let resource =
        || ResourceServer::new("https://mcp.example.com/mcp").issuer("https://a.example");
    let wrong = server().protect(resource()).required_scopes(["two words"]);
    assert!(told(&wrong).contains("`two words` is no scope"), "{}", told(&wrong));
    // None of that is for a client that has the server to itself.
    for server in [no_issuer, open, wrong] {
        Client::in_process(&server).await.unwrap();
    }
    let sound = server().protect(resource());
    sound.http_service().check().unwrap();
    sound.sse_service("/sse").check().unwrap();
}

#[tokio::test]
async fn what_only_some_may_ask_for_is_not_for_everyone_to_keep() {
    let world = world().await;
    let token = world.token("ann", "a");
    for method in ["tools/list", "server/discover"] {
        let answer = world.ask(&Ask::modern(method, json!({})).bearer(&token)).await.json();
        assert_eq!(answer["result"]["cacheScope"], Value::from("private"), "{method}");
    }
}
