//! An authorization server, a server that trusts it, and a client that writes its requests by hand.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use turnbuckle::{
    Ctx, Principal, Server,
    auth::{
        Challenge, Clock, Secret, SystemClock,
        resource_server::{Identity, Issuer, ResourceServer},
        testing::{InsecureAuthorizationServer, InsecureClient, InsecureListener, InsecureServing},
    },
    tool,
};

/// A clock that stands until it is moved.
#[derive(Debug)]
pub(crate) struct Hand(AtomicU64);

impl Hand {
    pub(crate) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// An issuer and a server that trusts it, both at sockets of this machine.
pub(crate) struct World {
    pub(crate) clock: Arc<Hand>,
    pub(crate) auth: Arc<InsecureAuthorizationServer>,
    pub(crate) resource: String,
    /// Another issuer that is trusted, where the plan has one.
    elsewhere: Option<(Arc<InsecureAuthorizationServer>, InsecureServing)>,
    address: String,
    serving: Option<InsecureServing>,
    task: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How a world is made.
pub(crate) struct Plan {
    pub(crate) server: Server,
    /// How the issuer's tokens are verified.
    pub(crate) issuer: fn(&str) -> Issuer,
    pub(crate) resource: fn(ResourceServer) -> ResourceServer,
    /// What the server is given once the issuer is known.
    pub(crate) finish: fn(Server, &str) -> Server,
    pub(crate) issuers: Issuers,
}

/// Whose tokens are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Issuers {
    One,
    Two,
}

impl Plan {
    pub(crate) fn of(server: Server) -> Plan {
        Plan {
            server,
            issuer: |name| Issuer::new(name),
            resource: |resource| resource,
            finish: |server, _| server,
            issuers: Issuers::One,
        }
    }

    pub(crate) async fn start(self) -> World {
        let clock = Arc::new(Hand(AtomicU64::new(SystemClock.now())));
        let place = InsecureListener::bind().await.unwrap();
        let auth = InsecureAuthorizationServer::new(place.origin())
            .client(InsecureClient::basic("machine", "s3cr3t"))
            .clock(clock.clone());
        let auth = Arc::new(auth);
        let issuer = (self.issuer)(place.origin());
        let serving = Some(place.serve(auth.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let resource = format!("http://{address}/mcp");
        let mut protection = ResourceServer::new(&resource).issuer(issuer).clock(clock.clone());
        let mut elsewhere = None;
        if self.issuers == Issuers::Two {
            let place = InsecureListener::bind().await.unwrap();
            let other = InsecureAuthorizationServer::new(place.origin()).clock(clock.clone());
            protection = protection.issuer(place.origin());
            let other = Arc::new(other);
            elsewhere = Some((other.clone(), place.serve(other)));
        }
        let server = (self.finish)(self.server, auth.issuer());
        let server = server.protect((self.resource)(protection));
        let bound = server.serve_http(listener).with_sse("/sse").bind().await.unwrap();
        let task = tokio::spawn(async move { drop(bound.await) });
        World { clock, auth, resource, elsewhere, address, serving, task }
    }
}

/// One with the tools that most tests need.
pub(crate) async fn world() -> World {
    Plan::of(server()).start().await
}

pub(crate) fn server() -> Server {
    Server::new("test", "1.0").tool(tool("who", who)).tool(tool("seen", seen))
}

async fn who(who: Principal<Identity>) -> String {
    let claims = who.claims();
    format!("{} {:?} {}", claims.subject, claims.client_id, claims.scopes)
}

/// What a handler sees of the credential.
async fn seen(ctx: Ctx, name: Principal) -> String {
    let [token, proof] = ["authorization", "dpop"].map(|name| ctx.header(name).is_some());
    format!("{} {token} {proof}", name.name())
}

impl World {
    /// A token of someone's, for this server.
    pub(crate) fn token(&self, subject: &str, scope: &str) -> Secret {
        self.issue(json!({"sub": subject, "scope": scope}))
    }

    /// A token of someone's of the other issuer, for this server.
    pub(crate) fn token_elsewhere(&self, subject: &str, scope: &str) -> Secret {
        let (issuer, _) = self.elsewhere.as_ref().expect("the plan has two");
        issuer.issue(self.claims(json!({"sub": subject, "scope": scope})))
    }

    /// A token for this server with these claims.
    pub(crate) fn issue(&self, claims: Value) -> Secret {
        self.auth.issue(self.claims(claims))
    }

    pub(crate) fn claims(&self, claims: Value) -> Map<String, Value> {
        let mut all = json!({"aud": self.resource}).as_object().unwrap().clone();
        all.extend(claims.as_object().unwrap().clone());
        all
    }

    /// The issuer is gone.
    pub(crate) fn stop_issuer(&mut self) {
        self.serving = None;
    }

    pub(crate) async fn send(&self, ask: &Ask) -> TcpStream {
        send_to(&self.address, ask).await
    }

    /// Sends something that need not be a request.
    pub(crate) async fn send_text(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request and reads its answer to the end.
    pub(crate) async fn ask(&self, ask: &Ask) -> Answer {
        ask_at(&self.address, ask).await
    }

    /// Opens a session of the legacy era, in the one revision that has batches.
    pub(crate) async fn session(&self, token: &Secret) -> String {
        self.session_in("2025-03-26", token).await
    }

    pub(crate) async fn session_in(&self, revision: &str, token: &Secret) -> String {
        let params = json!({"protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "client", "version": "1"}});
        let answer = self.ask(&Ask::legacy("initialize", params).bearer(token)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("mcp-session-id").unwrap()
    }

    /// Opens a session over HTTP with server-sent events, and does its handshake.
    pub(crate) async fn sse(&self, token: &Secret) -> Sse {
        let open = Ask::new("GET", "/sse").header("accept", "text/event-stream").bearer(token);
        let mut stream = self.send(&open).await;
        let first = until(&mut stream, "\n\n").await;
        let path = first.split("data: ").nth(1).unwrap().lines().next().unwrap().to_owned();
        let mut sse = Sse { stream, path };
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": {},
            "clientInfo": {"name": "client", "version": "1"}});
        let answer = self.ask(&sse.post("initialize", params).bearer(token)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        sse.hear("serverInfo").await;
        sse
    }

    /// The same request in both eras: the second in a session of whoever has this token.
    pub(crate) async fn both_eras(
        &self,
        method: &'static str,
        params: Value,
        token: &Secret,
    ) -> [Ask; 2] {
        let session = self.session(token).await;
        let legacy = Ask::legacy(method, params.clone()).header("mcp-session-id", &session);
        [Ask::modern(method, params).bearer(token), legacy.bearer(token)]
    }
}

/// A session over HTTP with server-sent events.
pub(crate) struct Sse {
    pub(crate) stream: TcpStream,
    path: String,
}

impl Sse {
    /// A message to it.
    pub(crate) fn post(&self, method: &'static str, params: Value) -> Ask {
        Ask::legacy(method, params).at(&self.path)
    }

    /// Waits until this was said, and gives what was said until then.
    pub(crate) async fn hear(&mut self, text: &str) -> String {
        until(&mut self.stream, text).await
    }
}

async fn send_to(address: &str, ask: &Ask) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(ask.text().as_bytes()).await.unwrap();
    stream
}

/// The same anywhere.
pub(crate) async fn ask_at(address: &str, ask: &Ask) -> Answer {
    Answer::read(&rest(send_to(address, ask).await).await)
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Ask {
    pub(crate) fn new(method: &'static str, path: &str) -> Ask {
        let ask = Ask { method, path: path.into(), headers: Vec::new(), body: String::new() };
        ask.header("host", "localhost").header("connection", "close")
    }

    fn post(path: &str, body: &Value) -> Ask {
        let mut ask = Ask::new("POST", path)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        ask.body = body.to_string();
        ask
    }

    /// A request that stands for itself.
    pub(crate) fn modern(method: &'static str, mut params: Value) -> Ask {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {"form": {}}});
        let name = params.get("name").or(params.get("uri")).and_then(Value::as_str);
        let name = name.map(str::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let ask = Ask::post("/mcp", &body)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        match name {
            Some(name) => ask.header("mcp-name", &name),
            None => ask,
        }
    }

    pub(crate) fn legacy(method: &'static str, params: Value) -> Ask {
        Ask::message(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }

    /// Any message of the legacy era.
    pub(crate) fn message(body: &Value) -> Ask {
        Ask::post("/mcp", body)
    }

    pub(crate) fn at(mut self, path: &str) -> Ask {
        self.path = path.into();
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn bearer(self, token: &Secret) -> Ask {
        self.header("authorization", &format!("Bearer {}", token.expose()))
    }

    /// Without its token.
    pub(crate) fn anonymous(mut self) -> Ask {
        self.headers.retain(|(name, _)| name != "authorization");
        self
    }

    fn text(&self) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if self.method == "POST" && !self.headers.iter().any(|(name, _)| name == "content-length") {
            text += &format!("content-length: {}\r\n", self.body.len());
        }
        format!("{text}\r\n{}", self.body)
    }

    /// Head and body.
    pub(crate) fn parts(&self) -> (String, String) {
        let text = self.text();
        let (head, body) = text.split_at(text.len() - self.body.len());
        (head.to_owned(), body.to_owned())
    }
}

/// A call of a tool without arguments.
pub(crate) fn call(name: &str) -> (&'static str, Value) {
    ("tools/call", json!({"name": name, "arguments": {}}))
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn read(text: &str) -> Answer {
        let (head, rest) = text.split_once("\r\n\r\n").unwrap();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { chunks(rest) } else { rest.to_owned() };
        Answer { status: head[9..12].parse().unwrap(), head: head.to_owned(), body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.to_owned())
    }

    pub(crate) fn challenge(&self) -> Challenge {
        let value = self.header("www-authenticate").unwrap_or_else(|| panic!("{self:?}"));
        let mut headers = http::HeaderMap::new();
        headers.insert("www-authenticate", value.parse().unwrap());
        Challenge::read(&headers).unwrap()
    }

    /// The message, be it JSON or the last event of a stream.
    pub(crate) fn json(&self) -> Value {
        let event = self.body.lines().rfind(|line| line.starts_with("data: {"));
        let text = event.map_or(self.body.as_str(), |event| &event[6..]);
        serde_json::from_str(text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// What a tool said.
    pub(crate) fn said(&self) -> String {
        let answer = self.json();
        let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }
}

fn chunks(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body += &after[..size];
        rest = &after[size + 2..];
    }
    body
}

/// Reads from a stream until this text has come, and gives all that came.
pub(crate) async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    loop {
        let so_far = String::from_utf8_lossy(&text).into_owned();
        if so_far.contains(end) {
            return so_far;
        }
        assert!(stream.read_buf(&mut text).await.unwrap() > 0, "it ended after {so_far:?}");
    }
}

/// Reads a stream to its end.
pub(crate) async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}
