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
use turnbuckle::{Args, Server, tool};
use turnbuckle_auth::{
    Clock,
    resource_server::ResourceServer,
    testing::{InsecureAuthorizationServer, InsecureListener, InsecureServing},
};

pub(crate) struct World {
    pub(crate) provider: Arc<InsecureAuthorizationServer>,
    pub(crate) url: String,
    pub(crate) clock: Watch,
    door: Arc<Door>,
    /// Where the command keeps what it is granted.
    data: PathBuf,
    _serving: InsecureServing,
    _runtime: Runtime,
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
        let clock = Watch::default();
        let provider = InsecureAuthorizationServer::new(at.origin());
        let provider = Arc::new(provider.clock(Arc::new(clock.clone())));
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let guard = ResourceServer::new(&url)
            .issuer(provider.issuer())
            .clock(Arc::new(clock.clone()))
            .fetch(provider.clone());
        let door = Arc::new(Door { guard, together: Mutex::default() });
        let app = axum::Router::new()
            .nest_service("/mcp", server().into_http())
            .layer(axum::middleware::from_fn_with_state(door.clone(), pass));
        tokio::spawn(axum::serve(listener, app).into_future());
        let serving = at.serve(provider.clone());
        drop(entered);
        let data = crate::support::folder(name, &[]);
        World { provider, url, clock, door, data, _serving: serving, _runtime: runtime }
    }

    /// From now on those who are turned away hear of it when there are so many of them.
    pub(crate) fn turns_away_together(&self, count: usize) {
        *self.door.together.lock().unwrap() = Some(Arc::new(Barrier::new(count)));
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
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Text {
        text: String,
    }
    async fn echo(Args(text): Args<Text>) -> String {
        text.text
    }
    Server::new("protected", "1.0").tool(tool("echo", echo))
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
