//! A client that logs in by itself, against a protected server and an authorization server, over
//! sockets and in both eras.

#![cfg(all(feature = "auth", feature = "client", feature = "http", feature = "server"))]

mod world;

use std::{path::Path, time::Duration};

use serde_json::json;
use turnbuckle::{
    Client, ErrorKind, Revision,
    auth::{
        Auth, AuthError, Grant, GrantStore as _, LoggedOut, MemoryStore, Scopes, Secret, Settings,
        StoreKey,
        testing::{Endpoint, Fault},
    },
    server::Revisions,
};

use self::world::World;

const LONG: Duration = Duration::from_secs(10);
const ERAS: [Revision; 2] = [Revision::V2026_07_28, Revision::V2025_11_25];

async fn said(client: &Client, tool: &str) -> turnbuckle::Result<String> {
    client.call_tool(tool, json!({"text": "hello"})).await.map(|result| result.to_text())
}

// req: client-auth:401-triggers-flow, client-auth:bearer-header:every-request
// req: flow:oauth:authorization-code-roundtrip
#[tokio::test]
async fn one_login_is_enough_for_every_request_of_both_eras() {
    for era in ERAS {
        let world = World::new().await;
        let store = MemoryStore::new();
        let auth = world.auth().store(store.clone());
        let builder = Client::builder().no_proxy().revision(era).auth(auth);
        let client = builder.connect(&world.url).await.unwrap();
        for _ in 0..3 {
            assert_eq!(said(&client, "echo").await.unwrap(), "hello");
        }
        client.shutdown(LONG).await;
        assert_eq!(world.person.logins(), 1);
        let arrived = world.arrived();
        let (refused, let_in): (Vec<_>, Vec<_>) = arrived.iter().partition(|it| it.status == 401);
        assert_eq!(refused.len(), 1, "{era}: {refused:?}");
        assert!(let_in.iter().all(|it| it.has_token), "{let_in:?}");
        if era == Revision::V2025_11_25 {
            for method in ["GET", "DELETE"] {
                assert!(let_in.iter().any(|it| it.method == method), "{method}: {let_in:?}");
            }
        }

        // The next one finds what was kept, by the words of a configuration file.
        let auth = Auth::with(Settings::default()).store(store);
        let next = Client::builder().no_proxy().auth(auth).connect(&world.url).await.unwrap();
        assert_eq!(said(&next, "echo").await.unwrap(), "hello");
        assert_eq!(world.person.logins(), 1);
    }
}

// req: client-auth:401-triggers-flow
#[tokio::test]
async fn a_client_that_does_not_know_what_is_spoken_logs_in_before_it_finds_out() {
    let world = World::new().await;
    let client = world.builder().connect(&world.url).await.unwrap();
    assert_eq!(client.revision(), Revision::LATEST);
    assert_eq!(said(&client, "echo").await.unwrap(), "hello");
    assert_eq!(world.person.logins(), 1);
}

// req: client-auth:negotiation:auth-before-era
#[tokio::test]
async fn the_login_comes_first_and_then_the_question_of_the_era() {
    let world = World::serving(Revisions::Legacy).await;
    let client = world.builder().connect(&world.url).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    assert_eq!(said(&client, "echo").await.unwrap(), "hello");
    assert_eq!(world.person.logins(), 1);
    let arrived = world.arrived();
    let said = arrived.iter().filter(|it| it.method == "POST");
    let said: Vec<_> = said.map(|it| (it.says.as_deref().unwrap(), it.status)).take(3).collect();
    // What is refused for want of a token says nothing of what is spoken.
    let discover = "server/discover";
    assert_eq!((said[0], said[1].0), ((discover, 401), discover), "{said:?}");
    assert!(said[1].1 != 401 && said[2] == ("initialize", 200), "{said:?}");
}

// req: client-auth:refresh:transparent
#[tokio::test]
async fn a_token_that_ends_between_calls_is_renewed_once_for_all_of_them() {
    for era in ERAS {
        let world = World::new().await;
        // By this client's clock the token is good for ever.
        let auth = world.auth().clock(world::Watch::default());
        let builder = Client::builder().no_proxy().revision(era).auth(auth);
        let client = builder.connect(&world.url).await.unwrap();
        assert_eq!(said(&client, "echo").await.unwrap(), "hello");
        let before = world.provider.requests(Endpoint::Token);
        world.clock.forward(2 * 3600);
        let calls: Vec<_> = (0..8)
            .map(|_| client.clone())
            .map(|client| tokio::spawn(async move { said(&client, "echo").await }))
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), "hello");
        }
        assert_eq!(world.provider.requests(Endpoint::Token), before + 1, "{era}");
        assert_eq!(world.person.logins(), 1);
    }
}

#[tokio::test]
async fn eight_calls_wait_for_one_login() {
    let world = World::new().await;
    world.person.hesitates();
    let builder = world.builder().revision(Revision::V2026_07_28);
    let client = builder.connect(&world.url).await.unwrap();
    let calls: Vec<_> = (0..8)
        .map(|_| client.clone())
        .map(|client| tokio::spawn(async move { said(&client, "echo").await }))
        .collect();
    world.refused(8).await;
    world.person.willing.add_permits(100);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "hello");
    }
    assert_eq!(world.person.logins(), 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_the_login_to_others() {
    let world = World::new().await;
    world.person.hesitates();
    let builder = world.builder().revision(Revision::V2026_07_28);
    let client = builder.connect(&world.url).await.unwrap();
    let call = tokio::spawn({
        let client = client.clone();
        async move { said(&client, "echo").await }
    });
    world.person.asked(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    world.person.willing.add_permits(1);
    // The only login that anyone is willing to is the one that was begun.
    assert_eq!(said(&client, "echo").await.unwrap(), "hello");
    assert_eq!(world.person.logins(), 1);
    // It was never sent again.
    let calls = world.arrived().into_iter().filter(|it| it.says.as_deref() == Some("tools/call"));
    assert_eq!(calls.filter(|it| it.status == 200).count(), 1);
}

// req: client-auth:403-scope-upgrade, client-auth:403-scope-union
#[tokio::test]
async fn more_is_asked_for_when_more_is_needed() {
    for era in ERAS {
        let world = World::new().await;
        let client = world.builder().revision(era).connect(&world.url).await.unwrap();
        assert_eq!(said(&client, "echo").await.unwrap(), "hello");
        assert_eq!(said(&client, "write").await.unwrap(), "hello");
        assert_eq!(said(&client, "write").await.unwrap(), "hello");
        assert_eq!(world.person.logins(), 2, "{era}");
        let arrived = world.arrived();
        assert_eq!(arrived.iter().filter(|it| it.status == 403).count(), 1, "{arrived:?}");
    }
}

// req: client-auth:stepup:get-stream-403
#[tokio::test]
async fn the_stream_of_a_session_can_need_more_too() {
    let world = World::new().await;
    world.streams_need_more();
    let builder = world.builder().revision(Revision::V2025_11_25);
    let client = builder.connect(&world.url).await.unwrap();
    world.until(|it| it.method == "GET" && it.status == 200).await;
    assert_eq!(world.person.logins(), 2);
    let arrived = world.arrived();
    assert_eq!(arrived.iter().filter(|it| it.status == 403).count(), 1, "{arrived:?}");
    assert_eq!(said(&client, "write").await.unwrap(), "hello");
    assert_eq!(world.person.logins(), 2);
}

#[tokio::test]
async fn a_legacy_call_that_waits_for_more_scopes_is_dropped_without_a_word() {
    let world = World::new().await;
    let builder = world.builder().revision(Revision::V2025_11_25);
    let client = builder.connect(&world.url).await.unwrap();
    world.person.hesitates();
    let call = tokio::spawn({
        let client = client.clone();
        async move { said(&client, "write").await }
    });
    world.person.asked(2).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    world.person.willing.add_permits(1);
    assert_eq!(said(&client, "write").await.unwrap(), "hello");
    client.shutdown(LONG).await;
    let arrived = world.arrived();
    let said: Vec<_> = arrived.iter().filter_map(|it| it.says.as_deref()).collect();
    assert!(!said.contains(&"notifications/cancelled"), "{said:?}");
    assert_eq!(world.person.logins(), 2);
}

#[tokio::test]
async fn what_was_kept_for_one_person_is_not_shown_to_the_next() {
    let world = World::new().await;
    let builder = world.builder().revision(Revision::V2026_07_28);
    let client = builder.connect(&world.url).await.unwrap();
    let lists = || {
        let arrived = world.arrived().into_iter();
        arrived.filter(|it| it.says.as_deref() == Some("tools/list") && it.status == 200).count()
    };
    // The first one may have been asked for before anyone logged in.
    client.tools().all().await.unwrap();
    client.tools().all().await.unwrap();
    let before = lists();
    client.tools().all().await.unwrap();
    assert_eq!(lists(), before, "it was not kept");
    // Whoever logs in to be allowed more may be someone else.
    assert_eq!(said(&client, "write").await.unwrap(), "hello");
    client.tools().all().await.unwrap();
    assert_eq!(lists(), before + 1);
}

#[tokio::test]
async fn logging_in_and_out_can_be_asked_for() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let builder = || Client::builder().no_proxy().auth(world.auth().store(store.clone()));
    builder().log_in(&world.url).await.unwrap();
    let client = builder().revision(ERAS[0]).connect(&world.url).await.unwrap();
    assert_eq!(said(&client, "echo").await.unwrap(), "hello");
    assert_eq!(world.person.logins(), 1);
    let stored = store.load(&StoreKey::grant(&world.url)).await.unwrap().unwrap();
    let grant = Grant::from_record(&stored.record).unwrap();
    assert_eq!(builder().log_out(&world.url).await.unwrap(), LoggedOut::Revoked);
    // It was the refresh token that was given back: it is good for nothing any more.
    let refresh = grant.tokens.unwrap().refresh.unwrap();
    let client_id = &grant.registration.client_id;
    let form = format!(
        "grant_type=refresh_token&client_id={client_id}&refresh_token={}",
        refresh.expose()
    );
    let asked = http::Request::post(format!("{}/token", world.provider.issuer()));
    let asked = asked.header("content-type", "application/x-www-form-urlencoded");
    let answer = world.provider.handle(asked.body(form.into()).unwrap());
    let answer: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(answer["error"], "invalid_grant", "{answer}");
    assert_eq!(builder().log_out(&world.url).await.unwrap(), LoggedOut::Already);
    assert_eq!(world.provider.requests(Endpoint::Revoke), 1);
    builder().log_in(&world.url).await.unwrap();
    world.provider.fail(Endpoint::Revoke, Fault::Status(500));
    let out = builder().log_out(&world.url).await.unwrap();
    assert!(matches!(out, LoggedOut::NotRevoked(_)), "{out:?}");
    assert_eq!(builder().log_out(&world.url).await.unwrap(), LoggedOut::Already);
    assert!(Client::builder().log_in(&world.url).await.is_err());
}

// req: client-auth:401-after-auth-throws
#[tokio::test]
async fn what_is_wanted_is_told_with_the_challenge() {
    let world = World::new().await;
    let nobody = || Auth::with(Settings::default());
    for era in [None, Some(ERAS[0]), Some(ERAS[1])] {
        let builders = [Client::builder(), Client::builder().auth(nobody())];
        for builder in builders {
            let builder = builder.no_proxy();
            let builder = match era {
                Some(era) => builder.revision(era),
                None => builder,
            };
            let error = match builder.connect(&world.url).await {
                Ok(client) => said(&client, "echo").await.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!(error.kind(), ErrorKind::AuthorizationRequired, "{era:?}: {error}");
            assert!(!error.maybe_executed() && !error.is_retryable());
            let challenge = error.challenge().unwrap();
            assert_eq!(challenge.scope, Some(Scopes::from_iter(["read"])));
            let metadata = world.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
            assert_eq!(challenge.resource_metadata, Some(metadata));
        }
    }
}

#[tokio::test]
async fn why_authorization_failed_is_told_with_its_source() {
    let world = World::new().await;
    for (endpoint, fault) in [
        (Endpoint::Metadata, Fault::WrongIssuer("https://elsewhere.example".into())),
        (Endpoint::Metadata, Fault::Html),
        (Endpoint::Register, Fault::Status(500)),
        (Endpoint::Authorize, Fault::Denied),
        (Endpoint::Token, Fault::Status(503)),
    ] {
        world.provider.fail(endpoint, fault.clone());
        for era in ERAS {
            let error = match world.builder().revision(era).connect(&world.url).await {
                Ok(client) => said(&client, "echo").await.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!(error.kind(), ErrorKind::Authorization, "{fault:?}: {error}");
            assert!(!error.maybe_executed());
            let source = std::error::Error::source(&error).unwrap();
            assert!(source.downcast_ref::<AuthError>().is_some(), "{fault:?}: {source}");
        }
        world.provider.heal();
    }
    assert_eq!(world.arrived().iter().filter(|it| it.status == 200).count(), 0);
}

// req: client-auth:refresh:rotation-handling
#[tokio::test]
async fn a_token_that_is_being_renewed_is_kept_before_a_client_is_closed() {
    for deadline in [None, Some(LONG)] {
        let world = World::new().await;
        let store = MemoryStore::new();
        let auth = world.auth().store(store.clone()).clock(world.clock.clone());
        let (provider, clock, url) =
            (world.provider.clone(), world.clock.clone(), world.url.clone());
        let before = world.provider.requests(Endpoint::Token) + 1;
        // As a program does it: what is not done when the runtime ends is not done at all.
        let program = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let client = Client::builder().no_proxy().auth(auth).connect(url).await.unwrap();
                assert_eq!(said(&client, "echo").await.unwrap(), "hello");
                clock.forward(2 * 3600);
                provider.fail(Endpoint::Token, Fault::Held);
                tokio::select! {
                    answer = said(&client, "echo") => panic!("{answer:?}"),
                    () = provider.requested(Endpoint::Token, before + 1) => {}
                }
                let closing = async {
                    match deadline {
                        Some(deadline) => drop(client.shutdown(deadline).await),
                        None => drop(client.close().await),
                    }
                };
                tokio::join!(closing, async { provider.heal() });
            });
        });
        program.await.unwrap();

        // The next one needs neither the token that is spent nor a login.
        let auth = Auth::with(Settings::default()).store(store).clock(world.clock.clone());
        let next = Client::builder().no_proxy().auth(auth).connect(&world.url).await.unwrap();
        assert_eq!(said(&next, "echo").await.unwrap(), "hello");
        assert_eq!(world.provider.requests(Endpoint::Token), before + 1, "{deadline:?}");
    }
}

// req: client-auth:token-provenance
#[tokio::test]
async fn what_is_granted_over_a_socket_is_for_that_socket() {
    let url = "http://localhost/mcp";
    let (store, at) = (MemoryStore::new(), Path::new("/run/nobody/one.sock"));
    let keys = [
        StoreKey::grant(url),
        StoreKey::grant_over_socket(url, at),
        StoreKey::grant_over_socket(url, Path::new("/run/nobody/two.sock")),
    ];
    for key in &keys {
        store.swap(key, None, Some(Secret::new("granted"))).await.unwrap();
    }
    let auth = Auth::with(Settings::default()).store(store.clone());
    let builder = Client::builder().no_proxy().auth(auth).unix_socket(at);
    builder.log_out(url).await.unwrap();
    let mut kept = Vec::new();
    for key in &keys {
        kept.push(store.load(key).await.unwrap().is_some());
    }
    assert_eq!(kept, [true, false, true]);
}
