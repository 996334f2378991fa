//! What goes wrong while a token is renewed: what may pass keeps the tokens, what may not costs them.

use turnbuckle::{
    Client, ErrorKind,
    auth::{
        Auth, AuthErrorKind, Registered, Secret, Settings,
        testing::{Endpoint, Fault},
    },
};

use crate::{
    ears::{Ears, told},
    world::{KNOWN, Neighbour, Watch, World, assert_why, said},
};

const TWO_HOURS: u64 = 2 * 3600;

/// Whether a client knows that its token has ended, or is told so by the server.
#[derive(Clone, Copy, Debug)]
enum Knows {
    Itself,
    ByRefusal,
}

const BOTH: [Knows; 2] = [Knows::Itself, Knows::ByRefusal];

/// A client that is logged in, with a token that has ended.
async fn ended(world: &World, auth: Auth, knows: Knows) -> Client {
    let auth = match knows {
        Knows::Itself => auth.clock(world.clock.clone()),
        Knows::ByRefusal => auth.clock(Watch::default()),
    };
    let client = world.client(auth).await;
    assert_eq!(said(&client).await.unwrap(), "hello");
    world.clock.forward(TWO_HOURS);
    client
}

// req: client-auth:refresh:rotation-handling
#[tokio::test]
async fn what_may_pass_costs_no_token_and_no_login() {
    let (neighbour, other) = (Neighbour::new().await, World::new().await);
    let elsewhere = format!("{}/token", other.provider.issuer());
    for (fault, kind, says) in [
        (Fault::Status(503), AuthErrorKind::Unreachable, "503"),
        (Fault::Status(429), AuthErrorKind::Unreachable, "429"),
        (Fault::Html, AuthErrorKind::Unreachable, "something else than JSON"),
        (Fault::Oversized(2 << 20), AuthErrorKind::Unreachable, "sent more than is read"),
        (Fault::Redirect(elsewhere), AuthErrorKind::Forbidden, "never redirected"),
        (
            Fault::Error("temporarily_unavailable".into()),
            AuthErrorKind::Unreachable,
            "temporarily_unavailable",
        ),
    ] {
        for knows in BOTH {
            let (ears, world) = (Ears::new(), World::new().await);
            let client = ended(&world, world.auth(), knows).await;
            let (before, [metadata, ..]) = (world.kept_refresh().await, world.asked());
            world.provider.fail(Endpoint::Token, fault.clone());
            let (failed, ()) = tokio::join!(said(&client), neighbour.is_unharmed());
            let (error, what) = (failed.unwrap_err(), format!("{fault:?}, {knows:?}"));
            assert_eq!(error.kind(), ErrorKind::Authorization, "{what}");
            assert_why(&error, kind, says, &what);
            let asked = world.asked();
            assert_eq!((asked[1], asked[2], world.person.logins()), (1, 2, 1), "{what}");
            // The server looks at the issuer's keys again, the client at what the server relies on.
            assert!(asked[0] <= metadata + 2, "{what}: {asked:?}");
            assert!(before.is_some() && world.kept_refresh().await == before, "{what}");

            world.provider.heal();
            assert_eq!(said(&client).await.unwrap(), "hello", "{what}");
            assert_eq!((world.asked()[2], world.person.logins()), (3, 1), "{what}");
            let after = world.kept_refresh().await;
            assert!(after.is_some() && after != before, "{what}: it was not rotated");
            ears.found_nothing(&world.provider.secrets(), &told(&error));
        }
    }
    assert_eq!(other.asked(), [0, 0, 0]);
}

#[tokio::test]
async fn a_provider_that_is_down_costs_no_token() {
    let neighbour = Neighbour::new().await;
    for knows in BOTH {
        let (ears, mut world) = (Ears::new(), World::new().await);
        let client = ended(&world, world.auth(), knows).await;
        let before = world.kept_refresh().await;
        world.stop_provider().await;
        for _ in 0..3 {
            let (failed, ()) = tokio::join!(said(&client), neighbour.is_unharmed());
            let place = format!("can't reach {}/", world.provider.issuer());
            let error = failed.unwrap_err();
            assert_why(&error, AuthErrorKind::Unreachable, &place, "down");
            ears.found_nothing(&world.provider.secrets(), &told(&error));
        }
        assert!(world.kept_refresh().await == before, "{knows:?}");
        world.start_provider();
        assert_eq!(said(&client).await.unwrap(), "hello");
        assert_eq!((world.asked()[2], world.person.logins()), (2, 1), "{knows:?}");
    }
}

// req: client-auth:invalid-grant-clears-tokens
#[tokio::test]
async fn a_grant_that_is_used_up_costs_the_tokens_and_then_someone_logs_in() {
    for knows in BOTH {
        let world = World::new().await;
        let client = ended(&world, world.auth(), knows).await;
        let before = world.kept_refresh().await;
        world.revoke().await;
        assert_eq!(said(&client).await.unwrap(), "hello");
        // One refused refresh, one code; the client is the same as before.
        assert_eq!((world.asked()[1], world.asked()[2], world.person.logins()), (1, 3, 2));
        assert!(world.kept_refresh().await != before);
    }
}

// req: client-auth:invalid-grant-clears-tokens, client-auth:401-after-auth-throws
#[tokio::test]
async fn a_grant_that_is_used_up_is_told_where_nobody_logs_in() {
    let neighbour = Neighbour::new().await;
    for knows in BOTH {
        let (ears, world) = (Ears::new(), World::new().await);
        drop(world.logged_in().await);
        let nobody = Auth::with(Settings::default()).store(world.store.clone());
        let client = ended(&world, nobody, knows).await;
        world.revoke().await;
        for _ in 0..3 {
            let (failed, ()) = tokio::join!(said(&client), neighbour.is_unharmed());
            let error = failed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AuthorizationRequired, "{knows:?}: {error}");
            assert!(error.challenge().is_some_and(|it| it.resource_metadata.is_some()));
            assert!(!error.maybe_executed());
            let kept = world.kept().await.expect("who the client is stays known");
            assert!(kept.tokens.is_none());
            ears.found_nothing(&world.provider.secrets(), &told(&error));
        }
        // What is known to be used up is not shown again.
        assert_eq!((world.asked()[2], world.person.logins()), (2, 1), "{knows:?}");
        // Someone logs in elsewhere: this client sees it.
        let other = world.client(world.auth()).await;
        assert_eq!(said(&other).await.unwrap(), "hello");
        assert_eq!(said(&client).await.unwrap(), "hello");
    }
}

#[tokio::test]
async fn eight_calls_with_a_grant_that_is_used_up_bother_someone_once() {
    for knows in BOTH {
        let world = World::new().await;
        let client = ended(&world, world.auth(), knows).await;
        world.revoke().await;
        let calls: Vec<_> = (0..8)
            .map(|_| client.clone())
            .map(|client| tokio::spawn(async move { said(&client).await }))
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), "hello");
        }
        assert_eq!((world.asked()[1], world.asked()[2], world.person.logins()), (1, 3, 2));
    }
}

#[tokio::test]
async fn tokens_that_another_has_found_used_up_are_got_anew() {
    for knows in BOTH {
        let world = World::new().await;
        let client = ended(&world, world.auth(), knows).await;
        world.revoke().await;
        let nobody = Auth::with(Settings::default()).store(world.store.clone());
        let other = world.client(nobody.clock(world.clock.clone())).await;
        assert_eq!(said(&other).await.unwrap_err().kind(), ErrorKind::AuthorizationRequired);
        assert!(world.kept().await.unwrap().tokens.is_none());
        assert_eq!(said(&client).await.unwrap(), "hello", "{knows:?}");
        assert_eq!((world.asked()[2], world.person.logins()), (3, 2), "{knows:?}");
    }
}

// req: client-auth:invalid-client-clears-all
#[tokio::test]
async fn a_client_that_is_not_known_any_more_becomes_one_again() {
    for knows in BOTH {
        let world = World::new().await;
        let client = ended(&world, world.auth(), knows).await;
        let before = world.kept().await.unwrap().registration.client_id;
        world.provider.forget_clients();
        assert_eq!(said(&client).await.unwrap(), "hello");
        assert_eq!((world.asked()[1], world.person.logins()), (2, 2), "{knows:?}");
        assert!(world.asked()[2] <= 4, "{:?}", world.asked());
        assert_ne!(world.kept().await.unwrap().registration.client_id, before);
    }
}

// req: client-auth:invalid-client-clears-all
#[tokio::test]
async fn a_client_that_is_not_known_any_more_is_told_where_nobody_logs_in() {
    for knows in BOTH {
        let world = World::new().await;
        drop(world.logged_in().await);
        let nobody = Auth::with(Settings::default()).store(world.store.clone());
        let client = ended(&world, nobody, knows).await;
        world.provider.forget_clients();
        let error = said(&client).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AuthorizationRequired, "{knows:?}: {error}");
        assert!(world.kept().await.is_none(), "{knows:?}: it is kept");
        assert!(world.asked()[2] <= 3, "{:?}", world.asked());
    }
}

#[tokio::test]
async fn what_someone_configured_is_told_to_be_wrong_and_stays() {
    let neighbour = Neighbour::new().await;
    for knows in BOTH {
        let (ears, world) = (Ears::new(), World::new().await);
        let mut known = Registered::new(KNOWN.0);
        known.secret = Some(Secret::new(KNOWN.1));
        let client = ended(&world, world.auth().registered(known), knows).await;
        let (before, asked) = (world.kept_refresh().await, world.asked()[2]);
        world.provider.fail(Endpoint::Token, Fault::Error("invalid_client".into()));
        let (failed, ()) = tokio::join!(said(&client), neighbour.is_unharmed());
        let error = failed.unwrap_err();
        assert_why(&error, AuthErrorKind::Refused, "invalid_client", "configured");
        assert!(world.asked()[2] <= asked + 3 && world.person.logins() <= 2, "{knows:?}");
        assert!(world.kept_refresh().await == before, "{knows:?}");
        world.provider.heal();
        assert_eq!(said(&client).await.unwrap(), "hello");
        ears.found_nothing(&world.provider.secrets(), &told(&error));
    }
}
