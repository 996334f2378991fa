//! A provider and a server that are spoken to over TLS, with certificates of a test's own.

use std::{env, fs, path::PathBuf, process::Command, sync::Arc};

use serde_json::json;
use tokio::{net::TcpListener, time::Instant};
use turnbuckle::{
    Client, Error, ErrorKind,
    auth::{
        Auth, AuthErrorKind, HandledLogin, MemoryStore, Rules,
        testing::{Endpoint, InsecureAuthorizationServer, InsecureListener, InsecureServing},
    },
};

use crate::{
    ears::{Ears, told},
    secure::{Authority, Visits},
    world::{
        BACK, ERAS, Neighbour, Person, Watch, assert_why, authority, builder, protection, provider,
        said, server,
    },
};

/// Where certificates are that the whole process trusts.
const TRUSTED: &str = "SSL_CERT_FILE";
const SECOND: &str = "TURNBUCKLE_TEST_TRUSTING_PROCESS";

struct Secured {
    provider: Arc<InsecureAuthorizationServer>,
    person: Person,
    url: String,
    clock: Watch,
    /// At the provider's place.
    visits: Visits,
    _serving: InsecureServing,
}

/// A server and a provider, each vouched for by an authority.
async fn secured(of_server: &Authority, of_provider: &Authority) -> Secured {
    let (outside, clock) = (of_provider.place().await, Watch::default());
    let provider = Arc::new(provider(&outside.origin(), &clock));
    let inside = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let visits = outside.lead_to(inside.local_addr().unwrap());
    let serving = InsecureListener::on(inside).unwrap().serve(provider.clone());

    let outside = of_server.place().await;
    let url = format!("{}/mcp", outside.origin());
    let inside = TcpListener::bind("127.0.0.1:0").await.unwrap();
    outside.lead_to(inside.local_addr().unwrap());
    let protection = protection(&url, provider.issuer()).clock(Arc::new(clock.clone()));
    let server = server().protect(protection);
    let bound = server.serve_http(inside).bind().await.unwrap();
    tokio::spawn(async move { drop(bound.await) });
    let person = Person::at(provider.clone());
    Secured { provider, person, url, clock, visits, _serving: serving }
}

// req: client-auth:401-triggers-flow, client-auth:refresh:transparent
#[tokio::test]
async fn a_login_a_call_and_a_refresh_over_tls() {
    // A server trusts what its process trusts, and that is said before it begins.
    let Some(file) = env::var_os(SECOND).map(PathBuf::from) else {
        let file = env::temp_dir().join(format!("turnbuckle-tls-{}.pem", std::process::id()));
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "tls::a_login_a_call_and_a_refresh_over_tls"])
            .env(SECOND, &file)
            .env(TRUSTED, &file)
            .output()
            .unwrap();
        let _ = fs::remove_file(&file);
        let told = String::from_utf8_lossy(&output.stderr);
        let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
        assert!(output.status.success() && ran, "{told}");
        return;
    };
    let authority = Authority::of(&["127.0.0.1"]);
    fs::write(&file, &authority.pem).unwrap();
    for era in ERAS {
        let (ears, world) = (Ears::new(), secured(&authority, &authority).await);
        let store = MemoryStore::new();
        let auth = Auth::person(world.person.login()).store(store).clock(world.clock.clone());
        let client = builder(auth, era).tls_root(authority.pem.clone());
        let client = client.connect(&world.url).await.unwrap();
        for _ in 0..2 {
            assert_eq!(said(&client).await.unwrap(), "hello");
        }
        world.clock.forward(2 * 3600);
        assert_eq!(said(&client).await.unwrap(), "hello");
        assert_eq!((world.provider.requests(Endpoint::Token), world.person.logins()), (2, 1));
        assert!(world.visits.came() > 0 && world.visits.came() == world.visits.stayed());
        ears.found_nothing(&world.provider.secrets(), &[]);
    }
}

#[tokio::test]
async fn a_provider_that_nobody_vouches_for_is_not_believed() {
    let neighbour = Neighbour::new().await;
    let (trusted, other) = (Authority::of(&["127.0.0.1"]), Authority::of(&["127.0.0.1"]));
    let another_name = Authority::of(&["auth.example.com"]);
    let expired = Authority::until(&["127.0.0.1"], 2020);
    for (untrusted, roots) in [
        (&other, vec![&trusted]),
        // Vouched for, but for another one.
        (&another_name, vec![&trusted, &another_name]),
        // Vouched for, but no longer.
        (&expired, vec![&trusted, &expired]),
    ] {
        for era in ERAS {
            let (ears, world) = (Ears::new(), secured(&trusted, untrusted).await);
            let mut client = builder(Auth::person(world.person.login()), era);
            for root in &roots {
                client = client.tls_root(root.pem.clone());
            }
            let failing = async { said(&client.connect(&world.url).await?).await };
            let (failed, ()) = tokio::join!(failing, neighbour.is_unharmed());
            let error = failed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Authorization, "{error}");
            let place = format!("can't reach {}/", world.provider.issuer());
            assert_why(&error, AuthErrorKind::Unreachable, &place, "untrusted");
            assert!(error.to_string().contains("certificate"), "{error}");
            // It came once, and spoke neither with a stranger nor in the clear.
            assert_eq!((world.visits.came(), world.visits.stayed()), (1, 0));
            let asked = [Endpoint::Metadata, Endpoint::Register, Endpoint::Token];
            assert_eq!(asked.map(|endpoint| world.provider.requests(endpoint)), [0, 0, 0]);
            assert_eq!(world.person.logins(), 0);
            ears.found_nothing(&world.provider.secrets(), &told(&error));
        }
    }
    // Nor is a server, and then its provider is not looked for at all.
    let world = secured(&other, &trusted).await;
    let client = builder(Auth::person(world.person.login()), ERAS[0]).tls_root(trusted.pem.clone());
    let client: Client = client.connect(&world.url).await.unwrap();
    assert!(said(&client).await.unwrap_err().to_string().contains("certificate"));
    assert_eq!(world.visits.came(), 0);
}

/// Does what a client does to log in, and what a server does to verify a token, at a provider that can't be
/// spoken to; how both end, and after how long at most.
async fn fails(issuer: &str, came: impl Future<Output = ()>) -> (Error, Error) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let protection = protection(&url, issuer).tls_root(authority().pem.as_bytes());
    let bound = server().protect(protection).serve_http(listener).bind().await.unwrap();
    tokio::spawn(async move { drop(bound.await) });
    let unseen = provider(issuer, &Watch::default());
    let root = authority().pem.as_bytes();
    let nobody = HandledLogin::new(BACK, |_| async { panic!("nobody is to log in") });
    let client = builder(Auth::person(nobody), ERAS[0]).tls_root(root).connect(&url).await.unwrap();
    let login = tokio::spawn(async move { said(&client).await });
    let token = unseen.issue(json!({"aud": url, "scope": "read"}).as_object().unwrap().clone());
    let client = Client::builder().no_proxy().revision(ERAS[0]);
    let client = client.header("authorization", format!("Bearer {}", token.expose()));
    let client = client.connect(&url).await.unwrap();
    let shown = tokio::spawn(async move { said(&client).await });
    came.await;
    // From here on there is nothing to do but to wait.
    tokio::time::pause();
    let begun = Instant::now();
    let ended = (login.await.unwrap().unwrap_err(), shown.await.unwrap().unwrap_err());
    assert!(begun.elapsed() <= Rules::default().timeout, "{:?}", begun.elapsed());
    tokio::time::resume();
    ended
}

fn assert_not_spoken_to(issuer: &str, (login, shown): &(Error, Error)) {
    assert_why(login, AuthErrorKind::Unreachable, issuer, "login");
    // It is the server that can't tell: another token would not help.
    assert_eq!((shown.kind(), shown.status()), (ErrorKind::Http, Some(503)), "{shown}");
}

#[tokio::test]
async fn a_handshake_that_stalls_is_given_up() {
    let neighbour = Neighbour::new().await;
    let place = authority().place().await;
    let issuer = place.origin();
    let mut spoken = place.stall();
    let mut hears = spoken.clone();
    let both = async {
        hears.wait_for(|spoken| *spoken == 2).await.unwrap();
        neighbour.is_unharmed().await;
    };
    let ended = fails(&issuer, both).await;
    assert_not_spoken_to(&issuer, &ended);
    assert_eq!(*spoken.borrow_and_update(), 2, "neither tried again");
}

#[tokio::test]
async fn a_provider_that_speaks_no_tls_is_not_spoken_to_in_the_clear() {
    let neighbour = Neighbour::new().await;
    let place = authority().place().await;
    let issuer = place.origin();
    let provider = Arc::new(provider(&issuer, &Watch::default()));
    let listener = InsecureListener::on(place.into_plain()).unwrap();
    let _serving = listener.serve(provider.clone());
    let ended = fails(&issuer, neighbour.is_unharmed()).await;
    assert_not_spoken_to(&issuer, &ended);
    let asked = [Endpoint::Metadata, Endpoint::Register, Endpoint::Token, Endpoint::Keys];
    assert_eq!(asked.map(|endpoint| provider.requests(endpoint)), [0; 4]);
}
