//! Doing what a flow says: sending, logging in, asking the store.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};

use super::{
    auth::{within, write},
    bound,
    flights::Flights,
    flow::{Answer, Flow, IdentityRequest, LoginRequest, Step},
    grant::{Grant, RegisteredBy, Registration},
    guarded::Guarded,
    login::Waiting,
    store::{GrantStore, StoreKey},
    token::spent,
};
use crate::{AuthError, AuthErrorKind, BoxFuture, Fetch, Rules, Secret};

/// The most steps of one flow. None of them is known to take half as many.
const MOST: usize = 40;

type Ask = dyn Fn(IdentityRequest) -> BoxFuture<'static, Result<Secret, AuthError>> + Send + Sync;

/// Whoever says who a person or this program is, by a token from an organization or a platform.
///
/// ```
/// use turnbuckle_auth::{IdentitySource, Secret};
/// let identity = IdentitySource::new(|request| async move {
///     // Ask the platform for a token for `request.audience`.
///     Ok(Secret::new("…"))
/// });
/// ```
#[derive(Clone)]
pub struct IdentitySource(Arc<Ask>);

impl IdentitySource {
    /// From a function. Dropping its future gives up.
    pub fn new<A, F>(ask: A) -> IdentitySource
    where
        A: Fn(IdentityRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Secret, AuthError>> + Send + 'static,
    {
        IdentitySource(Arc::new(move |request| Box::pin(ask(request)) as BoxFuture<'static, _>))
    }
}

impl fmt::Debug for IdentitySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentitySource")
    }
}

/// What a flow is done with.
pub(super) struct Driver<'a> {
    pub(super) fetch: &'a Guarded<Arc<dyn Fetch>>,
    pub(super) rules: &'a Rules,
    pub(super) store: &'a dyn GrantStore,
    pub(super) identity: Option<&'a IdentitySource>,
    /// Of a client that does not know yet at which issuer it belongs.
    pub(super) unbound: Option<&'a StoreKey>,
    /// Ready for someone to come back.
    pub(super) waiting: Option<Box<dyn Waiting>>,
    /// How long a person may take, or the store.
    pub(super) deadline: Duration,
    /// What this is one of.
    pub(super) flights: &'a Flights,
}

/// What came of a flow.
pub(super) struct Driven {
    pub(super) result: Result<Box<Grant>, AuthError>,
    /// The refresh token was refused for good.
    pub(super) spent: bool,
    /// The last request for a token was a silent one.
    pub(super) silent: bool,
    /// At which issuer the last question was asked, and as whom, if it was asked as someone.
    pub(super) asked_as: Option<(String, Registration)>,
    /// When the authorization server wants to be asked again, if it is busy and says so.
    pub(super) retry_after: Option<Duration>,
}

impl Driver<'_> {
    /// To the end. Dropping the future gives the flow up, wherever it is.
    pub(super) async fn drive(mut self, (mut flow, mut step): (Flow, Step)) -> Driven {
        let message = "authorization did not come to an end";
        let endless = AuthError::new(AuthErrorKind::Unreachable, message);
        let mut driven = Driven {
            result: Err(endless),
            spent: false,
            silent: false,
            asked_as: None,
            retry_after: None,
        };
        for _ in 0..MOST {
            let client = flow.registration();
            let client = client.map(|(issuer, it)| (issuer.to_owned(), it.clone()));
            // At the end nothing is asked: it is about the last question.
            if !matches!(step, Step::Done(_) | Step::Failed(_)) {
                driven.asked_as = client;
            }
            let answer = match step {
                Step::Done(grant) => return Driven { result: Ok(grant), ..driven },
                Step::Failed(error) => return Driven { result: Err(error), ..driven },
                Step::Send(request) => {
                    if let Err(error) = self.bind(&flow).await {
                        return Driven { result: Err(error), ..driven };
                    }
                    let grant_type = grant_type(&request);
                    let answer = self.send(request).await;
                    driven.retry_after = match &answer {
                        Answer::Response(response) => retry_after(response),
                        _ => None,
                    };
                    if let Some(grant_type) = grant_type {
                        driven.silent = grant_type == "refresh_token";
                        driven.spent |= driven.silent
                            && matches!(&answer, Answer::Response(response) if spent(response));
                    }
                    answer
                }
                Step::LogIn(request) => self.log_in(request).await,
                Step::Identity(request) => match self.identity {
                    Some(IdentitySource(ask)) => {
                        let _aside = self.flights.aside();
                        match ask(request).await {
                            Ok(identity) => Answer::Identity(identity),
                            Err(error) => Answer::NotLoggedIn(error),
                        }
                    }
                    None => Answer::NotLoggedIn(unset("`Auth::identity` is not set")),
                },
                Step::Recall(issuer) => self.recall(&issuer).await,
            };
            step = flow.answer(answer);
            if let Step::LogIn(request) = &step
                && let Err(error) = self.prepare(&flow, request).await
            {
                return Driven { result: Err(error), ..driven };
            }
        }
        driven
    }

    /// Nobody is sent where this client would not go, nor logs in for a token that it would not ask for.
    /// A client that registered itself is that client the next time, even if nobody logs in now.
    async fn prepare(&mut self, flow: &Flow, request: &LoginRequest) -> Result<(), AuthError> {
        self.fetch.check(&request.url)?;
        flow.token_endpoint().map_or(Ok(()), |endpoint| self.fetch.check(endpoint))?;
        match flow.registration() {
            Some((issuer, registration)) if registration.origin == RegisteredBy::Dynamic => {
                let key = StoreKey::registration(issuer);
                let written = write(self.store, &key, registration.to_record());
                // It costs another registration the next time, but nobody their login.
                if let Err(error) = within(self.deadline, written).await {
                    tracing::warn!(%error, "who the client is could not be kept");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Before what only one issuer may see is shown to one.
    async fn bind(&mut self, flow: &Flow) -> Result<(), AuthError> {
        match (self.unbound, flow.proves()) {
            (Some(key), Some((issuer, client))) if client.origin == RegisteredBy::Beforehand => {
                within(self.deadline, bound::bind(self.store, key, issuer)).await
            }
            _ => Ok(()),
        }
    }

    async fn log_in(&mut self, request: LoginRequest) -> Answer {
        let Some(waiting) = self.waiting.take() else {
            return Answer::NotLoggedIn(unset("there is nobody who could log in"));
        };
        let _aside = self.flights.aside();
        match tokio::time::timeout(self.deadline, waiting.log_in(request)).await {
            Ok(Ok(callback)) => Answer::CalledBack(callback),
            Ok(Err(error)) => Answer::NotLoggedIn(error),
            Err(_) => Answer::NotLoggedIn(late()),
        }
    }

    async fn send(&mut self, request: Request<Bytes>) -> Answer {
        match self.fetch.fetch(request, self.rules).await {
            Ok(response) => Answer::Response(response),
            Err(error) => Answer::Unreachable(error),
        }
    }

    async fn recall(&mut self, issuer: &str) -> Answer {
        let key = StoreKey::registration(issuer);
        match within(self.deadline, self.store.load(&key)).await {
            Ok(stored) => Answer::Recalled(
                stored.and_then(|stored| Registration::from_record(&stored.record)),
            ),
            Err(error) => Answer::NotLoggedIn(error),
        }
    }
}

/// What kind of token request this is, if it is one.
fn grant_type(request: &Request<Bytes>) -> Option<String> {
    url::form_urlencoded::parse(request.body())
        .find(|(name, _)| name == "grant_type")
        .map(|(_, value)| value.into_owned())
}

/// In seconds; a date is not understood.
fn retry_after(response: &Response<Bytes>) -> Option<Duration> {
    let busy = matches!(
        response.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let value = response.headers().get(header::RETRY_AFTER).filter(|_| busy)?;
    value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn late() -> AuthError {
    AuthError::new(AuthErrorKind::NotLoggedIn, "nobody logged in before the deadline")
}

fn unset(message: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Settings, message)
}
