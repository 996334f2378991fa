//! Owns what holds for every key and every token. Does not own the examples of the RFCs.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Algorithm, KeySet, SigningKey, dpop, jwt};
use crate::Secret;

/// Made for these tests; the one on Ed25519 is that of RFC 8037 appendix A.1.
const RSA: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCnloWrn4LxiH4U\n\
5XsXdS6WA/714aj0gtmf+9ZnqLwjpoqbu/fbAgyetAIWLClkHF32Vct365kRk5rz\n\
12eq9Y0YWWrCnCWNNpYRL4+wmwau0nt+QER5gb9jk1+aOaAldJdy/vsZGy34BED/\n\
UoVALuroKv0D/8asyUi52aWAPJlYCDa6whj9BybxAcVUs479389qnD2369A+ISop\n\
9k5r2vWx9b3ZznoR+zXUWECzMInDvx8u3EB/N07VaivdaitJ4bjs7DEKdRYg6xGv\n\
ncKpHXhHmqcABQ6NX1ftin2cfG+Xm7ZQGRr4tDsv2/EcLg+INmpuDTauX/0iz3Y0\n\
zQiZTVljAgMBAAECggEAR89Vw657+2cTL30Ne4W4yos3ysBBF1SiT80nmA9TXqtU\n\
JVsr32pHYhGb+0g9DCqjkJQ+tUn8su1erjGUuEqzhMV725vw80t6ji6lEXW8LVj/\n\
lZ+QN8iC6/YQNxOOLb6BzsK3cZCV5/pap40Cj/gKrCUPeZE13n/5a7l5EzPkOTXJ\n\
CW7VI7G5eJXxzea4nt95QhA5idTaZjYD85MQhqVnsPe0enGAaRrfcbZaoxOuF9+u\n\
gukI9x4+UJoeLtnRzXRmgP2Ger3NKoD2HP7nAeuA1mBtVj+UP/lYjRed00Nfn0v5\n\
HM9+TNZmjDgqAxr7ete5gpQSVghtFHcakW6EYO9WcQKBgQDpTfB1wCfX08uN41K1\n\
YhVu44dPkJlfTllyMJY4g8RLGP/iI1hJfELLiGF388ijpyisKS9T4tOBcXdRwhfB\n\
ihdQ7JM1MskjgL+FegexTFzHFQHc3HXSA0uLXgoBQ/iMCrjkrX26CN86ghZLAYxI\n\
xSyznghBysj4+q3/6q9KmRS9tQKBgQC35AXi4ctC10cmnajq6iughv7MxQvX8IYe\n\
Bi7y1ItLo+MVggHqHIS4uhIhJKWkHV+tCDIYIUrdnAb91U9OwPSmoorDSIufaRt6\n\
uZQ1RcHQ0EbR2FMaDEKBZyb5k1cHf5SB4T9nm1r2CzAfnGHd5nh45JItAdSTnmbv\n\
nuehYZDptwKBgEmwkG7gzrTg9L5QOuOHo3Vu8GI1LfxoZuAmcIxRMkL2Fnx65Xvw\n\
f7iBzydwHMN0HOij6Yr5bgzIpgNw5sf+sfahgq2e6OEJ3XRvYtahY/yNqhT0nVJE\n\
MCxI+6gCrBKvoE66bafA/aEhTaFLT9/8R25EUB9Xybq6kxLuMYfCakaxAoGAEocD\n\
3M8ZFpvwDED4QurjCGJxi5oSzmfqa13+HvMxMabKe2FE5hyHdsEwkGxL0BQxjpJz\n\
0aCRFXDh93MlcW7Zd2yLBI/rmV0SqrPF7fQgSfSiHgRoowg3LyiAccbZjuTYxpk2\n\
NS8e5AlOiPDNn3jYDH4jCCvWCiV8g4oEFmtpGVMCgYBogD0LteVbwHTj9eV+7ZXd\n\
A/2zavNFjQVQJnqStNrpx83lIuZsVhJlJz7i/LssvsdmUugj/p/da7neE984pZMb\n\
umy2GT7vL/be11DIKkN++1Rr3C5QwCKEc7D5CYCxVguLIDMWZ4oIFMRhdv0R7jL5\n\
aWLHTXTPIxT0wcKTTK4QVg==\n\
-----END PRIVATE KEY-----\n";
const P384: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDBVM+U7zsJ7/XoMcA8w\n\
7/QgQghQ1HDRUY7/J0sBOgHPeGWeVbUMAIWm+7ooNYm3T/ihZANiAAScsV8tKfHo\n\
T+AM27cf0mcw0UaUJMcrxh7porp+cTRyAySzr1B5E/mIOjyErOpJD9Cg0K49yCrf\n\
+OUHpnfDUoKFjVdEh5ogEnUtzSBKiLI9bXZprrrdBWweYCRzy9TVQH4=\n\
-----END PRIVATE KEY-----\n";
const P256: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHSXFr7BgeYypYwQw\n\
Vtt7qwN8wSIvDW8WPPloMEO0M3ChRANCAAQDkEZx1X5u7K0LMJ3XtaKWEuGIgk2l\n\
VeYt9kbid1nZw6jL6su/L1cIyx2TsuuMMIHKscJrOPwM1/8fHxR7wHQu\n\
-----END PRIVATE KEY-----\n";
const ED25519: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
-----END PRIVATE KEY-----\n";

fn pem(text: &str) -> SigningKey {
    SigningKey::from_pem(&Secret::new(text)).unwrap()
}

pub(super) fn every_key() -> [SigningKey; 6] {
    [
        SigningKey::generate().unwrap(),
        pem(P256),
        pem(P384),
        pem(ED25519),
        pem(RSA),
        pem(RSA).with_algorithm(Algorithm::Ps256).unwrap(),
    ]
}

fn claims() -> Map<String, Value> {
    json!({"iss": "i", "sub": "s", "exp": 5}).as_object().unwrap().clone()
}

#[test]
fn each_key_signs_what_its_public_half_verifies_and_no_other() {
    let keys = every_key();
    for (at, key) in keys.iter().enumerate() {
        let token = jwt::sign(key, Map::new(), &claims()).unwrap();
        for (other_at, other) in keys.iter().enumerate() {
            let opened = jwt::open(token.expose(), &KeySet::of([other.public_jwk()]));
            assert_eq!(opened.is_ok(), at == other_at, "{key:?} {other:?}");
        }
        // Without `alg` in the key, the two ways of RSA are one key's.
        jwt::open(token.expose(), &KeySet::of([key.public().to_jwk()])).unwrap();
    }
}

#[test]
fn a_key_can_be_kept_and_its_text_says_nothing() {
    for key in every_key() {
        let kept = key.to_pkcs8();
        let same = SigningKey::from_pkcs8(&kept).unwrap();
        assert_eq!(same.thumbprint(), key.thumbprint());
        assert!(!format!("{key:?}").contains(&kept.expose()[40..60]), "{key:?}");
    }
    assert_eq!(pem(ED25519).thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn other_texts_are_no_keys() {
    let marker = "MARKERMARKER";
    for text in [
        String::new(),
        marker.into(),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{marker}\n-----END RSA PRIVATE KEY-----"),
        format!("-----BEGIN PRIVATE KEY-----\n{marker}\n-----END PRIVATE KEY-----"),
        format!("-----BEGIN PRIVATE KEY-----\n{marker}!\n-----END PRIVATE KEY-----"),
        format!("-----BEGIN PRIVATE KEY-----\n{marker}"),
        P256.replace("PRIVATE", "PUBLIC"),
    ] {
        let error = SigningKey::from_pem(&Secret::new(text.clone())).unwrap_err();
        assert!(!format!("{error:?}").contains(marker), "{error:?}");
    }
    assert!(pem(P256).with_algorithm(Algorithm::Es384).is_err());
    assert!(pem(RSA).with_algorithm(Algorithm::EdDsa).is_err());
}

#[test]
fn the_name_of_a_key_is_in_what_it_signs() {
    let key = pem(P256).with_key_id("first");
    let token = jwt::sign(&key, Map::new(), &claims()).unwrap();
    let header = jwt::open(token.expose(), &KeySet::of([key.public_jwk()])).unwrap().header;
    assert_eq!(Value::Object(header), json!({"alg": "ES256", "kid": "first"}));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_token_with_any_letter_changed_is_refused(
        kind in 0..6usize,
        at in any::<prop::sample::Index>(),
        letter in "[A-Za-z0-9_.-]",
    ) {
        let key = &every_key()[kind];
        let token = jwt::sign(key, Map::new(), &claims()).unwrap();
        let mut changed = token.expose().to_owned();
        let at = at.index(changed.len());
        changed.replace_range(at..=at, &letter);
        prop_assume!(changed != token.expose());
        let keys = KeySet::of([key.public_jwk()]);
        prop_assert!(jwt::open(token.expose(), &keys).is_ok());
        prop_assert!(jwt::open(&changed, &keys).is_err(), "{changed}");
    }

    #[test]
    fn a_proof_with_any_letter_changed_is_refused(
        at in any::<prop::sample::Index>(),
        letter in "[A-Za-z0-9_.-]",
    ) {
        let url = "https://mcp.example.com/mcp";
        let key = SigningKey::generate().unwrap();
        let bound = key.thumbprint();
        let proof = dpop::proof(&key, "POST", url, Some(&Secret::new("t")), None, 100).unwrap();
        let mut changed = proof.clone();
        let at = at.index(changed.len());
        changed.replace_range(at..=at, &letter);
        prop_assume!(changed != proof);
        let expected = dpop::ExpectedProof {
            method: "POST",
            url,
            access_token: Some("t"),
            thumbprint: Some(&bound),
            nonces: None,
            now: 100,
            oldest: 60,
            skew: 5,
        };
        let replays = dpop::Replays::new(4);
        prop_assert!(dpop::check(&changed, &expected, &replays).is_err(), "{changed}");
        prop_assert!(dpop::check(&proof, &expected, &replays).is_ok());
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let keys = KeySet::of([pem(P256).public_jwk()]);
        prop_assert!(jwt::open(&text, &keys).is_err());
        prop_assert!(jwt::unverified_issuer(&text).is_none());
        let _ = KeySet::read(text.as_bytes());
    }
}
