//! The client side of HTTP+SSE. One task turns events into lines and lines into POSTs, so that the
//! dispatcher of stream wires can be used.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use crate::{
    error::{AuthorizationRequired, Closed, Error, ErrorKind, Executed, Result},
    limits::Limits,
    protocol::params::decode_as,
    rpc::{
        Line, Lines, Transport,
        connection::{Duplex, id_of},
    },
    transport::{
        framing::LineReader,
        http::{
            client::{
                HttpClientShared,
                events::{EventBody, NextEvent, message_of},
                origin, place,
                redirect::resolve,
                request,
                timing::{ACCEPT, CLOSE, ENDPOINT, PIPE, POSTS_AT_ONCE, SKEW},
                whole::Kind,
            },
            session::client::{ClientSession, send},
        },
        stream,
    },
};
use bytes::Bytes;
use http::Uri;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::watch,
    task::JoinSet,
};
use turnbuckle_types::{
    Cancelled, Method, RequestId, RpcError,
    jsonrpc::{self, Frame, Message},
};

/// Connects to a server whose stream is at the wire's address. Dropping the future gives it up.
pub(crate) async fn connect(wire: &Arc<HttpClientShared>) -> Result<Arc<dyn Transport>> {
    let opening = tokio::time::timeout(ENDPOINT, open(wire)).await;
    let (events, to) = opening.unwrap_or_else(|_| {
        Err(failed(format!("{} did not say where to post to within {ENDPOINT:?}", wire.place())))
    })?;
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (read, write) = tokio::io::split(ours);
    let place = wire.place();
    let verdict = Arc::new(OnceLock::<Closed>::new());
    let obituary = Box::pin({
        let verdict = verdict.clone();
        async move {
            let ended = || Closed::new(format!("the event stream of {place} ended"));
            verdict.get().cloned().unwrap_or_else(ended)
        }
    });
    let limits = wire.limits.clone();
    let stream = stream::start(read, write, wire.serve.clone(), limits, Some(obituary));
    let (lines, replies) = tokio::io::split(theirs);
    let lines = LineReader::new(lines, wire.limits.line_bytes);
    // Not the transport itself: whoever lets go of that ends the connection.
    let peer = Arc::downgrade(&stream.transport);
    let wire = wire.clone();
    tokio::spawn(async move {
        let limit = wire.limits.line_bytes;
        tokio::select! {
            ended = down(events, &peer, replies, limit) => {
                if let Err(closed) = ended {
                    let _ = verdict.set(closed);
                }
            }
            () = up(wire, to, lines, &peer) => {}
        }
    });
    Ok(stream.transport)
}

/// Opens the stream and reads where to post to.
async fn open(wire: &HttpClientShared) -> Result<(EventBody, Uri)> {
    let place = wire.place();
    let get = send::get(wire, &ClientSession::default(), None);
    let response = request::send(wire, &wire.stack, get, None).await?;
    let status = response.status();
    if !status.is_success() || Kind::of(response.headers()) != Kind::Events {
        let message = format!("GET {place} opened no event stream (HTTP {status})");
        let wanted = AuthorizationRequired::read(status, response.headers());
        return Err(failed(message).with_status(status.as_u16()).wanting(wanted));
    }
    let mut events = EventBody::new(Some(response.into_body()), wire, None);
    let first = match events.next().await {
        NextEvent::Event(first) if first.kind.as_deref() == Some(b"endpoint") => first,
        NextEvent::Ended(_) => {
            let message = format!("the event stream of {place} ended before it named an endpoint");
            return Err(failed(message));
        }
        _ => {
            let message = format!("the event stream of {place} does not begin with an endpoint");
            return Err(failed(message));
        }
    };
    let to = endpoint(&wire.address, &first.data).map_err(failed)?;
    Ok((events, to))
}

fn failed(message: String) -> Error {
    Error::new(ErrorKind::Connect, message).with_executed(Executed::No)
}

/// Where to post to. Another origin would be given what was meant for this one.
fn endpoint(address: &Uri, said: &[u8]) -> Result<Uri, String> {
    let to = std::str::from_utf8(said)
        .ok()
        .map(str::trim)
        .filter(|said| !said.is_empty())
        .and_then(|said| resolve(address, said))
        .ok_or("the server's endpoint is no address")?;
    if origin(&to) != origin(address) {
        return Err(format!("the server's endpoint {} is another origin", place(&to)));
    }
    Ok(to)
}

/// Moves messages of the server in as lines, until its stream ends. The error is why this side
/// ends it.
async fn down(
    mut events: EventBody,
    peer: &Weak<Duplex>,
    mut replies: impl AsyncWrite + Unpin,
    limit: usize,
) -> Result<(), Closed> {
    loop {
        match events.next().await {
            NextEvent::Event(event) => {
                let Some(message) = message_of(event) else { continue };
                if replies.write_all(&line(&message)).await.is_err() {
                    return Ok(());
                }
            }
            NextEvent::TooLong | NextEvent::OutOfMemory(_) => {
                let Some(peer) = peer.upgrade() else { return Ok(()) };
                // The call that it answers is told. If the event does not name one, the
                // connection ends, so that no call waits for ever.
                if !peer.too_long(events.reader().began()) {
                    let message = format!(
                        "an event is longer than {limit} bytes (line_bytes), or uses too much \
                         memory (memory_bytes)"
                    );
                    return Err(Closed::of(ErrorKind::Limit, message, Vec::new()));
                }
            }
            NextEvent::TooMuch => {}
            NextEvent::Ended(ending) => {
                tracing::debug!(?ending, "the event stream ended");
                return Ok(());
            }
        }
    }
}

/// A message as a line: outside strings a line break is white space, and inside there is none.
fn line(message: &[u8]) -> Vec<u8> {
    let mut line: Vec<u8> = message
        .iter()
        .map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte })
        .collect();
    line.push(b'\n');
    line
}

/// Moves lines out as POSTs, until this side closes.
async fn up(wire: Arc<HttpClientShared>, to: Uri, mut lines: impl Lines, peer: &Weak<Duplex>) {
    let mut posts = JoinSet::new();
    let mut unaccepted = Unaccepted::default();
    while let Ok(Some(line)) = std::future::poll_fn(|context| lines.poll_next(context)).await {
        let message = match line {
            Line::Whole(message) => message,
            Line::TooLong(began) => match unsendable(peer, &began, &wire.limits) {
                Some(instead) => instead,
                None => continue,
            },
        };
        while posts.len() >= POSTS_AT_ONCE {
            posts.join_next().await;
        }
        while posts.try_join_next().is_some() {}
        let MessageInfo { request, cancels, opens } =
            MessageInfo::of(&message, wire.limits.json_depth);
        let its_request = cancels.and_then(|id| unaccepted.0.remove(&id));
        let post = post(wire.clone(), to.clone(), message, request.clone(), peer.clone());
        if let Some(mut accepted) = its_request {
            // Read before its request, it would cancel nothing.
            posts.spawn(async move {
                let _ = accepted.changed().await;
                post.await;
            });
            continue;
        }
        let patience = if opens { ACCEPT } else { SKEW };
        let mut post = Box::pin(post);
        if tokio::time::timeout(patience, &mut post).await.is_err() {
            let pending = request.map(|id| unaccepted.add(id));
            posts.spawn(async move {
                post.await;
                drop(pending);
            });
        }
    }
    let rest = async { while posts.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(CLOSE, rest).await;
}

/// Requests that are on their way and have not been accepted yet; each is told by a sender that is
/// dropped.
#[derive(Default)]
struct Unaccepted(HashMap<RequestId, watch::Receiver<()>>);

impl Unaccepted {
    /// Adds one more. No more are kept than may be on their way at once, and this.
    fn add(&mut self, request: RequestId) -> watch::Sender<()> {
        self.0.retain(|_, accepted| accepted.has_changed().is_ok());
        let (sender, accepted) = watch::channel(());
        self.0.insert(request, accepted);
        sender
    }
}

/// A message that is too long to be posted. The call of a request is told so; a server that asked
/// something gets this answer instead.
fn unsendable(peer: &Weak<Duplex>, began: &[u8], limits: &Limits) -> Option<Bytes> {
    let message = format!("a message is longer than {} bytes (line_bytes)", limits.line_bytes);
    tracing::warn!("{message}, and is not sent");
    let id = id_of(began, limits.json_depth)?;
    // It was written on this side: the one stands before the params, the other before the result.
    let at = |member: &[u8]| memchr::memmem::find(began, member).unwrap_or(usize::MAX);
    if at(b"\"method\":") < at(b"\"result\":") {
        let error = Error::new(ErrorKind::Limit, message).with_executed(Executed::No);
        peer.upgrade()?.lost(&id, error);
        return None;
    }
    let mut answer = Vec::new();
    jsonrpc::write_error(&mut answer, Some(&id), &RpcError::internal(message));
    Some(answer.into())
}

/// What has to be known of a message that is posted.
struct MessageInfo {
    /// The request that it is.
    request: Option<RequestId>,
    /// The request that it cancels.
    cancels: Option<RequestId>,
    /// It belongs to the handshake, which is kept in order.
    opens: bool,
}

impl MessageInfo {
    fn of(message: &Bytes, depth: usize) -> MessageInfo {
        let opens = |method: &str| {
            let method = Method::from_name(method);
            matches!(method, Some(Method::Initialize | Method::Initialized))
        };
        match jsonrpc::parse_line(message.clone(), depth) {
            Ok(Message::Single(Frame::Request(request))) => MessageInfo {
                opens: opens(&request.method),
                request: Some(request.id),
                cancels: None,
            },
            Ok(Message::Single(Frame::Notification(note))) => {
                let is_cancel = Method::from_name(&note.method) == Some(Method::Cancelled);
                let cancels =
                    is_cancel.then(|| decode_as::<Cancelled>(&note.params).ok()).flatten();
                let cancels = cancels.map(|cancelled| cancelled.request_id);
                MessageInfo { opens: opens(&note.method), request: None, cancels }
            }
            _ => MessageInfo { request: None, cancels: None, opens: false },
        }
    }
}

/// Posts one message. The call of a request that does not arrive is told why.
async fn post(
    wire: Arc<HttpClientShared>,
    to: Uri,
    message: Bytes,
    request: Option<RequestId>,
    peer: Weak<Duplex>,
) {
    let place = place(&to);
    let mut posted = send::post(&wire, &ClientSession::default(), message);
    posted.to = to;
    let sending = request::send(&wire, &wire.stack, posted, None);
    let error = match tokio::time::timeout(ACCEPT, sending).await {
        Ok(Ok(response)) => {
            let status = response.status();
            let wanted = AuthorizationRequired::read(status, response.headers());
            request::finish(response.into_body()).await;
            if status.is_success() {
                return;
            }
            let message = format!("{place} answered HTTP {status}");
            Error::http(status.as_u16(), message).wanting(wanted)
        }
        Ok(Err(error)) => error,
        Err(_) => {
            let message = format!("{place} did not take the message within {ACCEPT:?}");
            Error::new(ErrorKind::Timeout, message).with_executed(Executed::Maybe)
        }
    };
    tracing::debug!(%error, "a message was not accepted");
    if let (Some(id), Some(peer)) = (request, peer.upgrade()) {
        peer.lost(&id, error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(said: &str) -> Result<String, String> {
        let address: Uri = "http://a.test:81/base/sse?key=1".parse().unwrap();
        endpoint(&address, said.as_bytes()).map(|to| to.to_string())
    }

    #[test]
    fn an_endpoint_is_relative_or_absolute_and_of_the_same_origin() {
        assert_eq!(
            at("/messages/?session_id=7").unwrap(),
            "http://a.test:81/messages/?session_id=7"
        );
        assert_eq!(at("messages").unwrap(), "http://a.test:81/base/messages");
        assert_eq!(at("?s=1").unwrap(), "http://a.test:81/base/sse?s=1");
        assert_eq!(at(" http://A.test:81/m\n").unwrap(), "http://A.test:81/m");
        assert_eq!(at("//a.test:81/m").unwrap(), "http://a.test:81/m");
        for other in ["http://a.test/m", "https://a.test:81/m", "http://b.test:81/m", "//b.test/m"]
        {
            assert!(at(other).unwrap_err().contains("another origin"), "{other}");
        }
        for wrong in ["", " ", "ftp://a.test/", "http://me@a.test:81/"] {
            assert!(at(wrong).unwrap_err().contains("no address"), "{wrong}");
        }
    }

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(line(b"{\"a\":\r\n1}"), b"{\"a\":  1}\n");
    }

    #[test]
    fn what_is_known_of_a_message() {
        let about = |text: &str| MessageInfo::of(&Bytes::copy_from_slice(text.as_bytes()), 64);
        let initialize = about(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#);
        assert!(initialize.opens && initialize.request == Some(1.into()));
        let call = about(r#"{"jsonrpc":"2.0","id":"x","method":"tools/call"}"#);
        assert!(!call.opens && call.request == Some("x".into()));
        assert!(about(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).opens);
        let answer = about(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(!answer.opens && answer.request.is_none());
        let cancel = |params: &str| {
            let method = r#""method":"notifications/cancelled""#;
            about(&format!(r#"{{"jsonrpc":"2.0",{method},"params":{params}}}"#)).cancels
        };
        assert_eq!(cancel(r#"{"requestId":"x","reason":"no"}"#), Some("x".into()));
        assert_eq!(cancel("{}"), None);
    }
}
