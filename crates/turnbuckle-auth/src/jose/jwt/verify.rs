//! Owns which JSON web tokens are believed (RFC 7515, RFC 7519, RFC 8725). Does not own the keys, or
//! what the claims are good for.

use std::fmt;

use serde_json::{Map, Value};

use crate::jose::{
    Algorithm, KeySet, LONGEST_TOKEN, decode, public::PublicKey, strict_object as object,
};

/// What a token must say. There is no way to leave the issuer, the audience or the expiry out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenRules<'a> {
    pub(crate) issuer: &'a str,
    /// One of these must be among the token's own.
    pub(crate) audiences: &'a [String],
    /// What `typ` may say, in lower case and without `application/`. A token without `typ` passes.
    pub(crate) types: &'a [&'a str],
    pub(crate) now: u64,
    /// By how many seconds other clocks may differ.
    pub(crate) skew: u64,
}

/// A token whose signature is right.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) header: Map<String, Value>,
    pub(crate) payload: Vec<u8>,
}

/// Why a token is not believed. Nothing of the token is in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    TooLong,
    Malformed,
    Algorithm,
    Critical,
    Type,
    /// None of the keys is the one that it names, or it names none and none fits.
    UnknownKey,
    Signature,
    Issuer,
    Audience,
    /// It does not say until when it is good.
    NoExpiry,
    Expired,
    NotYet,
}

/// The claims of a token that is signed with one of `keys` and obeys `rules`.
pub(crate) fn verify(
    token: &str,
    keys: &KeySet,
    rules: &TokenRules<'_>,
) -> Result<Map<String, Value>, Rejected> {
    let opened = open(token, keys)?;
    check_type(&opened.header, rules.types)?;
    let claims = object(&opened.payload).ok_or(Rejected::Malformed)?;
    check_claims(&claims, rules)?;
    Ok(claims)
}

/// Looks at the signature only. The payload can be anything.
pub(crate) fn open(token: &str, keys: &KeySet) -> Result<Opened, Rejected> {
    let token = Token::read(token)?;
    let named = token.header.get("kid").and_then(Value::as_str);
    let mut named_one = false;
    for key in keys.iter() {
        let same_name = match (named, key.key_id()) {
            (Some(named), Some(name)) if named != name => continue,
            (Some(_), Some(_)) => true,
            _ => false,
        };
        if !key.fits(token.algorithm) {
            continue;
        }
        named_one |= same_name;
        if token.is_signed_by(key) {
            return Ok(Opened { header: token.header, payload: token.payload });
        }
    }
    // Where no key has that name, keys may have changed since they were looked at.
    Err(if named_one { Rejected::Signature } else { Rejected::UnknownKey })
}

/// What the token says of its issuer, to choose whose keys to verify it with. Not to be believed.
/// However it is signed: it must not pass for a token that says nothing.
pub(crate) fn unverified_issuer(token: &str) -> Option<String> {
    Some(unverified_claims(token)?.get("iss")?.as_str()?.to_owned())
}

/// When the token says that it was made. Not to be believed either.
pub(crate) fn unverified_time(token: &str) -> Option<u64> {
    unverified_claims(token)?.get("iat")?.as_u64()
}

fn unverified_claims(token: &str) -> Option<Map<String, Value>> {
    let mut parts = token.split('.');
    let (Some(_), Some(payload), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    if token.len() > LONGEST_TOKEN {
        return None;
    }
    object(&decode(payload)?)
}

/// A token in its parts, with nothing verified.
pub(crate) struct Token<'a> {
    pub(crate) header: Map<String, Value>,
    pub(crate) payload: Vec<u8>,
    pub(crate) algorithm: Algorithm,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Token<'a> {
    pub(crate) fn read(token: &'a str) -> Result<Token<'a>, Rejected> {
        if token.len() > LONGEST_TOKEN {
            return Err(Rejected::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Rejected::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(Rejected::Malformed)?;
        let header = decode(header).and_then(|json| object(&json)).ok_or(Rejected::Malformed)?;
        // A dot more is no base64url, so that there are three parts here or none.
        let payload = decode(payload).ok_or(Rejected::Malformed)?;
        let signature = decode(signature).ok_or(Rejected::Malformed)?;
        let algorithm = header.get("alg").and_then(Value::as_str);
        let algorithm = algorithm.and_then(Algorithm::from_name).ok_or(Rejected::Algorithm)?;
        // RFC 7515 §4.1.11: what must be understood and is not. Nothing is understood here.
        // `b64` (RFC 7797) changes what is signed, and is never right without `crit`.
        if header.contains_key("crit") || header.contains_key("b64") {
            return Err(Rejected::Critical);
        }
        if header.get("kid").is_some_and(|kid| !kid.is_string()) {
            return Err(Rejected::Malformed);
        }
        Ok(Token { header, payload, algorithm, signed, signature })
    }

    pub(crate) fn is_signed_by(&self, key: &PublicKey) -> bool {
        key.verifies(self.algorithm, self.signed.as_bytes(), &self.signature)
    }

    /// `typ`, in lower case and without `application/` (RFC 7515 §4.1.9).
    pub(crate) fn kind(header: &Map<String, Value>) -> Result<Option<String>, Rejected> {
        let Some(kind) = header.get("typ") else { return Ok(None) };
        let kind = kind.as_str().ok_or(Rejected::Malformed)?.to_ascii_lowercase();
        Ok(Some(kind.strip_prefix("application/").unwrap_or(&kind).to_owned()))
    }
}

/// A token that was made for something else must not pass for this (RFC 8725 §3.11).
fn check_type(header: &Map<String, Value>, types: &[&str]) -> Result<(), Rejected> {
    match Token::kind(header)? {
        Some(kind) if !types.contains(&kind.as_str()) => Err(Rejected::Type),
        _ => Ok(()),
    }
}

fn check_claims(claims: &Map<String, Value>, rules: &TokenRules<'_>) -> Result<(), Rejected> {
    if claims.get("iss").and_then(Value::as_str) != Some(rules.issuer) {
        return Err(Rejected::Issuer);
    }
    check_audience(claims, rules.audiences)?;
    if !claims.contains_key("exp") {
        return Err(Rejected::NoExpiry);
    }
    check_times(claims, rules.now, rules.skew)
}

/// Whether `aud`, a text or a list, has one of these.
pub(crate) fn check_audience(
    claims: &Map<String, Value>,
    audiences: &[String],
) -> Result<(), Rejected> {
    let wanted = |value: &Value| {
        value.as_str().is_some_and(|text| audiences.iter().any(|wanted| wanted == text))
    };
    let fits = match claims.get("aud") {
        Some(Value::Array(list)) => list.iter().any(wanted),
        Some(one) => wanted(one),
        None => false,
    };
    if fits { Ok(()) } else { Err(Rejected::Audience) }
}

/// `exp`, `nbf` and `iat`, as far as they are there.
pub(crate) fn check_times(
    claims: &Map<String, Value>,
    now: u64,
    skew: u64,
) -> Result<(), Rejected> {
    let [now, skew] = [now, skew].map(|seconds| seconds as f64);
    // RFC 7519 §4.1.4: on it or after it, it is over.
    if time(claims, "exp")?.is_some_and(|expiry| now >= expiry + skew) {
        return Err(Rejected::Expired);
    }
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|start| start > now + skew) {
            return Err(Rejected::NotYet);
        }
    }
    Ok(())
}

/// A number of seconds since 1970, which may have a fraction.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<f64>, Rejected> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(time) if time >= 0.0 && time.is_finite() => Ok(Some(time)),
            _ => Err(Rejected::Malformed),
        },
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejected::TooLong => "the token is too long",
            Rejected::Malformed => "the token is malformed",
            Rejected::Algorithm => "the token is not signed in a way that is accepted",
            Rejected::Critical => "the token has a critical header",
            Rejected::Type => "the token is of another kind",
            Rejected::UnknownKey => "the token is signed with an unknown key",
            Rejected::Signature => "the token's signature is wrong",
            Rejected::Issuer => "the token is from another issuer",
            Rejected::Audience => "the token is not meant for this resource",
            Rejected::NoExpiry => "the token does not expire",
            Rejected::Expired => "the token has expired",
            Rejected::NotYet => "the token is not valid yet",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        SigningKey,
        jose::{encode, jwt},
    };

    const NOW: u64 = 1_000_000;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn claims() -> Map<String, Value> {
        map(json!({"iss": "https://a", "aud": ["x", "https://r"], "exp": NOW + 60, "iat": NOW}))
    }

    fn judge(header: Value, claims: &Map<String, Value>) -> Result<Map<String, Value>, Rejected> {
        let key = SigningKey::generate().unwrap().with_key_id("k");
        let keys = KeySet::of([key.public_jwk()]);
        let token = jwt::sign(&key, map(header), claims).unwrap();
        let audiences = ["https://r".to_owned(), "second".to_owned()];
        let rules = TokenRules {
            issuer: "https://a",
            audiences: &audiences,
            types: &["jwt", "at+jwt"],
            now: NOW,
            skew: 30,
        };
        verify(token.expose(), &keys, &rules)
    }

    #[test]
    fn a_good_token_is_believed() {
        assert_eq!(judge(json!({}), &claims()).unwrap(), claims());
        for typ in ["JWT", "at+jwt", "application/AT+JWT"] {
            assert!(judge(json!({"typ": typ}), &claims()).is_ok(), "{typ}");
        }
    }

    #[test]
    fn each_rule_refuses_by_itself() {
        let no_members: [&str; 0] = [];
        let cases = [
            ("iss", json!("https://a/"), Rejected::Issuer),
            ("iss", json!(["https://a"]), Rejected::Issuer),
            ("iss", Value::Null, Rejected::Issuer),
            ("aud", json!("https://r/"), Rejected::Audience),
            ("aud", json!(["https://R", 1]), Rejected::Audience),
            ("aud", json!(no_members), Rejected::Audience),
            ("aud", json!({"https://r": true}), Rejected::Audience),
            ("exp", json!(NOW - 30), Rejected::Expired),
            ("exp", json!("1000060"), Rejected::Malformed),
            ("exp", json!(-1), Rejected::Malformed),
            ("nbf", json!(NOW + 31), Rejected::NotYet),
            ("iat", json!(NOW + 31), Rejected::NotYet),
            ("iat", json!("now"), Rejected::Malformed),
        ];
        for (name, value, expected) in cases {
            let mut claims = claims();
            claims.insert(name.into(), value.clone());
            assert_eq!(judge(json!({}), &claims), Err(expected), "{name}: {value}");
        }
        for (name, expected) in
            [("iss", Rejected::Issuer), ("aud", Rejected::Audience), ("exp", Rejected::NoExpiry)]
        {
            let mut claims = claims();
            claims.remove(name);
            assert_eq!(judge(json!({}), &claims), Err(expected), "without {name}");
        }
    }

    #[test]
    fn clocks_may_differ_by_the_skew() {
        for (name, value) in [
            ("exp", json!(NOW - 29)),
            ("exp", json!(NOW as f64 - 29.5)),
            ("nbf", json!(NOW + 30)),
            ("iat", json!(NOW + 30)),
            ("aud", json!("second")),
        ] {
            let mut claims = claims();
            claims.insert(name.into(), value.clone());
            assert!(judge(json!({}), &claims).is_ok(), "{name}: {value}");
        }
    }

    #[test]
    fn headers_that_change_the_meaning_are_refused() {
        let cases = [
            (json!({"crit": ["exp"]}), Rejected::Critical),
            (json!({"crit": []}), Rejected::Critical),
            (json!({"b64": false}), Rejected::Critical),
            (json!({"typ": "dpop+jwt"}), Rejected::Type),
            (json!({"typ": "oauth-id-jag+jwt"}), Rejected::Type),
            (json!({"typ": 1}), Rejected::Malformed),
        ];
        for (header, expected) in cases {
            assert_eq!(judge(header.clone(), &claims()), Err(expected), "{header}");
        }
    }

    #[test]
    fn a_name_chooses_the_key() {
        let [ours, theirs] =
            ["a", "b"].map(|name| SigningKey::generate().unwrap().with_key_id(name));
        let token = jwt::sign(&ours, Map::new(), &claims()).unwrap();
        let open = |keys: Vec<Map<String, Value>>| {
            open(token.expose(), &KeySet::of(keys)).map(|opened| opened.header["kid"].clone())
        };
        assert_eq!(open(vec![theirs.public_jwk(), ours.public_jwk()]), Ok(json!("a")));
        assert_eq!(open(vec![theirs.public_jwk()]), Err(Rejected::UnknownKey));
        assert_eq!(open(vec![]), Err(Rejected::UnknownKey));
        let imposter = theirs.clone().with_key_id("a").public_jwk();
        assert_eq!(open(vec![imposter.clone()]), Err(Rejected::Signature));
        // Two of one name: the right one is found. One without a name may be it.
        assert_eq!(open(vec![imposter, ours.public_jwk()]), Ok(json!("a")));
        assert_eq!(open(vec![ours.public().to_jwk()]), Ok(json!("a")));
        assert_eq!(open(vec![theirs.public().to_jwk()]), Err(Rejected::UnknownKey));
    }

    #[test]
    fn a_key_is_used_as_its_owner_says() {
        let key = SigningKey::generate().unwrap();
        let token = jwt::sign(&key, Map::new(), &claims()).unwrap();
        let mut jwk = key.public_jwk();
        for (name, value, usable) in [
            ("use", json!("sig"), true),
            ("use", json!("enc"), false),
            ("key_ops", json!(["verify"]), true),
            ("key_ops", json!(["encrypt"]), false),
            ("alg", json!("ES256"), true),
            ("alg", json!("ES384"), false),
            ("alg", json!("HS256"), false),
            ("d", json!("AA"), false),
        ] {
            let before = jwk.insert(name.into(), value.clone());
            let opened = open(token.expose(), &KeySet::of([jwk.clone()]));
            assert_eq!(opened.is_ok(), usable, "{name}: {value}");
            match before {
                Some(before) => jwk.insert(name.into(), before),
                None => jwk.remove(name),
            };
        }
    }

    #[test]
    fn what_is_no_token_is_malformed_or_too_long() {
        let keys = KeySet::of([SigningKey::generate().unwrap().public_jwk()]);
        for text in
            ["", ".", "..", "a.b", "e30.e30.e30.e30", "e30=.e30.e30", "e30.e30.e3", "W10.e30.AA"]
        {
            let refused = open(text, &keys).unwrap_err();
            assert!(matches!(refused, Rejected::Malformed | Rejected::Algorithm), "{text}");
        }
        let long = "a".repeat(LONGEST_TOKEN + 1);
        assert_eq!(open(&long, &keys).unwrap_err(), Rejected::TooLong);
    }

    #[test]
    fn the_issuer_can_be_seen_before() {
        let key = SigningKey::generate().unwrap();
        let token = jwt::sign(&key, Map::new(), &claims()).unwrap();
        assert_eq!(unverified_issuer(token.expose()).as_deref(), Some("https://a"));
        let unknown = format!("{}.{}.AAAA", encode(r#"{"alg":"HS256"}"#), encode(r#"{"iss":"a"}"#));
        assert_eq!(unverified_issuer(&unknown).as_deref(), Some("a"));
        for other in ["opaque", "a.b.c", "e30.e30.e30", &format!("{unknown}.x.y")] {
            assert_eq!(unverified_issuer(other), None);
        }
    }
}
