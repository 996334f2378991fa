//! Owns the opening of a legacy session with a server that is a script.
//! Does not own any expectation beyond the order of its words.

use serde_json::{Value, json};
use turnbuckle::{Client, ClientBuilder, Revision};

use crate::web::{Post, Web};

/// The session that the script opens.
pub(crate) const SESSION: &str = "session-1";

/// A client that speaks the last legacy revision without asking, goes through no proxy and waits
/// for ever.
pub(crate) fn legacy() -> ClientBuilder {
    Client::builder().revision(Revision::V2025_11_25).no_proxy().no_timeouts()
}

/// A session, and the requests that opened it.
pub(crate) struct Opened {
    pub(crate) client: Client,
    pub(crate) initialize: Post,
    pub(crate) initialized: Post,
    /// The server's own stream, open; or refused.
    pub(crate) get: Post,
}

/// Whether the script has a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Listens {
    Yes,
    No,
}

/// Opens a session with a stream of the server's own.
pub(crate) async fn open(web: &mut Web, builder: ClientBuilder) -> Opened {
    open_as(web, builder, Listens::Yes).await
}

pub(crate) async fn open_as(web: &mut Web, builder: ClientBuilder, listens: Listens) -> Opened {
    let connecting = tokio::spawn(builder.connect(web.url()));
    let (initialize, initialized, get) = shake(web, SESSION, listens).await;
    let client = connecting.await.unwrap().unwrap();
    Opened { client, initialize, initialized, get }
}

/// Answers the words that open a session.
pub(crate) async fn shake(web: &mut Web, session: &str, listens: Listens) -> (Post, Post, Post) {
    let initialize = web.post().await;
    assert_eq!(initialize.method(), "initialize", "{}", initialize.head);
    let revision = initialize.body["params"]["protocolVersion"].as_str().unwrap().to_owned();
    initialize.result_in(session, result(&revision)).await;
    let initialized = web.post().await;
    assert_eq!(initialized.method(), "notifications/initialized");
    initialized.accept().await;
    let get = web.post().await;
    assert_eq!(get.verb(), "GET");
    match listens {
        Listens::Yes => get.stream().await,
        Listens::No => get.answer(405, "text/plain", "").await,
    }
    (initialize, initialized, get)
}

/// What a server answers `initialize` with.
pub(crate) fn result(revision: &str) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "script", "version": "9"},
    })
}

/// The next request, which is a cancel: its params.
pub(crate) async fn cancel(web: &mut Web) -> (Post, Value) {
    let post = web.post().await;
    assert_eq!(post.method(), "notifications/cancelled", "{} {}", post.head, post.body);
    let params = post.body["params"].clone();
    (post, params)
}

/// Closes the client, with all that a server hears of it.
pub(crate) async fn close(web: &mut Web, client: Client) {
    let closing = tokio::spawn(client.close());
    let delete = web.post().await;
    assert_eq!(delete.verb(), "DELETE", "{} {}", delete.head, delete.body);
    assert_eq!(delete.header("mcp-session-id"), Some(SESSION));
    delete.answer(200, "text/plain", "").await;
    closing.await.unwrap();
}
