//! How a handler goes on to another server for its caller: by a token that it gets in exchange, and
//! never by the caller's own.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};
use turnbuckle::{
    Client, Ctx, Server, State, ToolError,
    auth::{
        Secret,
        resource_server::{Caller, TokenExchange},
        testing::{Endpoint, Fault},
    },
    tool,
};

use crate::support::{Answer, Ask, Plan, World, call};

const API: &str = "https://api.example.com";

fn exchange(issuer: &str) -> TokenExchange {
    TokenExchange::basic(issuer, "machine", Secret::new("s3cr3t"))
        .resource(API)
        .scopes(["orders:read"])
}

/// Says what another server would see.
async fn onward(ctx: Ctx, State(exchange): State<TokenExchange>) -> Result<String, ToolError> {
    let token = ctx.token_exchange(&exchange).await;
    let token = token.map_err(|error| ToolError::new(format!("{error} {error:?}")))?;
    let header = token.header();
    let text = header.to_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned();
    let payload = URL_SAFE_NO_PAD.decode(text.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&payload).unwrap();
    Ok(format!("{} {} {} {}", claims["sub"], claims["aud"], claims["scope"], claims["jti"]))
}

/// What of a caller's token can be had otherwise.
async fn reach(ctx: Ctx) -> String {
    let texts = [ctx.header("authorization"), ctx.header("dpop")];
    let found = [
        texts.iter().any(Option::is_some),
        ctx.extension::<Secret>().is_some(),
        ctx.extension::<Caller>().is_some(),
        ctx.extension::<http::HeaderMap>().is_some(),
    ];
    format!("{found:?} {ctx:?}")
}

fn server() -> Server {
    Server::new("test", "1.0").tool(tool("onward", onward)).tool(tool("reach", reach))
}

async fn world() -> World {
    let finish = |server: Server, issuer: &str| server.state(exchange(issuer));
    Plan { finish, ..Plan::of(server()) }.start().await
}

/// One call on each wire.
async fn on_every_wire(world: &World, token: &Secret) -> [String; 3] {
    let (method, params) = call("onward");
    let [modern, legacy] = world.both_eras(method, params.clone(), token).await;
    let mut sse = world.sse(token).await;
    assert_eq!(world.ask(&sse.post(method, params).bearer(token)).await.status, 202);
    let streamed = sse.hear("}\n\n").await.replace("\\\"", "\"").replace("\\\\", "\\");
    [world.ask(&modern).await.said(), world.ask(&legacy).await.said(), streamed]
}

async fn modern(world: &World, token: &Secret) -> Answer {
    let (method, params) = call("onward");
    world.ask(&Ask::modern(method, params).bearer(token)).await
}

#[tokio::test]
async fn a_token_for_another_server_is_got_on_every_wire_and_asked_for_once() {
    let world = world().await;
    let [ann, bob] = ["ann", "bob"].map(|subject| world.token(subject, "orders:read files:write"));
    let said = on_every_wire(&world, &ann).await;
    let expected = format!("\"ann\" \"{API}\" \"orders:read\" ");
    assert!(said.iter().all(|said| said.contains(&expected)), "{said:?}");
    assert_eq!(world.auth.requests(Endpoint::Token), 1);
    // Nobody gets another's.
    let said = on_every_wire(&world, &bob).await;
    let expected = format!("\"bob\" \"{API}\" \"orders:read\" ");
    assert!(said.iter().all(|said| said.contains(&expected)), "{said:?}");
    assert_eq!(world.auth.requests(Endpoint::Token), 2);
    // Nor the same person one that was got for another token.
    let fewer = world.issue(json!({"sub": "ann", "scope": "orders:read"}));
    modern(&world, &fewer).await.said();
    assert_eq!(world.auth.requests(Endpoint::Token), 3);
}

#[tokio::test]
async fn calls_at_once_share_one_exchange_and_a_new_one_comes_in_time() {
    let world = world().await;
    let token = world.issue(json!({"sub": "ann", "scope": "orders:read",
        "exp": 9_000_000_000_u64}));
    let (first, second) = tokio::join!(modern(&world, &token), modern(&world, &token));
    assert_eq!(first.said(), second.said());
    assert_eq!(world.auth.requests(Endpoint::Token), 1);
    world.clock.advance(3600 - 31);
    assert_eq!(modern(&world, &token).await.said(), first.said());
    world.clock.advance(1);
    assert_ne!(modern(&world, &token).await.said(), first.said());
    assert_eq!(world.auth.requests(Endpoint::Token), 2);
}

/// All that is logged, by whomever.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl<S: Subscriber> Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        attributes.record(&mut self.clone());
    }

    fn on_record(&self, _: &Id, record: &Record<'_>, _: Context<'_, S>) {
        record.record(&mut self.clone());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut self.clone());
    }
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        *self.0.lock().unwrap() += &format!("{field}={value:?}\n");
    }
}

#[tokio::test]
async fn a_refusal_is_clear_and_the_callers_token_is_nowhere() {
    let log = Log::default();
    let subscriber = tracing_subscriber::registry().with(log.clone());
    let logging = tracing::subscriber::set_default(subscriber);
    let mut world = world().await;
    // It is good here, but not for what is asked.
    let token = world.token("ann", "files:write");
    let mut said = on_every_wire(&world, &token).await.to_vec();
    assert!(said.iter().all(|said| said.contains("invalid_scope")), "{said:?}");
    world.auth.fail(Endpoint::Token, Fault::Html);
    said.push(modern(&world, &token).await.said());
    world.auth.fail(Endpoint::Token, Fault::Status(500));
    said.push(modern(&world, &token).await.said());
    world.auth.heal();
    world.stop_issuer();
    said.push(modern(&world, &token).await.said());
    assert!(said[5].contains("can't be reached"), "{said:?}");
    drop(logging);
    let logged = log.0.lock().unwrap().clone();
    assert!(!logged.is_empty(), "something was logged");
    let [_, claims, signature] = token.expose().split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts")
    };
    for part in [claims, signature, "s3cr3t", "bWFjaGluZTpzM2NyM3Q"] {
        assert!(said.iter().all(|said| !said.contains(part)), "{said:?}");
        assert!(!logged.contains(part), "{logged}");
    }
}

#[tokio::test]
async fn a_callers_token_can_be_had_in_no_other_way() {
    let world = world().await;
    let token = world.token("ann", "orders:read");
    let (method, params) = call("reach");
    for ask in world.both_eras(method, params, &token).await {
        let said = world.ask(&ask).await.said();
        assert!(said.starts_with("[false, false, false, false]"), "{said}");
        assert!(!said.contains(token.expose().split('.').next_back().unwrap()));
    }
}

#[tokio::test]
async fn where_there_is_no_token_nothing_is_exchanged() {
    let server = server().state(exchange("https://auth.example.com"));
    let client = Client::in_process(&server).await.unwrap();
    let said = client.request("tools/call", json!({"name": "onward"})).await.unwrap();
    assert!(said.as_str().contains("there is no token to exchange"), "{said:?}");
}
