//! Owns an HTTP/1.1 server that is nobody's SDK: it records the bytes of every request, notices
//! the close of every connection, and answers as a script says, in pieces.
//! Does not own any expectation.

use std::{
    collections::BTreeMap,
    future::IntoFuture,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    net::{TcpListener, TcpSocket},
    sync::{mpsc, watch},
    task::JoinHandle,
};
use turnbuckle::{Call, Client, ClientBuilder, Result, Revision};

/// A body that is longer is not read before [`Web::read_on`].
pub(crate) const LARGE: usize = 1 << 20;

/// The server, in the hands of a test.
pub(crate) struct Web {
    address: SocketAddr,
    posts: mpsc::Receiver<Post>,
    hub: Hub,
}

/// What takes connections, from whichever listener or tunnel they come.
#[derive(Clone)]
pub(crate) struct Hub {
    posts: mpsc::Sender<Post>,
    book: Arc<Book>,
}

struct Book {
    ledger: Mutex<Ledger>,
    /// How many connections are open; whether any ever was.
    open: watch::Sender<usize>,
    reads_on: watch::Sender<bool>,
}

#[derive(Default)]
struct Ledger {
    /// The bytes that each connection brought.
    bytes: Vec<Vec<u8>>,
    requests: usize,
}

/// One request, whose answer the test writes.
pub(crate) struct Post {
    /// Which connection brought it, counted from 0.
    pub(crate) connection: usize,
    /// The request line and the headers, as they came.
    pub(crate) head: String,
    /// The message; null where the body was not read.
    pub(crate) body: Value,
    write: Arc<tokio::sync::Mutex<WriteHalf<Stream>>>,
    closed: watch::Receiver<bool>,
}

/// Any stream.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
type Stream = Box<dyn Duplex>;

impl Web {
    /// A server on a port of its own.
    pub(crate) async fn new() -> Web {
        let (web, listener) = Web::unserved();
        let hub = web.hub();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                hub.take(stream);
            }
        });
        web
    }

    /// A server whose connections the test takes itself, and hands to the hub.
    pub(crate) fn unserved() -> (Web, TcpListener) {
        let socket = TcpSocket::new_v4().unwrap();
        // A test may come back to its address.
        socket.set_reuseaddr(true).unwrap();
        // Little fits on the way to a server that does not read.
        socket.set_recv_buffer_size(16 << 10).unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let (posts, receiver) = mpsc::channel(1024);
        let book = Book {
            ledger: Mutex::default(),
            open: watch::Sender::new(0),
            reads_on: watch::Sender::new(false),
        };
        let hub = Hub { posts, book: Arc::new(book) };
        (Web { address: listener.local_addr().unwrap(), posts: receiver, hub }, listener)
    }

    pub(crate) fn hub(&self) -> Hub {
        self.hub.clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next request: whole, unless it is a large one, of which this is the head.
    pub(crate) async fn post(&mut self) -> Post {
        self.posts.recv().await.expect("the hub is held here")
    }

    /// Reads large bodies too, from now on.
    pub(crate) fn read_on(&self) {
        self.hub.book.reads_on.send_replace(true);
    }

    /// Whether a request came that nobody has looked at.
    pub(crate) fn has_more(&self) -> bool {
        !self.posts.is_empty()
    }

    /// How many requests came so far.
    pub(crate) fn requests(&self) -> usize {
        self.hub.book.ledger.lock().unwrap().requests
    }

    /// How many connections came so far.
    pub(crate) fn connections(&self) -> usize {
        self.hub.book.ledger.lock().unwrap().bytes.len()
    }

    /// Everything that one connection brought.
    pub(crate) fn bytes(&self, connection: usize) -> Vec<u8> {
        self.hub.book.ledger.lock().unwrap().bytes[connection].clone()
    }

    /// Drops the client, waits until all its connections are closed, and returns how many
    /// requests there were in all. None of them may have been about a cancellation.
    pub(crate) async fn ends_with(&mut self, client: Client) -> usize {
        drop(client);
        let mut open = self.hub.book.open.subscribe();
        open.wait_for(|open| *open == 0).await.unwrap();
        crate::web::settle().await;
        let ledger = self.hub.book.ledger.lock().unwrap();
        for bytes in &ledger.bytes {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.contains("notifications/cancelled"), "a cancel was posted: {text}");
        }
        ledger.requests
    }
}

impl Hub {
    /// Serves one more connection.
    pub(crate) fn take(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let connection = {
            let mut ledger = self.book.ledger.lock().unwrap();
            ledger.bytes.push(Vec::new());
            ledger.bytes.len() - 1
        };
        self.book.open.send_modify(|open| *open += 1);
        let (read, write) = tokio::io::split(Box::new(stream) as Stream);
        let (closing, closed) = watch::channel(false);
        let post = Post {
            connection,
            head: String::new(),
            body: Value::Null,
            write: Arc::new(tokio::sync::Mutex::new(write)),
            closed,
        };
        let hub = self.clone();
        tokio::spawn(async move {
            hub.read(read, post).await;
            closing.send_replace(true);
            hub.book.open.send_modify(|open| *open -= 1);
        });
    }

    /// Reads requests until the client closes.
    async fn read(&self, mut read: ReadHalf<Stream>, post: Post) {
        let mut buffer = Vec::new();
        loop {
            let Some(head) = self.until_blank_line(&mut read, &mut buffer, &post).await else {
                return;
            };
            self.book.ledger.lock().unwrap().requests += 1;
            let mut post = Post { head, ..post.again() };
            let length = post.header("content-length").map_or(0, |value| value.parse().unwrap());
            let large = length > LARGE && !*self.book.reads_on.borrow();
            if large {
                let _ = self.posts.send(post.again()).await;
                let _ = self.book.reads_on.subscribe().wait_for(|reads| *reads).await;
            }
            while buffer.len() < length {
                if self.more(&mut read, &mut buffer, &post).await == 0 {
                    return;
                }
            }
            let body: Vec<u8> = buffer.drain(..length).collect();
            if !large {
                post.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let _ = self.posts.send(post).await;
            }
        }
    }

    async fn until_blank_line(
        &self,
        read: &mut ReadHalf<Stream>,
        buffer: &mut Vec<u8>,
        post: &Post,
    ) -> Option<String> {
        loop {
            if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = buffer.drain(..end + 4).collect();
                return Some(String::from_utf8(head).unwrap());
            }
            if self.more(read, buffer, post).await == 0 {
                return None;
            }
        }
    }

    /// How many bytes came; 0 at the end, however it came about.
    async fn more(&self, read: &mut ReadHalf<Stream>, buffer: &mut Vec<u8>, post: &Post) -> usize {
        let before = buffer.len();
        let count = read.read_buf(buffer).await.unwrap_or(0);
        let mut ledger = self.book.ledger.lock().unwrap();
        ledger.bytes[post.connection].extend_from_slice(&buffer[before..]);
        count
    }
}

impl Post {
    fn again(&self) -> Post {
        Post {
            connection: self.connection,
            head: self.head.clone(),
            body: Value::Null,
            write: self.write.clone(),
            closed: self.closed.clone(),
        }
    }

    /// The value of a header that is there at most once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let all = self.headers();
        let values = all.get(name).map_or(&[][..], |values| values);
        assert!(values.len() < 2, "{name} is there more than once");
        values.first().copied()
    }

    /// All headers, by their names in lower case.
    pub(crate) fn headers(&self) -> BTreeMap<String, Vec<&str>> {
        let mut headers: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for line in self.head.lines().skip(1).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap();
            headers.entry(name.to_ascii_lowercase()).or_default().push(value.trim());
        }
        headers
    }

    /// The method of the message.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// The verb of HTTP.
    pub(crate) fn verb(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// Accepts what is not answered.
    pub(crate) async fn accept(&self) {
        self.say("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
    }

    /// Answers with a result that opens a session.
    pub(crate) async fn result_in(&self, session: &str, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}).to_string();
        self.say(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    }

    /// Writes these bytes. A client that is gone does not mind.
    pub(crate) async fn say(&self, bytes: impl AsRef<[u8]>) {
        let mut write = self.write.lock().await;
        let _ = write.write_all(bytes.as_ref()).await;
        let _ = write.flush().await;
    }

    /// Answers with a status and a body of a kind.
    pub(crate) async fn answer(&self, status: u16, kind: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let mut answer = format!(
            "HTTP/1.1 {status} Because\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        answer.extend_from_slice(body);
        self.say(answer).await;
    }

    /// Answers with a result.
    pub(crate) async fn result(&self, result: Value) {
        let answer = json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result});
        self.answer(200, "application/json", answer.to_string()).await;
    }

    /// Answers with a JSON-RPC error.
    pub(crate) async fn error(&self, status: u16, code: i64, data: Value) {
        let mut error = json!({"code": code, "message": "the script says so"});
        if !data.is_null() {
            error["data"] = data;
        }
        let answer = json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error});
        self.answer(status, "application/json", answer.to_string()).await;
    }

    /// Begins to answer with a stream, whose end is told by its last chunk.
    pub(crate) async fn stream(&self) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.say(head).await;
    }

    /// A piece of the stream.
    pub(crate) async fn chunk(&self, bytes: impl AsRef<[u8]>) {
        self.say(chunk(bytes)).await;
    }

    /// A message on the stream.
    pub(crate) async fn event(&self, message: Value) {
        self.chunk(format!("data: {message}\n\n")).await;
    }

    /// The result, on the stream.
    pub(crate) async fn last_event(&self, result: Value) {
        self.event(json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})).await;
    }

    /// Ends the stream.
    pub(crate) async fn end(&self) {
        self.say("0\r\n\r\n").await;
    }

    /// Ends the connection.
    pub(crate) async fn hang_up(&self) {
        let _ = self.write.lock().await.shutdown().await;
    }

    /// Waits until the client has closed the connection.
    pub(crate) async fn closed(&self) {
        self.closed.clone().wait_for(|closed| *closed).await.unwrap();
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }
}

/// A chunk, as HTTP/1.1 frames it.
pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// A progress report for a request.
pub(crate) fn progress(post: &Post, done: u64) -> Value {
    let token = &post.body["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": done});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

/// A client that speaks the modern revision without asking, goes through no proxy and waits for
/// ever.
pub(crate) fn modern() -> ClientBuilder {
    Client::builder().revision(Revision::V2026_07_28).no_proxy().no_timeouts()
}

/// Such a client of this server.
pub(crate) async fn client(web: &Web) -> Client {
    modern().connect(web.url()).await.unwrap()
}

/// Makes a call in the background.
pub(crate) fn launch<T: Send + 'static>(call: Call<T>) -> JoinHandle<Result<T>> {
    tokio::spawn(call.into_future())
}

/// Drops a call that runs in the background.
pub(crate) async fn abandon<T>(call: JoinHandle<Result<T>>) {
    call.abort();
    assert!(call.await.is_err_and(|error| error.is_cancelled()), "it had ended before");
}

/// Lets everything that is already here be acted on: what was written to a socket of this
/// machine can be read at once, so it takes turns, not time.
pub(crate) async fn settle() {
    for _ in 0..2000 {
        tokio::task::yield_now().await;
    }
}
