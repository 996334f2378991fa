//! The listener that a browser is sent back to (RFC 8252 §7.3).

mod head;

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time,
};
use url::Url;
use zeroize::Zeroizing;

use self::head::{CallbackRequest, ExpectedCallback, read};
use super::{Login, Waiting, not_logged_in, open_in_browser};
use crate::{AuthError, BoxFuture, LoginRequest, Secret, guard::parse};

/// Where the browser is sent back to.
const PATH: &str = "/callback";

/// The longest head of a request.
const HEAD: usize = 16 << 10;

/// How many connections are open at once. Browsers open some in advance and send nothing.
const CONNECTIONS: usize = 16;

/// How long one connection may take.
const CONNECTION: Duration = Duration::from_secs(10);

/// How long nothing is listened for when the system gives no connection: it may lack what others
/// will give back.
const PAUSE: Duration = Duration::from_millis(50);

type Opener = dyn Fn(&str) -> Result<(), AuthError> + Send + Sync;

/// A login in the user's browser, which is sent back to a listener on this machine.
///
/// The listener hears 127.0.0.1 only, takes one answer (the one with the `state` of the request),
/// shows the browser a small page, and is closed. How long a person may take is said by
/// [`Auth::deadline`](crate::Auth::deadline).
///
/// ```
/// use turnbuckle_auth::LoopbackLogin;
/// // Where there is no browser: show the address instead.
/// let login = LoopbackLogin::new().opener(|url| {
///     eprintln!("Open this page to log in: {url}");
///     Ok(())
/// });
/// ```
#[derive(Clone)]
pub struct LoopbackLogin {
    port: u16,
    deadline: Option<Duration>,
    opener: Arc<Opener>,
}

impl LoopbackLogin {
    /// On any port, with the user's browser.
    pub fn new() -> LoopbackLogin {
        LoopbackLogin { port: 0, deadline: None, opener: Arc::new(open_in_browser) }
    }

    /// Listens on this port only, for an authorization server that knows no other.
    #[must_use]
    pub fn port(mut self, port: u16) -> LoopbackLogin {
        self.port = port;
        self
    }

    /// How long a person may take, if that is less than
    /// [`Auth::deadline`](crate::Auth::deadline).
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> LoopbackLogin {
        self.deadline = Some(deadline);
        self
    }

    /// Opens the page instead of the user's browser. It may block. It is only given addresses of
    /// pages (`http` and `https`), and must hand them to no shell.
    #[must_use]
    pub fn opener(
        mut self,
        opener: impl Fn(&str) -> Result<(), AuthError> + Send + Sync + 'static,
    ) -> LoopbackLogin {
        self.opener = Arc::new(opener);
        self
    }

    async fn listen(&self, preferred: Option<&str>) -> Result<Ready, AuthError> {
        let bind = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut bound = bind(match (self.port, preferred.and_then(own_port)) {
            (0, Some(preferred)) => preferred,
            (port, _) => port,
        })
        .await;
        if bound.is_err() && self.port == 0 {
            bound = bind(0).await;
        }
        let failed = |error| not_logged_in(format!("can't listen for the end of a login: {error}"));
        let listener = bound.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
        Ok(Ready { listener, port, redirect_uri, settings: self.clone() })
    }
}

impl Default for LoopbackLogin {
    fn default() -> LoopbackLogin {
        LoopbackLogin::new()
    }
}

impl fmt::Debug for LoopbackLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopbackLogin")
            .field("port", &self.port)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Login for LoopbackLogin {
    fn redirect_uri(
        &self,
        preferred: Option<&str>,
    ) -> BoxFuture<'_, Result<Box<dyn Waiting>, AuthError>> {
        let preferred = preferred.map(str::to_owned);
        Box::pin(async move {
            let ready: Box<dyn Waiting> = Box::new(self.listen(preferred.as_deref()).await?);
            Ok(ready)
        })
    }
}

/// Listening.
struct Ready {
    listener: TcpListener,
    port: u16,
    redirect_uri: String,
    settings: LoopbackLogin,
}

impl Waiting for Ready {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn log_in(
        self: Box<Self>,
        request: LoginRequest,
    ) -> BoxFuture<'static, Result<String, AuthError>> {
        Box::pin(async move {
            let url = parse(&request.url)?;
            let expected = Arc::new(ExpectedCallback::new(PATH, self.port, state(&url)));
            let opener = self.settings.opener.clone();
            // On a thread of the runtime's for what blocks: a browser that starts slowly must not
            // keep its own answer waiting.
            let opened = tokio::task::spawn_blocking(move || opener(url.as_str()));
            let wait = async {
                let heard = hear(|| self.listener.accept(), expected);
                tokio::pin!(heard, opened);
                tokio::select! {
                    query = &mut heard => return Ok(query),
                    opened = &mut opened => {
                        opened.map_err(|_| not_logged_in("what opens the browser panicked"))??;
                    }
                }
                Ok(heard.await)
            };
            let query = match self.settings.deadline {
                Some(deadline) => time::timeout(deadline, wait)
                    .await
                    .map_err(|_| not_logged_in("nobody logged in before the deadline"))??,
                None => wait.await?,
            };
            Ok(format!("{}?{}", self.redirect_uri, query.expose()))
        })
    }
}

/// The query of the answer. Everything else that connects is turned away.
async fn hear<A, F>(accept: A, expected: Arc<ExpectedCallback>) -> Secret
where
    A: Fn() -> F,
    F: Future<Output = io::Result<(TcpStream, SocketAddr)>>,
{
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accept(), if open.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let answered = answer(stream, expected.clone());
                    open.spawn(time::timeout(CONNECTION, answered));
                }
                Err(error) => {
                    tracing::debug!(%error, "can't listen for the end of a login now");
                    time::sleep(PAUSE).await;
                }
            },
            Some(ended) = open.join_next() => {
                if let Ok(Ok(Some(query))) = ended {
                    return query;
                }
            }
        }
    }
}

/// Reads one request and answers it; the query if it was the answer to the login.
async fn answer(mut stream: TcpStream, expected: Arc<ExpectedCallback>) -> Option<Secret> {
    // All of it at once: what grows leaves copies behind.
    let mut head = Zeroizing::new(Vec::with_capacity(HEAD));
    let asked = loop {
        match read(&head, &expected) {
            CallbackRequest::Unfinished if head.len() < HEAD => {}
            CallbackRequest::Unfinished => break CallbackRequest::TooLong,
            asked => break asked,
        }
        let room = HEAD - head.len();
        match (&mut stream).take(room as u64).read_buf(&mut *head).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    };
    // The browser may be gone already; its answer counts all the same.
    let _ = stream.write_all(asked.response().as_bytes()).await;
    let _ = stream.shutdown().await;
    match asked {
        CallbackRequest::Answer { query, .. } => Some(query),
        _ => None,
    }
}

/// The port of an answer's place that was this kind of listener's.
fn own_port(redirect_uri: &str) -> Option<u16> {
    let url = parse(redirect_uri).ok()?;
    (url.scheme() == "http" && url.host_str() == Some("127.0.0.1") && url.path() == PATH)
        .then(|| url.port())?
}

fn state(url: &Url) -> Option<String> {
    url.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned())
}

#[cfg(test)]
mod tests;
