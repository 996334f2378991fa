//! Owns the connections of the short way: how they are taken, bounded, and let go.
//! Does not own what is said on them.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use super::address::{Accepted, Listener};
use crate::{
    rpc::{BoxFuture, memory::MemoryBudget},
    transport::http::server::{
        HttpBody, HttpFuture, HttpReport, HttpService, answer,
        auth::protect::Protection,
        listen::{
            activity::{ActiveRequest, ConnectionActivity, ConnectionVerdict},
            detect::{Peek, Protocol, sniff},
            peers::PeerConnections,
            serve::SideEndpoint,
        },
        shutdown::EndpointPhase,
    },
    transport::http::timing::CONNECTION_IDLE,
};
use http::{Request, Response, StatusCode};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use pin_project_lite::pin_project;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use turnbuckle_types::RpcError;

/// How many connections are open at once; more wait to be accepted.
const CONNECTIONS: usize = 10_000;
/// The length of all headers of a request. Over HTTP/1.1 there are a hundred at most.
const HEADER_BYTES: u32 = 64 * 1024;
/// How many requests one HTTP/2 connection may have in flight. Over HTTP/1.1 it is one.
const STREAMS: u32 = 256;
/// After how long, and how long again, an HTTP/2 peer is asked whether it is there.
const PING: Duration = Duration::from_secs(30);
/// How long answers that were cut short may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long accepting pauses when the system has nothing to accept with.
const PAUSE: Duration = Duration::from_millis(100);

/// A listener and everything that decides about its connections.
pub(crate) struct Accepting {
    pub(crate) listener: Listener,
    pub(crate) service: HttpService,
    pub(crate) side: Option<Arc<dyn SideEndpoint>>,
    pub(crate) path: Arc<str>,
    pub(crate) signal: BoxFuture<'static, ()>,
    pub(crate) deadline: Duration,
}

impl Accepting {
    /// Serves until the signal, then until the deadline. Dropping this future closes every
    /// connection and drops every handler.
    pub(crate) async fn run(self) -> HttpReport {
        let Accepting { listener, service, side, path, mut signal, deadline } = self;
        let (close, closing) = watch::channel(());
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let protocols = Arc::new(Protocols::new());
        let peers = Arc::new(PeerConnections::default());
        let most_of_peer = service.0.limits.connections_per_peer;
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut signal => break,
                Some(_) = tasks.join_next() => continue,
                accepted = accept(&listener, &room) => accepted,
            };
            let Some((accepted, permit)) = accepted else { continue };
            let add = |address| peers.add(address, most_of_peer, &service.0.memory);
            let peer = match accepted.peer().map(add) {
                Some(None) => {
                    tracing::debug!("a peer has too many connections (connections_per_peer)");
                    continue;
                }
                peer => peer.flatten(),
            };
            let door = Door {
                service: service.clone(),
                side: side.clone(),
                path: path.clone(),
                memory: match &peer {
                    Some(peer) if most_of_peer < usize::MAX => peer.memory.clone(),
                    // A proxy, or a Unix socket: its connections are of many clients.
                    _ => service.0.memory.share(),
                },
                activity: None,
            };
            let (protocols, closing) = (protocols.clone(), closing.clone());
            tasks.spawn(async move {
                match accepted {
                    Accepted::Tcp(stream) => connection(stream, door, &protocols, closing).await,
                    #[cfg(unix)]
                    Accepted::Unix(stream) => connection(stream, door, &protocols, closing).await,
                }
                drop((permit, peer));
            });
        }
        drop(listener);
        let drain = &service.0.drain;
        drain.advance(EndpointPhase::Draining);
        side.iter().for_each(|side| side.drain());
        // The tasks hold receivers until they end; none left is fine too.
        let _ = close.send(());
        // Calls whose client went away may finish as well: it may come back elsewhere.
        let live = &service.0.legacy.live;
        if timeout(deadline, async { tokio::join!(all(&mut tasks), live.quiet()) }).await.is_err() {
            drain.advance(EndpointPhase::Over);
            side.iter().for_each(|side| side.end());
            let _ =
                timeout(LAST_WORDS, async { tokio::join!(all(&mut tasks), live.quiet()) }).await;
            tasks.shutdown().await;
        }
        let mut report = drain.report();
        let (finished, cancelled) = side.map(|side| side.ended()).unwrap_or_default();
        report.finished += finished;
        report.cancelled += cancelled;
        report
    }
}

async fn all(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

/// The next connection, once there is room for one; `None` if that failed. Dropping the
/// future loses no connection.
async fn accept(
    listener: &Listener,
    room: &Arc<Semaphore>,
) -> Option<(Accepted, tokio::sync::OwnedSemaphorePermit)> {
    let permit = room.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok(accepted) => Some((accepted, permit)),
        Err(error) => {
            use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
            if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
                return None;
            }
            tracing::warn!(%error, "a connection could not be accepted");
            // It may be that no descriptor is free: then trying again at once is no use.
            sleep(PAUSE).await;
            None
        }
    }
}

/// How each protocol is spoken.
struct Protocols {
    one: http1::Builder,
    two: http2::Builder<TokioExecutor>,
}

impl Protocols {
    fn new() -> Protocols {
        let mut one = http1::Builder::new();
        one.timer(TokioTimer::new())
            .header_read_timeout(CONNECTION_IDLE)
            .max_buf_size(HEADER_BYTES as usize);
        let mut two = http2::Builder::new(TokioExecutor::new());
        two.timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(HEADER_BYTES)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING);
        Protocols { one, two }
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Peek + Unpin + Send + 'static,
    mut door: Door,
    protocols: &Protocols,
    mut closing: watch::Receiver<()>,
) {
    // The protocols' own timeouts begin only when it is known which one it is.
    let sniffed = tokio::select! {
        sniffed = timeout(CONNECTION_IDLE, sniff(stream)) => sniffed,
        _ = closing.changed() => return,
    };
    let Ok(Ok((protocol, stream))) = sniffed else { return };
    let stream = TokioIo::new(stream);
    let ended = match protocol {
        Protocol::Http1 => {
            let mut connection = pin!(protocols.one.serve_connection(stream, door));
            tokio::select! {
                ended = connection.as_mut() => ended,
                _ = closing.changed() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
        // Boxed: it is larger, and rarer, than the other.
        Protocol::Http2 => {
            let activity = ConnectionActivity::new();
            door.activity = Some(activity.clone());
            let mut connection = Box::pin(protocols.two.serve_connection(stream, door));
            let mut checks = tokio::time::interval(ConnectionActivity::INTERVAL);
            let mut is_closing = false;
            loop {
                tokio::select! {
                    ended = connection.as_mut() => break ended,
                    _ = closing.changed(), if !is_closing => {
                        is_closing = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    now = checks.tick() => match activity.judge(now) {
                        ConnectionVerdict::Keep => {}
                        ConnectionVerdict::Retire => connection.as_mut().graceful_shutdown(),
                        ConnectionVerdict::Close => {
                            tracing::debug!("a client does not read its responses");
                            return;
                        }
                    }
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

/// Lets requests for the endpoints' paths in.
struct Door {
    service: HttpService,
    side: Option<Arc<dyn SideEndpoint>>,
    path: Arc<str>,
    /// The share of this connection or of its peer.
    memory: Arc<MemoryBudget>,
    /// Over HTTP/2.
    activity: Option<Arc<ConnectionActivity>>,
}

impl hyper::service::Service<Request<Incoming>> for Door {
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Through;

    fn call(&self, request: Request<Incoming>) -> Through {
        let active = self.activity.as_ref().map(ConnectionActivity::begin);
        let path = request.uri().path();
        if path == &*self.path {
            return Through::Main { future: self.service.answer(request, &self.memory), active };
        }
        if let Some(side) = self.side.as_ref().filter(|side| side.path() == path) {
            return Through::Side { future: side.respond(request), active };
        }
        let (gate, protection) = (&self.service.0.gate, &self.service.0.protection);
        let refused = gate.judge_caller(request.uri(), request.headers()).unwrap_or_else(|| {
            let told = |it: &Protection| it.metadata(request.method(), request.uri());
            if let Some(metadata) = protection.as_ref().and_then(told) {
                return metadata;
            }
            let error = RpcError::invalid_request(format!(
                "there is nothing here; the endpoint is {}",
                self.path
            ));
            answer::error(StatusCode::NOT_FOUND, None, &error)
        });
        Through::Main { future: HttpFuture::ready(refused), active }
    }
}

pin_project! {
    /// The answer of whichever endpoint it was.
    #[project = Projected]
    enum Through {
        Main { #[pin] future: HttpFuture<Incoming>, active: Option<ActiveRequest> },
        Side { future: BoxFuture<'static, Response<HttpBody>>, active: Option<ActiveRequest> },
    }
}

impl Future for Through {
    type Output = Result<Response<HttpBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (mut response, active) = match self.project() {
            Projected::Main { future, active } => (ready!(future.poll(context))?, active),
            Projected::Side { future, active } => (ready!(future.as_mut().poll(context)), active),
        };
        if let Some(active) = active.take() {
            response.body_mut().belongs_to(active);
        }
        Poll::Ready(Ok(response))
    }
}
