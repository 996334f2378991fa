//! A provider that fails the server: its keys change, or can't be had.

use turnbuckle::{
    ErrorKind,
    auth::testing::{Endpoint, Fault},
};

use crate::{
    ears::{Ears, told},
    world::{Neighbour, Wire, World, said},
};

#[tokio::test]
async fn keys_that_change_in_flight_cost_a_renewal_and_no_login() {
    for wire in [Wire::Clear, Wire::Tls] {
        let world = World::over(wire).await;
        let client = world.logged_in().await;
        let before = world.provider.requests(Endpoint::Keys);
        world.provider.rotate_keys();
        // The server asks no more often than this.
        world.clock.forward(30);
        // Somebody's new token makes the server look: the old ones are no good from then on.
        let other = world.client(world.auth().store(turnbuckle::auth::MemoryStore::new())).await;
        assert_eq!(said(&other).await.unwrap(), "hello");
        let calls: Vec<_> = (0..8)
            .map(|_| client.clone())
            .map(|client| tokio::spawn(async move { said(&client).await }))
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), "hello");
        }
        // A code each, and one refresh for all eight.
        assert_eq!((world.asked()[2], world.person.logins()), (3, 2));
        assert_eq!(world.provider.requests(Endpoint::Keys), before + 1);
    }
}

#[tokio::test]
async fn tokens_are_kept_while_a_server_can_not_verify_them() {
    let (neighbour, other) = (Neighbour::new().await, World::new().await);
    let elsewhere = format!("{}/jwks", other.provider.issuer());
    let faults = [
        Fault::Html,
        Fault::Status(500),
        Fault::Status(404),
        Fault::Oversized(2 << 20),
        Fault::Redirect(elsewhere),
    ];
    let wires = [Wire::Clear, Wire::Tls];
    for (wire, fault) in wires.into_iter().flat_map(|wire| faults.clone().map(|it| (wire, it))) {
        let (ears, world) = (Ears::new(), World::over(wire).await);
        world.provider.fail(Endpoint::Keys, fault.clone());
        let client = world.client(world.auth()).await;
        for _ in 0..3 {
            let (failed, ()) = tokio::join!(said(&client), neighbour.is_unharmed());
            let error = failed.unwrap_err();
            // It is the server that can't: nobody needs to log in for that.
            assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(503)), "{fault:?}");
            assert!(error.challenge().is_none(), "{fault:?}");
            ears.found_nothing(&world.provider.secrets(), &told(&error));
        }
        // The issuer is not asked for each token.
        assert_eq!(world.provider.requests(Endpoint::Keys), 1, "{fault:?}");
        assert_eq!((world.asked()[2], world.person.logins()), (1, 1), "{fault:?}");
        world.provider.heal();
        world.clock.forward(3);
        assert_eq!(said(&client).await.unwrap(), "hello", "{fault:?}");
        assert_eq!((world.asked()[2], world.person.logins()), (1, 1), "{fault:?}");
    }
    assert_eq!(other.provider.requests(Endpoint::Keys), 0);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_missed_only_by_who_needs_its_keys() {
    let mut world = World::new().await;
    let client = world.logged_in().await;
    world.stop_provider().await;
    assert_eq!(said(&client).await.unwrap(), "hello");
    // Those keys are used for longer than they are fresh.
    world.clock.forward(3000);
    assert_eq!(said(&client).await.unwrap(), "hello");
}
