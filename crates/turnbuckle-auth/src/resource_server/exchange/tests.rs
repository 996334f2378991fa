use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use http::Request;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::*;
use crate::{Addresses, BoxFuture, Clock, Fetch};

const ISSUER: &str = "https://auth.example.com";
const ENDPOINT: &str = "https://auth.example.com/token";

#[derive(Debug)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// An authorization server that says what it is told to.
struct Provider {
    says: Mutex<(u16, Value)>,
    metadata: Mutex<Value>,
    asked: Mutex<Vec<Request<Bytes>>>,
    /// Where the last connection might have gone.
    addresses: Mutex<Option<Addresses>>,
    /// One permit an answer.
    gate: Semaphore,
}

impl Fetch for Provider {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        *self.addresses.lock().unwrap() = Some(rules.addresses);
        let is_metadata = request.method() == "GET";
        if !is_metadata {
            self.asked.lock().unwrap().push(request);
        }
        Box::pin(async move {
            if is_metadata {
                let document = self.metadata.lock().unwrap().to_string();
                return Ok(Response::new(Bytes::from(document)));
            }
            self.gate.acquire().await.unwrap().forget();
            let (status, body) = self.says.lock().unwrap().clone();
            Ok(Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap())
        })
    }
}

struct World {
    clock: Arc<Hand>,
    provider: Arc<Provider>,
}

fn world() -> World {
    let provider = Provider {
        says: Mutex::new((200, good("theirs"))),
        metadata: Mutex::new(json!({ "issuer": ISSUER, "token_endpoint": ENDPOINT })),
        asked: Mutex::default(),
        addresses: Mutex::default(),
        gate: Semaphore::new(Semaphore::MAX_PERMITS),
    };
    World { clock: Arc::new(Hand(AtomicU64::new(1_000))), provider: Arc::new(provider) }
}

fn good(token: &str) -> Value {
    json!({
        "access_token": token, "issued_token_type": ACCESS_TOKEN, "token_type": "Bearer",
        "expires_in": 600, "scope": "a",
    })
}

impl World {
    fn caller(&self, token: &str) -> Caller {
        let outside = Outside { fetch: self.provider.clone(), clock: self.clock.clone() };
        Caller::new(Secret::new(token), ISSUER.to_owned(), outside)
    }

    fn say(&self, status: u16, body: Value) {
        *self.provider.says.lock().unwrap() = (status, body);
    }

    fn asked(&self) -> usize {
        self.provider.asked.lock().unwrap().len()
    }

    fn form(&self, number: usize) -> BTreeMap<String, String> {
        let asked = self.provider.asked.lock().unwrap();
        url::form_urlencoded::parse(asked[number].body()).into_owned().collect()
    }
}

fn exchange() -> TokenExchange {
    TokenExchange::basic(ISSUER, "mcp", Secret::new("hide-secret"))
        .resource("https://api.example.com")
        .scopes(["b", "a"])
}

fn expose(answer: Result<ExchangedToken, AuthError>) -> String {
    answer.unwrap().secret().expose().to_owned()
}

#[tokio::test]
async fn a_token_is_shown_to_its_own_issuer_unless_another_is_trusted_with_it() {
    let world = world();
    let mut caller = world.caller("mine");
    caller.issuer = "https://another.example.com".to_owned();
    let error = caller.exchange(&exchange()).await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Forbidden);
    assert_eq!(world.asked(), 0);
    let trusted = exchange().also_from("https://another.example.com");
    assert_eq!(expose(caller.exchange(&trusted).await), "theirs");
}

#[tokio::test]
async fn what_is_asked_is_in_the_body_and_says_who_asks() {
    let world = world();
    let token = world.caller("hide-token").exchange(&exchange()).await.unwrap();
    assert_eq!(token.secret().expose(), "theirs");
    assert_eq!(token.header(), "Bearer theirs");
    assert!(token.header().is_sensitive());
    assert_eq!(token.expires_at(), Some(1_600));
    assert_eq!(token.scopes().unwrap().to_string(), "a");
    assert!(!format!("{token:?}").contains("theirs"));
    let sent = world.provider.asked.lock().unwrap()[0].clone();
    assert_eq!((sent.method().as_str(), sent.uri().to_string()), ("POST", ENDPOINT.into()));
    assert!(sent.headers()["authorization"].is_sensitive());
    let expected = [
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ACCESS_TOKEN),
        ("resource", "https://api.example.com"),
        ("scope", "a b"),
        ("subject_token", "hide-token"),
        ("subject_token_type", ACCESS_TOKEN),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(world.form(0), BTreeMap::from(expected));
}

#[tokio::test]
async fn a_client_proves_who_it_is_in_each_way() {
    let world = world();
    let posted = TokenExchange::post(ISSUER, "mcp", Secret::new("s")).audience("api");
    world.caller("token").exchange(&posted).await.unwrap();
    let form = world.form(0);
    assert_eq!((&*form["client_id"], &*form["client_secret"]), ("mcp", "s"));
    assert_eq!(form["audience"], "api");
    assert!(!form.contains_key("scope"));
    let signed = TokenExchange::signed(ISSUER, "mcp", SigningKey::generate().unwrap());
    world.caller("token").exchange(&signed).await.unwrap();
    assert!(world.form(1)["client_assertion"].split('.').count() == 3);
}

#[tokio::test]
async fn an_answer_is_used_again_for_the_same_caller_until_shortly_before_its_end() {
    let world = world();
    let exchange = exchange();
    let (ann, bob) = (world.caller("anns"), world.caller("bobs"));
    assert_eq!(expose(ann.exchange(&exchange).await), "theirs");
    world.say(200, good("bob-got"));
    assert_eq!(expose(ann.exchange(&exchange.clone()).await), "theirs");
    assert_eq!(expose(bob.exchange(&exchange).await), "bob-got");
    assert_eq!(world.asked(), 2);
    world.clock.0.fetch_add(569, Ordering::SeqCst);
    assert_eq!(expose(ann.exchange(&exchange).await), "theirs");
    world.clock.0.fetch_add(1, Ordering::SeqCst);
    world.say(200, good("newer"));
    assert_eq!(expose(ann.exchange(&exchange).await), "newer");
    assert_eq!(world.asked(), 3);
    // Something else that is asked for is another exchange.
    world.say(200, good("other"));
    assert_eq!(expose(ann.exchange(&exchange.scopes(["c"])).await), "other");
}

#[tokio::test]
async fn what_ends_nobody_knows_when_is_not_used_again() {
    let world = world();
    let exchange = exchange();
    let mut answer = good("theirs");
    answer.as_object_mut().unwrap().remove("expires_in");
    world.say(200, answer);
    for number in 1..=3 {
        world.caller("anns").exchange(&exchange).await.unwrap();
        assert_eq!(world.asked(), number);
    }
    assert_eq!(exchange.kept.len(), 0);
}

#[tokio::test]
async fn those_who_need_the_same_wait_for_one_request_and_whoever_leaves_disturbs_nobody() {
    let world = world();
    let exchange = exchange();
    world.provider.gate.forget_permits(Semaphore::MAX_PERMITS);
    let caller = world.caller("anns");
    let mut first = Box::pin(caller.exchange(&exchange));
    let mut second = Box::pin(caller.exchange(&exchange));
    let polled = std::future::poll_fn(|context| {
        let polled = [first.as_mut().poll(context), second.as_mut().poll(context)];
        std::task::Poll::Ready(polled.iter().all(std::task::Poll::is_pending))
    });
    assert!(polled.await);
    drop(first);
    world.provider.gate.add_permits(1);
    assert_eq!(expose(second.await), "theirs");
    assert_eq!(expose(caller.exchange(&exchange).await), "theirs");
    assert_eq!(world.asked(), 1);
}

#[tokio::test]
async fn a_refusal_is_clear_shows_nothing_and_is_not_remembered() {
    let world = world();
    let exchange = exchange();
    let description = "hide-token of hide-secret is not welcome";
    world.say(400, json!({ "error": "invalid_target", "error_description": description }));
    let error = world.caller("hide-token").exchange(&exchange).await.unwrap_err();
    assert_eq!(error.oauth_code(), Some("invalid_target"));
    let text = format!("{error} {error:?}");
    assert!(text.contains("is not welcome") && !text.contains("hide-"), "{text}");
    world.say(200, good("theirs"));
    assert_eq!(expose(world.caller("hide-token").exchange(&exchange).await), "theirs");
}

#[tokio::test]
async fn only_another_bearer_access_token_is_taken() {
    let changed = |name: &str, value: Value| {
        let mut answer = good("theirs");
        answer[name] = value;
        answer
    };
    for answer in [
        changed("issued_token_type", Value::Null),
        changed("issued_token_type", json!("urn:ietf:params:oauth:token-type:id_token")),
        changed("issued_token_type", json!("urn:ietf:params:oauth:token-type:refresh_token")),
        changed("token_type", json!("DPoP")),
        changed("token_type", json!("N_A")),
        changed("token_type", Value::Null),
        changed("access_token", json!("callers-own")),
        changed("access_token", json!("two words")),
        changed("access_token", json!("x".repeat(16 * 1024 + 1))),
        json!("no object"),
    ] {
        let world = world();
        world.say(200, answer.clone());
        let error = world.caller("callers-own").exchange(&exchange()).await.unwrap_err();
        let kinds = [AuthErrorKind::Response, AuthErrorKind::Unreachable];
        assert!(kinds.contains(&error.kind()), "{answer}");
        assert!(!format!("{error:?}").contains("callers-own"), "{error:?}");
    }
}

#[tokio::test]
async fn a_token_is_shown_only_where_it_is_safe() {
    for (metadata, given) in [
        (json!({ "issuer": ISSUER, "token_endpoint": "http://auth.example.com/token" }), None),
        (json!({ "issuer": ISSUER, "token_endpoint": "https://10.0.0.1/token" }), None),
        (json!({ "issuer": ISSUER, "token_endpoint": "http://127.0.0.1/token" }), None),
        (json!({ "issuer": ISSUER }), None),
        (json!({ "issuer": "https://other.example", "token_endpoint": ENDPOINT }), None),
        (json!({}), Some("http://auth.example.com/token")),
        (json!({}), Some("https://user@auth.example.com/token")),
        (json!({}), Some("token")),
    ] {
        let world = world();
        *world.provider.metadata.lock().unwrap() = metadata.clone();
        let exchange = match given {
            Some(address) => exchange().token_endpoint(address),
            None => exchange(),
        };
        world.caller("hide-token").exchange(&exchange).await.unwrap_err();
        assert_eq!(world.asked(), 0, "{metadata} {given:?}");
    }
    let world = world();
    *world.provider.metadata.lock().unwrap() = json!({});
    let exchange = exchange().token_endpoint("http://localhost:1/token");
    world.caller("token").exchange(&exchange).await.unwrap();
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let world = world();
    let exchange = exchange();
    for number in 0..1030 {
        world.clock.0.fetch_add(u64::from(number == 1), Ordering::SeqCst);
        world.caller(&format!("token-{number}")).exchange(&exchange).await.unwrap();
    }
    assert_eq!(exchange.kept.len(), 1024);
    world.caller("token-1029").exchange(&exchange).await.unwrap();
    assert_eq!(world.asked(), 1030);
    world.caller("token-0").exchange(&exchange).await.unwrap();
    assert_eq!(world.asked(), 1031, "what ends first went first");
}

/// A name is known to be a private one only once it is resolved, which is where the rules count.
#[tokio::test]
async fn a_callers_token_goes_no_more_into_private_than_the_issuer_is() {
    use Addresses::{AlsoPrivate, Public};
    let local = "http://127.0.0.1:9";
    for (issuer, endpoint, allowed) in [
        (ISSUER, "https://auth.example.com/token", Some(AlsoPrivate)),
        (ISSUER, "https://auth.example.com:8443/token", Some(Public)),
        (ISSUER, "https://tokens.example.com/token", Some(Public)),
        (ISSUER, "https://10.0.0.1/token", None),
        (ISSUER, "http://127.0.0.1/token", None),
        (ISSUER, "https://169.254.169.254/token", None),
        (local, "https://10.0.0.1/token", Some(AlsoPrivate)),
        (local, "https://169.254.169.254/token", None),
    ] {
        let world = world();
        *world.provider.metadata.lock().unwrap() =
            json!({ "issuer": issuer, "token_endpoint": endpoint });
        let named = TokenExchange::basic(issuer, "mcp", Secret::new("s"));
        let mut caller = world.caller("mine");
        issuer.clone_into(&mut caller.issuer);
        // The second asks where the first was told to.
        for token in ["mine", "another"] {
            caller.token = Secret::new(token);
            let answer = caller.exchange(&named).await;
            assert_eq!(answer.is_ok(), allowed.is_some(), "{issuer} {endpoint}");
            if allowed.is_some() {
                assert_eq!(*world.provider.addresses.lock().unwrap(), allowed, "{endpoint}");
            }
        }
        let asked = if allowed.is_some() { 2 } else { 0 };
        assert_eq!(world.asked(), asked, "{endpoint}");
    }
    // What is configured may be anywhere, but there.
    for (endpoint, is_asked) in [("https://10.0.0.1/t", true), ("https://169.254.169.254/t", false)]
    {
        let world = world();
        let given = exchange().token_endpoint(endpoint);
        assert_eq!(world.caller("mine").exchange(&given).await.is_ok(), is_asked, "{endpoint}");
        assert_eq!(world.asked(), usize::from(is_asked), "{endpoint}");
    }
}
