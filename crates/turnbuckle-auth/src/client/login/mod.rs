//! Owns how a person is brought to an authorization server and what comes back. Does not own what
//! is asked for there, nor whether the answer is good: the flow knows both.

mod browser;
mod handler;
mod loopback;

use crate::{AuthError, AuthErrorKind, BoxFuture, LoginRequest};

pub use browser::open_in_browser;
pub use handler::HandledLogin;
pub use loopback::LoopbackLogin;

/// A way for a person to log in.
///
/// [`LoopbackLogin`] opens a browser and listens on this machine; [`HandledLogin`] leaves it to a
/// function of the host's.
pub trait Login: Send + Sync {
    /// Gets ready for an answer: where it is to be sent must be known before anything is asked.
    /// `preferred` is where an earlier one was sent, which the authorization server may insist on.
    /// Dropping the future leaves nothing behind.
    fn redirect_uri(
        &self,
        preferred: Option<&str>,
    ) -> BoxFuture<'_, Result<Box<dyn Waiting>, AuthError>>;
}

/// Ready for an answer.
pub trait Waiting: Send {
    /// Where the answer is to be sent.
    fn redirect_uri(&self) -> &str;

    /// Brings a person to `request.url`, and waits for where they are sent afterwards: the whole
    /// address, or its query. Dropping the future gives the login up.
    fn log_in(
        self: Box<Self>,
        request: LoginRequest,
    ) -> BoxFuture<'static, Result<String, AuthError>>;
}

fn not_logged_in(message: impl Into<String>) -> AuthError {
    AuthError::new(AuthErrorKind::NotLoggedIn, message)
}
