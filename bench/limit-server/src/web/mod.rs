//! The bare limit over HTTP.

mod body;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request as HttpRequest, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::{mpsc, oneshot};

use self::body::{Body, ListenerGuard, event};
use crate::counters::{BY_CLOSE, BY_NOTIFICATION, CANCEL_NOTES, LISTENERS, RELEASED, report};
use crate::proto::{self, Params, Request, Rest};

/// The id of each listener and the way to its stream.
type Listening = Vec<(String, mpsc::Sender<Bytes>)>;
/// What stops a slow call of the legacy era, by session and id.
type Stops = HashMap<(String, String), oneshot::Sender<()>>;

static LISTENING: LazyLock<Mutex<Listening>> = LazyLock::new(Mutex::default);
static SLOW: LazyLock<Mutex<Stops>> = LazyLock::new(Mutex::default);
static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);

pub(crate) async fn serve(port: u16) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(answer);
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(hyper_util::rt::TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(request: HttpRequest<Incoming>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/stats") => return Ok(Response::new(Body::whole(report().into()))),
        (&Method::DELETE, _) => return Ok(empty(StatusCode::OK)),
        (&Method::POST, _) => {}
        _ => return Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
    }
    let Ok(body) = body.collect().await else { return Ok(empty(StatusCode::BAD_REQUEST)) };
    Ok(post(&head, &body.to_bytes()).await)
}

async fn post(head: &http::request::Parts, body: &[u8]) -> Response<Body> {
    let mut out = Vec::with_capacity(body.len() + 128);
    let Ok(mut request) = serde_json::from_slice::<Request>(body) else {
        proto::error(&mut out, None, -32700, "parse error");
        return json(StatusCode::BAD_REQUEST, out);
    };
    let params = request.params.take().unwrap_or_default();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let session = header("mcp-session-id").unwrap_or_default().to_owned();
    let Some(id) = request.id else {
        note(&request.method, &params, session);
        return empty(StatusCode::ACCEPTED);
    };
    let version = params.meta.as_ref().and_then(|meta| meta.version.as_deref());
    if let Some(version) = version {
        let named = request.method != "tools/call" || header("mcp-name") == Some(&*params.name);
        let agrees = header("mcp-protocol-version") == Some(version)
            && header("mcp-method") == Some(&*request.method);
        if !named || !agrees {
            proto::error(&mut out, Some(id), -32020, "header mismatch");
            return json(StatusCode::BAD_REQUEST, out);
        }
    }
    match proto::handle(&request.method, id, &params, &mut out) {
        Rest::Nothing => {}
        Rest::Slow if version.is_some() => {
            let _released = Slow { closed: true };
            std::future::pending::<()>().await;
        }
        Rest::Slow => {
            wait_for_note(session, id.get().to_owned()).await;
            proto::error(&mut out, Some(id), -32800, "cancelled");
        }
        Rest::Progress { token, count } => return progress(id.to_owned(), token, count),
        Rest::Listen => return listen(id.get()),
        Rest::Emit => {
            // A listener that is gone is forgotten; one that is full misses the event.
            lock(&LISTENING).retain(|(id, stream)| {
                let changed = event(|out| proto::list_changed(out, id));
                !matches!(stream.try_send(changed), Err(mpsc::error::TrySendError::Closed(_)))
            });
            proto::text(&mut out, id, "ok");
        }
    }
    let mut response = json(StatusCode::OK, out);
    if request.method == "initialize" {
        let session = format!("s{:016x}", NEXT_SESSION.fetch_add(1, Relaxed));
        let session = HeaderValue::from_str(&session).expect("hexadecimal digits");
        response.headers_mut().insert("mcp-session-id", session);
    }
    response
}

fn note(method: &str, params: &Params, session: String) {
    let Some(id) = params.request_id.filter(|_| method == "notifications/cancelled") else {
        return;
    };
    CANCEL_NOTES.up();
    if let Some(stop) = lock(&SLOW).remove(&(session, id.get().to_owned())) {
        let _ = stop.send(());
        BY_NOTIFICATION.up();
    }
}

/// In the legacy era a disconnect is not a cancellation, so the call runs on its own.
async fn wait_for_note(session: String, id: String) {
    let (stop, stopped) = oneshot::channel();
    lock(&SLOW).insert((session, id), stop);
    let call = tokio::spawn(async move {
        let _released = Slow { closed: false };
        let _ = stopped.await;
    });
    let _ = call.await;
}

fn progress(id: Box<serde_json::value::RawValue>, token: String, count: u64) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(256);
    tokio::spawn(async move {
        for done in 1..=count {
            let note = event(|out| proto::progress_note(out, &token, done, count));
            if sender.send(note).await.is_err() {
                return;
            }
        }
        let _ = sender.send(event(|out| proto::text(out, &id, "done"))).await;
    });
    stream(Body::stream(receiver, None))
}

fn listen(id: &str) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(16);
    let _ = sender.try_send(event(|out| proto::acknowledged(out, id)));
    lock(&LISTENING).push((id.to_owned(), sender));
    LISTENERS.up();
    stream(Body::stream(receiver, Some(ListenerGuard)))
}

/// Counts a slow call as released when it is dropped.
struct Slow {
    closed: bool,
}

impl Drop for Slow {
    fn drop(&mut self) {
        RELEASED.up();
        if self.closed {
            BY_CLOSE.up();
        }
    }
}

fn json(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::whole(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic under the lock")
}
