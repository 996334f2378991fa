//! A protected server, an authorization server and a person, all on this machine.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};
use turnbuckle::{
    Args, Client, ClientBuilder, Server,
    auth::{
        Auth, Clock, HandledLogin, LoginRequest, Scopes,
        resource_server::ResourceServer,
        testing::{InsecureAuthorizationServer, InsecureListener, InsecureServing},
    },
    server::Revisions,
    tool,
};

/// Everything that a test can look at or turn.
pub(crate) struct World {
    pub(crate) provider: Arc<InsecureAuthorizationServer>,
    pub(crate) url: String,
    pub(crate) person: Person,
    /// The server's and the provider's.
    pub(crate) clock: Watch,
    door: Arc<Door>,
    _serving: InsecureServing,
}

/// One request that arrived at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) method: String,
    /// Of JSON-RPC, where there is one.
    pub(crate) says: Option<String>,
    pub(crate) status: u16,
    pub(crate) has_token: bool,
}

struct Door {
    guard: ResourceServer,
    /// Whether the stream of a session needs `write`.
    streams_need_more: AtomicBool,
    log: watch::Sender<Vec<Arrived>>,
}

impl World {
    pub(crate) async fn new() -> World {
        World::of(server()).await
    }

    /// With a server of that era only.
    pub(crate) async fn serving(serves: Revisions) -> World {
        World::of(server().revisions(serves)).await
    }

    async fn of(server: Server) -> World {
        let (at, clock) = (InsecureListener::bind().await.unwrap(), Watch::default());
        let provider = InsecureAuthorizationServer::new(at.origin())
            .scopes(Scopes::from_iter(["read", "write"]))
            .clock(Arc::new(clock.clone()));
        let provider = Arc::new(provider);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{origin}/mcp");
        let guard = ResourceServer::new(&url)
            .issuer(provider.issuer())
            .require(Scopes::from_iter(["read"]))
            .clock(Arc::new(clock.clone()))
            .fetch(provider.clone());
        guard.ready().unwrap();
        let (streams_need_more, log) = (AtomicBool::new(false), watch::Sender::new(Vec::new()));
        let door = Arc::new(Door { guard, streams_need_more, log });
        let app = axum::Router::new()
            .nest_service("/mcp", server.http_service())
            .layer(axum::middleware::from_fn_with_state(door.clone(), pass));
        tokio::spawn(axum::serve(listener, app).into_future());
        let person = Person::at(provider.clone());
        World { url, person, clock, door, _serving: at.serve(provider.clone()), provider }
    }

    /// A person who logs in when it is needed.
    pub(crate) fn auth(&self) -> Auth {
        Auth::person(self.person.login())
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder().no_proxy().auth(self.auth())
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.door.log.borrow().clone()
    }

    /// From now on the stream of a session needs `write`.
    pub(crate) fn streams_need_more(&self) {
        self.door.streams_need_more.store(true, Ordering::SeqCst);
    }

    /// Waits until a request has come that is like this.
    pub(crate) async fn until(&self, is_like: impl Fn(&Arrived) -> bool) {
        let mut log = self.door.log.subscribe();
        log.wait_for(|log| log.iter().any(&is_like)).await.unwrap();
    }

    /// Waits until so many requests were turned away.
    pub(crate) async fn refused(&self, count: usize) {
        let refused = |log: &Vec<Arrived>| log.iter().filter(|it| it.status == 401).count();
        let mut log = self.door.log.subscribe();
        log.wait_for(|log| refused(log) >= count).await.unwrap();
    }
}

/// Whoever sits before the browser.
#[derive(Clone)]
pub(crate) struct Person {
    provider: Arc<InsecureAuthorizationServer>,
    /// One permit is taken by each login; there are many unless a test takes them away.
    pub(crate) willing: Arc<Semaphore>,
    logins: Arc<AtomicUsize>,
    asked: Arc<watch::Sender<usize>>,
}

impl Person {
    fn at(provider: Arc<InsecureAuthorizationServer>) -> Person {
        let willing = Arc::new(Semaphore::new(1000));
        Person { provider, willing, logins: Arc::default(), asked: Arc::default() }
    }

    /// From now on nobody logs in, until permits are added to `willing`.
    pub(crate) fn hesitates(&self) {
        self.willing.forget_permits(usize::MAX);
    }

    /// How often someone logged in.
    pub(crate) fn logins(&self) -> usize {
        self.logins.load(Ordering::SeqCst)
    }

    /// Waits until someone was asked so often.
    pub(crate) async fn asked(&self, times: usize) {
        self.asked.subscribe().wait_for(|asked| *asked >= times).await.unwrap();
    }

    pub(crate) fn login(&self) -> HandledLogin {
        let person = self.clone();
        HandledLogin::new("http://127.0.0.1:1/callback", move |request| {
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

fn server() -> Server {
    async fn echo(Args(text): Args<Text>) -> String {
        text.text
    }
    Server::new("protected", "1.0").tool(tool("echo", echo)).tool(tool("write", echo))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

async fn pass(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    if request.uri().path() == door.guard.metadata_path() {
        return ([("content-type", "application/json")], door.guard.metadata()).into_response();
    }
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut arrived = Arrived {
        method: parts.method.to_string(),
        says: message["method"].as_str().map(str::to_owned),
        status: 0,
        has_token: parts.headers.contains_key("authorization"),
    };
    let is_stream = parts.method == "GET" && door.streams_need_more.load(Ordering::SeqCst);
    let needed: Scopes = match message["params"]["name"].as_str() {
        Some("write") => Scopes::from_iter(["read", "write"]),
        _ if is_stream => Scopes::from_iter(["read", "write"]),
        _ => Scopes::from_iter(["read"]),
    };
    let checked = door.guard.check(&parts).await;
    let response = match checked {
        Err(denied) => denied.into_response().map(Body::from),
        Ok(identity) if !identity.scopes.contains_all(&needed) => {
            door.guard.insufficient(&needed).into_response().map(Body::from)
        }
        Ok(_) => next.run(Request::from_parts(parts, body.into())).await,
    };
    arrived.status = response.status().as_u16();
    door.log.send_modify(|log| log.push(arrived));
    response
}
