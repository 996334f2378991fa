//! Owns which proofs are right (RFC 9449 §4.3). Does not own what a wrong one is answered with.

use std::fmt;

use serde_json::{Map, Value};
use url::Url;

use super::{Nonces, Replays, token_digest};
use crate::jose::{
    jwt::{Rejected, Token},
    public::PublicKey,
    strict_object,
};

/// The longest `jti` that is looked at.
const LONGEST_ID: usize = 256;

/// What a proof must be for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedProof<'a> {
    pub(crate) method: &'a str,
    /// Where the request was sent; query and fragment do not matter.
    pub(crate) url: &'a str,
    /// The token that is shown with it; nothing where one is asked for.
    pub(crate) access_token: Option<&'a str>,
    /// The key that the token is bound to.
    pub(crate) thumbprint: Option<&'a str>,
    /// Who knows nonces again, where one is demanded.
    pub(crate) nonces: Option<&'a Nonces>,
    pub(crate) now: u64,
    /// How old a proof may be, in seconds.
    pub(crate) oldest: u64,
    /// By how many seconds other clocks may be ahead.
    pub(crate) skew: u64,
}

/// A proof that is right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Of the key that it was made with.
    pub(crate) thumbprint: String,
}

/// Why a proof is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Token(Rejected),
    Type,
    Key,
    Method,
    Url,
    Time,
    Id,
    AccessToken,
    OtherKey,
    /// It must have a nonce of this server, and has none, or an old one.
    Nonce,
    Replayed,
}

/// Checks a proof, and remembers it if it is right.
pub(crate) fn check(
    proof: &str,
    expected: &ExpectedProof<'_>,
    replays: &Replays,
) -> Result<Checked, Refused> {
    let token = Token::read(proof).map_err(Refused::Token)?;
    if Token::kind(&token.header).map_err(Refused::Token)?.as_deref() != Some("dpop+jwt") {
        return Err(Refused::Type);
    }
    let jwk = token.header.get("jwk").and_then(Value::as_object).ok_or(Refused::Key)?;
    let key = PublicKey::from_jwk(jwk).ok_or(Refused::Key)?;
    if !token.is_signed_by(&key) {
        return Err(Refused::Token(Rejected::Signature));
    }
    let claims = strict_object(&token.payload).ok_or(Refused::Token(Rejected::Malformed))?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("htm") != Some(expected.method) {
        return Err(Refused::Method);
    }
    if !text("htu").is_some_and(|url| same_place(url, expected.url)) {
        return Err(Refused::Url);
    }
    let (issued, oldest) = issued(&claims, expected)?;
    let token_is_meant = |token: &str| text("ath") == Some(token_digest(token).as_str());
    if !expected.access_token.is_none_or(token_is_meant) {
        return Err(Refused::AccessToken);
    }
    let thumbprint = key.thumbprint();
    if expected.thumbprint.is_some_and(|bound| bound != thumbprint) {
        return Err(Refused::OtherKey);
    }
    if let Some(nonces) = expected.nonces
        && !text("nonce").is_some_and(|nonce| nonces.is_good(nonce, expected.now))
    {
        return Err(Refused::Nonce);
    }
    let id = text("jti").filter(|id| !id.is_empty() && id.len() <= LONGEST_ID);
    let id = id.ok_or(Refused::Id)?;
    // Last, so that only who has a right proof can make this remember something.
    if !replays.first_time(&thumbprint, id, issued, oldest) {
        return Err(Refused::Replayed);
    }
    Ok(Checked { thumbprint })
}

/// When it was made, and since when one may have been made.
fn issued(
    claims: &Map<String, Value>,
    expected: &ExpectedProof<'_>,
) -> Result<(u64, u64), Refused> {
    // A fraction is allowed (RFC 7519 §2) and cut off, the same way each time.
    let issued = match claims.get("iat") {
        Some(Value::Number(number)) => number.as_u64().or_else(|| {
            number.as_f64().filter(|time| (0.0..1e15).contains(time)).map(|time| time as u64)
        }),
        _ => None,
    };
    let issued = issued.ok_or(Refused::Time)?;
    let oldest = expected.now.saturating_sub(expected.oldest);
    let latest = expected.now.saturating_add(expected.skew);
    if (oldest..=latest).contains(&issued) { Ok((issued, oldest)) } else { Err(Refused::Time) }
}

/// RFC 9449 §4.3: compared without query and fragment, and normalised.
fn same_place(ours: &str, theirs: &str) -> bool {
    let place = |url: &str| {
        let mut url = Url::parse(url).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(url)
    };
    let [ours, theirs] = [ours, theirs].map(place);
    ours.is_some() && ours == theirs
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Token(rejected) => {
                return write!(f, "the DPoP proof is not right: {rejected}");
            }
            Refused::Type => "the DPoP proof is of another kind",
            Refused::Key => "the DPoP proof has no public key that is understood",
            Refused::Method => "the DPoP proof is for another method",
            Refused::Url => "the DPoP proof is for another address",
            Refused::Time => "the DPoP proof is too old, or from the future",
            Refused::Id => "the DPoP proof has no usable jti",
            Refused::AccessToken => "the DPoP proof is for another token",
            Refused::OtherKey => "the token is bound to another key",
            Refused::Nonce => "the DPoP proof needs a nonce of this server",
            Refused::Replayed => "the DPoP proof was used before",
        })
    }
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Secret, SigningKey,
        jose::{dpop::proof, jwt},
    };

    const URL: &str = "https://mcp.example.com/mcp";
    const NOW: u64 = 1_000_000;

    fn expected<'a>() -> ExpectedProof<'a> {
        ExpectedProof {
            method: "POST",
            url: URL,
            access_token: None,
            thumbprint: None,
            nonces: None,
            now: NOW,
            oldest: 60,
            skew: 5,
        }
    }

    fn made(key: &SigningKey, url: &str) -> String {
        proof(key, "POST", url, None, None, NOW).unwrap()
    }

    #[test]
    fn a_proof_is_taken_once() {
        let key = SigningKey::generate().unwrap();
        let replays = Replays::new(8);
        let proof = made(&key, "https://MCP.example.com:443/mcp?x=1#y");
        let checked = check(&proof, &expected(), &replays);
        assert_eq!(checked, Ok(Checked { thumbprint: key.thumbprint() }));
        assert_eq!(check(&proof, &expected(), &replays), Err(Refused::Replayed));
        assert!(check(&made(&key, URL), &expected(), &replays).is_ok());
    }

    #[test]
    fn a_proof_is_for_one_token_of_one_key() {
        let key = SigningKey::generate().unwrap();
        let replays = Replays::new(8);
        let token = Secret::new("token");
        let make = || proof(&key, "POST", URL, Some(&token), None, NOW).unwrap();
        let bound = key.thumbprint();
        let right =
            ExpectedProof { access_token: Some("token"), thumbprint: Some(&bound), ..expected() };
        assert!(check(&make(), &right, &replays).is_ok());
        let other = ExpectedProof { access_token: Some("other"), ..right };
        assert_eq!(check(&make(), &other, &replays), Err(Refused::AccessToken));
        let stranger = ExpectedProof { thumbprint: Some("else"), ..right };
        assert_eq!(check(&make(), &stranger, &replays), Err(Refused::OtherKey));
        assert_eq!(check(&made(&key, URL), &right, &replays), Err(Refused::AccessToken));
    }

    #[test]
    fn times_places_and_methods_are_checked() {
        let key = SigningKey::generate().unwrap();
        let replays = Replays::new(8);
        let cases = [
            (ExpectedProof { method: "GET", ..expected() }, Some(Refused::Method)),
            (ExpectedProof { method: "post", ..expected() }, Some(Refused::Method)),
            (ExpectedProof { url: "https://mcp.example.com/", ..expected() }, Some(Refused::Url)),
            (ExpectedProof { url: "http://mcp.example.com/mcp", ..expected() }, Some(Refused::Url)),
            (ExpectedProof { now: NOW + 61, ..expected() }, Some(Refused::Time)),
            (ExpectedProof { now: NOW - 6, ..expected() }, Some(Refused::Time)),
            (ExpectedProof { now: NOW + 60, ..expected() }, None),
            (ExpectedProof { now: NOW - 5, ..expected() }, None),
        ];
        for (expected, refused) in cases {
            let checked = check(&made(&key, URL), &expected, &replays);
            assert_eq!(checked.err(), refused, "{expected:?}");
        }
    }

    #[test]
    fn a_nonce_is_demanded() {
        let key = SigningKey::generate().unwrap();
        let replays = Replays::new(8);
        let nonces = Nonces::new(&Secret::new("a"), 60);
        let expected = ExpectedProof { nonces: Some(&nonces), ..expected() };
        let with = |nonce: Option<&str>| proof(&key, "POST", URL, None, nonce, NOW).unwrap();
        assert_eq!(check(&with(None), &expected, &replays), Err(Refused::Nonce));
        let old = nonces.issue(NOW - 61);
        assert_eq!(check(&with(Some(&old)), &expected, &replays), Err(Refused::Nonce));
        assert!(check(&with(Some(&nonces.issue(NOW))), &expected, &replays).is_ok());
    }

    #[test]
    fn each_part_of_a_proof_is_needed() {
        let key = SigningKey::generate().unwrap();
        let header = json!({"typ": "dpop+jwt", "jwk": key.public().to_jwk()});
        let claims = json!({"jti": "a", "htm": "POST", "htu": URL, "iat": NOW});
        let judge = |header: &Value, claims: &Value| {
            let [header, claims] = [header, claims].map(|value| value.as_object().unwrap().clone());
            let proof = jwt::sign(&key, header, &claims).unwrap();
            check(proof.expose(), &expected(), &Replays::new(8)).err()
        };
        assert_eq!(judge(&header, &claims), None);
        let mut private = Value::Object(key.public().to_jwk());
        private["d"] = json!("AAAA");
        let stranger = Value::Object(SigningKey::generate().unwrap().public().to_jwk());
        for (name, value, refused) in [
            ("typ", json!("JWT"), Refused::Type),
            ("typ", Value::Null, Refused::Token(Rejected::Malformed)),
            ("jwk", Value::Null, Refused::Key),
            ("jwk", private, Refused::Key),
            ("jwk", json!({"kty": "oct", "k": "AAAA"}), Refused::Key),
            ("jwk", stranger, Refused::Token(Rejected::Signature)),
        ] {
            let mut header = header.clone();
            header[name] = value;
            assert_eq!(judge(&header, &claims), Some(refused), "{header}");
        }
        for (name, value, refused) in [
            ("jti", Value::Null, Refused::Id),
            ("jti", json!(""), Refused::Id),
            ("jti", json!("x".repeat(LONGEST_ID + 1)), Refused::Id),
            ("htm", Value::Null, Refused::Method),
            ("htu", Value::Null, Refused::Url),
            ("htu", json!("/mcp"), Refused::Url),
            ("iat", Value::Null, Refused::Time),
            ("iat", json!("1000000"), Refused::Time),
        ] {
            let mut claims = claims.clone();
            claims[name] = value;
            assert_eq!(judge(&header, &claims), Some(refused), "{claims}");
        }
    }
}
