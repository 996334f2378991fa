//! Owns how a protected server gets a token of its own for a caller's (RFC 8693): what is asked, and
//! what of the answers is believed. Does not own for how long an answer is used.

mod kept;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Response};
use zeroize::Zeroizing;

use self::kept::{ExchangeCache, Found};
use super::{
    discovery::{self, unreachable},
    keys::Outside,
};
use crate::{
    AuthError, AuthErrorKind, Rules, Scheme, Scopes, Secret, SigningKey,
    token::{
        registration::{RegisteredBy, Registration, TokenAuth},
        request::{ClientKeys, TokenRequest},
        text::check_address,
    },
};

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The longest answer that is read.
const LONGEST_ANSWER: usize = 64 << 10;

/// Exchanges a caller's token for one that another server takes (RFC 8693), at an authorization
/// server where this server is a client.
///
/// A caller's token is for this server alone: whoever got it passed on could use it here. What is got
/// in exchange is for the other one, and only for what was asked for. Tokens are bearer tokens: one
/// that is bound to a key is refused.
///
/// Clones share what they remember: a token is used again for the same caller's token until shortly
/// before it expires, and calls that need the same one wait for one request. So make one when the
/// server starts, and keep it.
///
/// ```
/// use turnbuckle_auth::{Secret, resource_server::TokenExchange};
/// let exchange =
///     TokenExchange::basic("https://auth.example.com", "mcp-server", Secret::new("s3cr3t"))
///         .resource("https://api.example.com")
///         .scopes(["orders:read"]);
/// assert!(!format!("{exchange:?}").contains("s3cr3t"));
/// ```
#[derive(Clone)]
pub struct TokenExchange {
    wanted: Arc<Wanted>,
    kept: Arc<ExchangeCache>,
}

/// What is asked for, where, and as whom.
#[derive(Clone)]
struct Wanted {
    issuer: String,
    /// Whose tokens may be shown to it besides its own.
    others: Vec<String>,
    /// Nothing is where the issuer's metadata says.
    endpoint: Option<String>,
    registration: Registration,
    key: Option<SigningKey>,
    resources: Vec<String>,
    audiences: Vec<String>,
    scopes: Scopes,
}

impl TokenExchange {
    /// At this issuer, as a client that shows its secret in the header.
    pub fn basic(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        secret: Secret,
    ) -> TokenExchange {
        TokenExchange::by(issuer, client_id, TokenAuth::Basic).with_secret(secret)
    }

    /// The same with its secret in the body.
    pub fn post(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        secret: Secret,
    ) -> TokenExchange {
        TokenExchange::by(issuer, client_id, TokenAuth::Post).with_secret(secret)
    }

    /// The same with a signed assertion (RFC 7523).
    pub fn signed(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        key: SigningKey,
    ) -> TokenExchange {
        TokenExchange::by(issuer, client_id, TokenAuth::PrivateKeyJwt)
            .changed(|wanted| wanted.key = Some(key))
    }

    fn by(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        method: TokenAuth,
    ) -> TokenExchange {
        let mut registration = Registration::public(client_id, RegisteredBy::Beforehand);
        registration.method = method;
        let wanted = Wanted {
            issuer: issuer.into(),
            others: Vec::new(),
            endpoint: None,
            registration,
            key: None,
            resources: Vec::new(),
            audiences: Vec::new(),
            scopes: Scopes::none(),
        };
        TokenExchange { wanted: Arc::new(wanted), kept: Arc::default() }
    }

    /// Exchanges tokens of this other issuer too. They are shown to the one that is asked, which could
    /// use them here.
    #[must_use]
    pub fn also_from(self, issuer: impl Into<String>) -> TokenExchange {
        self.changed(|wanted| wanted.others.push(issuer.into()))
    }

    /// Asks here; the issuer's metadata is not asked for.
    #[must_use]
    pub fn token_endpoint(self, address: impl Into<String>) -> TokenExchange {
        self.changed(|wanted| wanted.endpoint = Some(address.into()))
    }

    /// The token is for the server at this address (RFC 8707). There may be several.
    #[must_use]
    pub fn resource(self, resource: impl Into<String>) -> TokenExchange {
        self.changed(|wanted| wanted.resources.push(resource.into()))
    }

    /// The token is for whom the authorization server knows by this name. There may be several.
    #[must_use]
    pub fn audience(self, audience: impl Into<String>) -> TokenExchange {
        self.changed(|wanted| wanted.audiences.push(audience.into()))
    }

    /// The token is to be good for these; what it is good for otherwise is the authorization server's
    /// choice.
    #[must_use]
    pub fn scopes<S: Into<String>>(self, scopes: impl IntoIterator<Item = S>) -> TokenExchange {
        self.changed(|wanted| {
            wanted.scopes = wanted.scopes.union(&scopes.into_iter().collect());
        })
    }

    fn with_secret(self, secret: Secret) -> TokenExchange {
        self.changed(|wanted| wanted.registration.secret = Some(secret))
    }

    fn changed(mut self, change: impl FnOnce(&mut Wanted)) -> TokenExchange {
        change(Arc::make_mut(&mut self.wanted));
        // What was remembered is not what is asked for now.
        self.kept = Arc::default();
        self
    }
}

impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchange")
            .field("issuer", &self.wanted.issuer)
            .field("client_id", &self.wanted.registration.client_id)
            .field("resources", &self.wanted.resources)
            .field("audiences", &self.wanted.audiences)
            .field("scopes", &self.wanted.scopes)
            .finish_non_exhaustive()
    }
}

/// Whoever was let in, as far as an exchange needs them: the token is in here, and can't be taken out.
#[derive(Clone)]
pub struct Caller {
    token: Secret,
    /// Who gave it.
    issuer: String,
    outside: Outside,
}

impl Caller {
    pub(super) fn new(token: Secret, issuer: String, outside: Outside) -> Caller {
        Caller { token, issuer, outside }
    }

    /// A token that another server takes, for this caller.
    ///
    /// Dropping the future gives up the wait; a request that was sent is answered for others who wait,
    /// and the answer kept.
    ///
    /// # Errors
    /// If the authorization server refuses, can't be reached, or gives something else. No token is in
    /// what is said of it.
    pub async fn exchange(&self, exchange: &TokenExchange) -> Result<ExchangedToken, AuthError> {
        let wanted = &exchange.wanted;
        // Whoever is shown it could come here with it.
        if self.issuer != wanted.issuer && !wanted.others.contains(&self.issuer) {
            let text = "the caller's token is of another issuer: see `TokenExchange::also_from`";
            return Err(AuthError::new(AuthErrorKind::Forbidden, text));
        }
        let kept = &exchange.kept;
        let mut coming = match kept.find(&self.token, self.outside.clock.now())? {
            Found::Given(token) => return Ok(token),
            Found::Coming(coming) => coming,
            Found::Nothing(flight, coming) => {
                // A task of its own: whoever asks and leaves must not make the others begin again.
                let (caller, exchange) = (self.clone(), exchange.clone());
                tokio::spawn(async move {
                    let answer = exchange.ask(&caller).await;
                    flight.land(answer, caller.outside.clock.now());
                });
                coming
            }
        };
        let answered = coming.wait_for(Option::is_some).await;
        let answer = answered.ok().and_then(|answer| answer.clone());
        answer.unwrap_or_else(|| Err(unreachable("the exchange of a token was given up")))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller")
    }
}

/// A token that was got in exchange. It can't be printed, and is zeroed when it is dropped; a header that
/// was made of it is not, nor is what the network has of it.
///
/// ```
/// use turnbuckle_auth::resource_server::ExchangedToken;
/// fn authorize<B>(request: &mut http::Request<B>, token: &ExchangedToken) {
///     request.headers_mut().insert(http::header::AUTHORIZATION, token.header());
/// }
/// # let _ = authorize::<()>;
/// ```
#[derive(Clone)]
pub struct ExchangedToken {
    secret: Secret,
    expires_at: Option<u64>,
    /// Until when it is given to others who ask for the same.
    fresh_until: u64,
    scopes: Option<Scopes>,
}

impl ExchangedToken {
    /// The token. Whoever calls this answers for where it goes.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// What `Authorization` has to say: `Bearer` and the token. It is marked as sensitive.
    pub fn header(&self) -> HeaderValue {
        header(&self.secret).expect("a token that fits into no header is not taken")
    }

    /// When it stops being good, in seconds since 1970; nothing if that was not said.
    pub fn expires_at(&self) -> Option<u64> {
        self.expires_at
    }

    /// What it is good for, where that was said.
    pub fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }
}

/// Without the token.
impl fmt::Debug for ExchangedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangedToken")
            .field("expires_at", &self.expires_at)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl TokenExchange {
    /// One exchange, whatever is remembered. Dropping the future gives it up.
    async fn ask(&self, caller: &Caller) -> Result<ExchangedToken, AuthError> {
        let Caller { token, outside, .. } = caller;
        let (endpoint, rules) = self.endpoint(outside).await?;
        let request = self.wanted.request(&endpoint, token);
        // Before it is sent: a token does not grow older than it is said to.
        let now = outside.clock.now();
        let keys = ClientKeys { client: self.wanted.key.as_ref(), proof: None, nonce: None, now };
        let sent = request.build(keys)?;
        let rules = Rules { limit: LONGEST_ANSWER, ..rules };
        let response = outside.fetch.fetch(sent, &rules).await?;
        read(&request, &response, token, now)
    }

    /// Where to ask, and what holds for it: what a public issuer says must not lead a caller's token into
    /// a private network.
    async fn endpoint(&self, outside: &Outside) -> Result<(String, Rules), AuthError> {
        let Wanted { issuer, endpoint, .. } = &*self.wanted;
        if let Some(given) = endpoint {
            check_address(given)?;
            return Ok((given.clone(), discovery::rules_for_chosen(given)?));
        }
        let now = outside.clock.now();
        if let Some(known) = self.kept.endpoint(now) {
            let rules = discovery::rules_for_named(&known, issuer)?;
            return Ok((known, rules));
        }
        let metadata = discovery::metadata(&*outside.fetch, issuer).await?;
        let found = discovery::address(&metadata, "token_endpoint")?;
        check_address(found)?;
        let rules = discovery::rules_for_named(found, issuer)?;
        self.kept.keep_endpoint(found, now);
        Ok((found.to_owned(), rules))
    }
}

impl Wanted {
    /// RFC 8693 §2.1.
    fn request(&self, endpoint: &str, token: &Secret) -> TokenRequest {
        let mut request =
            TokenRequest::new(endpoint, &self.issuer, &self.registration, TOKEN_EXCHANGE)
                .with("requested_token_type", ACCESS_TOKEN)
                .with_scopes(&self.scopes);
        for resource in &self.resources {
            request = request.with("resource", resource);
        }
        for audience in &self.audiences {
            request = request.with("audience", audience);
        }
        request.with("subject_token", token.expose()).with("subject_token_type", ACCESS_TOKEN)
    }
}

/// RFC 8693 §2.2.
fn read(
    request: &TokenRequest,
    response: &Response<Bytes>,
    shown: &Secret,
    now: u64,
) -> Result<ExchangedToken, AuthError> {
    /// How long before its end a token is not used again, in seconds: calls take a while.
    const BEFORE_END: u64 = 30;
    let wrong = |text: &str| AuthError::new(AuthErrorKind::Response, text);
    let given = request.read(response)?;
    if given.issued.as_deref() != Some(ACCESS_TOKEN) {
        return Err(wrong("something else than an access token was given in exchange"));
    }
    let tokens = given.into_tokens(Scheme::Bearer, now, None)?;
    // It would be the caller's token that is passed on.
    if tokens.access == *shown {
        return Err(wrong("a token was exchanged for itself"));
    }
    if header(&tokens.access).is_none() {
        return Err(wrong("the token does not fit into a header"));
    }
    let lifetime = tokens.expires_at.map_or(0, |end| end.saturating_sub(now));
    Ok(ExchangedToken {
        secret: tokens.access,
        expires_at: tokens.expires_at,
        // One that ends soon is used for most of its time; one that ends nobody knows when, once.
        fresh_until: now.saturating_add(lifetime - BEFORE_END.min(lifetime / 4)),
        scopes: tokens.granted,
    })
}

fn header(token: &Secret) -> Option<HeaderValue> {
    let text = Zeroizing::new(format!("Bearer {}", token.expose()));
    let mut header = HeaderValue::from_str(&text).ok()?;
    header.set_sensitive(true);
    Some(header)
}
