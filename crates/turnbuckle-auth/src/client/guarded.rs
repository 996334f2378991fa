//! Owns what stands between a flow and the network: every address is checked, redirects are
//! followed only within an origin. Does not own connections.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, Uri, header};
use url::Url;

use crate::{
    Addresses, AuthError, AuthErrorKind, BoxFuture, Fetch, Rules,
    guard::{Origin, may_ask, parse, place},
};

/// The most redirects one request follows.
const MOST: usize = 3;

/// A [`Fetch`] that asks only what the server at `origin` may make a client ask.
///
/// Where connections may go is told from that origin, not from the rules of a request.
/// GET follows at most three redirects, none of which leaves the origin: what a document says is
/// believed because of where it lies. Nothing else is ever redirected: a code or a token would be
/// sent on to whoever the redirect names.
///
/// ```
/// use turnbuckle_auth::{Guarded, Origin};
/// # fn guarded(fetch: impl turnbuckle_auth::Fetch) -> Result<(), turnbuckle_auth::AuthError> {
/// let guarded = Guarded::new(fetch, Origin::of("https://mcp.example.com/mcp")?);
/// # let _ = guarded; Ok(()) }
/// ```
#[derive(Clone)]
pub struct Guarded<F> {
    inner: F,
    origin: Origin,
}

impl<F: Fetch> Guarded<F> {
    /// Around `inner`, for what the server at `origin` says.
    pub fn new(inner: F, origin: Origin) -> Guarded<F> {
        Guarded { inner, origin }
    }

    /// Whether this address may be asked.
    pub(crate) fn check(&self, url: &str) -> Result<(), AuthError> {
        may_ask(url, &self.origin)
    }

    /// The server itself may be anywhere: the user chose it. What it points to may not.
    fn rules_for(&self, request: &Request<Bytes>, rules: &Rules) -> Result<Rules, AuthError> {
        let url = request.uri().to_string();
        self.check(&url)?;
        let own = Origin::of(&url)?.as_str() == self.origin.as_str();
        let addresses = if own { Addresses::AlsoPrivate } else { self.origin.addresses() };
        Ok(Rules { addresses, ..rules.clone() })
    }

    async fn follow(
        &self,
        mut request: Request<Bytes>,
        rules: &Rules,
    ) -> Result<Response<Bytes>, AuthError> {
        let mut hops = 0;
        loop {
            let rules = &self.rules_for(&request, rules)?;
            let next = (request.method() == Method::GET).then(|| request.clone());
            let from = request.uri().clone();
            let response = self.inner.fetch(request, rules).await?;
            if response.body().len() > rules.limit {
                return Err(unreachable(&from, "sent more than is read"));
            }
            let Some(location) = redirected(&response) else { return Ok(response) };
            let Some(mut next) = next else {
                return Err(refused(&from, "redirected a request that is never redirected"));
            };
            if hops == MOST {
                return Err(refused(&from, "redirected once too often"));
            }
            hops += 1;
            *next.uri_mut() = hop(&from, location)?;
            request = next;
        }
    }
}

impl<F: Fetch> Fetch for Guarded<F> {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        Box::pin(async move {
            let uri = request.uri().clone();
            let followed = tokio::time::timeout(rules.timeout, self.follow(request, rules));
            followed.await.unwrap_or_else(|_| Err(unreachable(&uri, "took too long to answer")))
        })
    }
}

impl<F: Fetch + ?Sized> Fetch for Arc<F> {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        (**self).fetch(request, rules)
    }
}

impl<F> std::fmt::Debug for Guarded<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guarded").field("origin", &self.origin).finish_non_exhaustive()
    }
}

fn redirected(response: &Response<Bytes>) -> Option<Option<&str>> {
    matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308)
        .then(|| response.headers().get(header::LOCATION)?.to_str().ok())
}

/// Where `location` leads from `from`.
fn hop(from: &Uri, location: Option<&str>) -> Result<Uri, AuthError> {
    let base = parse(&from.to_string())?;
    let nowhere = || refused(from, "redirected to no address");
    let mut to: Url = location.and_then(|to| base.join(to).ok()).ok_or_else(nowhere)?;
    to.set_fragment(None);
    if base.origin() != to.origin() {
        return Err(refused(from, "redirected to another origin"));
    }
    to.as_str().parse().map_err(|_| nowhere())
}

fn refused(uri: &Uri, what: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Forbidden, format!("{} {what}", readable(uri)))
}

fn unreachable(uri: &Uri, what: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Unreachable, format!("{} {what}", readable(uri)))
}

fn readable(uri: &Uri) -> String {
    parse(&uri.to_string()).map_or_else(|_| "a server".to_owned(), |url| place(&url))
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Mutex, time::Duration};

    use super::*;

    /// Answers from a table of redirects; everything else with 200.
    #[derive(Default)]
    struct Net {
        redirects: HashMap<&'static str, (u16, &'static str)>,
        seen: Mutex<Vec<(String, Addresses)>>,
        body: Bytes,
        silent: bool,
    }

    impl Fetch for Net {
        fn fetch<'a>(
            &'a self,
            request: Request<Bytes>,
            rules: &'a Rules,
        ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
            let url = request.uri().to_string();
            self.seen.lock().unwrap().push((url.clone(), rules.addresses));
            Box::pin(async move {
                if self.silent {
                    std::future::pending::<()>().await;
                }
                let mut response = Response::builder();
                if let Some((status, to)) = self.redirects.get(url.as_str()) {
                    response = response.status(*status).header("location", *to);
                }
                Ok(response.body(self.body.clone()).unwrap())
            })
        }
    }

    fn net(redirects: &[(&'static str, u16, &'static str)]) -> Arc<Net> {
        let redirects = redirects.iter().map(|(from, status, to)| (*from, (*status, *to)));
        Arc::new(Net { redirects: redirects.collect(), ..Net::default() })
    }

    async fn ask(net: &Arc<Net>, method: Method, url: &str) -> Result<u16, AuthError> {
        let guarded = Guarded::new(net.clone(), Origin::of("https://mcp.example.com/mcp")?);
        let request = Request::builder().method(method).uri(url).body(Bytes::new()).unwrap();
        let rules = Rules { limit: 10, addresses: Addresses::AlsoPrivate, ..Rules::default() };
        guarded.fetch(request, &rules).await.map(|response| response.status().as_u16())
    }

    #[tokio::test]
    async fn redirects_are_followed_within_an_origin() {
        let net = net(&[
            ("https://a.example/1", 302, "/2"),
            ("https://a.example/2", 308, "https://a.example:443/3#part"),
            ("https://a.example/3", 301, "https://b.example/4"),
        ]);
        assert_eq!(ask(&net, Method::GET, "https://a.example/4").await, Ok(200));
        assert_eq!(ask(&net, Method::GET, "https://b.example/4").await, Ok(200));
        let error = ask(&net, Method::GET, "https://a.example/1").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Forbidden);
        assert!(error.to_string().contains("redirected to another origin"), "{error}");
        let seen = net.seen.lock().unwrap();
        let urls: Vec<_> = seen.iter().map(|(url, _)| url.as_str()).skip(2).collect();
        let wanted = ["https://a.example/1", "https://a.example/2", "https://a.example/3"];
        assert_eq!(urls, wanted);
    }

    #[tokio::test]
    async fn redirects_end() {
        let net = net(&[("https://a.example/1", 307, "https://a.example/1")]);
        let error = ask(&net, Method::GET, "https://a.example/1").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Forbidden);
        assert_eq!(net.seen.lock().unwrap().len(), 4);
    }

    #[tokio::test]
    async fn only_get_is_redirected() {
        for status in [301, 302, 303, 307, 308] {
            let net = net(&[("https://a.example/token", status, "/elsewhere")]);
            let error = ask(&net, Method::POST, "https://a.example/token").await.unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Forbidden);
            assert_eq!(net.seen.lock().unwrap().len(), 1);
        }
    }

    #[tokio::test]
    async fn no_hop_leads_elsewhere() {
        for to in [
            "https://b.example/",
            "https://sub.a.example/",
            "https://a.example:8443/",
            "https://10.0.0.1/",
            "https://localhost/",
            "http://a.example/",
            "http://127.0.0.1/",
            "https://169.254.169.254/latest",
            "https://user:pass@a.example/",
            "file:///etc/passwd",
            "https://",
        ] {
            let net = net(&[("https://a.example/?hush", 302, to)]);
            let error = ask(&net, Method::GET, "https://a.example/?hush").await.unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{to}");
            assert!(!error.to_string().contains("hush"), "{error}");
            assert_eq!(net.seen.lock().unwrap().len(), 1, "{to}");
        }
        let none = net(&[]);
        assert!(ask(&none, Method::GET, "http://a.example/").await.is_err());
        assert_eq!(none.seen.lock().unwrap().len(), 0);
    }

    #[tokio::test]
    async fn a_public_server_leads_to_public_addresses_whatever_the_caller_allows() {
        // The name of the server itself may stand for a private address.
        let net = net(&[]);
        for url in ["https://mcp.example.com/1", "https://a.example/2"] {
            ask(&net, Method::GET, url).await.unwrap();
        }
        let seen: Vec<_> = net.seen.lock().unwrap().iter().map(|seen| seen.1).collect();
        assert_eq!(seen, [Addresses::AlsoPrivate, Addresses::Public]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_long_or_too_slow_is_given_up() {
        let long = Arc::new(Net { body: Bytes::from_static(b"eleven byte"), ..Net::default() });
        let error = ask(&long, Method::GET, "https://a.example/").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unreachable);

        let silent = Arc::new(Net { silent: true, ..Net::default() });
        let begun = tokio::time::Instant::now();
        let error = ask(&silent, Method::GET, "https://a.example/").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unreachable);
        assert_eq!(begun.elapsed(), Duration::from_secs(30));
    }
}
