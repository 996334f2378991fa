//! Owns how a client reaches a server over HTTP: the address, and the settings that only this
//! wire has. Does not own the wire.

use std::{path::PathBuf, sync::Arc, time::Duration};

use super::{Client, ClientBuilder};
use crate::{
    client::{
        builder::{FIRST, Kind},
        connection::{ConnectionTarget, Dialer, handle::ClientConnection},
        handshake::{
            discovery::{
                DISCOVERED, Discovery, {self},
            },
            open::PriorKnowledge,
        },
    },
    error::{Error, Result},
    rpc::{BoxFuture, Transport},
    transport::http::client::{
        Dialing, Http, HttpSender, Manners, OwnService, PostBody, Redirects, Tls, UserService, Via,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use hyper_util::client::proxy::matcher::Matcher;
use tower_service::Service;

/// Settings of the HTTP wire.
pub(super) struct HttpSettings {
    headers: HeaderMap,
    roots: Vec<Vec<u8>>,
    proxy: Proxy,
    redirects: Redirects,
    dial_timeout: Duration,
    unix_socket: Option<PathBuf>,
    service: Option<Arc<dyn UserService>>,
    /// Taken when the layer is made of it.
    #[cfg(feature = "auth")]
    pub(super) auth: Option<turnbuckle_auth::Auth>,
    /// What was made of it.
    #[cfg(feature = "auth")]
    pub(super) layer: Option<turnbuckle_auth::AuthLayer>,
    /// What was wrong with a setting; told when a connection is made.
    problem: Option<Error>,
    pub(super) discovery: Option<Discovery>,
    pub(super) memory: DiscoveryReuse,
    /// Whether something in or around the connections may add who asks.
    asker: IdentitySource,
}

/// Who can tell on whose behalf requests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdentitySource {
    /// The headers that were given say it all.
    Headers,
    /// Only what is around the connections knows.
    Unknown,
}

enum Proxy {
    Environment,
    None,
    At(String),
}

/// Whether what earlier connections found out counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiscoveryReuse {
    Used,
    Ignored,
}

impl Default for HttpSettings {
    fn default() -> HttpSettings {
        HttpSettings {
            headers: HeaderMap::new(),
            roots: Vec::new(),
            proxy: Proxy::Environment,
            redirects: Redirects::default(),
            dial_timeout: Duration::from_secs(10),
            unix_socket: None,
            service: None,
            #[cfg(feature = "auth")]
            auth: None,
            #[cfg(feature = "auth")]
            layer: None,
            problem: None,
            discovery: None,
            memory: DiscoveryReuse::Used,
            asker: IdentitySource::Headers,
        }
    }
}

impl HttpSettings {
    /// Whether other servers are asked on the way.
    fn authorizes(&self) -> bool {
        #[cfg(feature = "auth")]
        return self.auth.is_some();
        #[cfg(not(feature = "auth"))]
        false
    }

    /// The socket that the server is reached through: whose file that is does not depend on where this
    /// program was started.
    #[cfg(feature = "auth")]
    pub(super) fn socket(&self) -> Option<PathBuf> {
        let path = self.unix_socket.as_ref().filter(|_| self.service.is_none())?;
        Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
    }

    /// Requests say who asks in a way that can't be seen here.
    #[cfg(feature = "auth")]
    pub(super) fn authorize(&mut self, auth: turnbuckle_auth::Auth) {
        self.auth = Some(auth);
        self.asker = IdentitySource::Unknown;
    }
}

impl Client {
    /// Connects to a server at an `http` or `https` address. Dropping the future gives it up.
    ///
    /// Each call is a POST of its own; connections are pooled and reused.
    ///
    /// ```no_run
    /// # async fn example() -> turnbuckle::Result<()> {
    /// use turnbuckle::Client;
    /// let client = Client::connect("https://mcp.example.com/mcp").await?;
    /// for tool in client.tools().all().await? {
    ///     println!("{}", tool.name);
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "StreamableHttpClientTransport")]
    #[doc(alias = "StreamableHTTPClientTransport")]
    pub async fn connect(url: impl AsRef<str>) -> Result<Client> {
        Client::builder().connect(url).await
    }
}

/// Settings that only HTTP has.
impl ClientBuilder {
    /// Adds a header to every request, `authorization` for instance. It does not follow a
    /// redirect to another origin.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> ClientBuilder {
        match own_header(name.as_ref(), value.as_ref()) {
            Ok((name, value)) => {
                self.http.headers.append(name, value);
            }
            Err(error) => self.http.problem = Some(error),
        }
        self
    }

    /// Trusts the certificates in this PEM text, besides the system's.
    pub fn tls_root(mut self, pem: impl Into<Vec<u8>>) -> ClientBuilder {
        self.http.roots.push(pem.into());
        self
    }

    /// Goes through this proxy (`http://host:port`) instead of the one that `HTTP_PROXY`,
    /// `HTTPS_PROXY` and `NO_PROXY` name.
    pub fn proxy(mut self, url: impl Into<String>) -> ClientBuilder {
        self.http.proxy = Proxy::At(url.into());
        self
    }

    /// Goes through no proxy, whatever the environment says.
    pub fn no_proxy(mut self) -> ClientBuilder {
        self.http.proxy = Proxy::None;
        self
    }

    /// Which redirects are followed.
    pub fn redirects(mut self, redirects: Redirects) -> ClientBuilder {
        self.http.redirects = redirects;
        self
    }

    /// How long making one connection may take, TLS included: 10 seconds.
    pub fn dial_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.http.dial_timeout = timeout;
        self
    }

    /// Reaches the server through this Unix socket. The address still gives path and host:
    /// `Client::builder().unix_socket("/run/mcp.sock").connect("http://localhost/mcp")`.
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> ClientBuilder {
        self.http.unix_socket = Some(path.into());
        self
    }

    /// Sends every request through a service of one's own: any HTTP client that is a
    /// [`tower` service](tower_service::Service). TLS, proxies and connections are then its
    /// business; dropping what it returns must close the request, because that is what
    /// cancels a call of the modern era.
    ///
    /// In the legacy era a call is cancelled by a message of its own, and besides POST the
    /// service is given GET, for streams that stay open for as long as the session, and DELETE.
    /// It must be able to send a request while others still wait for their answers, and must
    /// begin to read a body only when it begins to send it.
    pub fn http_service<S, B>(mut self, service: S) -> ClientBuilder
    where
        S: Service<http::Request<PostBody>, Response = http::Response<B>>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.http.service = Some(Arc::new(OwnService(service)));
        self.http.asker = IdentitySource::Unknown;
        self
    }

    /// Uses what an earlier connection to this server found out ([`Client::discovery`]), so that
    /// making this one costs no round trip.
    pub fn discovery(mut self, discovery: Discovery) -> ClientBuilder {
        self.http.discovery = Some(discovery);
        self
    }

    /// Asks the server what it speaks, even if an earlier connection of this program already
    /// did.
    pub fn forget_discovery(mut self) -> ClientBuilder {
        self.http.memory = DiscoveryReuse::Ignored;
        self
    }

    /// Connects to a server at an `http` or `https` address. Dropping the future gives it up.
    pub async fn connect(mut self, url: impl AsRef<str>) -> Result<Client> {
        let made = self.first(url.as_ref()).await;
        self.connected(made)
    }

    /// The first connection to an address, and how the next is made.
    async fn first(&mut self, url: &str) -> Result<(ClientConnection, Option<Box<dyn Dialer>>)> {
        let address = self.address(url)?;
        self.identify_at(&address);
        let stack = self.stack(&address)?;
        let again = Address { address, stack };
        let link = again.dial(self, FIRST).await?;
        Ok((link, Some(Box::new(again))))
    }

    /// Reads the address, if all that was said about reaching it makes sense.
    pub(super) fn address(&mut self, url: &str) -> Result<Uri> {
        match self.http.problem.take() {
            Some(problem) => Err(problem),
            None => address(url),
        }
    }

    async fn reach(
        &self,
        address: &Uri,
        stack: &HttpSender,
        generation: u64,
    ) -> Result<ClientConnection> {
        let memory = self.remembered_as(address);
        // What was found out before the connection was lost may be why it was.
        let prior = self
            .http
            .discovery
            .clone()
            .or_else(|| memory.as_ref().and_then(|key| DISCOVERED.recall(key)))
            .filter(|_| generation == FIRST);
        let was_known = prior.as_ref().map(|prior| prior.revision);
        let settled = self.pinned.or(was_known).filter(|revision| !revision.has_handshake());
        let answers = self.answers(None);
        let transport: Arc<dyn Transport> = Arc::new(Http::new(
            stack.shared(),
            address.clone(),
            self.http.headers.clone(),
            Manners { redirects: self.http.redirects, resuming: self.reconnect.resuming() },
            answers.clone(),
            self.limits.clone(),
            settled,
        ));
        if let Some(pinned) = settled.filter(|_| generation > FIRST) {
            // Nothing else would show whether anyone is there.
            self.is_there(&transport, pinned).await?;
        }
        let known = prior
            .map(|prior| PriorKnowledge { revision: prior.revision, found: prior.discovered() });
        let mut link = self.open(transport, answers, (Kind::Http, known), generation).await?;
        if let Some(key) = &memory
            && was_known != Some(link.revision())
        {
            DISCOVERED.remember(key.clone(), link.discovery());
        }
        link.remembered = memory;
        // Nothing was said yet.
        *link.answered.get_mut() = settled.is_none() || generation > FIRST;
        Ok(link)
    }

    /// Under which name this connection's findings are kept; `None` if they are not.
    ///
    /// What one caller was told is for that caller: the headers are part of the name. Ports of
    /// this machine change hands too often to be remembered.
    fn remembered_as(&self, address: &Uri) -> Option<discovery::DiscoveryKey> {
        let settings = &self.http;
        let off = settings.memory == DiscoveryReuse::Ignored
            || self.pinned.is_some()
            || settings.asker == IdentitySource::Unknown
            || settings.unix_socket.is_some();
        if off { None } else { discovery::DiscoveryKey::new(address, &settings.headers) }
    }

    /// Says who answers at an address and who asks, as far as that can be seen.
    fn identify_at(&self, address: &Uri) {
        let settings = &self.http;
        let server =
            match (discovery::DiscoveryKey::new(address, &settings.headers), &settings.unix_socket)
            {
                // A port of this machine changes hands, a socket's file does less so.
                (_, Some(path)) => {
                    let path = path.as_os_str().as_encoded_bytes().to_vec();
                    Some(vec![b"socket".to_vec(), path, address.to_string().into()])
                }
                (Some(_), None) => Some(vec![b"address".to_vec(), address.to_string().into()]),
                (None, None) => None,
            };
        let mut headers: Vec<_> = settings.headers.iter().collect();
        // In the order of their names; those of one name stay as they were given.
        headers.sort_by_key(|(name, _)| name.as_str());
        let parts = headers.iter().flat_map(|(name, value)| [name.as_ref(), value.as_bytes()]);
        let asks = match settings.asker {
            IdentitySource::Unknown => None,
            IdentitySource::Headers => Some(parts.map(<[u8]>::to_vec).collect()),
        };
        self.identify(server, asks);
    }

    fn stack(&mut self, address: &Uri) -> Result<HttpSender> {
        let (stack, elsewhere) = self.bare_stack(address)?;
        #[cfg(feature = "auth")]
        return self.authorized(address, stack, &elsewhere);
        #[cfg(not(feature = "auth"))]
        {
            drop(elsewhere);
            Ok(stack)
        }
    }

    /// What reaches the server, with nothing around it, and the way to other servers.
    pub(super) fn bare_stack(&mut self, address: &Uri) -> Result<(HttpSender, Via)> {
        let elsewhere = Via::Proxy(Arc::new(matcher(&self.http.proxy)?));
        let stack = match &self.http.service {
            Some(service) => HttpSender::Own(service.clone()),
            None => self.pooled(address, &elsewhere)?,
        };
        Ok((stack, elsewhere))
    }

    /// Connections of our own; `straight` is the way to a server without a socket.
    fn pooled(&mut self, address: &Uri, straight: &Via) -> Result<HttpSender> {
        let settings = &mut self.http;
        let via = match &settings.unix_socket {
            Some(path) => Via::Unix(Arc::new(path.clone())),
            None => straight.clone(),
        };
        if let Via::Proxy(matcher) = &via
            && address.scheme_str() == Some("http")
            && let Some(auth) = matcher.intercept(address).and_then(|at| at.basic_auth().cloned())
        {
            settings.headers.insert(header::PROXY_AUTHORIZATION, auth);
        }
        let elsewhere = settings.redirects == Redirects::AnyOrigin || settings.authorizes();
        let tls = if elsewhere || address.scheme_str() == Some("https") {
            Tls::Possible
        } else {
            Tls::Never
        };
        let roots = std::mem::take(&mut settings.roots);
        HttpSender::pooled(Dialing { via, roots, tls, timeout: settings.dial_timeout })
    }
}

/// Reaches the same address again, over the same pool.
struct Address {
    address: Uri,
    stack: HttpSender,
}

impl Dialer for Address {
    fn dial<'a>(
        &'a self,
        settings: &'a ClientBuilder,
        generation: u64,
    ) -> BoxFuture<'a, Result<ClientConnection>> {
        Box::pin(settings.reach(&self.address, &self.stack, generation))
    }

    fn way(&self) -> ConnectionTarget {
        ConnectionTarget::Address
    }
}

/// Checks a header that a user adds.
pub(crate) fn own_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let parsed: HeaderName =
        name.parse().map_err(|_| Error::refused(format!("`{name}` is not a header's name")))?;
    let ours = [header::ACCEPT, header::CONTENT_TYPE, header::CONTENT_LENGTH, header::HOST];
    if ours.contains(&parsed) || parsed.as_str().starts_with("mcp-") {
        let message = format!("the header `{name}` is written by the protocol");
        return Err(Error::refused(message));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        // The value may be a secret.
        Error::refused(format!("the value of the header `{name}` has characters it can't have"))
    })?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

fn matcher(proxy: &Proxy) -> Result<Matcher> {
    Ok(match proxy {
        Proxy::Environment => Matcher::from_env(),
        Proxy::None => Matcher::builder().build(),
        Proxy::At(url) => {
            let sound = url
                .parse::<Uri>()
                .is_ok_and(|uri| uri.scheme_str() == Some("http") && uri.host().is_some());
            if !sound {
                let message = "a proxy's address looks like http://host:port";
                return Err(Error::refused(message));
            }
            Matcher::builder().all(url.clone()).build()
        }
    })
}

/// Reads an address; the error says what is wrong with it and repeats no credentials.
fn address(url: &str) -> Result<Uri> {
    let uri: Uri = url
        .parse()
        .map_err(|_| Error::refused("that is no address; it looks like https://host/mcp"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(Error::refused(
            "an address begins with https:// or http://; to start a program use `Client::spawn`",
        ));
    }
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return Err(Error::refused("that address names no host"));
    };
    if authority.as_str().contains('@') {
        return Err(Error::refused(
            "an address must not contain a user or a password; use .header(\"authorization\", …)",
        ));
    }
    Ok(uri)
}

impl std::fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpSettings").field("redirects", &self.redirects).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked_before_anything_is_sent() {
        assert!(address("https://example.com/mcp?x=1").is_ok());
        assert!(address("http://[::1]:80/").is_ok());
        for wrong in ["example.com", "ftp://a/", "https://", "stdio:x", "http:///x", ""] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
        let error = address("https://me:hunter2@example.com/").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn headers_of_the_protocol_are_not_for_users() {
        assert!(own_header("X-Trace", "1").is_ok());
        for ours in ["Mcp-Method", "mcp-param-x", "Accept", "content-type", "Host", "a b"] {
            assert!(own_header(ours, "1").is_err(), "{ours}");
        }
        let error = own_header("authorization", "hunter2\n").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
