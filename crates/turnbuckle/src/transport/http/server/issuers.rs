//! Owns how a protected server asks the issuers that it trusts: over connections of its own, verified
//! by the system's certificates and those that it was given, through the proxy that the environment
//! names. Does not own what is asked, nor the trust in an answer.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body as _;
use hyper_util::{
    client::{legacy::Client, proxy::matcher::Matcher},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;
use turnbuckle_auth::{Addresses, AuthError, AuthErrorKind, BoxFuture, Fetch, Rules};

use super::{
    super::dial::{Connector, Dialing, Tls, Via},
    HttpBody,
};

/// How long making one connection may take: whoever waits for an answer waits no longer than that.
const DIALLING: Duration = Duration::from_secs(10);

/// Asks issuers. Its connections are made when they are needed.
pub(crate) struct Issuers {
    /// Certificates in PEM that are trusted besides the system's.
    roots: Vec<Vec<u8>>,
    client: OnceLock<Result<Pool, AuthError>>,
}

type Pool = Client<Connector, HttpBody>;

impl Issuers {
    pub(crate) fn new(roots: Vec<Vec<u8>>) -> Issuers {
        Issuers { roots, client: OnceLock::new() }
    }
}

impl Fetch for Issuers {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        Box::pin(async move {
            // Whoever runs the server has chosen its issuers: no address has been chosen by others.
            if rules.addresses == Addresses::Public {
                let text = "only issuers of one's own choice can be asked like this";
                return Err(AuthError::new(AuthErrorKind::Forbidden, text));
            }
            let pool = self.client.get_or_init(|| pool(&self.roots)).as_ref();
            let pool = pool.map_err(AuthError::clone)?;
            let answer = timeout(rules.timeout, ask(pool, request, rules.limit)).await;
            answer.unwrap_or_else(|_| Err(unreachable("the issuer took too long")))
        })
    }
}

async fn ask(
    pool: &Pool,
    request: Request<Bytes>,
    limit: usize,
) -> Result<Response<Bytes>, AuthError> {
    let request = request.map(|body| HttpBody::pieces([body, Bytes::new(), Bytes::new()]));
    let response = pool.request(request).await.map_err(|error| {
        tracing::debug!(%error, "an issuer can't be reached");
        unreachable("the issuer can't be reached")
    })?;
    let (head, mut body) = response.into_parts();
    let mut whole = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| unreachable("the issuer's answer broke off"))?;
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > limit {
            return Err(unreachable("the issuer's answer is too long"));
        }
        whole.extend_from_slice(&data);
    }
    Ok(Response::from_parts(head, whole.freeze()))
}

fn pool(roots: &[Vec<u8>]) -> Result<Pool, AuthError> {
    let connector = Connector::new(Dialing {
        via: Via::Tunnel(Arc::new(Matcher::from_env())),
        roots: roots.to_vec(),
        tls: Tls::Possible,
        timeout: DIALLING,
    });
    let connector =
        connector.map_err(|error| AuthError::new(AuthErrorKind::Settings, error.to_string()))?;
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .build(connector))
}

fn unreachable(text: &'static str) -> AuthError {
    AuthError::new(AuthErrorKind::Unreachable, text)
}
