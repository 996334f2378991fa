//! The layer around a protected server, with authorization servers that the tests play.

mod bound;
mod changes;
mod ending;
mod faults;
mod places;
mod processes;
mod provided;
mod provider;
mod restraint;

use bytes::Bytes;
use http::StatusCode;

use self::provider::{Mood, Protected, Provider, SERVER, Watch};
use super::*;
use crate::{
    AuthErrorKind, DpopUse, Grant, GrantStore as _, MemoryStore, Registration, Scopes, Settings,
    StoreKey,
};

/// A client of the provider's server, with a store that the test can look into.
#[derive(Clone)]
struct Client {
    provider: Arc<Provider>,
    store: MemoryStore,
    service: AuthService<Protected>,
    layer: AuthLayer,
}

impl Client {
    fn new() -> Client {
        let provider = Provider::new();
        let auth = Auth::person(provider.login());
        Client::with(provider, MemoryStore::new(), auth)
    }

    fn with(provider: Arc<Provider>, store: MemoryStore, auth: Auth) -> Client {
        Client::over(provider, store.clone(), store, auth)
    }

    /// The client sees `store` through something else.
    fn over(
        provider: Arc<Provider>,
        seen: impl crate::GrantStore + 'static,
        store: MemoryStore,
        auth: Auth,
    ) -> Client {
        let auth = auth.store(seen).clock(Watch(provider.clone()));
        let layer = AuthLayer::new(auth, SERVER, provider.clone()).unwrap();
        let service = layer.layer(Protected(provider.clone()));
        Client { provider, store, service, layer }
    }

    async fn call(&self) -> Result<StatusCode, AuthError> {
        self.ask(SERVER).await
    }

    async fn ask(&self, url: &str) -> Result<StatusCode, AuthError> {
        let request = Request::post(url).body(Bytes::from_static(b"{}")).unwrap();
        let mut service = self.service.clone();
        poll_fn(|context| service.poll_ready(context)).await.unwrap();
        match service.call(request).await {
            Ok(response) => Ok(response.status()),
            Err(error) => Err(*error.downcast::<AuthError>().unwrap()),
        }
    }

    async fn kept(&self) -> Option<Grant> {
        let stored = self.store.load(&StoreKey::grant(SERVER)).await.unwrap()?;
        Grant::from_record(&stored.record)
    }

    async fn registered(&self, issuer: &str) -> Option<Registration> {
        let stored = self.store.load(&StoreKey::registration(issuer)).await.unwrap()?;
        Registration::from_record(&stored.record)
    }

    fn counts(&self) -> [usize; 3] {
        ["login", "refresh_token", "register"].map(|kind| self.provider.count(kind))
    }
}

fn assert_no_secret(text: &str) {
    assert!(!text.contains("s3cr3t"), "{text}");
}

// req: client-auth:401-triggers-flow, client-auth:bearer-header:every-request, client-auth:token-provenance
// req: client-auth:authprovider:oauth-provider-adapted
#[tokio::test]
async fn the_first_request_logs_in_and_the_others_show_the_token() {
    let client = Client::new();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 0, 1]);
    let shown = client.provider.state().shown.clone();
    let token = Some("Bearer access-s3cr3t-1".to_owned());
    assert_eq!(shown, [None, token.clone(), token]);
    // Another process finds what was kept.
    let next = Client::with(client.provider.clone(), client.store.clone(), Auth::browser());
    assert_eq!(next.call().await, Ok(StatusCode::OK));
    // Nobody else is shown it.
    for elsewhere in ["https://other.example.com/mcp", "http://mcp.example.com/mcp"] {
        assert_eq!(client.ask(elsewhere).await, Ok(StatusCode::UNAUTHORIZED));
        assert_eq!(client.provider.state().shown.pop(), Some(None));
    }
}

// req: client-auth:refresh:rotation-handling
#[tokio::test]
async fn eight_tasks_and_two_processes_renew_a_rotating_token_once() {
    let one = Client::new();
    one.call().await.unwrap();
    let login = Auth::person(one.provider.login());
    let other = Client::with(one.provider.clone(), one.store.clone(), login);
    other.call().await.unwrap();
    one.provider.end_tokens();
    one.provider.tokens.forget_permits(usize::MAX);
    let calls: Vec<_> = (0..8)
        .map(|at| if at % 2 == 0 { one.clone() } else { other.clone() })
        .map(|client| tokio::spawn(async move { client.call().await }))
        .collect();
    // All of them have been refused before anything is renewed; the first refusal was the login's.
    one.provider.refused(9).await;
    one.provider.tokens.add_permits(100);
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(StatusCode::OK));
    }
    assert_eq!(one.counts(), [1, 1, 1]);
}

// req: client-auth:refresh:transparent
#[tokio::test]
async fn a_token_that_is_known_to_end_is_renewed_before_it_is_shown() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().now += 3600 - 31;
    client.call().await.unwrap();
    assert_eq!(client.counts(), [1, 0, 1]);
    client.provider.state().now += 1;
    let calls: Vec<_> = (0..8)
        .map(|_| client.clone())
        .map(|client| tokio::spawn(async move { client.call().await }))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(StatusCode::OK));
    }
    assert_eq!(client.counts(), [1, 1, 1]);
    assert_eq!(
        client.provider.state().shown.last().unwrap().as_deref(),
        Some("Bearer access-s3cr3t-2")
    );
    assert_eq!(client.provider.state().shown.len(), 3 + 8, "nothing was refused");
}

#[tokio::test]
async fn a_token_that_does_not_live_long_is_not_renewed_for_every_request() {
    let client = Client::new();
    client.provider.state().lifetime = 20;
    for _ in 0..3 {
        client.call().await.unwrap();
    }
    client.provider.state().now += 14;
    client.call().await.unwrap();
    assert_eq!(client.counts(), [1, 0, 1]);
    client.provider.state().now += 1;
    for _ in 0..3 {
        client.call().await.unwrap();
    }
    assert_eq!(client.counts(), [1, 1, 1]);
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_end_the_login_of_the_others() {
    let client = Client::new();
    client.provider.logins.forget_permits(usize::MAX);
    let first = client.clone();
    let first = tokio::spawn(async move { first.call().await });
    client.provider.refused(1).await;
    let second = client.clone();
    let second = tokio::spawn(async move { second.call().await });
    client.provider.refused(2).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    client.provider.logins.add_permits(1);
    assert_eq!(second.await.unwrap(), Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 0, 1]);
}

#[tokio::test]
async fn a_login_goes_on_when_every_caller_has_left() {
    let client = Client::new();
    client.provider.logins.forget_permits(usize::MAX);
    let first = client.clone();
    let first = tokio::spawn(async move { first.call().await });
    client.provider.refused(1).await;
    // Far enough that the login has begun.
    while client.provider.count("login") == 0 {
        tokio::task::yield_now().await;
    }
    first.abort();
    let _ = first.await;
    client.provider.logins.add_permits(1);
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn neither_a_person_nor_a_provider_is_waited_for_for_ever() {
    let client = Client::new();
    client.provider.logins.forget_permits(usize::MAX);
    let begun = tokio::time::Instant::now();
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NotLoggedIn);
    assert!(error.challenge().is_some());
    assert_eq!(begun.elapsed().as_secs(), 5 * 60);

    client.provider.logins.add_permits(100);
    client.provider.tokens.forget_permits(usize::MAX);
    let begun = tokio::time::Instant::now();
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unreachable);
    assert_eq!(begun.elapsed().as_secs(), 30);

    client.provider.tokens.add_permits(100);
    assert_eq!(client.call().await, Ok(StatusCode::OK));
}

// req: client-auth:401-after-auth-throws
#[tokio::test]
async fn a_server_that_refuses_every_token_is_given_up() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().refuses_all = true;
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Required);
    assert_eq!(error.challenge().unwrap().scope, Some(Scopes::from_iter(["basic"])));
    // One silent renewal, one login.
    assert_eq!(client.counts(), [2, 1, 1]);
    assert_no_secret(&format!("{error} {error:?}"));
}

// req: client-auth:403-scope-upgrade, client-auth:403-scope-union, client-auth:stepup:scope-union
// req: client-auth:stepup:retry-cap
#[tokio::test]
async fn more_scopes_are_asked_for_together_with_the_earlier_ones_and_once() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().needed = Some("write");
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.provider.state().scopes, ["basic", "basic write"]);

    // A token that never has what is needed: asked once more, then never again.
    client.provider.state().needed = Some("admin");
    client.provider.state().good.clear();
    client.provider.state().refresh = None;
    let stubborn = client.provider.clone();
    let before = client.counts()[0];
    let deny = HandledDeny(stubborn.clone());
    let auth = Auth::person(deny);
    let denied = Client::with(stubborn, MemoryStore::new(), auth);
    for _ in 0..3 {
        let error = denied.call().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Scope);
        assert!(error.challenge().unwrap().scope.as_ref().unwrap().contains("admin"));
    }
    assert_eq!(denied.counts()[0] - before, 2, "the first login, and one for more");
}

/// A person who consents to `basic` only.
struct HandledDeny(Arc<Provider>);

impl crate::Login for HandledDeny {
    fn redirect_uri(
        &self,
        preferred: Option<&str>,
    ) -> BoxFuture<'_, Result<Box<dyn crate::Waiting>, AuthError>> {
        let login = self.0.login();
        let preferred = preferred.map(str::to_owned);
        Box::pin(async move {
            let waiting = login.redirect_uri(preferred.as_deref()).await?;
            let waiting: Box<dyn crate::Waiting> = Box::new(Denying(waiting));
            Ok(waiting)
        })
    }
}

struct Denying(Box<dyn crate::Waiting>);

impl crate::Waiting for Denying {
    fn redirect_uri(&self) -> &str {
        self.0.redirect_uri()
    }

    fn log_in(
        self: Box<Self>,
        request: crate::LoginRequest,
    ) -> BoxFuture<'static, Result<String, AuthError>> {
        let answer = self.0.log_in(request);
        Box::pin(async move { Ok(answer.await?.replace("admin+", "")) })
    }
}

// req: client-auth:as-binding, client-auth:as-migration:reregister, client-auth:as-migration:no-cred-reuse
// req: client-auth:as-migration:no-token-reuse
#[tokio::test]
async fn another_authorization_server_is_another_client() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().issuer = 2;
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [2, 0, 2], "the old refresh token was shown to the new one");
    for (issuer, shown) in &client.provider.state().clients {
        assert!(shown.starts_with(&format!("client-{issuer}-")), "{shown} at {issuer}");
    }
    let first = client.registered("https://auth1.example.com").await.unwrap();
    let second = client.registered("https://auth2.example.com").await.unwrap();
    assert_ne!(first.client_id, second.client_id);
    assert_eq!(client.kept().await.unwrap().issuer, "https://auth2.example.com");
}

#[tokio::test]
async fn a_failure_that_passes_costs_nothing() {
    let client = Client::new();
    client.call().await.unwrap();
    for mood in [
        Mood::Down,
        Mood::Html,
        Mood::Refuses("temporarily_unavailable"),
        Mood::Answers(503, "invalid_grant"),
        Mood::Answers(429, "invalid_grant"),
        Mood::Answers(503, "invalid_client"),
        Mood::Answers(429, "invalid_client"),
    ] {
        client.provider.state().mood = mood;
        client.provider.end_tokens();
        let error = client.call().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unreachable, "{error}");
        assert_no_secret(&format!("{error} {error:?}"));
        assert!(client.kept().await.unwrap().tokens.unwrap().refresh.is_some());
        client.provider.state().mood = Mood::Well;
        assert_eq!(client.call().await, Ok(StatusCode::OK));
    }
    assert_eq!(client.counts()[0], 1, "someone had to log in again");
    assert_eq!(client.counts()[2], 1, "the client registered again");
}

// req: client-auth:invalid-grant-clears-tokens
#[tokio::test]
async fn invalid_grant_costs_the_tokens_and_nothing_else() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.end_tokens();
    client.provider.state().mood = Mood::Refuses("invalid_grant");
    client.provider.logins.close();
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NotLoggedIn);
    assert!(error.challenge().is_some());
    assert_no_secret(&format!("{error} {error:?}"));
    let kept = client.kept().await.unwrap();
    assert!(kept.tokens.is_none());
    assert_eq!(kept.scopes, Scopes::from_iter(["basic"]));
    assert!(client.registered("https://auth1.example.com").await.is_some());
    // It is not tried again.
    client.call().await.unwrap_err();
    assert_eq!(client.counts(), [3, 1, 1]);
}

// req: client-auth:invalid-client-clears-all
#[tokio::test]
async fn a_client_that_is_forgotten_registers_anew() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.end_tokens();
    client.provider.state().mood = Mood::Refuses("invalid_client");
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [2, 1, 2]);
    let registered = client.registered("https://auth1.example.com").await.unwrap();
    assert_eq!(registered.client_id, "client-1-2");
}

#[tokio::test]
async fn without_anyone_to_log_in_the_challenge_is_handed_out() {
    let provider = Provider::new();
    let nobody = Auth::with(Settings::default());
    let client = Client::with(provider, MemoryStore::new(), nobody);
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Required);
    assert_eq!(error.challenge().unwrap().scope, Some(Scopes::from_iter(["basic"])));
}

#[tokio::test]
async fn logging_in_and_out_can_be_asked_for() {
    let client = Client::new();
    client.layer.log_in().await.unwrap();
    client.layer.log_in().await.unwrap();
    assert_eq!(client.counts(), [2, 0, 1]);
    let auth = Auth::browser().store(client.store.clone());
    auth.log_out(SERVER).await.unwrap();
    auth.log_out(SERVER).await.unwrap();
    assert!(client.kept().await.is_none());
    // What another process deleted is not renewed here.
    client.provider.end_tokens();
    client.call().await.unwrap();
    assert_eq!(client.counts(), [3, 0, 1]);
}

#[tokio::test]
async fn a_bound_token_is_shown_with_a_proof_and_the_nonce_that_the_server_wants() {
    let provider = Provider::new();
    provider.state().dpop = true;
    let auth = Auth::person(provider.login()).settings(|it| it.dpop = DpopUse::Auto);
    let client = Client::with(provider, MemoryStore::new(), auth);
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    let before = client.provider.state().shown.len();
    // Remembered for the next.
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.provider.state().shown.len(), before + 1);
    let shown = client.provider.state().shown.last().cloned().flatten().unwrap();
    assert_eq!(shown, "DPoP access-s3cr3t-1");
    assert_eq!(client.counts()[0], 1);
    // The key is kept with the token: the next process can use it.
    let next = Client::with(client.provider.clone(), client.store.clone(), Auth::browser());
    assert_eq!(next.call().await, Ok(StatusCode::OK));
}

#[tokio::test]
async fn nothing_that_can_be_printed_has_a_secret() {
    let client = Client::new();
    client.call().await.unwrap();
    assert_no_secret(&format!("{:?} {:?}", client.layer, client.service));
    assert_no_secret(&format!("{:?} {:?}", client.store, client.kept().await.unwrap()));
    let auth = Auth::client_credentials("me", crate::Secret::new("s3cr3t"));
    assert_no_secret(&format!("{auth:?}"));
    // Nor do headers say what they carry.
    let held = client.layer.session.current().await.unwrap().unwrap();
    let mut headers = http::HeaderMap::new();
    client.layer.session.show(&held, &http::Method::POST, SERVER, &mut headers).unwrap();
    assert_no_secret(&format!("{headers:?}"));
}
