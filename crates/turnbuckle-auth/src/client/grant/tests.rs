use super::*;
use crate::Scheme;

fn full() -> Grant {
    Grant {
        issuer: "https://auth.example.com".into(),
        resource: Some("https://mcp.example.com".into()),
        scopes: "a b".parse().unwrap(),
        registration: Registration {
            client_id: "client".into(),
            secret: Some(Secret::new("hide-1")),
            method: TokenAuth::Post,
            origin: RegisteredBy::Dynamic,
            redirect_uri: Some("http://127.0.0.1:1/callback".into()),
            secret_expires_at: Some(7),
            scopes: Some("a".parse().unwrap()),
        },
        tokens: Some(Tokens {
            access: Secret::new("hide-2"),
            scheme: Scheme::Dpop,
            refresh: Some(Secret::new("hide-3")),
            expires_at: Some(9),
            granted: Some("a".parse().unwrap()),
        }),
        endpoints: Endpoints {
            authorize: Some("https://auth.example.com/authorize".into()),
            token: "https://auth.example.com/token".into(),
        },
        proof_key: Some(Secret::new("hide-4")),
    }
}

#[test]
fn a_record_holds_all_of_a_grant() {
    let grant = full();
    let again = Grant::from_record(&grant.to_record()).unwrap();
    assert_eq!(format!("{again:?}"), format!("{grant:?}"));
    let secrets = |grant: &Grant| {
        let tokens = grant.tokens.clone().unwrap();
        let secrets = [
            grant.registration.secret.clone().unwrap(),
            tokens.access,
            tokens.refresh.unwrap(),
            grant.proof_key.clone().unwrap(),
        ];
        secrets.map(|secret| secret.expose().to_owned())
    };
    assert_eq!(secrets(&again), ["hide-1", "hide-2", "hide-3", "hide-4"]);

    let mut bare = full();
    bare.resource = None;
    bare.scopes = Scopes::none();
    bare.tokens = None;
    bare.proof_key = None;
    bare.registration = Registration::public("x", RegisteredBy::Document);
    let again = Grant::from_record(&bare.to_record()).unwrap();
    assert_eq!(format!("{again:?}"), format!("{bare:?}"));

    let registration = full().registration;
    let again = Registration::from_record(&registration.to_record()).unwrap();
    assert_eq!(format!("{again:?}"), format!("{registration:?}"));
    assert!(again.secret == registration.secret);
}

#[test]
fn what_is_no_record_is_no_grant() {
    let text = full().to_record().expose().to_owned();
    assert!(Grant::from_record(&Secret::new(text.clone())).is_some());
    for broken in [
        String::new(),
        "{}".to_owned(),
        text.replace("\"version\":1", "\"version\":2"),
        text.replace("client_secret_post", "by_fax"),
        text.replace("dynamic", "by_fax"),
        text.replace("DPoP", "by_fax"),
    ] {
        assert!(Grant::from_record(&Secret::new(broken.clone())).is_none(), "{broken}");
    }
}

#[test]
fn no_secret_can_be_printed() {
    let text = format!("{:?} {:#?}", full(), full());
    assert!(!text.contains("hide-"), "{text}");
    assert!(text.contains("https://mcp.example.com"));
}

#[test]
fn secrets_of_registrations_expire() {
    let mut registration = full().registration;
    assert!(registration.good(6) && !registration.good(7));
    registration.secret_expires_at = None;
    assert!(registration.good(u64::MAX));
}
