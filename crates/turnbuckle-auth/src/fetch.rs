//! Owns how this crate asks other servers: one trait, and the rules of one request. Does not own
//! connections, nor which address may be asked: `guard` knows that.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;

use crate::AuthError;

/// A future whose type is forgotten.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whoever can send a request over HTTP.
///
/// ```
/// use bytes::Bytes;
/// use turnbuckle_auth::{AuthError, AuthErrorKind, BoxFuture, Fetch, Rules};
///
/// struct Nowhere;
/// impl Fetch for Nowhere {
///     fn fetch<'a>(
///         &'a self,
///         _: http::Request<Bytes>,
///         _: &'a Rules,
///     ) -> BoxFuture<'a, Result<http::Response<Bytes>, AuthError>> {
///         Box::pin(async { Err(AuthError::new(AuthErrorKind::Unreachable, "there is no network")) })
///     }
/// }
/// ```
pub trait Fetch: Send + Sync {
    /// One request, no redirect followed, at most [`Rules::limit`] bytes of body, dialled only at
    /// addresses that [`Rules::addresses`] allows. Dropping the future gives the request up.
    fn fetch<'a>(
        &'a self,
        request: http::Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<http::Response<Bytes>, AuthError>>;
}

/// What holds for one request.
///
/// ```
/// use turnbuckle_auth::{Addresses, Rules};
/// let rules = Rules { limit: 64 << 10, ..Rules::default() };
/// assert_eq!(rules.addresses, Addresses::Public);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The most bytes of a response's body. A longer one is an error.
    pub limit: usize,
    /// How long the response may take, its body included.
    pub timeout: Duration,
    /// Where connections may go.
    pub addresses: Addresses,
}

impl Default for Rules {
    /// A mebibyte, thirty seconds, public addresses.
    fn default() -> Rules {
        Rules { limit: 1 << 20, timeout: Duration::from_secs(30), addresses: Addresses::Public }
    }
}

/// Where connections may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// Only to addresses that the whole Internet can reach.
    #[default]
    Public,
    /// Also to this machine and to private networks.
    AlsoPrivate,
}
