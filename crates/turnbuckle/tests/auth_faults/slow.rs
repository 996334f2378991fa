//! A provider that takes its time, and a person who does. Time stands still until everyone waits:
//! then it runs to the next deadline, and that is the one that is tested.

use std::{net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::Instant,
};
use turnbuckle::{
    Client, Error, ErrorKind,
    auth::{
        Auth, AuthErrorKind, MemoryStore, Rules,
        testing::{Endpoint, Fault},
    },
};

use crate::{
    ears::{Ears, told},
    world::{Neighbour, Wire, World, assert_why, said},
};

type Call = JoinHandle<Result<String, Error>>;

fn launch(client: &Client) -> Call {
    let client = client.clone();
    tokio::spawn(async move { said(&client).await })
}

/// How each call ends, and after how long, once there is nothing to do but to wait.
async fn waited_for(calls: Vec<Call>) -> (Vec<Result<String, Error>>, Duration) {
    tokio::time::pause();
    let begun = Instant::now();
    let mut ended = Vec::new();
    for call in calls {
        ended.push(call.await.unwrap());
    }
    let waited = begun.elapsed();
    tokio::time::resume();
    (ended, waited)
}

/// Asks another server, and the same one as somebody else.
async fn others_are_unharmed(neighbour: &Neighbour, friend: &Client) {
    let (said, ()) = tokio::join!(said(friend), neighbour.is_unharmed());
    assert_eq!(said.unwrap(), "hello");
}

#[tokio::test]
async fn a_slow_provider_is_given_up_after_a_while_by_all_who_wait_for_it() {
    let neighbour = Neighbour::new().await;
    let endpoints = [Endpoint::Metadata, Endpoint::Register, Endpoint::Token];
    for (wire, at) in
        [Wire::Clear, Wire::Tls].into_iter().flat_map(|wire| endpoints.map(|at| (wire, at)))
    {
        let (ears, world) = (Ears::new(), World::over(wire).await);
        let friend = world.logged_in().await;
        let before = world.provider.requests(at);
        world.provider.fail(at, Fault::Held);
        let client = world.client(world.auth().store(MemoryStore::new())).await;
        let calls: Vec<Call> = (0..8).map(|_| launch(&client)).collect();
        world.provider.requested(at, before + 1).await;
        world.has_answered(401, 9).await;
        others_are_unharmed(&neighbour, &friend).await;
        let (ended, waited) = waited_for(calls).await;
        let limit = Rules::default().timeout;
        assert!(waited <= limit && waited > Duration::ZERO, "{at:?}: {waited:?}");
        for failed in ended {
            let error = failed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Authorization);
            assert_why(&error, AuthErrorKind::Unreachable, "took too long to answer", "slow");
            ears.found_nothing(&world.provider.secrets(), &told(&error));
        }
        assert_eq!(world.provider.requests(at), before + 1, "{at:?}");
        world.provider.heal();
        assert_eq!(said(&client).await.unwrap(), "hello");
    }
}

// req: client-auth:refresh:rotation-handling
#[tokio::test]
async fn a_slow_refresh_is_given_up_and_costs_no_token() {
    let (neighbour, world) = (Neighbour::new().await, World::new().await);
    let client = world.logged_in().await;
    world.clock.forward(2 * 3600);
    // Somebody else has a newer one.
    let friend = world.client(world.auth().store(MemoryStore::new())).await;
    assert_eq!(said(&friend).await.unwrap(), "hello");
    let (before, asked) = (world.kept_refresh().await, world.asked()[2]);
    world.provider.fail(Endpoint::Token, Fault::Held);
    let calls: Vec<Call> = (0..8).map(|_| launch(&client)).collect();
    world.provider.requested(Endpoint::Token, asked + 1).await;
    others_are_unharmed(&neighbour, &friend).await;
    let (ended, _) = waited_for(calls).await;
    for failed in ended {
        let says = "took too long to answer";
        assert_why(&failed.unwrap_err(), AuthErrorKind::Unreachable, says, "slow");
    }
    assert_eq!(world.asked()[2], asked + 1);
    assert!(world.kept_refresh().await == before);
}

#[tokio::test]
async fn a_slow_refresh_does_not_hold_up_calls_whose_token_is_still_good() {
    let (neighbour, world) = (Neighbour::new().await, World::new().await);
    let client = world.logged_in().await;
    world.clock.forward(3600 - 20);
    world.provider.fail(Endpoint::Token, Fault::Held);
    let calls: Vec<Call> = (0..8).map(|_| launch(&client)).collect();
    world.provider.requested(Endpoint::Token, 2).await;
    neighbour.is_unharmed().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3)).await;
    tokio::time::resume();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "hello");
    }
    assert_eq!(world.answered(401), 1);
    // What comes of it late is used then.
    let before = world.kept_refresh().await;
    world.provider.heal();
    world.clock.forward(20);
    assert_eq!(said(&client).await.unwrap(), "hello");
    assert!(world.kept_refresh().await != before);
    assert_eq!((world.asked()[2], world.person.logins()), (2, 1));
}

#[tokio::test]
async fn a_provider_that_stops_in_the_middle_is_given_up() {
    let (neighbour, world) = (Neighbour::new().await, World::new().await);
    let friend = world.logged_in().await;
    for (answer, says) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"access_token\":", "took too long"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n", "took too long"),
        ("HTTP/1.1 200 OK\r\n", "took too long"),
    ] {
        let (at, mut came) = half(answer, Then::Stays).await;
        let endpoint = json!(format!("http://{at}/token"));
        world.provider.fail(Endpoint::Metadata, Fault::Says("token_endpoint".into(), endpoint));
        let client = world.client(world.auth().store(MemoryStore::new())).await;
        let call = launch(&client);
        came.wait_for(|came| *came == 1).await.unwrap();
        others_are_unharmed(&neighbour, &friend).await;
        let (mut ended, _) = waited_for(vec![call]).await;
        let error = ended.remove(0).unwrap_err();
        assert_why(&error, AuthErrorKind::Unreachable, says, answer);
        assert!(error.to_string().contains(&format!("http://{at}/token")), "{error}");
        assert_eq!(*came.borrow(), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_provider_that_breaks_off_is_told_and_not_asked_again() {
    let (neighbour, world) = (Neighbour::new().await, World::new().await);
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{",
        "220 mail.example.com ESMTP\r\n",
    ] {
        let (at, came) = half(answer, Then::Leaves).await;
        let endpoint = json!(format!("http://{at}/token"));
        world.provider.fail(Endpoint::Metadata, Fault::Says("token_endpoint".into(), endpoint));
        let client = world.client(world.auth().store(MemoryStore::new())).await;
        let (failed, ()) = tokio::join!(said(&client), neighbour.is_unharmed());
        let error = failed.unwrap_err();
        assert_why(&error, AuthErrorKind::Unreachable, &format!("http://{at}/token"), answer);
        assert_eq!(*came.borrow(), 1, "{answer}: {error}");
    }
}

/// What someone does after half an answer.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Stays,
    Leaves,
}

/// Answers every request with the first half of something; how many have come.
async fn half(answer: &'static str, then: Then) -> (SocketAddr, watch::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (send, came) = watch::channel(0);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = vec![0; 1 << 16];
            assert!(stream.read(&mut read).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
            if then == Then::Stays {
                open.push(stream);
            }
            send.send_modify(|came| *came += 1);
        }
    });
    (at, came)
}

#[tokio::test]
async fn a_person_who_does_not_come_back_is_not_waited_for_for_ever() {
    let (neighbour, world) = (Neighbour::new().await, World::new().await);
    let friend = world.logged_in().await;
    world.person.hesitates();
    let auth = Auth::person(world.person.login()).deadline(Duration::from_secs(120));
    let client = world.client(auth).await;
    let calls: Vec<Call> = (0..8).map(|_| launch(&client)).collect();
    world.person.was_asked(2).await;
    world.has_answered(401, 9).await;
    others_are_unharmed(&neighbour, &friend).await;
    let (ended, waited) = waited_for(calls).await;
    assert!((30..=120).contains(&waited.as_secs()), "{waited:?}");
    for failed in ended {
        let error = failed.unwrap_err();
        assert_why(&error, AuthErrorKind::NotLoggedIn, "nobody logged in before", "slow");
        assert!(error.challenge().is_some());
    }
    assert_eq!((world.asked()[2], world.person.logins()), (1, 1));
    world.person.is_back();
    assert_eq!(said(&client).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_server_whose_issuer_is_slow_says_that_it_can_not_tell() {
    let neighbour = Neighbour::new().await;
    for wire in [Wire::Clear, Wire::Tls] {
        let world = World::over(wire).await;
        world.provider.fail(Endpoint::Keys, Fault::Held);
        let client = world.client(world.auth()).await;
        let calls: Vec<Call> = (0..8).map(|_| launch(&client)).collect();
        world.provider.requested(Endpoint::Keys, 1).await;
        neighbour.is_unharmed().await;
        let (ended, waited) = waited_for(calls).await;
        assert!(waited <= Duration::from_secs(5), "{waited:?}");
        for failed in ended {
            let error = failed.unwrap_err();
            assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(503)), "{error}");
        }
        assert_eq!(world.provider.requests(Endpoint::Keys), 1);
        world.provider.heal();
        world.clock.forward(3);
        assert_eq!(said(&client).await.unwrap(), "hello");
        assert_eq!((world.asked()[2], world.person.logins()), (1, 1));
    }
}
