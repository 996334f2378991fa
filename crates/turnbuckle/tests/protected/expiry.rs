//! Streams last no longer than the tokens that they were opened with.

use std::time::Duration;

use serde_json::json;
use turnbuckle::auth::{Clock as _, Secret};

use crate::support::{Ask, Plan, World, call, rest, server, until};

const REASON: &str = "the token has expired";

async fn world() -> World {
    let mut plan = Plan::of(server());
    plan.resource = |resource| resource.clock_skew(Duration::ZERO);
    plan.start().await
}

/// A token that is good for one second: the clocks stand still, but streams don't.
fn brief(world: &World) -> Secret {
    world.issue(json!({"sub": "ann", "exp": world.clock.now() + 1}))
}

#[tokio::test]
async fn a_listen_stream_ends_with_a_reason_when_its_token_does() {
    let world = world().await;
    let asked = json!({"notifications": {"toolsListChanged": true}});
    let ask = Ask::modern("subscriptions/listen", asked).bearer(&brief(&world));
    let mut stream = world.send(&ask).await;
    until(&mut stream, "acknowledged").await;
    let rest = rest(stream).await;
    assert!(rest.contains(REASON) && rest.contains("\"error\""), "{rest}");
}

#[tokio::test]
async fn the_stream_of_a_session_ends_when_its_token_does_and_the_session_goes_on() {
    let world = world().await;
    let long = world.token("ann", "a");
    let session = world.session(&long).await;
    let get = Ask::new("GET", "/mcp")
        .header("accept", "text/event-stream")
        .header("mcp-session-id", &session)
        .bearer(&brief(&world));
    let text = rest(world.send(&get).await).await;
    assert!(text.starts_with("HTTP/1.1 200") && text.contains(REASON), "{text}");
    let (method, params) = call("who");
    let ask = Ask::legacy(method, params).header("mcp-session-id", &session).bearer(&long);
    assert_eq!(world.ask(&ask).await.said(), "ann None a");
}

#[tokio::test]
async fn a_session_over_http_with_server_sent_events_ends_when_its_token_does() {
    let world = world().await;
    let get = Ask::new("GET", "/sse").header("accept", "text/event-stream").bearer(&brief(&world));
    let text = rest(world.send(&get).await).await;
    let path = text.split("data: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert!(text.contains(REASON), "{text}");
    let ask = Ask::legacy("ping", json!({})).at(&path).bearer(&world.token("ann", "a"));
    assert_eq!(world.ask(&ask).await.status, 404);
}

// req: hosting:auth:expired-401
#[tokio::test]
async fn a_token_that_has_expired_meanwhile_is_refused_in_its_own_session() {
    let world = world().await;
    let token = brief(&world);
    let (method, params) = call("who");
    let asks = world.both_eras(method, params, &token).await;
    for ask in &asks {
        assert_eq!(world.ask(ask).await.status, 200);
    }
    world.clock.advance(1);
    for ask in &asks {
        let answer = world.ask(ask).await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.challenge().error.as_deref(), Some("invalid_token"));
    }
}
