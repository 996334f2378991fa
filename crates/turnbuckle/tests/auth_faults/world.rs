//! An authorization server that can be made to fail, a server that trusts it, and a person, all at
//! sockets of this machine.

use std::{
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use axum::{
    body::Bytes,
    extract::{Request, State},
    middleware::Next,
    response::Response,
    serve::ListenerExt as _,
};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::{Semaphore, watch},
    task::JoinHandle,
};
use turnbuckle::{
    Args, Client, ClientBuilder, Error, Revision, Server,
    auth::{
        Auth, AuthError, AuthErrorKind, Clock, Grant, GrantStore as _, HandledLogin, LoginRequest,
        MemoryStore, Scopes, Secret, StoreKey,
        resource_server::ResourceServer,
        testing::{
            Endpoint, InsecureAuthorizationServer, InsecureClient, InsecureListener,
            InsecureServing,
        },
    },
    tool,
};

use crate::secure::Authority;

pub(crate) const ERAS: [Revision; 2] = [Revision::V2026_07_28, Revision::V2025_11_25];
pub(crate) const MODERN: Revision = Revision::V2026_07_28;

/// Where people are sent back to.
pub(crate) const BACK: &str = "http://127.0.0.1:1/callback";

/// A client that was registered beforehand, and its secret.
pub(crate) const KNOWN: (&str, &str) = ("known", "s3cr3t-of-known");

/// Everything that a test can look at or turn.
pub(crate) struct World {
    pub(crate) provider: Arc<InsecureAuthorizationServer>,
    pub(crate) url: String,
    pub(crate) person: Person,
    /// The server's and the provider's.
    pub(crate) clock: Watch,
    pub(crate) store: MemoryStore,
    /// The status of each request that the server answered.
    statuses: Arc<watch::Sender<Vec<u16>>>,
    at: SocketAddr,
    serving: Option<InsecureServing>,
    /// Holds the place of a provider that is away.
    reserved: Option<TcpSocket>,
    task: JoinHandle<()>,
}

/// How servers are spoken to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    Clear,
    Tls,
}

impl Wire {
    /// What leads to this place like that.
    async fn origin(self, to: SocketAddr) -> String {
        match self {
            Wire::Clear => format!("http://{to}"),
            Wire::Tls => {
                let outside = authority().place().await;
                let origin = outside.origin();
                outside.lead_to(to);
                origin
            }
        }
    }
}

/// Each wire with the eras that it is worth while to speak on it: TLS knows nothing of them.
pub(crate) const WAYS: [(Wire, Revision); 3] =
    [(Wire::Clear, ERAS[0]), (Wire::Clear, ERAS[1]), (Wire::Tls, ERAS[0])];

/// Who vouches for every place that speaks TLS, and is trusted by everyone.
pub(crate) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| Authority::of(&["127.0.0.1"]))
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    pub(crate) async fn new() -> World {
        World::over(Wire::Clear).await
    }

    /// Server and provider are spoken to like this.
    pub(crate) async fn over(wire: Wire) -> World {
        let (listener, clock) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Watch::default());
        let at = listener.local_addr().unwrap();
        let place = InsecureListener::on(listener).unwrap();
        let provider = Arc::new(provider(&wire.origin(at).await, &clock));
        let serving = Some(place.serve(provider.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{}/mcp", wire.origin(listener.local_addr().unwrap()).await);
        let protection = protection(&url, provider.issuer()).clock(Arc::new(clock.clone()));
        let protection = protection.tls_root(authority().pem.as_bytes());
        let server = server().protect(protection);
        let metadata = server.metadata_service();
        let path = metadata.path().to_owned();
        let statuses = Arc::<watch::Sender<Vec<u16>>>::default();
        let app = axum::Router::new()
            .nest_service("/mcp", server.http_service())
            .layer(axum::middleware::from_fn_with_state(statuses.clone(), count))
            .route_service(&path, metadata);
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let person = Person::at(provider.clone());
        let (store, reserved) = (MemoryStore::new(), None);
        World { provider, url, person, clock, store, statuses, at, serving, reserved, task }
    }

    /// A person who logs in when it is needed; what was granted is kept in `store`.
    pub(crate) fn auth(&self) -> Auth {
        Auth::person(self.person.login()).store(self.store.clone())
    }

    /// A client of the modern era, which has asked for nothing yet.
    pub(crate) async fn client(&self, auth: Auth) -> Client {
        connect(&self.url, auth, MODERN).await.unwrap()
    }

    /// A client that has logged in, and knows what time it is.
    pub(crate) async fn logged_in(&self) -> Client {
        let client = self.client(self.auth().clock(self.clock.clone())).await;
        assert_eq!(said(&client).await.unwrap(), "hello");
        client
    }

    /// How many requests the provider has seen: for metadata, registrations and tokens.
    pub(crate) fn asked(&self) -> [usize; 3] {
        [Endpoint::Metadata, Endpoint::Register, Endpoint::Token]
            .map(|endpoint| self.provider.requests(endpoint))
    }

    /// How many requests the server has answered so.
    pub(crate) fn answered(&self, status: u16) -> usize {
        self.statuses.borrow().iter().filter(|it| **it == status).count()
    }

    /// Waits until the server has answered so many requests so.
    pub(crate) async fn has_answered(&self, status: u16, times: usize) {
        let count = |all: &Vec<u16>| all.iter().filter(|it| **it == status).count();
        self.statuses.subscribe().wait_for(|all| count(all) >= times).await.unwrap();
    }

    /// What is kept of what was granted.
    pub(crate) async fn kept(&self) -> Option<Grant> {
        let stored = self.store.load(&StoreKey::grant(&self.url)).await.unwrap();
        stored.and_then(|stored| Grant::from_record(&stored.record))
    }

    /// The refresh token that is kept.
    pub(crate) async fn kept_refresh(&self) -> Option<Secret> {
        self.kept().await.and_then(|grant| grant.tokens).and_then(|tokens| tokens.refresh)
    }

    /// Nobody listens where the provider was.
    pub(crate) async fn stop_provider(&mut self) {
        self.serving.take().unwrap().stop().await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.at).unwrap();
        self.reserved = Some(socket);
    }

    pub(crate) fn start_provider(&mut self) {
        let listener = self.reserved.take().unwrap().listen(64).unwrap();
        let place = InsecureListener::on(listener).unwrap();
        self.serving = Some(place.serve(self.provider.clone()));
    }

    /// Takes back what was granted.
    pub(crate) async fn revoke(&self) {
        let grant = self.kept().await.unwrap();
        let refresh = grant.tokens.unwrap().refresh.unwrap();
        let body = format!("client_id={}&token={}", grant.registration.client_id, refresh.expose());
        let request = http::Request::post(format!("{}/revoke", self.provider.issuer()));
        let response = self.provider.handle(request.body(body.into()).unwrap());
        assert_eq!(response.status(), 200);
    }
}

pub(crate) fn provider(issuer: &str, clock: &Watch) -> InsecureAuthorizationServer {
    InsecureAuthorizationServer::new(issuer)
        .scopes(Scopes::from_iter(["read"]))
        .client(InsecureClient::basic(KNOWN.0, KNOWN.1).redirect(BACK))
        .clock(Arc::new(clock.clone()))
}

pub(crate) fn protection(url: &str, issuer: &str) -> ResourceServer {
    ResourceServer::new(url).issuer(issuer).require(Scopes::from_iter(["read"]))
}

pub(crate) fn server() -> Server {
    async fn echo(Args(text): Args<Text>) -> String {
        text.text
    }
    Server::new("protected", "1.0").tool(tool("echo", echo))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

async fn count(
    State(statuses): State<Arc<watch::Sender<Vec<u16>>>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    statuses.send_modify(|all| all.push(response.status().as_u16()));
    response
}

pub(crate) fn builder(auth: Auth, era: Revision) -> ClientBuilder {
    Client::builder().no_proxy().revision(era).auth(auth)
}

pub(crate) async fn connect(url: &str, auth: Auth, era: Revision) -> Result<Client, Error> {
    let builder = builder(auth, era);
    match url.starts_with("https:") {
        true => builder.tls_root(authority().pem.as_bytes()).connect(url).await,
        false => builder.connect(url).await,
    }
}

/// What a call says; that of a client that is not connected says why not.
pub(crate) async fn said(client: &Client) -> Result<String, Error> {
    client.call_tool("echo", json!({"text": "hello"})).await.map(|result| result.to_text())
}

/// Connects and calls: the legacy era fails at the first, the modern one at the second.
pub(crate) async fn connect_and_say(url: &str, auth: Auth, era: Revision) -> Result<String, Error> {
    said(&connect(url, auth, era).await?).await
}

/// Why it failed, for whoever reads types.
pub(crate) fn why(error: &Error) -> &AuthError {
    let source = std::error::Error::source(error).unwrap_or_else(|| panic!("{error}"));
    source.downcast_ref().unwrap_or_else(|| panic!("{error}: {source}"))
}

/// It failed for this reason, and says so; nothing ran.
pub(crate) fn assert_why(error: &Error, kind: AuthErrorKind, says: &str, what: &str) {
    assert_eq!(why(error).kind(), kind, "{what}: {error}");
    assert!(error.to_string().contains(says), "{what}: {error}");
    assert!(!error.maybe_executed(), "{what}: {error}");
}

/// Another server with its own provider, whose client is logged in.
pub(crate) struct Neighbour {
    _world: World,
    client: Client,
}

impl Neighbour {
    pub(crate) async fn new() -> Neighbour {
        let world = World::new().await;
        Neighbour { client: world.logged_in().await, _world: world }
    }

    pub(crate) async fn is_unharmed(&self) {
        assert_eq!(said(&self.client).await.unwrap(), "hello");
    }
}

/// Whoever sits before the browser.
#[derive(Clone)]
pub(crate) struct Person {
    provider: Arc<InsecureAuthorizationServer>,
    /// One permit is taken by each login.
    willing: Arc<Semaphore>,
    asked: Arc<watch::Sender<usize>>,
    logins: Arc<AtomicUsize>,
}

impl Person {
    pub(crate) fn at(provider: Arc<InsecureAuthorizationServer>) -> Person {
        let willing = Arc::new(Semaphore::new(1000));
        Person { provider, willing, asked: Arc::default(), logins: Arc::default() }
    }

    /// From now on nobody logs in.
    pub(crate) fn hesitates(&self) {
        self.willing.forget_permits(usize::MAX);
    }

    pub(crate) fn is_back(&self) {
        self.willing.add_permits(1000);
    }

    /// How often someone logged in.
    pub(crate) fn logins(&self) -> usize {
        self.logins.load(Ordering::SeqCst)
    }

    /// Waits until someone was asked so often.
    pub(crate) async fn was_asked(&self, times: usize) {
        self.asked.subscribe().wait_for(|asked| *asked >= times).await.unwrap();
    }

    pub(crate) fn login(&self) -> HandledLogin {
        let person = self.clone();
        HandledLogin::new(BACK, move |request| {
            let person = person.clone();
            async move { Ok(person.log_in(request).await) }
        })
    }

    async fn log_in(&self, request: LoginRequest) -> String {
        self.asked.send_modify(|asked| *asked += 1);
        self.willing.acquire().await.unwrap().forget();
        let asked = http::Request::get(request.url).body(Bytes::new()).unwrap();
        let response = self.provider.handle(asked);
        self.logins.fetch_add(1, Ordering::SeqCst);
        response.headers()["location"].to_str().unwrap().to_owned()
    }
}

/// A clock that a test sets.
#[derive(Clone, Debug)]
pub(crate) struct Watch(Arc<AtomicU64>);

impl Default for Watch {
    fn default() -> Watch {
        Watch(Arc::new(AtomicU64::new(1_800_000_000)))
    }
}

impl Watch {
    pub(crate) fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Watch {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
