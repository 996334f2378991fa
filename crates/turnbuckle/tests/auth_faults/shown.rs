//! Tokens that are no good, shown to a protected server.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use turnbuckle::{
    Client, ErrorKind,
    auth::{
        Challenge, Clock as _, Secret,
        testing::{Endpoint, InsecureAuthorizationServer},
    },
};

use crate::{
    ears::{Ears, told},
    world::{ERAS, World, said},
};

fn encode(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

fn claims(world: &World, claims: &Value) -> Map<String, Value> {
    let mut all = json!({"aud": world.url, "scope": "read"}).as_object().unwrap().clone();
    all.extend(claims.as_object().unwrap().clone());
    all
}

/// What a good token says.
fn payload(world: &World) -> String {
    let now = world.clock.now();
    let times = json!({"iss": world.provider.issuer(), "sub": "me", "iat": now, "exp": now + 60});
    Value::Object(claims(world, &times)).to_string()
}

/// Signed with what everyone knows, as if it were a secret.
fn signed_with(secret: &[u8], world: &World, key_id: &Value) -> Secret {
    let header = json!({"alg": "HS256", "typ": "at+jwt", "kid": key_id}).to_string();
    let signed = format!("{}.{}", encode(header), encode(payload(world)));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    Secret::new(format!("{signed}.{}", encode(tag)))
}

/// Not signed, by each name of that.
fn unsigned(world: &World) -> impl Iterator<Item = (&'static str, Secret, &'static str)> + '_ {
    ["none", "None", "NONE", "nOnE", ""].into_iter().flat_map(move |name| {
        let header = json!({"alg": name, "typ": "at+jwt"}).to_string();
        let signed = format!("{}.{}", encode(header), encode(payload(world)));
        let way = "not signed in a way that is accepted";
        [("", way), ("AAAA", way)]
            .map(|(tag, says)| ("not signed", Secret::new(format!("{signed}.{tag}")), says))
    })
}

/// Another one that says it is the provider, with a key of its own that it calls the same.
fn imposter(world: &World) -> InsecureAuthorizationServer {
    InsecureAuthorizationServer::new(world.provider.issuer())
        .clock(std::sync::Arc::new(world.clock.clone()))
}

/// With a key that the provider has never named, and from before it was asked for its keys.
fn signed_by_nobody(world: &World) -> Secret {
    let imposter = imposter(world);
    imposter.rotate_keys();
    imposter.issue(claims(world, &json!({ "iat": world.clock.now() - 60 })))
}

/// Each with what it is, and what the server says of it.
fn bad_tokens(world: &World) -> Vec<(&'static str, Secret, &'static str)> {
    let now = world.clock.now();
    let provider = &world.provider;
    let issued = |with: Value| provider.issue(claims(world, &with));
    let imposter = imposter(world);
    let same_key_id = imposter.issue(claims(world, &json!({})));
    let public = provider.public_key();
    let point = ["x", "y"].map(|name| public[name].as_str().unwrap());
    let point = point.map(|half| URL_SAFE_NO_PAD.decode(half).unwrap()).concat();
    let whole = Value::Object(public.clone()).to_string();
    let by_secret = |secret: &[u8]| signed_with(secret, world, &public["kid"]);
    let way = "not signed in a way that is accepted";
    let mut all = vec![
        ("expired", issued(json!({"exp": now - 31})), "has expired"),
        ("without end", issued(json!({"exp": null})), "malformed"),
        ("for later", issued(json!({"nbf": now + 31})), "not valid yet"),
        ("of later", issued(json!({"iat": now + 31})), "not valid yet"),
        ("for another", issued(json!({"aud": "https://other.example.com"})), "not meant for this"),
        ("for nobody", issued(json!({"aud": []})), "not meant for this"),
        ("of another", issued(json!({"iss": "https://other.example.com"})), "issuer is unknown"),
        ("about nobody", issued(json!({"sub": ""})), "names nobody"),
        ("oversized", issued(json!({"more": "x".repeat(20_000)})), "too long"),
        ("huge", issued(json!({"more": "x".repeat(90_000)})), "too long"),
        ("signed by an imposter", same_key_id, "signature is wrong"),
        ("signed by nobody known", signed_by_nobody(world), "unknown key"),
        ("signed with the public key", by_secret(whole.as_bytes()), way),
        ("signed with the public point", by_secret(&point), way),
        ("garbage", Secret::new("g4rb4g3g4rb4g3"), "issuer is unknown"),
        (
            "garbage with dots",
            Secret::new("g4rb4g3g4rb4g3.g4rb4g3g4rb4g3.g4rb4g3g4rb4g3"),
            "issuer is unknown",
        ),
        ("binary garbage", Secret::new(encode([0xff; 300])), "issuer is unknown"),
    ];
    all.extend(unsigned(world));
    all
}

/// The whole answer to a call with this token.
async fn shown(world: &World, token: &Secret) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": {"text": "hello"},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}})
    .to_string();
    let head = [
        "POST /mcp HTTP/1.1".to_owned(),
        "host: localhost\r\nconnection: close".to_owned(),
        "content-type: application/json\r\naccept: application/json, text/event-stream".to_owned(),
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo".to_owned(),
        format!("authorization: Bearer {}", token.expose()),
        format!("content-length: {}\r\n\r\n{body}", body.len()),
    ];
    let address = world.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.join("\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn challenge(answer: &str) -> Challenge {
    let lines = answer.lines().filter_map(|line| line.split_once(": "));
    let value = lines.filter(|(name, _)| *name == "www-authenticate").map(|(_, value)| value);
    let mut headers = http::HeaderMap::new();
    headers.extend(value.map(|value| (http::header::WWW_AUTHENTICATE, value.parse().unwrap())));
    Challenge::read(&headers).unwrap_or_else(|| panic!("{answer}"))
}

/// A token, and what it would be known by.
fn parts(token: &Secret) -> Vec<Secret> {
    let longest = token.expose().split('.').max_by_key(|part| part.len());
    vec![token.clone(), Secret::new(&longest.unwrap()[..12])]
}

// req: hosting:auth:invalid-401, hosting:auth:expired-401, hosting:auth:aud-validation
#[tokio::test]
async fn a_bad_token_is_refused_with_a_reason_and_disturbs_nobody() {
    let (ears, world) = (Ears::new(), World::new().await);
    let friend = world.logged_in().await;
    for (what, token, says) in bad_tokens(&world) {
        let (answer, other) = tokio::join!(shown(&world, &token), said(&friend));
        assert_eq!(other.unwrap(), "hello", "{what}");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{what}: {answer}");
        let challenge = challenge(&answer);
        assert_eq!(challenge.error.as_deref(), Some("invalid_token"), "{what}");
        let reason = challenge.error_description.unwrap();
        assert!(reason.contains(says), "{what}: {reason}");
        let metadata = challenge.resource_metadata.unwrap();
        assert!(metadata.ends_with("/.well-known/oauth-protected-resource/mcp"), "{what}");
        assert_eq!(challenge.scope.unwrap().to_string(), "read", "{what}");
        ears.found_nothing(&parts(&token), &[answer]);
    }
    // Whoever makes up keys can't make the server ask for them all the time.
    for _ in 0..8 {
        assert!(shown(&world, &signed_by_nobody(&world)).await.contains("unknown key"));
    }
    assert!(world.provider.requests(Endpoint::Keys) <= 2);
    assert_eq!(world.asked()[1..], [1, 1], "somebody was asked for another token");
    let good = world.provider.issue(claims(&world, &json!({})));
    assert!(shown(&world, &good).await.starts_with("HTTP/1.1 200 "));
}

// req: client-auth:401-after-auth-throws
#[tokio::test]
async fn a_client_with_a_bad_token_of_its_own_is_told_and_tries_nothing() {
    let (ears, world) = (Ears::new(), World::new().await);
    let friend = world.logged_in().await;
    for era in ERAS {
        for (what, token, says) in bad_tokens(&world) {
            let before = world.answered(401);
            let header = format!("Bearer {}", token.expose());
            let builder = Client::builder().no_proxy().revision(era);
            let builder = builder.header("authorization", header).auth(world.auth());
            let failing = async {
                match builder.connect(&world.url).await {
                    Ok(client) => said(&client).await,
                    Err(error) => Err(error),
                }
            };
            let (failed, other) = tokio::join!(failing, said(&friend));
            let error = failed.unwrap_err();
            assert_eq!(other.unwrap(), "hello", "{what}");
            assert_eq!(error.kind(), ErrorKind::AuthorizationRequired, "{what}: {error}");
            let reason = error.challenge().and_then(|it| it.error_description.clone()).unwrap();
            assert!(reason.contains(says), "{what}: {reason}");
            assert_eq!(world.answered(401), before + 1, "{what}");
            ears.found_nothing(&parts(&token), &told(&error));
        }
    }
    // Whoever brings a token of their own is not logged in instead.
    assert_eq!((world.asked()[2], world.person.logins()), (1, 1));
}
