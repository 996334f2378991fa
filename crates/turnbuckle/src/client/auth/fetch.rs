//! Owns how authorization servers are asked: over connections of the same kind as the server's, and
//! only at addresses that may be dialled. Does not own which address may be asked, nor redirects:
//! `turnbuckle_auth` guards them.

use std::{error::Error as _, future::poll_fn};

use bytes::{Bytes, BytesMut};
use http::{Request, Response, Uri};
use turnbuckle_auth::{Addresses, AuthError, AuthErrorKind, BoxFuture, Fetch, Rules, may_dial};

use crate::{
    error::find,
    transport::http::client::{HttpSender, NotAllowed, PostBody, Via, origin, place},
};

/// Asks authorization servers, and the server itself for what it says of them.
pub(super) struct Fetcher {
    server: (String, String, u16),
    own: HttpSender,
    /// `None` where connections are the business of a service.
    others: Option<OtherHosts>,
}

struct OtherHosts {
    public: HttpSender,
    anywhere: HttpSender,
}

impl Fetcher {
    /// For the server at `address`, which `stack` reaches. Others are reached by `via`.
    pub(super) fn new(address: &Uri, stack: &HttpSender, via: &Via) -> Fetcher {
        // What is asked for has secrets in it.
        let via = via.encrypted();
        let public = stack.guarded(via.clone(), |ip| may_dial(ip, Addresses::Public));
        let anywhere = stack.guarded(via, |ip| may_dial(ip, Addresses::AlsoPrivate));
        let others = public.zip(anywhere).map(|(public, anywhere)| OtherHosts { public, anywhere });
        Fetcher { server: origin(address), own: stack.shared(), others }
    }

    /// The server is where the user said, whatever the rules for others.
    fn stack(&self, address: &Uri, rules: &Rules) -> &HttpSender {
        match &self.others {
            Some(others) if origin(address) != self.server => match rules.addresses {
                Addresses::Public => &others.public,
                Addresses::AlsoPrivate => &others.anywhere,
            },
            _ => &self.own,
        }
    }

    async fn ask(
        &self,
        request: Request<Bytes>,
        rules: &Rules,
    ) -> Result<Response<Bytes>, AuthError> {
        let place = place(request.uri());
        let stack = self.stack(request.uri(), rules);
        let request = request.map(|body| match body {
            body if body.is_empty() => PostBody::empty(),
            body => PostBody::new(body),
        });
        let response = stack.send(request).await.map_err(|failure| {
            let kind = match failure.source().and_then(|source| find::<NotAllowed>(source)) {
                Some(_) => AuthErrorKind::Forbidden,
                None => AuthErrorKind::Unreachable,
            };
            AuthError::new(kind, format!("can't reach {place}: {failure}"))
        })?;
        let (head, mut body) = response.into_parts();
        let mut read = BytesMut::new();
        while let Some(chunk) = poll_fn(|context| body.poll_chunk(context)).await {
            let chunk = chunk.map_err(|_| unreachable(&place, "broke off its answer"))?;
            if read.len() + chunk.len() > rules.limit {
                return Err(unreachable(&place, "sent more than is read"));
            }
            read.extend_from_slice(&chunk);
        }
        Ok(Response::from_parts(head, read.freeze()))
    }
}

impl Fetch for Fetcher {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        Box::pin(async move {
            let place = place(request.uri());
            let asked = tokio::time::timeout(rules.timeout, self.ask(request, rules)).await;
            asked.unwrap_or_else(|_| Err(unreachable(&place, "took too long to answer")))
        })
    }
}

fn unreachable(place: &str, what: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Unreachable, format!("{place} {what}"))
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use hyper_util::client::proxy::matcher::Matcher;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::transport::http::client::{Dialing, Tls};

    fn fetcher() -> Fetcher {
        let via = Via::Proxy(Arc::new(Matcher::builder().build()));
        let timeout = Duration::from_secs(10);
        let dialing = Dialing { via: via.clone(), roots: Vec::new(), tls: Tls::Never, timeout };
        let stack = HttpSender::pooled(dialing).unwrap();
        Fetcher::new(&Uri::from_static("https://mcp.example.com/mcp"), &stack, &via)
    }

    async fn ask(address: &str, addresses: Addresses) -> Result<u16, AuthError> {
        let request = Request::get(address).body(Bytes::new()).unwrap();
        let rules = Rules { addresses, ..Rules::default() };
        fetcher().fetch(request, &rules).await.map(|response| response.status().as_u16())
    }

    /// A name is only known to be a private one once it is resolved, which is after every check of
    /// its text.
    #[tokio::test]
    async fn a_name_that_stands_for_a_private_address_is_not_dialled() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            let address = format!("http://{host}:{port}/token");
            let error = ask(&address, Addresses::Public).await.unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{host}: {error}");
            let message = error.to_string();
            assert!(message.contains(&address) && message.contains("must not be asked"), "{error}");
        }
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
