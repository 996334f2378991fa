//! What services before the server put into the extensions of a request, and its headers, as
//! handlers see them: over HTTP of both eras, and over HTTP with server-sent events.

use std::sync::Arc;

use axum::{extract::Request, middleware::Next, response::Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use turnbuckle::{
    Client, ClientBuilder, Principal, Revision, Server, State, prompt, resource,
    server::{Extension, Header, HttpHeader},
    template, tool,
};

/// Where a client goes, and what it speaks there.
const WAYS: [(&str, Revision); 3] = [
    ("/mcp", Revision::V2026_07_28),
    ("/mcp", Revision::V2025_11_25),
    ("/sse", Revision::V2025_11_25),
];

/// Can't be cloned: only what was put in can come out.
struct Ticket;

#[derive(Clone)]
struct Claims {
    admin: bool,
}

/// Which journey a request belongs to.
#[derive(Clone)]
struct Trip(String);

impl HttpHeader for Trip {
    const NAME: &'static str = "x-trip";

    fn from_value(value: &str) -> Result<Trip, String> {
        Ok(Trip(value.to_owned()))
    }
}

async fn ticket(
    Extension(found): Extension<Arc<Ticket>>,
    State(sold): State<Arc<Ticket>>,
) -> &'static str {
    if Arc::ptr_eq(&found, &sold) { "the same" } else { "another" }
}

async fn who(who: Option<Principal>, claims: Option<Principal<Claims>>) -> String {
    let name = who.map(|who| who.name().to_owned());
    let admin = claims.map(|who| (who.name().to_owned(), who.claims().admin));
    format!("{name:?} {admin:?}")
}

async fn trip(extension: Option<Extension<Trip>>, header: Option<Header<Trip>>) -> String {
    let extension = extension.map(|Extension(trip)| trip.0);
    let header = header.map(|Header(trip)| trip.0);
    format!("{extension:?} {header:?}")
}

async fn secret(who: Principal<Claims>) -> String {
    who.name().to_owned()
}

/// What stands before the server: it knows users by a header, and takes trips to its extensions.
async fn doorman(mut request: Request, next: Next) -> Response {
    let (user, trip) = (header(&request, "x-user"), header(&request, "x-trip"));
    let extensions = request.extensions_mut();
    if let Some(trip) = trip {
        extensions.insert(Trip(trip));
    }
    match user.as_deref() {
        Some("guest") => Principal::new("guest").attach(extensions),
        Some(user) => {
            Principal::new(user).with_claims(Claims { admin: user == "root" }).attach(extensions);
        }
        None => {}
    }
    next.run(request).await
}

fn header(request: &Request, name: &str) -> Option<String> {
    request.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// A router of someone else's, with layers of its own, and where it is.
async fn mounted() -> String {
    let sold = Arc::new(Ticket);
    let server = Server::new("test", "1.0")
        .state(sold.clone())
        .tool(tool("ticket", ticket))
        .prompt(prompt("ticket", ticket))
        .resource(resource("x://ticket", ticket))
        .template(template("x://ticket/{id}", ticket))
        .tool(tool("who", who))
        .prompt(prompt("who", who))
        .resource(resource("x://who", who))
        .template(template("x://who/{id}", who))
        .tool(tool("trip", trip))
        .prompt(prompt("trip", trip))
        .resource(resource("x://trip", trip))
        .template(template("x://trip/{id}", trip))
        .tool(tool("secret", secret));
    let app = axum::Router::new()
        .nest_service("/mcp", server.http_service())
        .route_service("/sse", server.sse_service("/sse"))
        .layer(axum::Extension(sold))
        .layer(axum::middleware::from_fn(doorman));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app).into_future());
    format!("http://{address}")
}

async fn connect(base: &str, (path, revision): (&str, Revision), builder: ClientBuilder) -> Client {
    builder.no_proxy().revision(revision).connect(format!("{base}{path}")).await.unwrap()
}

/// The four ways to a handler of this name, and where its text is then.
fn requests(name: &str) -> [(&'static str, Value, &'static str); 4] {
    [
        ("tools/call", json!({"name": name}), "/content/0/text"),
        ("prompts/get", json!({"name": name}), "/messages/0/content/text"),
        ("resources/read", json!({"uri": format!("x://{name}")}), "/contents/0/text"),
        ("resources/read", json!({"uri": format!("x://{name}/1")}), "/contents/0/text"),
    ]
}

/// What the tool, the prompt, the resource and the family of this name say.
async fn said(client: &Client, name: &str, header: Option<(&str, &str)>) -> Vec<String> {
    let mut said = Vec::new();
    for (method, params, place) in requests(name) {
        let mut call = client.request(method, params);
        if let Some((name, value)) = header {
            call = call.header(name, value);
        }
        let result: Value = call.await.unwrap().decode().unwrap();
        said.push(result.pointer(place).unwrap().as_str().unwrap().to_owned());
    }
    said
}

#[tokio::test]
async fn what_a_layer_adds_reaches_every_kind_of_handler_untouched() {
    let base = mounted().await;
    for way in WAYS {
        let client = connect(&base, way, Client::builder()).await;
        assert_eq!(said(&client, "ticket", None).await, ["the same"; 4], "{way:?}");
    }
}

#[tokio::test]
async fn who_asks_reaches_every_kind_of_handler_with_what_is_known_of_them() {
    let base = mounted().await;
    for way in WAYS {
        for (user, expected) in [
            ("root", r#"Some("root") Some(("root", true))"#),
            ("alice", r#"Some("alice") Some(("alice", false))"#),
            ("guest", r#"Some("guest") None"#),
        ] {
            let client = connect(&base, way, Client::builder().header("x-user", user)).await;
            assert_eq!(said(&client, "who", None).await, [expected; 4], "{way:?}");
        }
        // Over HTTP nobody is local.
        let client = connect(&base, way, Client::builder()).await;
        assert_eq!(said(&client, "who", None).await, ["None None"; 4], "{way:?}");
    }
}

#[tokio::test]
async fn a_handler_that_needs_to_know_who_asks_does_not_run_for_anyone_else() {
    let base = mounted().await;
    for way in WAYS {
        let client = connect(&base, way, Client::builder().header("x-user", "alice")).await;
        assert_eq!(client.call_tool("secret", ()).await.unwrap().to_text(), "alice");
        for builder in [Client::builder(), Client::builder().header("x-user", "guest")] {
            let client = connect(&base, way, builder).await;
            let error = client.call_tool("secret", ()).await.unwrap_err();
            let error = error.as_rpc().unwrap();
            assert_eq!((error.code, &*error.message), (-32603, "internal error"), "{way:?}");
        }
    }
}

#[tokio::test]
async fn each_request_has_what_came_with_it() {
    let base = mounted().await;
    for way in WAYS {
        let client = connect(&base, way, Client::builder().header("x-trip", "all")).await;
        assert_eq!(said(&client, "trip", None).await, [r#"Some("all") Some("all")"#; 4]);
    }
    for way in &WAYS[..2] {
        let client = connect(&base, *way, Client::builder()).await;
        for trip in ["one", "two"] {
            let expected = format!("Some({trip:?}) Some({trip:?})");
            let said = said(&client, "trip", Some(("x-trip", trip))).await;
            assert_eq!(said, [&*expected; 4], "{way:?}");
        }
        assert_eq!(said(&client, "trip", None).await, ["None None"; 4], "{way:?}");
    }
}

/// There a request has no answer of its own: what opened the stream speaks for all of them.
#[tokio::test]
async fn over_server_sent_events_the_stream_speaks_for_its_requests() {
    let base = mounted().await;
    let client = connect(&base, WAYS[2], Client::builder()).await;
    let said = said(&client, "trip", Some(("x-trip", "late"))).await;
    assert_eq!(said, ["None None"; 4]);
}
