//! A server of the Internet that points to where only this machine can go. The Internet is a proxy
//! that knows two names, and writes down whom it is asked for.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{Router, http::header, response::IntoResponse as _, routing, serve::ListenerExt as _};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use turnbuckle::{
    Client, Error,
    auth::{
        Auth, AuthErrorKind,
        testing::{
            Endpoint, Fault, InsecureAuthorizationServer, InsecureListener, InsecureServing,
        },
    },
};

use crate::{
    ears::{Ears, told},
    secure::Authority,
    world::{MODERN, Neighbour, Person, Watch, assert_why, provider, said},
};

const SERVER: &str = "https://mcp.example.com/mcp";
const PROVIDER: &str = "https://auth.example.com";
const DOCUMENT: &str = "/.well-known/oauth-protected-resource/mcp";

/// What the server says to whoever is not logged in.
#[derive(Clone)]
struct Says {
    /// Where it says its document is.
    document: String,
    issuer: String,
}

impl Default for Says {
    fn default() -> Says {
        let document = format!("https://mcp.example.com{DOCUMENT}");
        Says { document, issuer: PROVIDER.to_owned() }
    }
}

struct Internet {
    provider: Arc<InsecureAuthorizationServer>,
    person: Person,
    proxy: String,
    authority: Authority,
    /// Whom the proxy was asked for.
    dialled: Arc<Mutex<Vec<String>>>,
    _serving: InsecureServing,
}

impl Internet {
    async fn new(says: Says) -> Internet {
        let authority = Authority::of(&["mcp.example.com", "auth.example.com"]);
        let provider = Arc::new(provider(PROVIDER, &Watch::default()));
        let inside = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let outside = authority.place().await;
        let auth = outside.address();
        outside.lead_to(inside.local_addr().unwrap());
        let serving = InsecureListener::on(inside).unwrap().serve(provider.clone());
        let outside = authority.place().await;
        let mcp = outside.address();
        outside.lead_to(server(says).await);
        let dialled = Arc::<Mutex<Vec<String>>>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(connects(listener, dialled.clone(), mcp, auth));
        let person = Person::at(provider.clone());
        Internet { provider, person, proxy, authority, dialled, _serving: serving }
    }

    async fn call(&self, auth: Auth) -> Result<String, Error> {
        let builder = Client::builder().proxy(&self.proxy).tls_root(self.authority.pem.clone());
        said(&builder.revision(MODERN).auth(auth).connect(SERVER).await?).await
    }

    fn dialled(&self) -> Vec<String> {
        let mut all = self.dialled.lock().unwrap().clone();
        all.sort();
        all.dedup();
        all
    }
}

/// One that lets nobody in.
async fn server(says: Says) -> SocketAddr {
    let challenge = format!("Bearer resource_metadata=\"{}\"", says.document);
    let refuse = move || {
        let challenge = challenge.clone();
        async move { (http::StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]) }
    };
    let document = json!({"resource": SERVER, "authorization_servers": [says.issuer]}).to_string();
    let tell = move || async move {
        ([(header::CONTENT_TYPE, "application/json")], document).into_response()
    };
    let app =
        Router::new().route("/mcp", routing::post(refuse)).route(DOCUMENT, routing::get(tell));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    at
}

/// A proxy that reaches two names, and nothing else.
async fn connects(
    listener: TcpListener,
    dialled: Arc<Mutex<Vec<String>>>,
    mcp: SocketAddr,
    auth: SocketAddr,
) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let dialled = dialled.clone();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let wanted = head.split(' ').nth(1).unwrap().to_owned();
            dialled.lock().unwrap().push(wanted.clone());
            let to = match wanted.as_str() {
                "mcp.example.com:443" => mcp,
                "auth.example.com:443" => auth,
                _ => return stream.write_all(b"HTTP/1.1 502 No\r\n\r\n").await.unwrap(),
            };
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut inside = TcpStream::connect(to).await.unwrap();
            inside.set_nodelay(true).unwrap();
            // Either side may leave without a word.
            let _ = copy_bidirectional(&mut stream, &mut inside).await;
        });
    }
}

/// Where nobody on the Internet can go. `port` is one of this machine at which someone listens.
fn private_places(port: u16) -> Vec<String> {
    vec![
        format!("https://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}"),
        format!("https://localhost:{port}"),
        format!("http://localhost:{port}"),
        format!("https://[::1]:{port}"),
        format!("https://[::ffff:127.0.0.1]:{port}"),
        "https://10.0.0.1".into(),
        "https://172.16.0.1".into(),
        "https://192.168.0.1".into(),
        "https://100.64.0.1".into(),
        "https://169.254.169.254".into(),
        "https://0.0.0.0".into(),
        "https://[fd00::1]".into(),
        "https://[fe80::1]".into(),
        "https://intranet".into(),
        "https://auth.internal".into(),
        "https://auth.local".into(),
    ]
}

/// A server that says this, and a provider that does that.
type Arrangement = (Says, Option<(Endpoint, Fault)>);

/// Each way to lead a client astray, and who has been asked by then.
fn astray(to: &str) -> Vec<Arrangement> {
    let plain = Says::default();
    let says = |name: &str, path: &str| Fault::Says(name.to_owned(), json!(format!("{to}{path}")));
    vec![
        (Says { document: format!("{to}/document"), ..plain.clone() }, None),
        (Says { issuer: to.to_owned(), ..plain.clone() }, None),
        (plain.clone(), Some((Endpoint::Metadata, Fault::Redirect(format!("{to}/document"))))),
        (plain.clone(), Some((Endpoint::Metadata, says("registration_endpoint", "/register")))),
        (plain.clone(), Some((Endpoint::Metadata, says("token_endpoint", "/token")))),
        (plain, Some((Endpoint::Metadata, says("authorization_endpoint", "/authorize")))),
    ]
}

#[tokio::test]
async fn a_server_of_the_internet_can_not_lead_a_client_to_a_private_address() {
    let neighbour = Neighbour::new().await;
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for to in private_places(trap.local_addr().unwrap().port()) {
        for (says, fault) in astray(&to) {
            let (ears, internet) = (Ears::new(), Internet::new(says).await);
            let what = format!("{to} by {fault:?}");
            if let Some((at, fault)) = fault {
                internet.provider.fail(at, fault);
            }
            let failing = internet.call(Auth::person(internet.person.login()));
            let (failed, ()) = tokio::join!(failing, neighbour.is_unharmed());
            let error = failed.unwrap_err();
            assert_why(&error, AuthErrorKind::Forbidden, "", &what);
            let reasons =
                ["private address", "not https", "another origin", "as addresses are", "reserved"];
            let reason = reasons.iter().any(|reason| error.to_string().contains(reason));
            assert!(reason, "{what}: {error}");
            // Nobody else was even looked for.
            for host in internet.dialled() {
                assert!(
                    ["mcp.example.com:443", "auth.example.com:443"].contains(&&*host),
                    "{host}"
                );
            }
            assert_eq!(internet.person.logins(), 0, "{what}: someone was sent there");
            assert_eq!(internet.provider.requests(Endpoint::Token), 0, "{what}");
            ears.found_nothing(&internet.provider.secrets(), &told(&error));
        }
    }
    // Whoever came would be waiting here.
    let nobody = tokio::select! {
        biased;
        _ = trap.accept() => false,
        () = std::future::ready(()) => true,
    };
    assert!(nobody);
}

/// What the tests above rely on: all of it works where nobody is led astray.
#[tokio::test]
async fn a_login_on_the_internet_asks_whom_it_should() {
    let internet = Internet::new(Says::default()).await;
    // The server refuses every token.
    let error = internet.call(Auth::person(internet.person.login())).await.unwrap_err();
    assert_why(&error, AuthErrorKind::Required, "refuses a token that is new", "public");
    assert_eq!((internet.provider.requests(Endpoint::Token), internet.person.logins()), (1, 1));
    assert_eq!(internet.dialled(), ["auth.example.com:443", "mcp.example.com:443"]);
}

/// Whoever runs the client may know better.
#[tokio::test]
async fn a_private_provider_can_be_allowed() {
    let place = InsecureListener::bind().await.unwrap();
    let own = Arc::new(provider(place.origin(), &Watch::default()));
    let says = Says { issuer: own.issuer().to_owned(), ..Says::default() };
    let _serving = place.serve(own.clone());
    let internet = Internet::new(says).await;
    let person = Person::at(own.clone());
    let auth = Auth::person(person.login()).private_addresses();
    // The server refuses every token.
    let error = internet.call(auth).await.unwrap_err();
    assert_why(&error, AuthErrorKind::Required, "refuses a token that is new", "allowed");
    assert_eq!((own.requests(Endpoint::Token), person.logins()), (1, 1));
    // What is not encrypted has gone through nobody's hands.
    assert_eq!(internet.dialled(), ["mcp.example.com:443"]);
}
