//! Logins that the host handles itself.

use std::{fmt, sync::Arc};

use super::{Login, Waiting};
use crate::{AuthError, BoxFuture, LoginRequest};

type Handler = dyn Fn(LoginRequest) -> BoxFuture<'static, Result<String, AuthError>> + Send + Sync;

/// A login that a function of the host's handles: it is given the address to bring a person to, and
/// returns the address that the person was sent to afterwards, or its query.
///
/// ```
/// use turnbuckle_auth::HandledLogin;
/// let login = HandledLogin::new("https://app.example.com/callback", |request| async move {
///     // Show `request.url` to the user, wait for the callback, return its address.
///     Ok(format!("{}?code=…&state=…", request.redirect_uri))
/// });
/// ```
#[derive(Clone)]
pub struct HandledLogin {
    redirect_uri: String,
    handler: Arc<Handler>,
}

impl HandledLogin {
    /// Answers are sent to `redirect_uri`, which the host sees to. Dropping the future that
    /// `handler` returns gives the login up.
    pub fn new<H, F>(redirect_uri: impl Into<String>, handler: H) -> HandledLogin
    where
        H: Fn(LoginRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Result<String, AuthError>> + Send + 'static,
    {
        let handler = move |request| Box::pin(handler(request)) as BoxFuture<'static, _>;
        HandledLogin { redirect_uri: redirect_uri.into(), handler: Arc::new(handler) }
    }
}

impl Login for HandledLogin {
    fn redirect_uri(
        &self,
        _preferred: Option<&str>,
    ) -> BoxFuture<'_, Result<Box<dyn Waiting>, AuthError>> {
        let waiting: Box<dyn Waiting> = Box::new(self.clone());
        Box::pin(async move { Ok(waiting) })
    }
}

impl Waiting for HandledLogin {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn log_in(
        self: Box<Self>,
        request: LoginRequest,
    ) -> BoxFuture<'static, Result<String, AuthError>> {
        (self.handler)(request)
    }
}

impl fmt::Debug for HandledLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandledLogin")
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}
