//! A client that authorizes itself.
//!
//! Owns: how `turnbuckle_auth`'s layer stands around whatever sends requests. Does not own: who logs
//! in and how (the layer does), nor any wire: none knows that this is there.

mod fetch;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use tower_layer::Layer as _;
use tower_service::Service;
use turnbuckle_auth::{Auth, AuthError, AuthLayer, AuthService, Challenge, LoggedOut, Unattended};

use self::fetch::Fetcher;
use super::ClientBuilder;
use crate::{
    client::handlers::answer::{Answering, Pause},
    error::{Closed, Error, ErrorKind, Executed, Result},
    rpc::BoxFuture,
    transport::http::client::{
        Body, ConnectError, HttpSender, PostBody, SendFailure, UserService, Via, place,
    },
};

/// How long a server may take to say what it asks for.
const ASKING: Duration = Duration::from_secs(30);

impl ClientBuilder {
    /// Authorizes this client at servers that want to know who asks: requests carry what was
    /// granted, and what is refused is renewed silently if that is possible, else by a login. Calls
    /// that wait for a login don't run out of time meanwhile; dropping one drops that call and
    /// leaves the login to the others.
    ///
    /// Nothing is asked before the server refuses a request. What can't be had fails with
    /// [`ErrorKind::AuthorizationRequired`](crate::ErrorKind::AuthorizationRequired) or
    /// [`ErrorKind::Authorization`](crate::ErrorKind::Authorization).
    ///
    /// A token is shown, and a login begun, only at `https`, on this machine, or through a Unix socket,
    /// which is then a server of its own: elsewhere whoever is on the way could use the token.
    ///
    /// Authorization servers are reached as the server is: through the same proxy and with the same
    /// certificates, but only at addresses that a server like this one may name. With
    /// [`http_service`](ClientBuilder::http_service) that is the service's business.
    ///
    /// ```no_run
    /// # async fn example() -> turnbuckle::Result<()> {
    /// use turnbuckle::{
    ///     Client,
    ///     auth::{Auth, FileStore},
    /// };
    /// // Logs in with the browser, once; the file keeps what was granted.
    /// let auth = Auth::browser().client_name("Notes").store(FileStore::at("/home/me/.grants"));
    /// let client = Client::builder().auth(auth).connect("https://mcp.example.com/mcp").await?;
    /// # let _ = client; Ok(()) }
    /// ```
    pub fn auth(mut self, auth: Auth) -> ClientBuilder {
        self.http.authorize(auth);
        self
    }

    /// Logs in at the server at this address now, by what [`auth`](ClientBuilder::auth) says and
    /// whether that is needed or not; what is granted is kept in its store. Dropping the future does
    /// not end a login that has begun.
    pub async fn log_in(mut self, url: impl AsRef<str>) -> Result<()> {
        let (address, stack, layer) = self.layer_at(url.as_ref())?;
        let challenge = challenge(&address, &stack).await?;
        layer.log_in_for(challenge).await.map_err(Error::authorization)
    }

    /// Forgets what was granted for the server at this address, and asks its authorization server to
    /// take it back where that is possible. Dropping the future leaves open how much of it happened.
    pub async fn log_out(mut self, url: impl AsRef<str>) -> Result<LoggedOut> {
        let (_, _, layer) = self.layer_at(url.as_ref())?;
        layer.log_out().await.map_err(Error::authorization)
    }

    /// The layer for an address, and what it would be put around.
    fn layer_at(&mut self, url: &str) -> Result<(Uri, HttpSender, AuthLayer)> {
        let address = self.address(url)?;
        let (stack, via) = self.bare_stack(&address)?;
        match self.auth_layer(&address, &stack, &via)? {
            Some(layer) => Ok((address, stack, layer)),
            None => Err(Error::refused("who logs in is said with `ClientBuilder::auth`")),
        }
    }

    /// Puts the layer around what sends requests to `address`, if there is to be one.
    pub(super) fn authorized(
        &mut self,
        address: &Uri,
        stack: HttpSender,
        via: &Via,
    ) -> Result<HttpSender> {
        let answering = self.answering.clone();
        Ok(match self.auth_layer(address, &stack, via)? {
            Some(layer) => HttpSender::Own(Arc::new(Authorized::new(layer, stack, answering))),
            None => stack,
        })
    }

    fn auth_layer(
        &mut self,
        address: &Uri,
        stack: &HttpSender,
        via: &Via,
    ) -> Result<Option<AuthLayer>> {
        let Some(auth) = self.http.auth.take() else { return Ok(None) };
        let cache = self.cache.clone();
        // Answers that one person got are not for the next.
        let auth = auth.on_change(move || cache.invalidate_all());
        let (url, fetch) = (address.to_string(), Arc::new(Fetcher::new(address, stack, via)));
        let layer = match self.http.socket() {
            Some(path) => AuthLayer::over_socket(auth, &url, &path, fetch),
            None => AuthLayer::new(auth, &url, fetch),
        };
        self.http.layer = Some(layer.map_err(Error::authorization)?);
        Ok(self.http.layer.clone())
    }

    /// Waits until what is being renewed is kept: who ends the process then loses nothing.
    pub(super) async fn settle(&self, limit: Duration) {
        if let Some(layer) = &self.http.layer {
            // Who is in a hurry has said so by the limit.
            let _ = layer.settle(limit).await;
        }
    }
}

/// What the server asks of someone who shows nothing.
async fn challenge(address: &Uri, stack: &HttpSender) -> Result<Option<Challenge>> {
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut request = Request::new(PostBody::new(Bytes::from_static(ping)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address.clone();
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, both);
    let place = place(address);
    match tokio::time::timeout(ASKING, stack.send(request)).await {
        Ok(Ok(response)) => Ok(Challenge::read(response.headers())),
        Ok(Err(failure)) => Err(failure.into_error(&place)),
        Err(_) => {
            let message = format!("{place} did not answer within {ASKING:?}");
            Err(Error::new(ErrorKind::Timeout, message))
        }
    }
}

/// What sends requests, with the layer around it.
struct Authorized {
    layer: AuthLayer,
    service: AuthService<Under>,
    answering: Arc<Answering>,
}

impl Authorized {
    fn new(layer: AuthLayer, stack: HttpSender, answering: Arc<Answering>) -> Authorized {
        let service = layer.layer(Under(Arc::new(stack)));
        Authorized { layer, service, answering }
    }

    fn under(&self) -> &HttpSender {
        &self.service.inner().0
    }
}

impl UserService for Authorized {
    fn send(
        &self,
        mut request: Request<PostBody>,
    ) -> BoxFuture<'static, Result<Response<Body>, ConnectError>> {
        let sent = SendState::default();
        request.extensions_mut().insert(sent.clone());
        if request.method() == Method::DELETE {
            // Nobody logs in to say goodbye.
            request.extensions_mut().insert(Unattended);
        }
        let asking = self.service.clone().call(request);
        let asking =
            AuthorizedSend { asking, sent, answering: self.answering.clone(), pause: None };
        Box::pin(async move { asking.await.map_err(told) })
    }

    fn apart(&self) -> Option<Arc<dyn UserService>> {
        let stack = self.under().apart();
        Some(Arc::new(Authorized::new(self.layer.clone(), stack, self.answering.clone())))
    }
}

/// As a caller is told.
fn told(error: ConnectError) -> ConnectError {
    match error.downcast::<AuthError>() {
        Ok(error) => Error::authorization(*error).into(),
        Err(error) => error,
    }
}

/// Whether a request is with the server, as opposed to waiting to be authorized.
#[derive(Clone, Default)]
struct SendState(Arc<AtomicBool>);

/// A request that is authorized and sent. The time that the former takes is not the server's.
struct AuthorizedSend {
    asking: turnbuckle_auth::BoxFuture<'static, Result<Response<Body>, ConnectError>>,
    sent: SendState,
    answering: Arc<Answering>,
    pause: Option<Pause>,
}

impl Future for AuthorizedSend {
    type Output = Result<Response<Body>, ConnectError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.asking.as_mut().poll(context);
        let waits = polled.is_pending() && !self.sent.0.load(Ordering::Relaxed);
        if !waits {
            self.pause = None;
        } else if self.pause.is_none() {
            self.pause = Some(self.answering.pause());
        }
        polled
    }
}

/// What sends requests, as the layer needs it.
#[derive(Clone)]
struct Under(Arc<HttpSender>);

impl Service<Request<PostBody>> for Under {
    type Response = Response<Body>;
    type Error = SendFailure;
    type Future = BoxFuture<'static, Result<Response<Body>, SendFailure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<PostBody>) -> Self::Future {
        let sent = request.extensions_mut().remove::<SendState>().unwrap_or_default();
        request.extensions_mut().remove::<Unattended>();
        let body = request.body().clone();
        let sending = self.0.send(request);
        Box::pin(async move {
            let given_up = || {
                let message = "it was given up before the server let it in";
                SendFailure::of(Closed::new(message).error(Executed::No))
            };
            // While it was authorized.
            if body.is_unwanted() {
                return Err(given_up());
            }
            sent.0.store(true, Ordering::Relaxed);
            let answered = sending.await;
            sent.0.store(false, Ordering::Relaxed);
            let response = answered?;
            let refused =
                matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            // It was not run, and may be sent again. Nobody logs in for a call that was given up.
            if refused && !body.anew() {
                return Err(given_up());
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        sync::oneshot,
        task::{JoinHandle, yield_now},
        time::{advance, timeout},
    };

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What a request waits for.
    struct Gates {
        authorized: oneshot::Sender<()>,
        answered: oneshot::Sender<()>,
    }

    /// A request that waits to be authorized, then for the server.
    fn asking() -> (Arc<Answering>, AuthorizedSend, Gates) {
        let (sent, clock) = (SendState::default(), Arc::<Answering>::default());
        let (authorized, is_authorized) = oneshot::channel();
        let (answered, is_answered) = oneshot::channel();
        let at = sent.clone();
        let asking = Box::pin(async move {
            let _ = is_authorized.await;
            at.0.store(true, Ordering::Relaxed);
            let _ = is_answered.await;
            Err("answered".into())
        });
        let asking = AuthorizedSend { asking, sent, answering: clock.clone(), pause: None };
        (clock, asking, Gates { authorized, answered })
    }

    /// Whether a request is answered within ten seconds that is authorized after so many seconds.
    async fn authorized_after(seconds: u32) -> (JoinHandle<bool>, oneshot::Sender<()>) {
        let (clock, asking, Gates { authorized, answered }) = asking();
        let running = tokio::spawn(async move { clock.within(SECOND * 10, asking).await.is_ok() });
        yield_now().await;
        advance(SECOND * seconds).await;
        authorized.send(()).unwrap();
        yield_now().await;
        (running, answered)
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_time_of_the_server_counts() {
        let (patient, answered) = authorized_after(300).await;
        advance(SECOND * 9).await;
        answered.send(()).unwrap();
        assert!(patient.await.unwrap());
        for seconds in [0, 300] {
            let (late, _never) = authorized_after(seconds).await;
            assert!(!timeout(SECOND * 11, late).await.unwrap().unwrap(), "{seconds}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_leaves_lets_the_clocks_run() {
        let (clock, given_up, _gates) = asking();
        assert!(timeout(SECOND, given_up).await.is_err());
        let silent = clock.within(SECOND * 10, std::future::pending::<()>());
        assert!(timeout(SECOND * 11, silent).await.unwrap().is_err());
    }
}
