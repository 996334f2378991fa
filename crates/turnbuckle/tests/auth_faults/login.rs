//! What goes wrong while someone logs in for the first time.

use serde_json::{Value, json};
use turnbuckle::{
    ErrorKind,
    auth::{
        Auth, AuthErrorKind, Secret,
        testing::{Endpoint, Fault},
    },
};

use crate::{
    ears::{Ears, told},
    world::{ERAS, KNOWN, Neighbour, WAYS, World, assert_why, connect_and_say},
};

/// Larger than any document that is read.
const TOO_MUCH: usize = 2 << 20;

struct Case {
    at: Endpoint,
    fault: Fault,
    kind: AuthErrorKind,
    says: &'static str,
    /// Requests for metadata, registrations and tokens, and logins, until it was given up.
    asked: [usize; 3],
    logins: usize,
}

fn case(at: Endpoint, fault: Fault, kind: AuthErrorKind, says: &'static str) -> Case {
    let (asked, logins) = match at {
        Endpoint::Metadata => ([1, 0, 0], 0),
        Endpoint::Register => ([1, 1, 0], 0),
        Endpoint::Authorize => ([1, 1, 0], 1),
        _ => ([1, 1, 1], 1),
    };
    Case { at, fault, kind, says, asked, logins }
}

fn says(name: &str, value: Value) -> Fault {
    Fault::Says(name.to_owned(), value)
}

/// `own` is where the provider is, `other` where someone else is.
fn of_metadata(own: &str, other: &str) -> Vec<Case> {
    let at = |fault, kind, says| case(Endpoint::Metadata, fault, kind, says);
    let document = "/.well-known/oauth-authorization-server";
    let (itself, elsewhere) = (format!("{own}{document}"), format!("{other}{document}"));
    let s256 = "code_challenge_methods_supported";
    vec![
        Case {
            asked: [2, 0, 0],
            ..at(Fault::Html, AuthErrorKind::Metadata, "does not say where it is asked")
        },
        at(Fault::Status(503), AuthErrorKind::Unreachable, "answers 503"),
        at(Fault::Oversized(TOO_MUCH), AuthErrorKind::Unreachable, "sent more than is read"),
        at(Fault::WrongIssuer(other.into()), AuthErrorKind::Metadata, "says that it is"),
        at(Fault::Redirect(elsewhere), AuthErrorKind::Forbidden, "redirected to another origin"),
        Case {
            asked: [4, 0, 0],
            ..at(Fault::Redirect(itself), AuthErrorKind::Forbidden, "redirected once too often")
        },
        at(Fault::Redirect("ftp://h/".into()), AuthErrorKind::Forbidden, "to another origin"),
        at(says(s256, Value::Null), AuthErrorKind::Metadata, "PKCE by S256"),
        at(says(s256, json!(["plain"])), AuthErrorKind::Metadata, "PKCE by S256"),
        at(says("token_endpoint", Value::Null), AuthErrorKind::Metadata, "no token endpoint"),
        at(
            says("token_endpoint", json!("http://auth.example.com/token")),
            AuthErrorKind::Forbidden,
            "neither https nor on this machine",
        ),
        at(
            says("registration_endpoint", Value::Null),
            AuthErrorKind::Registration,
            "there is no way to become a client",
        ),
    ]
}

fn of_endpoints(other: &str) -> Vec<Case> {
    use AuthErrorKind::{Expired, Forbidden, Refused, Registration, Response, Unreachable};
    let register = |fault, kind, says| case(Endpoint::Register, fault, kind, says);
    let authorize = |fault, kind, says| case(Endpoint::Authorize, fault, kind, says);
    let token = |fault, kind, says| case(Endpoint::Token, fault, kind, says);
    let elsewhere = |path: &str| Fault::Redirect(format!("{other}{path}"));
    let never = "redirected a request that is never redirected";
    vec![
        register(Fault::Status(403), Registration, "answered with 403"),
        register(Fault::Error("invalid_redirect_uri".into()), Registration, "invalid_redirect_uri"),
        register(Fault::Status(503), Unreachable, "answered with 503"),
        register(Fault::Html, Unreachable, "no JSON"),
        register(Fault::Oversized(TOO_MUCH), Unreachable, "sent more than is read"),
        register(elsewhere("/register"), Forbidden, never),
        authorize(Fault::WrongIssuer(other.into()), Response, "wrong `iss`"),
        authorize(Fault::NoIssuer, Response, "no `iss`"),
        authorize(Fault::WrongState, Response, "`state` is another"),
        authorize(Fault::Denied, Refused, "access_denied"),
        token(Fault::Status(503), Unreachable, "503"),
        token(Fault::Html, Unreachable, "something else than JSON"),
        token(Fault::Oversized(TOO_MUCH), Unreachable, "sent more than is read"),
        token(elsewhere("/token"), Forbidden, never),
        token(Fault::Error("invalid_grant".into()), Expired, "invalid_grant"),
        // The client is made known once more before it is believed that nobody wants it.
        Case {
            asked: [2, 2, 2],
            logins: 2,
            ..token(Fault::Error("invalid_client".into()), Refused, "invalid_client")
        },
    ]
}

// req: client-auth:as-metadata-discovery:issuer-validation, client-auth:pkce:refuse-if-unsupported
// req: client-auth:dcr:registration-error-surfaces, client-auth:state:verify
// req: client-auth:authorization-response:iss-verify, client-auth:iss:mismatch-reject
// req: client-auth:iss:supported-missing-reject, client-auth:authorize:error-surfaces
// req: client-auth:token-endpoint:https-guard
#[tokio::test]
async fn each_fault_of_a_provider_is_told_costs_little_and_is_over_when_it_is() {
    let neighbour = Neighbour::new().await;
    for (wire, era) in WAYS {
        let (count, other) = (World::over(wire).await, World::over(wire).await);
        let count = of_metadata(count.provider.issuer(), "").len() + of_endpoints("").len();
        for at in 0..count {
            let (ears, world) = (Ears::new(), World::over(wire).await);
            let elsewhere = other.provider.issuer();
            let seen_elsewhere = other.asked();
            let mut cases = of_metadata(world.provider.issuer(), elsewhere);
            cases.extend(of_endpoints(elsewhere));
            let case = cases.swap_remove(at);
            let what = format!("{:?} at {:?} in {era} over {wire:?}", case.fault, case.at);
            world.provider.fail(case.at, case.fault.clone());

            let failing = connect_and_say(&world.url, world.auth(), era);
            let (failed, ()) = tokio::join!(failing, neighbour.is_unharmed());
            let error = failed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Authorization, "{what}: {error}");
            assert_why(&error, case.kind, case.says, &what);
            assert_eq!((world.asked(), world.person.logins()), (case.asked, case.logins), "{what}");
            assert_eq!(world.answered(401), 1, "{what}");
            // Nobody else is asked anything.
            assert_eq!(other.asked(), seen_elsewhere, "{what}");
            assert!(world.kept().await.is_none(), "{what}");

            world.provider.heal();
            assert_eq!(connect_and_say(&world.url, world.auth(), era).await.unwrap(), "hello");
            let mut secrets = world.provider.secrets();
            secrets.extend(world.kept_refresh().await);
            ears.found_nothing(&secrets, &told(&error));
        }
    }
}

#[tokio::test]
async fn a_provider_that_is_down_is_told_and_found_again() {
    let neighbour = Neighbour::new().await;
    for (wire, era) in WAYS {
        let mut world = World::over(wire).await;
        world.stop_provider().await;
        for _ in 0..3 {
            let failing = connect_and_say(&world.url, world.auth(), era);
            let (failed, ()) = tokio::join!(failing, neighbour.is_unharmed());
            let place = format!("can't reach {}/", world.provider.issuer());
            assert_why(&failed.unwrap_err(), AuthErrorKind::Unreachable, &place, "down");
        }
        world.start_provider();
        assert_eq!(connect_and_say(&world.url, world.auth(), era).await.unwrap(), "hello");
        assert_eq!((world.asked()[1], world.person.logins()), (1, 1));
    }
}

// req: client-auth:dcr
#[tokio::test]
async fn a_client_that_registered_is_the_same_one_at_the_next_try() {
    for fault in [Fault::Denied, Fault::WrongState] {
        let world = World::new().await;
        world.provider.fail(Endpoint::Authorize, fault);
        for _ in 0..3 {
            connect_and_say(&world.url, world.auth(), ERAS[0]).await.unwrap_err();
        }
        world.provider.heal();
        assert_eq!(connect_and_say(&world.url, world.auth(), ERAS[0]).await.unwrap(), "hello");
        assert_eq!((world.asked()[1], world.person.logins()), (1, 4));
    }
}

// req: client-auth:client-credentials
#[tokio::test]
async fn a_machine_with_the_wrong_secret_is_told_and_gives_nothing_away() {
    let neighbour = Neighbour::new().await;
    let (wrong, right) = (Secret::new("wr0ng-s3cr3t"), Secret::new(KNOWN.1));
    for era in ERAS {
        let (ears, world) = (Ears::new(), World::new().await);
        let auth = Auth::client_credentials(KNOWN.0, wrong.clone());
        let failing = connect_and_say(&world.url, auth, era);
        let (failed, ()) = tokio::join!(failing, neighbour.is_unharmed());
        let error = failed.unwrap_err();
        assert_why(&error, AuthErrorKind::Refused, "invalid_client", "machine");
        assert_eq!(world.asked(), [1, 0, 1]);
        let auth = Auth::client_credentials(KNOWN.0, right.clone());
        assert_eq!(connect_and_say(&world.url, auth, era).await.unwrap(), "hello");
        let mut secrets = world.provider.secrets();
        secrets.push(wrong.clone());
        ears.found_nothing(&secrets, &told(&error));
    }
}
