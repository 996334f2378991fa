//! Each way to be turned away, on each way in.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use turnbuckle::auth::{Scheme, Scopes, Secret};

use crate::support::{Ask, Plan, World, call, rest, server, until, world};

/// Everything that can be asked for, without a token.
fn ways() -> Vec<Ask> {
    let (method, params) = call("who");
    vec![
        Ask::modern(method, params.clone()),
        Ask::modern("server/discover", json!({})),
        Ask::modern("subscriptions/listen", json!({"notifications": {}})),
        Ask::legacy("initialize", json!({})),
        Ask::legacy(method, params).header("mcp-session-id", "none"),
        Ask::message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        Ask::new("GET", "/mcp").header("accept", "text/event-stream"),
        Ask::new("DELETE", "/mcp").header("mcp-session-id", "none"),
        Ask::new("PUT", "/mcp"),
        Ask::new("GET", "/sse").header("accept", "text/event-stream"),
        Ask::legacy("ping", json!({})).at("/sse?sessionId=none"),
    ]
}

async fn is_unharmed(world: &World) {
    let (method, params) = call("who");
    for ask in world.both_eras(method, params, &world.token("ann", "a")).await {
        assert_eq!(world.ask(&ask).await.said(), "ann None a");
    }
}

// req: hosting:auth:missing-401, typescript:hosting:entry:auth:missing-401
#[tokio::test]
async fn whoever_brings_nothing_is_asked_for_a_token_and_told_where_to_get_it() {
    let world = world().await;
    let metadata = world.resource.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    for ask in ways() {
        for ask in [ask.clone(), ask.header("authorization", "Basic YTpi")] {
            let answer = world.ask(&ask).await;
            assert_eq!(answer.status, 401, "{ask:?}");
            let expected = format!("Bearer resource_metadata=\"{metadata}\"");
            assert_eq!(answer.header("www-authenticate").unwrap(), expected);
            assert_eq!(answer.body, "");
        }
    }
    is_unharmed(&world).await;
}

// req: hosting:auth:missing-401, hosting:auth:scope-403
#[tokio::test]
async fn what_everything_needs_is_asked_for_at_once_and_refused_to_tokens_without() {
    let mut plan = Plan::of(server().required_scopes(["mcp", "base"]));
    plan.resource = |resource| resource.require(Scopes::from_iter(["own"]));
    let world = plan.start().await;
    let all = Scopes::from_iter(["base", "mcp", "own"]);
    let little = world.token("ann", "mcp");
    for ask in ways() {
        let answer = world.ask(&ask).await;
        assert_eq!((answer.status, answer.challenge().scope), (401, Some(all.clone())));
        let answer = world.ask(&ask.bearer(&little)).await;
        let challenge = answer.challenge();
        assert_eq!((answer.status, challenge.scope), (403, Some(all.clone())));
        assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
        assert!(challenge.resource_metadata.is_some());
    }
    let (method, params) = call("who");
    let enough = world.token("ann", "own mcp more base");
    for ask in world.both_eras(method, params, &enough).await {
        assert_eq!(world.ask(&ask).await.said(), "ann None base mcp more own");
    }
}

fn bad_tokens(world: &World) -> Vec<(&'static str, Secret)> {
    let now = turnbuckle::auth::Clock::now(&*world.clock);
    let changed = |claims: Value| world.issue(claims);
    let good = world.token("ann", "a");
    let mut tampered = good.expose().to_owned();
    let at = tampered.rfind('.').unwrap() + 5;
    let other = if tampered.as_bytes()[at] == b'A' { "B" } else { "A" };
    tampered.replace_range(at..=at, other);
    vec![
        ("no token at all", Secret::new("abc")),
        ("not signed", world.auth.issue_unsigned(world.claims(json!({})))),
        ("signed by another", Secret::new(tampered)),
        ("expired", changed(json!({"exp": now - 31}))),
        ("for later", changed(json!({"nbf": now + 31}))),
        ("of later", changed(json!({"iat": now + 31}))),
        ("for another", changed(json!({"aud": "https://other.example.com/mcp"}))),
        ("for a part of it", changed(json!({"aud": world.resource.trim_end_matches("/mcp")}))),
        ("of another", changed(json!({"iss": "https://other.example.com"}))),
        ("of nobody", changed(json!({"sub": ""}))),
        ("oversized", changed(json!({"more": "x".repeat(20_000)}))),
    ]
}

// req: hosting:auth:invalid-401, hosting:auth:expired-401, hosting:auth:aud-validation
#[tokio::test]
async fn a_token_that_is_no_good_is_refused_everywhere_and_disturbs_nobody() {
    let world = world().await;
    for (what, token) in bad_tokens(&world) {
        for ask in ways() {
            let answer = world.ask(&ask.bearer(&token)).await;
            assert_eq!(answer.status, 401, "{what}");
            let challenge = answer.challenge();
            assert_eq!(challenge.error.as_deref(), Some("invalid_token"), "{what}");
            assert_eq!(challenge.scheme, Scheme::Bearer);
            assert!(challenge.resource_metadata.is_some());
            let start = &token.expose()[..token.expose().len().min(12)];
            assert!(what == "no token at all" || !format!("{answer:?}").contains(start));
        }
        is_unharmed(&world).await;
    }
}

// req: hosting:auth:query-token-ignored
#[tokio::test]
async fn a_token_in_the_address_is_not_looked_at() {
    let world = world().await;
    let token = world.token("ann", "a");
    let (method, params) = call("who");
    let ask = Ask::modern(method, params).at(&format!("/mcp?access_token={}", token.expose()));
    let answer = world.ask(&ask).await;
    assert_eq!((answer.status, answer.challenge().error), (401, None));
    assert_eq!(world.ask(&ask.bearer(&token)).await.said(), "ann None a");
}

/// RFC 6750 §2.2 lets servers look there, and the specification does not.
#[tokio::test]
async fn a_token_in_a_form_is_not_looked_at() {
    let world = world().await;
    let token = world.token("ann", "a");
    let (method, params) = call("who");
    for path in ["/mcp", "/sse?sessionId=none"] {
        let mut ask = Ask::modern(method, params.clone()).at(path);
        ask.body = format!("access_token={}", token.expose());
        let answer = world.ask(&ask).await;
        assert_eq!((answer.status, answer.challenge().error), (401, None), "{path}");
        // What says that it is a form is refused before anyone is asked who they are.
        let kind = ask.headers.iter_mut().find(|(name, _)| name == "content-type").unwrap();
        kind.1 = "application/x-www-form-urlencoded".into();
        assert_eq!(world.ask(&ask).await.status, 415, "{path}");
    }
}

#[tokio::test]
async fn two_credentials_are_a_mistake() {
    let world = world().await;
    let token = world.token("ann", "a");
    for ask in ways() {
        let answer = world.ask(&ask.bearer(&token).bearer(&token)).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.challenge().error.as_deref(), Some("invalid_request"));
    }
}

// req: typescript:hosting:entry:auth:missing-401
#[tokio::test]
async fn nothing_of_a_body_is_read_before_it_is_known_who_comes() {
    let world = world().await;
    let (method, params) = call("who");
    for path in ["/mcp", "/sse?sessionId=none"] {
        let mut ask = Ask::modern(method, params.clone()).at(path).header("content-length", "9999");
        ask.body.clear();
        let mut stream = world.send(&ask).await;
        assert!(until(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 401"));
    }
    // One who is let in is waited for.
    let ask = Ask::modern(method, params).bearer(&world.token("ann", "a"));
    let mut first = ask.clone().header("content-length", &ask.body.len().to_string());
    let body = std::mem::take(&mut first.body);
    let mut stream = world.send(&first).await;
    stream.write_all(body.as_bytes()).await.unwrap();
    assert!(rest(stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_stranger_by_name_or_origin_is_refused_before_any_token_is_looked_at() {
    let world = world().await;
    let token = world.token("ann", "a");
    for ask in ways() {
        let foreign = ask.clone().bearer(&token).header("origin", "https://evil.example.com");
        let mut renamed = ask.bearer(&token);
        renamed.headers[0].1 = "evil.example.com".into();
        for ask in [foreign.clone(), foreign.anonymous(), renamed.clone(), renamed.anonymous()] {
            let answer = world.ask(&ask).await;
            assert_eq!((answer.status, answer.header("www-authenticate")), (403, None));
        }
    }
}

#[tokio::test]
async fn a_body_that_comes_late_does_not_cost_the_answer() {
    let world = world().await;
    let token = world.token("ann", "a");
    let (method, params) = call("who");
    let ask = Ask::modern(method, params);
    let mut stream = refused_late(&world, &ask).await;
    // And the connection is good for another one.
    let (head, body) = ask.bearer(&token).parts();
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    assert!(rest(stream).await.contains("ann None a"));

    let session = world.sse(&token).await;
    refused_late(&world, &session.post("ping", json!({}))).await;
}

/// Sends the body of a request when its head was read and the server waits for more, and is refused.
async fn refused_late(world: &World, ask: &Ask) -> TcpStream {
    let (head, body) = ask.parts();
    let mut stream = world.send_text(&head.replace("connection: close\r\n", "")).await;
    // Time passes only when nobody has anything to do. Whoever answers at once, closes.
    tokio::time::pause();
    let mut early = [0];
    let before_it_gives_up = Duration::from_millis(500);
    let answered = tokio::time::timeout(before_it_gives_up, stream.peek(&mut early)).await;
    assert!(answered.is_err(), "it was refused before it was sent");
    tokio::time::resume();
    stream.write_all(body.as_bytes()).await.unwrap();
    let refused = until(&mut stream, "\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    stream
}
