//! One server's grant in this process: who waits for whose renewal, and what is known of it.

pub(super) mod attempts;
pub(super) mod bound;
pub(super) mod flights;
mod log_out;
mod renewal;
mod restraint;

pub use log_out::LoggedOut;

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, header};
use tokio::sync::watch;

use self::restraint::{Restraint, SaidBy};
use super::{
    attempts::{By, Recovery, required, scope},
    auth::{Auth, within},
    flights::{AtWork, Flights},
    grant::{Grant, Tokens},
    guarded::Guarded,
    settings::DpopUse,
    store::{StoreKey, Stored, Version},
};
use crate::{
    AuthError, AuthErrorKind, Challenge, Fetch, Origin, Scheme, Scopes, Secret, SigningKey,
    jose::dpop,
};

/// How many seconds before its end a token is renewed: clocks differ, and requests take time. Of one
/// that does not live long, a quarter of what was left when it came.
const EARLY: u64 = 30;

/// How long a call waits for a renewal while its token is still good: a provider that is slow must not
/// cost more.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest nonce that is remembered.
const NONCE: usize = 1 << 10;

/// The most sets of scopes that a process asks for one server.
const SETS: usize = 64;

/// One server's grant.
pub(super) struct Session {
    auth: Auth,
    server_url: String,
    origin: Origin,
    /// Whether nobody else can read what the server is shown, or it does not matter.
    may_be_shown: bool,
    key: StoreKey,
    fetch: Guarded<Arc<dyn Fetch>>,
    pub(super) flights: Flights,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` before the store was asked.
    known: Option<Option<Arc<Held>>>,
    /// What was given and is not in the store yet, which had that version then: what the store has
    /// instead was used up for it.
    unsaved: Option<(Option<Version>, Grant)>,
    /// Invariant: there iff its task runs.
    flight: Option<RenewalInFlight>,
    flights: u64,
    /// Sets of scopes that were asked for because the server wanted more.
    asked: Vec<Scopes>,
    /// What the server wants to find in the next proof.
    nonce: Option<String>,
    restraint: Restraint,
}

/// A grant that can be shown.
pub(super) struct Held {
    pub(super) grant: Grant,
    pub(super) tokens: Tokens,
    proof: Option<SigningKey>,
    /// From when on it is renewed, in seconds since 1970.
    renewed_from: Option<u64>,
}

/// What is needed.
#[derive(Clone)]
pub(super) struct Need {
    pub(super) how: Recovery,
    /// What was shown and is not good enough.
    pub(super) used: Option<Secret>,
    pub(super) challenge: Option<Challenge>,
}

/// A renewal that others can wait for too.
struct RenewalInFlight {
    number: u64,
    how: Recovery,
    scope: Option<Scopes>,
    landed: watch::Receiver<Option<Landing>>,
}

type Landing = Result<(Arc<Held>, By), AuthError>;

impl Session {
    pub(super) fn new(
        auth: Auth,
        server_url: &str,
        socket: Option<&Path>,
        fetch: Arc<dyn Fetch>,
    ) -> Result<Session, AuthError> {
        let mut origin = Origin::of(server_url)?;
        if auth.private {
            origin = origin.with_private_addresses();
        }
        // Nobody is on the way to a socket.
        if auth.plain_http || socket.is_some() {
            origin = origin.with_plain_http();
        }
        let key = match socket {
            Some(path) => StoreKey::grant_over_socket(server_url, path),
            None => StoreKey::grant(server_url),
        };
        Ok(Session {
            flights: Flights::among(&auth.flights),
            auth,
            server_url: server_url.to_owned(),
            may_be_shown: origin.may_be_shown_tokens(),
            key,
            fetch: Guarded::new(fetch, origin.clone()),
            origin,
            state: Mutex::default(),
        })
    }

    /// Whether a request to this address is one to the server.
    pub(super) fn is_for(&self, address: &str) -> bool {
        Origin::of(address).is_ok_and(|origin| origin.as_str() == self.origin.as_str())
    }

    /// What can be shown now; renewed first if it is about to end.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Option<Arc<Held>>, AuthError> {
        if !self.may_be_shown {
            return Ok(None);
        }
        let Some(held) = self.known().await? else { return Ok(None) };
        let now = self.auth.clock.now();
        if held.renewed_from.is_none_or(|from| now < from) || held.tokens.refresh.is_none() {
            return Ok(Some(held));
        }
        let renewing = self.renewed(&held);
        if !held.tokens.expired(now) {
            let renewed = tokio::time::timeout(PATIENCE, renewing).await;
            return Ok(Some(renewed.ok().and_then(Result::ok).unwrap_or(held)));
        }
        match renewing.await {
            Ok(held) => Ok(Some(held)),
            // It is gone for good, or can't be renewed this way: the server will say what it wants.
            Err(error) if error.kind() == AuthErrorKind::Expired => Ok(None),
            Err(error) if error.kind() == AuthErrorKind::Refused => Ok(Some(held)),
            Err(error) => Err(error),
        }
    }

    /// The same, renewed; not if that failed a moment ago. Where nothing else is left, only the
    /// authorization server can say so.
    async fn renewed(self: &Arc<Self>, held: &Held) -> Result<Arc<Held>, AuthError> {
        let used = held.tokens.access.clone();
        let needed = held.tokens.expired(self.auth.clock.now());
        if let Some(failed) = self.lock().restraint.failure(&used)
            && (!needed || failed.said_by == SaidBy::TheAuthorizationServer)
        {
            return Err(failed.error.clone());
        }
        let need = Need { how: Recovery::Refresh, used: Some(used), challenge: None };
        self.better(need).await.map(|(held, _)| held)
    }

    /// The token that would be shown, whatever it is worth.
    pub(super) async fn shown(&self) -> Result<Option<Secret>, AuthError> {
        Ok(self.known().await?.map(|held| held.tokens.access.clone()))
    }

    /// Something better than what was used. Whoever needs the same at the same time gets the same.
    /// Dropping the future leaves the renewal to the others.
    pub(super) async fn better(self: &Arc<Self>, need: Need) -> Landing {
        if !self.may_be_shown {
            return Err(readable_by_others(&self.origin));
        }
        loop {
            let (mut landed, serves, begun) = {
                let mut state = self.lock();
                if let Some(held) = state.other_than(need.used.as_ref()) {
                    return Ok((held, By::Other));
                }
                match &state.flight {
                    Some(flight) => (flight.landed.clone(), flight.serves(&need), None),
                    None => {
                        let (landed, task) = self.fly(&mut state, need.clone())?;
                        (landed, true, Some(task))
                    }
                }
            };
            // Not under the lock: a runtime that ends drops the task at once, and that takes it.
            if let Some(task) = begun {
                tokio::spawn(task);
            }
            let landing = landed.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
            match landing {
                Some(landing) if serves => return landing,
                None if serves => return Err(lost()),
                // Someone needed something else; perhaps it does.
                _ => {}
            }
        }
    }

    /// Puts what is held on a request.
    pub(super) fn show(
        &self,
        held: &Held,
        method: &Method,
        address: &str,
        headers: &mut HeaderMap,
    ) -> Result<(), AuthError> {
        let scheme = match held.tokens.scheme {
            Scheme::Bearer => "Bearer",
            Scheme::Dpop => "DPoP",
        };
        if held.tokens.scheme == Scheme::Dpop {
            let key = held.proof.as_ref();
            let key = key.ok_or_else(|| required("the key of the token is lost", None))?;
            let nonce = self.lock().nonce.clone();
            let (access, now) = (&held.tokens.access, self.auth.clock.now());
            let nonce = nonce.as_deref();
            let proof = dpop::proof(key, method.as_str(), address, Some(access), nonce, now)?;
            headers.insert("dpop", sensitive(&proof)?);
        }
        let shown = Secret::new(format!("{scheme} {}", held.tokens.access.expose()));
        headers.insert(header::AUTHORIZATION, sensitive(shown.expose())?);
        Ok(())
    }

    /// Remembers the nonce that a response of the server brings (RFC 9449 §8.2).
    pub(super) fn hear(&self, headers: &HeaderMap) {
        let nonce = headers.get("dpop-nonce").and_then(|nonce| nonce.to_str().ok());
        if let Some(nonce) = nonce.filter(|nonce| !nonce.is_empty() && nonce.len() <= NONCE) {
            self.lock().nonce = Some(nonce.to_owned());
        }
    }

    /// The server took what it was shown.
    pub(super) fn let_in(&self) {
        self.lock().restraint.forget_login();
    }

    async fn known(&self) -> Result<Option<Arc<Held>>, AuthError> {
        if let Some(known) = &self.lock().known {
            return Ok(known.clone());
        }
        let stored = self.load().await?;
        let grant = stored.and_then(|stored| Grant::from_record(&stored.record));
        let held = grant.and_then(|grant| self.held(grant));
        // Whoever was faster knows at least as much.
        Ok(self.lock().known.get_or_insert(held).clone())
    }

    /// Begins a renewal that nobody's leaving ends, once its task is spawned.
    fn fly(
        self: &Arc<Self>,
        state: &mut State,
        need: Need,
    ) -> Result<
        (watch::Receiver<Option<Landing>>, impl Future<Output = ()> + Send + use<>),
        AuthError,
    > {
        if need.how == Recovery::StepUp {
            state.may_step_up(&need)?;
        }
        let (send, landed) = watch::channel(None);
        state.flights += 1;
        state.flight = Some(RenewalInFlight {
            number: state.flights,
            how: need.how,
            scope: need.scope().cloned(),
            landed: landed.clone(),
        });
        let guard = InFlight {
            session: self.clone(),
            number: state.flights,
            _at_work: self.flights.begin(),
        };
        let task = async move {
            let landing = guard.session.renew(&need).await;
            // The flight ends before anyone hears of it: who then needs more begins another.
            drop(guard);
            send.send_replace(Some(landing));
        };
        Ok((landed, task))
    }

    async fn load(&self) -> Result<Option<Stored>, AuthError> {
        within(self.auth.deadline, self.auth.store.load(&self.key)).await
    }

    fn held(&self, grant: Grant) -> Option<Arc<Held>> {
        let held = Held::new(grant, self.auth.clock.now())?;
        // A token that anyone could show is not what the user wants, though it was granted before.
        let bound = held.tokens.scheme == Scheme::Dpop;
        (bound || self.auth.settings.dpop != DpopUse::Always).then_some(held)
    }

    /// From now on this is what there is.
    fn learn(&self, held: Option<Arc<Held>>) {
        self.lock().known = Some(held);
    }

    /// From now on there is nothing.
    fn unlearn(&self) {
        let mut state = self.lock();
        state.known = Some(None);
        state.unsaved = None;
        state.asked.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Nothing if there are no tokens.
    fn new(grant: Grant, now: u64) -> Option<Arc<Held>> {
        let tokens = grant.tokens.clone()?;
        let renewed_from = tokens.expires_at.map(|end| {
            let left = end.saturating_sub(now);
            end.saturating_sub(EARLY.min(left / 4))
        });
        let proof = grant.proof_key.as_ref().and_then(|key| SigningKey::from_pkcs8(key).ok());
        Some(Arc::new(Held { grant, tokens, proof, renewed_from }))
    }
}

impl Need {
    fn scope(&self) -> Option<&Scopes> {
        self.challenge.as_ref().and_then(|challenge| challenge.scope.as_ref())
    }
}

impl RenewalInFlight {
    /// Whether what it brings, or why it fails, is what `need` would get.
    fn serves(&self, need: &Need) -> bool {
        let enough = match (&self.scope, need.scope()) {
            (_, None) => true,
            (Some(asked), Some(needed)) => asked.contains_all(needed),
            (None, Some(_)) => false,
        };
        enough
            && (self.how == need.how || (need.how == Recovery::Renew && self.how == Recovery::Anew))
    }
}

impl State {
    fn other_than(&self, used: Option<&Secret>) -> Option<Arc<Held>> {
        let held = self.known.as_ref()?.as_ref()?;
        (used != Some(&held.tokens.access)).then(|| held.clone())
    }

    /// Not for what was asked for already: it would be refused again, and someone bothered again.
    fn may_step_up(&self, need: &Need) -> Result<(), AuthError> {
        let held = self.known.as_ref().and_then(Option::as_ref);
        let asked = held.map(|held| held.grant.scopes.clone()).unwrap_or_default();
        let needed = need.scope().cloned().unwrap_or_default();
        let granted = held.and_then(|held| held.tokens.granted.as_ref()).unwrap_or(&asked);
        let nothing_new = asked.contains_all(&needed) && granted.contains_all(&needed);
        // What was asked for in vain before a login that is over may be had by now.
        let sets = self.asked.iter().filter(|set| asked.contains_all(set));
        let again = sets.clone().any(|set| *set == asked.union(&needed)) || sets.count() >= SETS;
        if nothing_new || again {
            let message = "the server wants scopes that were asked for already";
            return Err(scope(message, need.challenge.clone().unwrap_or_default()));
        }
        Ok(())
    }
}

/// Ends the flight, even if its task panics.
struct InFlight {
    session: Arc<Session>,
    number: u64,
    _at_work: AtWork,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        if state.flight.as_ref().is_some_and(|flight| flight.number == self.number) {
            state.flight = None;
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("origin", &self.origin).finish_non_exhaustive()
    }
}

fn sensitive(value: &str) -> Result<HeaderValue, AuthError> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| AuthError::new(AuthErrorKind::Response, "a token fits into no header"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn readable_by_others(origin: &Origin) -> AuthError {
    let message = format!(
        "{} wants a token and is not encrypted, so that others could read it: use https, or \
         `Auth::plain_http` in a network of one's own",
        origin.as_str()
    );
    AuthError::new(AuthErrorKind::Forbidden, message)
}

fn lost() -> AuthError {
    AuthError::new(AuthErrorKind::Unreachable, "authorization was broken off")
}
