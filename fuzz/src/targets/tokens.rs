//! Access tokens and proofs of possession.

use std::sync::LazyLock;

use serde_json::{Value, json};
use turnbuckle_auth::{
    __fuzz::{self as auth, ISSUER, NOW, OLDEST, RESOURCE, SKEW},
    SigningKey,
};

use super::parts;
use crate::json;

struct Signer {
    key: SigningKey,
    jwk: Value,
    keys: Vec<u8>,
}

static SIGNER: LazyLock<Signer> = LazyLock::new(|| {
    let key = SigningKey::generate().expect("a key");
    let jwk = Value::Object(key.public_jwk());
    let keys = json!({"keys": [jwk]}).to_string().into_bytes();
    Signer { key, jwk, keys }
});

/// The first byte chooses: a token, the content of a token, the content of a proof, a key set.
pub fn run(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    match choice % 4 {
        0 => {
            if let Ok(token) = std::str::from_utf8(rest) {
                assert!(auth::verify(token, &SIGNER.keys).is_none(), "a forged token is accepted");
                assert_eq!(auth::check_proof(token), [None, None]);
            }
        }
        1 => content(rest),
        2 => proof(rest),
        _ => key_set(rest),
    }
}

/// A token that is signed: its verdict is the one of a second reader.
fn content(data: &[u8]) {
    let Some((header, claims)) = parts(data) else { return };
    let token = auth::sign(&SIGNER.key, header, claims);
    let accepted = auth::verify(&token, &SIGNER.keys);
    let expected = (|| {
        let (header, claims) = (json::unique(header)?, json::unique(claims)?);
        let time = |name: &str| claims.get(name).map(|time| time.as_f64().unwrap_or(-1.0));
        let (now, skew) = (NOW as f64, SKEW as f64);
        let kind = header.get("typ").map(|kind| kind.as_str().unwrap_or("?").to_ascii_lowercase());
        let kind = kind.map(|kind| kind.strip_prefix("application/").unwrap_or(&kind).to_owned());
        let audience = match claims.get("aud")? {
            Value::Array(list) => list.contains(&json!(RESOURCE)),
            one => one == RESOURCE,
        };
        let right = token.len() <= 16 * 1024
            && header.get("alg")? == "ES256"
            && header.get("crit").is_none()
            && header.get("b64").is_none()
            && header.get("kid").is_none_or(Value::is_string)
            && kind.is_none_or(|kind| kind == "jwt" || kind == "at+jwt")
            && claims.get("iss")? == ISSUER
            && audience
            && time("exp")? + skew > now
            && ["exp", "nbf", "iat"].iter().all(|name| time(name).is_none_or(|time| time >= 0.0))
            && ["nbf", "iat"].iter().all(|name| time(name).is_none_or(|time| time <= now + skew));
        right.then_some(claims)
    })();
    assert_eq!(accepted.map(Value::Object), expected);
}

/// A proof that is signed. `"$JWK"` in the header stands for the key.
fn proof(data: &[u8]) {
    let Some((header, claims)) = parts(data) else { return };
    let Ok(header) = std::str::from_utf8(header) else { return };
    let header = header.replacen("\"$JWK\"", &SIGNER.jwk.to_string(), 1);
    let proof = auth::sign(&SIGNER.key, header.as_bytes(), claims);
    let [first, second] = auth::check_proof(&proof);
    assert_eq!(second, None, "a proof is accepted twice");
    let Some(thumbprint) = first else { return };
    assert_eq!(thumbprint, SIGNER.key.thumbprint());
    let header = json::unique(header.as_bytes()).expect("a header without repeated members");
    let claims = json::unique(claims).expect("claims without repeated members");
    assert!(header["alg"] == "ES256" && header.get("crit").is_none());
    let kind = header["typ"].as_str().unwrap_or_default().to_ascii_lowercase();
    assert!(kind == "dpop+jwt" || kind == "application/dpop+jwt");
    assert!(claims["htm"] == "POST" && claims["jti"].as_str().is_some_and(|id| !id.is_empty()));
    let place = url::Url::parse(claims["htu"].as_str().expect("a URL")).expect("a URL");
    let place = format!("{}{}", place.origin().ascii_serialization(), place.path());
    assert_eq!(place, RESOURCE);
    let issued = claims["iat"].as_f64().expect("a time") as u64;
    assert!((NOW - OLDEST..=NOW + SKEW).contains(&issued));
}

/// A key set verifies a token only if it has the key.
fn key_set(document: &[u8]) {
    let claims = json!({"iss": ISSUER, "aud": RESOURCE, "exp": NOW + 60}).to_string();
    let token = auth::sign(&SIGNER.key, br#"{"alg":"ES256"}"#, claims.as_bytes());
    let Ok(text) = std::str::from_utf8(document) else { return };
    let text = text.replace("\"$JWK\"", &SIGNER.jwk.to_string());
    if auth::verify(&token, text.as_bytes()).is_some() {
        let document = json::unique(text.as_bytes()).expect("a document without repeated members");
        let keys = document["keys"].as_array().expect("keys");
        let ours =
            |key: &Value| ["x", "y", "crv", "kty"].iter().all(|name| key[name] == SIGNER.jwk[name]);
        let public = |key: &Value| ["d", "k", "p"].iter().all(|name| key.get(name).is_none());
        assert!(keys.iter().any(|key| ours(key) && public(key)));
    }
}
