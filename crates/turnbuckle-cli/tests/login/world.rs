//! A protected server and its authorization server, on threads of this process.

use std::{
    path::PathBuf,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use tokio::{net::TcpListener, runtime::Runtime, sync::Barrier};
use turnbuckle::{Args, Server, prompt, resource, tool};
use turnbuckle_auth::{
    Clock,
    resource_server::ResourceServer,
    testing::{
        Endpoint, InsecureAuthorizationServer, InsecureClient, InsecureListener, InsecureServing,
    },
};

use crate::support::TOO_LONG;

/// A client that was registered beforehand.
pub(crate) const KNOWN_CLIENT: &str = "known-client";

pub(crate) struct World {
    pub(crate) provider: Arc<InsecureAuthorizationServer>,
    pub(crate) url: String,
    pub(crate) clock: Filter,
    door: Arc<Door>,
    /// Where the command keeps what it is granted.
    data: PathBuf,
    _serving: InsecureServing,
    runtime: Runtime,
}

struct Door {
    guard: ResourceServer,
    /// Those who are turned away wait for each other.
    together: Mutex<Option<Arc<Barrier>>>,
}

impl World {
    pub(crate) fn new(name: &str) -> World {
        let runtime = Runtime::new().unwrap();
        let entered = runtime.enter();
        let (at, listener) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            (InsecureListener::bind().await.unwrap(), listener)
        });
        let clock = Filter::default();
        let known = InsecureClient::public(KNOWN_CLIENT, ["http://127.0.0.1:33418/callback"]);
        let provider = InsecureAuthorizationServer::new(at.origin()).client(known);
        let provider = Arc::new(provider.clock(Arc::new(clock.clone())));
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let guard = ResourceServer::new(&url)
            .issuer(provider.issuer())
            .clock(Arc::new(clock.clone()))
            .fetch(provider.clone());
        let door = Arc::new(Door { guard, together: Mutex::default() });
        let app = axum::Router::new()
            .nest_service("/mcp", server().http_service())
            .layer(axum::middleware::from_fn_with_state(door.clone(), pass));
        tokio::spawn(axum::serve(listener, app).into_future());
        let serving = at.serve(provider.clone());
        drop(entered);
        let data = crate::support::folder(name, &[]);
        World { provider, url, clock, door, data, _serving: serving, runtime }
    }

    /// From now on those who are turned away hear of it when there are so many of them.
    pub(crate) fn turns_away_together(&self, count: usize) {
        *self.door.together.lock().unwrap() = Some(Arc::new(Barrier::new(count)));
    }

    /// Waits until so many requests came to the authorization server.
    pub(crate) fn requested(&self, endpoint: Endpoint, times: usize) {
        let provider = self.provider.clone();
        let waited =
            async { tokio::time::timeout(TOO_LONG, provider.requested(endpoint, times)).await };
        self.runtime.block_on(waited).expect("it is never asked");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnbuckle"));
        command.args(arguments).env("XDG_DATA_HOME", &self.data).env("HOME", &self.data);
        for proxy in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(proxy);
        }
        command
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Filter(Arc<AtomicU64>);

impl Default for Filter {
    fn default() -> Filter {
        Filter(Arc::new(AtomicU64::new(1_800_000_000)))
    }
}

impl Filter {
    pub(crate) fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Filter {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn server() -> Server {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Text {
        text: String,
    }
    async fn echo(Args(text): Args<Text>) -> String {
        text.text
    }
    async fn note() -> &'static str {
        "buy milk"
    }
    async fn greet() -> &'static str {
        "Say hello."
    }
    Server::new("protected", "1.0")
        .tool(tool("echo", echo))
        .resource(resource("note://1", note))
        .prompt(prompt("greet", greet))
}

async fn pass(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    if request.uri().path() == door.guard.metadata_path() {
        return ([("content-type", "application/json")], door.guard.metadata()).into_response();
    }
    let (parts, body) = request.into_parts();
    match door.guard.check(&parts).await {
        Ok(_) => next.run(Request::from_parts(parts, body)).await,
        Err(denied) => {
            let together = door.together.lock().unwrap().clone();
            if let Some(together) = together {
                together.wait().await;
            }
            denied.into_response().map(Body::from)
        }
    }
}

/// What a browser would be sent to.
pub(crate) fn visited(provider: &InsecureAuthorizationServer, url: &str) -> String {
    let response = provider.handle(axum::http::Request::get(url).body(Bytes::new()).unwrap());
    response.headers()["location"].to_str().unwrap().to_owned()
}
