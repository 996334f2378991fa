//! Owns how a protected server asks the issuers that it trusts: over connections of its own, verified
//! by the system's certificates and those that it was given, through the proxy that the environment
//! names. Does not own what is asked, nor the trust in an answer.

use crate::{
    error::find,
    transport::http::{
        connect::{Allows, Connector, Dialing, NotAllowed, Tls, Via},
        server::HttpBody,
    },
};
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body as _;
use hyper_util::{
    client::{legacy::Client, proxy::matcher::Matcher},
    rt::{TokioExecutor, TokioTimer},
};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::timeout;
use turnbuckle_auth::{Addresses, AuthError, AuthErrorKind, BoxFuture, Fetch, Rules, may_dial};

/// How long making one connection may take: whoever waits for an answer waits no longer than that.
const DIALLING: Duration = Duration::from_secs(10);

/// Asks issuers. Its connections are made when they are needed.
pub(crate) struct Issuers {
    /// Certificates in PEM that are trusted besides the system's.
    roots: Vec<Vec<u8>>,
    pools: OnceLock<Result<Pools, AuthError>>,
}

/// What was chosen by whoever runs the server may be in a private network, what others point to not.
struct Pools {
    anywhere: Pool,
    public: Pool,
}

type Pool = Client<Connector, HttpBody>;

impl Issuers {
    pub(crate) fn new(roots: Vec<Vec<u8>>) -> Issuers {
        Issuers { roots, pools: OnceLock::new() }
    }
}

impl Fetch for Issuers {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        Box::pin(async move {
            let pools = self.pools.get_or_init(|| pools(&self.roots)).as_ref();
            let pools = pools.map_err(AuthError::clone)?;
            let pool = match rules.addresses {
                Addresses::Public => &pools.public,
                Addresses::AlsoPrivate => &pools.anywhere,
            };
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
        match find::<NotAllowed>(&error) {
            Some(refused) => {
                AuthError::new(AuthErrorKind::Forbidden, format!("the issuer: {refused}"))
            }
            None => unreachable("the issuer can't be reached"),
        }
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

fn pools(roots: &[Vec<u8>]) -> Result<Pools, AuthError> {
    let via = Via::Tunnel(Arc::new(Matcher::from_env()));
    let connector = Connector::new(Dialing {
        via: via.clone(),
        roots: roots.to_vec(),
        tls: Tls::Possible,
        timeout: DIALLING,
    });
    let connector =
        connector.map_err(|error| AuthError::new(AuthErrorKind::Settings, error.to_string()))?;
    let pool = |allows: Allows| {
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .build(connector.guarded(via.clone(), allows))
    };
    Ok(Pools {
        anywhere: pool(|ip| may_dial(ip, Addresses::AlsoPrivate)),
        public: pool(|ip| may_dial(ip, Addresses::Public)),
    })
}

fn unreachable(text: &'static str) -> AuthError {
    AuthError::new(AuthErrorKind::Unreachable, text)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    async fn ask(address: &str, addresses: Addresses) -> Result<u16, AuthError> {
        let request = Request::get(address).body(Bytes::new()).unwrap();
        let rules = Rules { addresses, ..Rules::default() };
        let asked = Issuers::new(Vec::new()).fetch(request, &rules).await;
        asked.map(|response| response.status().as_u16())
    }

    /// What a name stands for is known only here, after every check of its text.
    #[tokio::test]
    async fn a_name_leads_no_further_than_the_rules_do() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["localhost", "127.0.0.1"] {
            let address = format!("http://{host}:{port}/token");
            let error = ask(&address, Addresses::Public).await.unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{host}: {error}");
        }
        // Not even for those who choose for themselves.
        let error = ask("http://169.254.169.254/", Addresses::AlsoPrivate).await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{error}");
        // The first that came is the first that was allowed to.
        let address = format!("http://localhost:{port}/token");
        let answer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 204 No\r\n\r\n").await.unwrap();
        };
        let (status, ()) = tokio::join!(ask(&address, Addresses::AlsoPrivate), answer);
        assert_eq!(status.unwrap(), 204);
    }
}
