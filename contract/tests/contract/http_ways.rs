//! The ways to a server over HTTP: TLS, proxies, Unix sockets, a service of the user's.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Frame;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};
use turnbuckle::{
    Client,
    http::{PostBody, Redirects},
};

use crate::{
    raw::said,
    rig::within,
    secure::{Authority, Http2},
    web::{Hub, Post, Web, abandon, launch, modern},
};

/// A server behind TLS that offers these protocols.
fn secured(authority: &Authority, protocols: &[&str]) -> (Web, String) {
    let (web, listener) = Web::unserved();
    let (hub, acceptor) = (web.hub(), authority.acceptor(protocols));
    let url = format!("https://{}/mcp", web.address());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (hub, acceptor) = (hub.clone(), acceptor.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    hub.take(stream);
                }
            });
        }
    });
    (web, url)
}

/// Makes a call and answers it; what arrived.
async fn called(web: &mut Web, client: &Client) -> Post {
    let call = launch(client.call_tool("t", ()));
    let post = web.post().await;
    post.result(said("ok")).await;
    assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
    post
}

#[tokio::test]
async fn a_root_of_ones_own_is_trusted_if_it_is_given() {
    within(async {
        let authority = Authority::new();
        for protocols in [&["http/1.1"][..], &[]] {
            let (mut web, url) = secured(&authority, protocols);
            let client = modern().tls_root(authority.pem.clone()).connect(&url).await.unwrap();
            let post = called(&mut web, &client).await;
            assert!(post.head.contains(" HTTP/1.1\r\n"), "{}", post.head);
            let call = launch(client.call_tool("dropped", ()));
            let post = web.post().await;
            abandon(call).await;
            post.closed().await;
            assert_eq!(web.ends_with(client).await, 2);
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_refused() {
    within(async {
        let (authority, other) = (Authority::new(), Authority::new());
        let (web, url) = secured(&authority, &["http/1.1"]);
        for client in [modern(), modern().tls_root(other.pem)] {
            let client = client.connect(&url).await.unwrap();
            let error = client.call_tool("t", ()).await.unwrap_err();
            assert!(error.is_closed() && !error.maybe_executed(), "{error}");
            assert!(error.to_string().contains("certificate"), "{error}");
        }
        // Not even by the name that it was issued for, under another.
        let url = url.replace("127.0.0.1", "localhost");
        let client = modern().tls_root(authority.pem).connect(&url).await.unwrap();
        assert!(!client.call_tool("t", ()).await.unwrap_err().maybe_executed());
        assert_eq!(web.requests(), 0);
        assert!(modern().tls_root("no certificate").connect(&url).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn http2_is_spoken_where_it_is_offered() {
    within(async {
        let authority = Authority::new();
        let mut server = Http2::new(&authority).await;
        let client = modern().tls_root(authority.pem).connect(server.url()).await.unwrap();
        for _ in 0..3 {
            let call = launch(client.call_tool("t", ()));
            let mut stream = server.request().await;
            assert_eq!(stream.head.version, http::Version::HTTP_2);
            assert_eq!(stream.head.method, "POST");
            assert_eq!(stream.head.headers["mcp-name"], "t");
            stream.result(said("ok"));
            assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        }
        assert_eq!(server.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn c21_dropped_while_tls_is_being_negotiated() {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mcp", listener.local_addr().unwrap());
        let client = modern().connect(url).await.unwrap();
        let call = launch(client.call_tool("never", ()));
        let (mut stream, _) = listener.accept().await.unwrap();
        // It has begun to greet.
        assert_ne!(stream.read_u8().await.unwrap(), 0);
        abandon(call).await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    })
    .await;
}

#[tokio::test]
async fn a_redirect_never_leads_out_of_encryption() {
    within(async {
        let (authority, plain) = (Authority::new(), Web::new().await);
        let (mut web, url) = secured(&authority, &["http/1.1"]);
        let client = modern()
            .redirects(Redirects::AnyOrigin)
            .tls_root(authority.pem)
            .connect(url)
            .await
            .unwrap();
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        let location = plain.url();
        post.say(format!("HTTP/1.1 307 X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"))
            .await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("not encrypted"), "{error}");
        assert_eq!(plain.connections(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_proxy_is_given_whole_addresses() {
    within(async {
        let mut proxy = Web::new().await;
        let through = format!("http://me:secret@{}", proxy.address());
        let client = modern().proxy(through).connect("http://far.test:8080/mcp").await.unwrap();
        let post = called(&mut proxy, &client).await;
        let first = post.head.lines().next().unwrap();
        assert_eq!(first, "POST http://far.test:8080/mcp HTTP/1.1");
        assert_eq!(post.header("host"), Some("far.test:8080"));
        assert_eq!(post.header("proxy-authorization"), Some("Basic bWU6c2VjcmV0"));
        let call = launch(client.call_tool("dropped", ()));
        let post = proxy.post().await;
        abandon(call).await;
        post.closed().await;
        assert_eq!(proxy.ends_with(client).await, 2);
    })
    .await;
}

/// Reads the head of a CONNECT.
async fn connect_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Accepts one tunnel to a TLS server; how it was asked for.
async fn tunnel(listener: TcpListener, authority: &Authority, hub: Hub) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = connect_head(&mut stream).await;
    stream.write_all(b"HTTP/1.1 200 Go\r\n\r\n").await.unwrap();
    hub.take(authority.acceptor(&["http/1.1"]).accept(stream).await.unwrap());
    head
}

#[tokio::test]
async fn a_proxy_is_tunnelled_through_where_there_is_tls() {
    within(async {
        let authority = Authority::new();
        let (mut web, listener) = Web::unserved();
        let client = modern()
            .proxy(format!("http://me:secret@{}", web.address()))
            .tls_root(authority.pem.clone())
            .header("authorization", "Bearer 1")
            .connect("https://secure.test/mcp")
            .await
            .unwrap();
        let call = launch(client.call_tool("t", ()));
        let head = tunnel(listener, &authority, web.hub()).await;
        assert!(head.starts_with("CONNECT secure.test:443 HTTP/1.1\r\n"), "{head}");
        let head = head.to_ascii_lowercase();
        assert!(head.contains("proxy-authorization: basic bwu6c2vjcmv0\r\n"), "{head}");
        assert!(!head.contains("bearer"), "a proxy was told a secret: {head}");
        let post = web.post().await;
        assert!(post.head.starts_with("POST /mcp HTTP/1.1\r\n"), "{}", post.head);
        assert_eq!(post.header("authorization"), Some("Bearer 1"));
        assert_eq!(post.header("proxy-authorization"), None);
        post.result(said("ok")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        let call = launch(client.call_tool("dropped", ()));
        let post = web.post().await;
        abandon(call).await;
        post.closed().await;
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn a_proxy_that_refuses_is_an_error_and_nothing_ran() {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let client = modern().proxy(proxy).connect("https://secure.test/mcp").await.unwrap();
        let call = launch(client.call_tool("t", ()));
        let (mut stream, _) = listener.accept().await.unwrap();
        connect_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_a_way_too() {
    within(async {
        let path = std::env::temp_dir().join(format!("turnbuckle-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let (mut web, _) = Web::unserved();
        let hub = web.hub();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                hub.take(stream);
            }
        });
        let client = modern().unix_socket(&path).connect("http://localhost/mcp").await.unwrap();
        let post = called(&mut web, &client).await;
        assert!(post.head.starts_with("POST /mcp HTTP/1.1\r\n"), "{}", post.head);
        assert_eq!(post.header("host"), Some("localhost"));
        let call = launch(client.call_tool("dropped", ()));
        let post = web.post().await;
        abandon(call).await;
        post.closed().await;
        assert_eq!(web.ends_with(client).await, 2);
        std::fs::remove_file(&path).unwrap();
        let client = modern().unix_socket(&path).connect("http://localhost/mcp").await.unwrap();
        assert!(!client.call_tool("t", ()).await.unwrap_err().maybe_executed());
    })
    .await;
}

/// An HTTP client of the user's, which gives each request to the test.
#[derive(Clone)]
struct OwnService(mpsc::Sender<Asked>);

/// A request to it.
struct Asked {
    request: http::Request<PostBody>,
    answer: oneshot::Sender<http::Response<Pieces>>,
}

impl tower_service::Service<http::Request<PostBody>> for OwnService {
    type Response = http::Response<Pieces>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<PostBody>) -> Self::Future {
        let sender = self.0.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let _ = sender.send(Asked { request, answer }).await;
            answered.await.map_err(std::io::Error::other)
        })
    }
}

/// A body that comes piece by piece; its sender sees when it is dropped.
struct Pieces(mpsc::Receiver<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The head of an answer, and the way to write its body.
fn begun(kind: &str) -> (http::Response<Pieces>, mpsc::Sender<Bytes>) {
    let (sender, receiver) = mpsc::channel(8);
    let response = http::Response::builder().header("content-type", kind);
    (response.body(Pieces(receiver)).unwrap(), sender)
}

// req: client-transport:http:custom-client
#[tokio::test]
async fn a_service_of_ones_own_carries_everything() {
    within(async {
        let (sender, mut asked) = mpsc::channel(8);
        let told = Arc::new(Mutex::new(0));
        let tells = told.clone();
        let client = modern()
            .header("authorization", "Bearer 1")
            .http_service(OwnService(sender))
            .connect("https://anywhere.test/mcp")
            .await
            .unwrap();
        let call = client.call_tool("t", ()).on_progress(move |_| *tells.lock().unwrap() += 1);
        let call = launch(call);
        let Asked { request, answer } = asked.recv().await.unwrap();
        assert_eq!(request.uri(), "https://anywhere.test/mcp");
        assert_eq!(request.method(), "POST");
        assert_eq!(request.headers()["authorization"], "Bearer 1");
        assert_eq!(request.headers()["mcp-name"], "t");
        let body: Value = serde_json::from_slice(&request.into_body().into_bytes()).unwrap();
        let (response, pieces) = begun("text/event-stream");
        answer.send(response).map_err(drop).unwrap();
        let params = json!({"progressToken": body["id"], "progress": 1});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        let last = json!({"jsonrpc": "2.0", "id": body["id"], "result": said("own")});
        pieces.send(format!("data: {note}\n\ndata: {last}\n\n").into()).await.unwrap();
        assert_eq!(call.await.unwrap().unwrap().to_text(), "own");
        assert_eq!(*told.lock().unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn c21_what_a_service_of_ones_own_returned_is_dropped_with_the_call() {
    within(async {
        let (sender, mut asked) = mpsc::channel(8);
        let client = modern()
            .http_service(OwnService(sender))
            .connect("https://anywhere.test/mcp")
            .await
            .unwrap();
        // Its future.
        let call = launch(client.call_tool("t", ()));
        let mut waiting = asked.recv().await.unwrap();
        abandon(call).await;
        waiting.answer.closed().await;
        // Its body, JSON or a stream.
        for kind in ["application/json", "text/event-stream"] {
            let call = launch(client.call_tool("t", ()));
            let (response, pieces) = begun(kind);
            asked.recv().await.unwrap().answer.send(response).map_err(drop).unwrap();
            pieces.send(Bytes::from_static(b"{")).await.unwrap();
            crate::web::settle().await;
            assert!(!pieces.is_closed());
            abandon(call).await;
            pieces.closed().await;
        }
        drop(client);
        assert!(asked.recv().await.is_none(), "something else was sent");
    })
    .await;
}
