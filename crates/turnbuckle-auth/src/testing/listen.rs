//! Serving the server for tests on this machine, for peers that need a real connection.

use std::{
    convert::Infallible,
    io,
    net::Ipv4Addr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::{InsecureAuthorizationServer, reply};

/// The most bytes of a request that are read.
const MOST: usize = 1 << 20;

/// A place on this machine, known before the server is: its issuer is there.
///
/// ```
/// use std::sync::Arc;
/// use turnbuckle_auth::testing::{InsecureAuthorizationServer, InsecureListener};
///
/// # async fn example() -> std::io::Result<()> {
/// let listener = InsecureListener::bind().await?;
/// let server = Arc::new(InsecureAuthorizationServer::new(listener.origin()));
/// let serving = listener.serve(Arc::clone(&server));
/// // Peers log in at `server.issuer()`.
/// drop(serving);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InsecureListener {
    listener: TcpListener,
    origin: String,
}

/// It is served until this is dropped.
#[derive(Debug)]
pub struct InsecureServing {
    task: JoinHandle<()>,
}

impl InsecureListener {
    /// At a free port of 127.0.0.1. Dropping the future binds nothing.
    ///
    /// # Errors
    /// If there is none.
    pub async fn bind() -> io::Result<InsecureListener> {
        InsecureListener::on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)
    }

    /// Where this one listens.
    ///
    /// # Errors
    /// If that can't be told.
    pub fn on(listener: TcpListener) -> io::Result<InsecureListener> {
        let origin = format!("http://{}", listener.local_addr()?);
        Ok(InsecureListener { listener, origin })
    }

    /// `http://127.0.0.1:` and the port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Serves it from now on.
    pub fn serve(self, server: Arc<InsecureAuthorizationServer>) -> InsecureServing {
        InsecureServing { task: tokio::spawn(accept(self.listener, server)) }
    }
}

impl InsecureServing {
    /// Ends it. Once this is over nobody listens there, and all connections are closed. Dropping the
    /// future ends it too, a little later.
    pub async fn stop(mut self) {
        self.task.abort();
        // It was given up: that is no news.
        let _ = (&mut self.task).await;
    }
}

impl Drop for InsecureServing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, server: Arc<InsecureAuthorizationServer>) {
    // Connections end with this set.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(connection(stream, Arc::clone(&server))); }
                Err(_) => return,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, server: Arc<InsecureAuthorizationServer>) {
    let service = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(answer(request, &server).await) }
    });
    // It would only be slower; and a peer that breaks off is no news.
    let _ = stream.set_nodelay(true);
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    server: &InsecureAuthorizationServer,
) -> Response<Whole> {
    let (parts, body) = request.into_parts();
    let response = match whole(body).await {
        Some(body) => server.handle_when_healed(Request::from_parts(parts, body)).await,
        None => reply::empty(413),
    };
    response.map(|body| Whole(Some(body).filter(|body| !body.is_empty())))
}

/// Nothing if it broke off or is too long.
async fn whole(mut body: Incoming) -> Option<Bytes> {
    let mut all = BytesMut::new();
    loop {
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let Some(frame) = next else { return Some(all.freeze()) };
        if let Ok(data) = frame.ok()?.into_data() {
            if all.len() + data.len() > MOST {
                return None;
            }
            all.extend_from_slice(&data);
        }
    }
}

/// A body that is there at once.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |data| data.len() as u64))
    }
}
