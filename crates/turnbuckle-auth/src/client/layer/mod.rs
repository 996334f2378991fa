//! Owns what happens around each request to a protected server: the token goes on, a refusal is
//! dealt with, the request is sent again. Does not own any of the decisions: `attempts` and
//! `session` have them.

use std::{
    error::Error as StdError,
    fmt,
    future::poll_fn,
    mem,
    path::Path,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Request, Response, header};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    attempts::{Attempts, Recovery, Verdict},
    auth::Auth,
    session::{LoggedOut, Need, Session},
};
use crate::{AuthError, BoxFuture, Challenge, Fetch, Secret};

/// What a service around another fails with: an [`AuthError`], or the other's own error.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Authorizes requests to one server, as a layer around whatever sends them.
///
/// A request gets the token that was granted; if there is none, or the server refuses it, one is
/// got (silently if possible, else by a login) and the request sent again. Requests to other
/// origins, and those that bring an `Authorization` of their own, pass untouched. Clones share the
/// grant.
///
/// ```
/// use std::sync::Arc;
/// use turnbuckle_auth::{Auth, AuthLayer};
/// # fn layer(fetch: impl turnbuckle_auth::Fetch + 'static) -> Result<(), turnbuckle_auth::AuthError> {
/// let layer = AuthLayer::new(Auth::browser(), "https://mcp.example.com/mcp", Arc::new(fetch))?;
/// # let _ = layer; Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct AuthLayer {
    session: Arc<Session>,
}

impl AuthLayer {
    /// For the server at `server_url`. `fetch` asks authorization servers.
    pub fn new(
        auth: Auth,
        server_url: &str,
        fetch: Arc<dyn Fetch>,
    ) -> Result<AuthLayer, AuthError> {
        Ok(AuthLayer { session: Arc::new(Session::new(auth, server_url, None, fetch)?) })
    }

    /// For the server at `server_url` that is reached through this Unix socket. What is granted is for
    /// that server alone: another socket, or none, is another server, whatever its address is.
    pub fn over_socket(
        auth: Auth,
        server_url: &str,
        socket: &Path,
        fetch: Arc<dyn Fetch>,
    ) -> Result<AuthLayer, AuthError> {
        Ok(AuthLayer { session: Arc::new(Session::new(auth, server_url, Some(socket), fetch)?) })
    }

    /// Logs in now, whether that is needed or not. Dropping the future does not end a login that
    /// has begun.
    pub async fn log_in(&self) -> Result<(), AuthError> {
        self.log_in_for(None).await
    }

    /// The same for what the server asked for, if that is known. Dropping the future does not end a
    /// login that has begun.
    pub async fn log_in_for(&self, challenge: Option<Challenge>) -> Result<(), AuthError> {
        let used = self.session.shown().await?;
        // Whoever says so wants it, whatever came of the last one.
        self.session.let_in();
        self.session.better(Need { how: Recovery::Anew, used, challenge }).await.map(|_| ())
    }

    /// Forgets what was granted, and asks the authorization server to take it back where it does
    /// that. Who the client is there stays known. A renewal that has begun is waited for, for a few
    /// seconds. Dropping the future leaves open how much of it happened.
    pub async fn log_out(&self) -> Result<LoggedOut, AuthError> {
        self.session.log_out().await
    }

    /// Waits, for at most `limit`, until nothing is asked for any more for this server, and says
    /// whether that is so: what [`Auth::settle`] does for all servers. Dropping the future ends the
    /// wait and nothing else.
    pub async fn settle(&self, limit: Duration) -> bool {
        self.session.flights.settled(limit).await
    }
}

/// Marks a request (in its extensions) for which nobody is asked to log in: it is sent with what
/// there is, and a refusal is passed on.
///
/// ```
/// use turnbuckle_auth::Unattended;
/// let mut request = http::Request::delete("https://mcp.example.com/mcp").body(()).unwrap();
/// request.extensions_mut().insert(Unattended);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Unattended;

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { inner, session: self.session.clone() }
    }
}

/// A service whose requests are authorized; [`AuthLayer`] makes it.
///
/// Dropping a response's future drops the request. It ends no login or renewal that others wait
/// for too.
#[derive(Clone)]
pub struct AuthService<S> {
    inner: S,
    session: Arc<Session>,
}

impl<S> AuthService<S> {
    /// What it is around.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S, B, R> Service<Request<B>> for AuthService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Clone + Send + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<R>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that was made ready is the one that is called.
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        Box::pin(authorized(inner, self.session.clone(), request))
    }
}

impl<S> fmt::Debug for AuthService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthService").field("session", &self.session).finish_non_exhaustive()
    }
}

async fn authorized<S, B, R>(
    mut inner: S,
    session: Arc<Session>,
    request: Request<B>,
) -> Result<Response<R>, BoxError>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    B: Clone,
{
    let address = request.uri().to_string();
    if !session.is_for(&address) || request.headers().contains_key(header::AUTHORIZATION) {
        return inner.call(request).await.map_err(Into::into);
    }
    let unattended = request.extensions().get::<Unattended>().is_some();
    let mut attempts = Attempts::default();
    // Set while the service that was made ready has not been called yet.
    let mut ready = true;
    loop {
        let held = session.current().await?;
        let mut attempt = request.clone();
        if let Some(held) = &held {
            let method = attempt.method().clone();
            session.show(held, &method, &address, attempt.headers_mut())?;
        }
        if !mem::take(&mut ready) {
            poll_fn(|context| inner.poll_ready(context)).await.map_err(Into::into)?;
        }
        let mut response = inner.call(attempt).await.map_err(Into::into)?;
        session.hear(response.headers());
        if let Some(held) = &held {
            hide(&held.tokens.access, response.headers_mut());
        }
        let scheme = held.as_ref().map(|held| held.tokens.scheme);
        let (how, challenge) = match attempts.judge(response.status(), response.headers(), scheme) {
            Verdict::PassOn => {
                if held.is_some() && response.status().is_success() {
                    session.let_in();
                }
                return Ok(response);
            }
            Verdict::Again => continue,
            Verdict::Fail(error) => return Err(error.into()),
            Verdict::Better(..) if unattended => return Ok(response),
            Verdict::Better(how, challenge) => (how, challenge),
        };
        // Its connection is not needed while someone logs in.
        drop(response);
        let used = held.map(|held| held.tokens.access.clone());
        let (_, by) = session.better(Need { how, used, challenge }).await?;
        attempts.got(how, by);
    }
}

/// Some servers repeat the token that they refuse, and what they say ends up in errors.
fn hide(token: &Secret, headers: &mut HeaderMap) {
    for (name, value) in headers.iter_mut() {
        if *name == header::WWW_AUTHENTICATE
            && let text = value.as_bytes().iter().map(|byte| char::from(*byte)).collect::<String>()
            && text.contains(token.expose())
        {
            let rest: Vec<u8> =
                text.replace(token.expose(), "-").chars().map(|it| it as u8).collect();
            // What is left of a header without a part of it is fit for one.
            *value = HeaderValue::from_bytes(&rest).unwrap_or(HeaderValue::from_static(""));
        }
    }
}

#[cfg(test)]
mod tests;
