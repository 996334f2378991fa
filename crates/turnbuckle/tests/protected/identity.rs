//! What those see of a caller who are behind the door.

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use serde_json::json;
use tower_service::Service;
use turnbuckle::{
    Client, RpcError,
    auth::{SigningKey, testing::dpop_proof},
    middleware::{
        Response,
        server::{Next, Request},
    },
};

use crate::support::{Ask, Plan, call, rest, server, world};

// req: hosting:auth:authinfo-propagates, typescript:hosting:entry:auth:authinfo-propagates
#[tokio::test]
async fn a_handler_knows_who_came_by_issuer_and_subject_and_never_sees_the_token() {
    let world = world().await;
    let token = world.issue(json!({"sub": "ann", "client_id": "app", "scope": "b a"}));
    let (method, params) = call("who");
    for ask in world.both_eras(method, params, &token).await {
        assert_eq!(world.ask(&ask).await.said(), "ann Some(\"app\") a b");
    }
    let (method, params) = call("seen");
    for ask in world.both_eras(method, params, &token).await {
        let expected = format!("{}|ann false false", world.auth.issuer());
        assert_eq!(world.ask(&ask).await.said(), expected);
    }
}

#[tokio::test]
async fn nor_is_a_proof_seen() {
    let world = world().await;
    let key = SigningKey::generate().unwrap();
    let token = world.issue(json!({"sub": "ann", "cnf": {"jkt": key.thumbprint()}}));
    let proof = dpop_proof(&key, "POST", &world.resource, &token, None).unwrap();
    let (method, params) = call("seen");
    let ask = Ask::modern(method, params)
        .header("authorization", &format!("DPoP {}", token.expose()))
        .header("dpop", &proof);
    assert!(world.ask(&ask).await.said().ends_with("|ann false false"));
}

// req: hosting:auth:authinfo-propagates
#[tokio::test]
async fn it_is_the_same_over_http_with_server_sent_events() {
    let world = world().await;
    let token = world.token("ann", "a");
    let mut sse = world.sse(&token).await;
    let (method, params) = call("seen");
    assert_eq!(world.ask(&sse.post(method, params.clone())).await.status, 401);
    // Another's token does not even find the session.
    let bob = world.ask(&sse.post(method, params.clone()).bearer(&world.token("bob", "a"))).await;
    assert_eq!(bob.status, 404);
    assert_eq!(world.ask(&sse.post(method, params).bearer(&token)).await.status, 202);
    sse.hear("|ann false false").await;
    drop(world);
    rest(sse.stream).await;
}

/// A token is renewed while the stream stays open.
#[tokio::test]
async fn over_server_sent_events_a_handler_sees_whoever_sent_its_message() {
    let world = world().await;
    let opener = world.issue(json!({"sub": "ann", "client_id": "first", "scope": "a"}));
    let later = world.issue(json!({"sub": "ann", "client_id": "second", "scope": "b"}));
    let mut sse = world.sse(&opener).await;
    let (method, params) = call("who");
    for (token, expected) in
        [(&later, r#"ann Some(\"second\") b"#), (&opener, r#"ann Some(\"first\") a"#)]
    {
        let post = sse.post(method, params.clone()).bearer(token);
        assert_eq!(world.ask(&post).await.status, 202);
        sse.hear(expected).await;
    }
}

/// Writes down what a layer sees of a caller.
#[derive(Clone)]
struct Watch {
    seen: Arc<Mutex<Vec<String>>>,
    next: Next,
}

impl Service<Request> for Watch {
    type Response = Response;
    type Error = RpcError;
    type Future = <Next as Service<Request>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RpcError>> {
        self.next.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let ctx = request.ctx();
        let name = ctx.principal::<()>().map(|who| who.name().to_owned());
        let token = ctx.header("authorization").map(str::to_owned);
        self.seen.lock().unwrap().push(format!("{name:?} {token:?}"));
        self.next.call(request)
    }
}

#[tokio::test]
async fn layers_see_what_handlers_see() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = seen.clone();
    let watch = tower_layer::layer_fn(move |next| Watch { seen: sink.clone(), next });
    let world = Plan::of(server().layer(watch)).start().await;
    let token = world.token("ann", "a");
    let (method, params) = call("who");
    for ask in world.both_eras(method, params, &token).await {
        world.ask(&ask).await.said();
    }
    let expected = format!("{:?} None", Some(format!("{}|ann", world.auth.issuer())));
    assert_eq!(*seen.lock().unwrap(), [expected.clone(), expected]);
}

#[tokio::test]
async fn a_client_that_has_the_server_to_itself_needs_no_token() {
    let server = server().protect(
        turnbuckle::auth::resource_server::ResourceServer::new("https://mcp.example.com/mcp")
            .issuer("https://auth.example.com"),
    );
    let client = Client::in_process(&server).await.unwrap();
    let said = client.request("tools/call", json!({"name": "seen"})).await.unwrap();
    assert!(said.as_str().contains("local false false"), "{said:?}");
}
