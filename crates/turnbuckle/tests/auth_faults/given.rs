//! A provider that gives tokens which are no good.

use serde_json::{Value, json};
use turnbuckle::{
    ErrorKind,
    auth::{
        AuthErrorKind, Clock as _,
        testing::{Endpoint, Fault},
    },
};

use crate::{
    ears::{Ears, told},
    world::{ERAS, Neighbour, World, assert_why, connect, connect_and_say, said},
};

fn claims(claims: &Value) -> Fault {
    Fault::Claims(claims.as_object().unwrap().clone())
}

/// Each with what the server says of it.
fn bad_tokens(now: u64) -> Vec<(Fault, &'static str)> {
    vec![
        (claims(&json!({"exp": now - 60})), "has expired"),
        (claims(&json!({"nbf": now + 60})), "not valid yet"),
        (claims(&json!({"iat": now + 60})), "not valid yet"),
        (claims(&json!({"aud": "https://other.example.com/mcp"})), "not meant for this resource"),
        (claims(&json!({"iss": "https://other.example.com"})), "issuer is unknown"),
        (Fault::Unsigned, "not signed in a way"),
    ]
}

// req: client-auth:401-after-auth-throws, client-auth:401-triggers-flow
#[tokio::test]
async fn a_new_token_that_the_server_refuses_ends_in_an_error_and_not_in_a_loop() {
    let neighbour = Neighbour::new().await;
    for era in ERAS {
        for (fault, says) in bad_tokens(World::new().await.clock.now()) {
            let (ears, world) = (Ears::new(), World::new().await);
            let what = format!("{fault:?} in {era}");
            // Someone else is let in all the while.
            let friend = world.logged_in().await;
            let (asked, logins) = (world.asked()[2], world.person.logins());
            world.provider.fail(Endpoint::Token, fault);
            let own = world.auth().store(turnbuckle::auth::MemoryStore::new());
            let failing = connect_and_say(&world.url, own.clone(), era);
            let (failed, other, ()) = tokio::join!(failing, said(&friend), neighbour.is_unharmed());
            assert_eq!(other.unwrap(), "hello");
            let error = failed.expect_err(&what);
            assert_eq!(error.kind(), ErrorKind::AuthorizationRequired, "{what}: {error}");
            assert_why(&error, AuthErrorKind::Required, "refuses a token that is new", &what);
            let challenge = error.challenge().unwrap();
            assert_eq!(challenge.error.as_deref(), Some("invalid_token"), "{what}");
            let reason = challenge.error_description.as_deref().unwrap();
            assert!(reason.contains(says), "{what}: {reason}");
            let now = (world.asked()[2], world.person.logins(), world.answered(401));
            assert_eq!(now, (asked + 1, logins + 1, 3), "{what}");

            // Once it gives good ones, nobody needs to log in.
            world.provider.heal();
            let client = connect(&world.url, own, era).await.unwrap();
            assert_eq!(said(&client).await.unwrap(), "hello", "{what}");
            assert_eq!(world.person.logins(), logins + 1, "{what}");
            ears.found_nothing(&world.provider.secrets(), &told(&error));
        }
    }
}

#[tokio::test]
async fn a_token_that_is_too_long_is_not_even_kept() {
    let neighbour = Neighbour::new().await;
    for era in ERAS {
        let (ears, world) = (Ears::new(), World::new().await);
        world.provider.fail(Endpoint::Token, claims(&json!({"more": "x".repeat(20_000)})));
        let failing = connect_and_say(&world.url, world.auth(), era);
        let (failed, ()) = tokio::join!(failing, neighbour.is_unharmed());
        let error = failed.unwrap_err();
        assert_why(&error, AuthErrorKind::Unreachable, "no usable token", "oversized");
        assert_eq!((world.asked(), world.person.logins()), ([1, 1, 1], 1));
        assert!(world.kept().await.is_none());
        world.provider.heal();
        assert_eq!(connect_and_say(&world.url, world.auth(), era).await.unwrap(), "hello");
        ears.found_nothing(&world.provider.secrets(), &told(&error));
    }
}
