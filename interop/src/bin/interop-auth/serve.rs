//! The protected servers: one for each way in which tokens are looked at, all at one origin.

use std::{io, net::SocketAddr, path::Path, time::Duration};

use axum::{Router, http::header::CONTENT_TYPE, routing, serve::Listener};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use turnbuckle::{
    Principal, Server,
    auth::{
        Scopes, Secret,
        resource_server::{Identity, Introspection, Issuer, ResourceServer},
    },
    tool,
};

use crate::{authority, world};

/// Where answers to logins go, for a client whose name is the address of its document.
pub(crate) const REDIRECT: &str = "http://127.0.0.1:1/callback";

/// Serves until it is ended, after it has printed where the first of them is.
pub(crate) async fn run(folder: &Path, issuer: &str) -> Result<(), String> {
    serve(folder, issuer).await.map_err(|error| error.to_string())
}

async fn serve(folder: &Path, issuer: &str) -> Result<(), Box<dyn std::error::Error>> {
    let listener = Secure::bind(authority::acceptor(folder)?).await?;
    let origin = format!("https://{}", listener.address);
    let guard = |path: &str| {
        ResourceServer::new(format!("{origin}{path}"))
            .require(Scopes::from_iter(["read"]))
            // Tokens that end soon are to end when they say so.
            .clock_skew(Duration::ZERO)
    };
    let introspection = Introspection::basic(
        format!("{issuer}/token/introspection"),
        "a server",
        Secret::new(world::SECRET),
    );
    let introspected = Issuer::new(issuer).introspected(introspection);
    let nonces = Secret::new("what nonces are made of");
    let mut app = Router::new();
    for (path, guard) in [
        ("/mcp", guard("/mcp").issuer(issuer)),
        ("/other", guard("/other").issuer(issuer)),
        ("/brief", guard("/brief").issuer(issuer)),
        ("/bound", guard("/bound").issuer(issuer).require_dpop().dpop_nonces(&nonces)),
        ("/opaque", guard("/opaque").issuer(introspected)),
    ] {
        let server = server().protect(guard);
        let metadata = server.metadata_service();
        let service = server.http_service();
        service.check()?;
        app = app.nest_service(path, service).route_service(metadata.path(), metadata.clone());
    }
    let document = document(&origin);
    let document = move || async move { ([(CONTENT_TYPE, "application/json")], document) };
    app = app.route(world::DOCUMENT, routing::get(document));
    println!("{origin}/mcp");
    axum::serve(listener, app).await?;
    Ok(())
}

fn server() -> Server {
    /// Repeat a text.
    #[tool]
    async fn echo(text: String) -> String {
        text
    }

    /// Say who asks.
    #[tool]
    async fn whoami(who: Principal<Identity>) -> String {
        let Identity { subject, client_id, .. } = who.claims();
        format!("{subject}, with {}", client_id.as_deref().unwrap_or_default())
    }

    /// What not everyone may do.
    #[tool(scopes = ["write"])]
    async fn write(text: String) -> String {
        text
    }

    Server::new("interop-auth", env!("CARGO_PKG_VERSION")).tool(echo).tool(whoami).tool(write)
}

/// What a client says of itself whose name is the address of this.
fn document(origin: &str) -> String {
    let document = json!({
        "client_id": format!("{origin}{}", world::DOCUMENT),
        "client_name": "a client with a document",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    document.to_string()
}

/// Connections over TLS.
struct Secure {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl Secure {
    async fn bind(acceptor: TlsAcceptor) -> io::Result<Secure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (send, ready) = mpsc::channel(16);
        tokio::spawn(async move {
            while let Ok((stream, from)) = listener.accept().await {
                let (acceptor, send) = (acceptor.clone(), send.clone());
                // One that is slow to begin keeps nobody waiting.
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = send.send((stream, from)).await;
                    }
                });
            }
        });
        Ok(Secure { address, ready })
    }
}

impl Listener for Secure {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
