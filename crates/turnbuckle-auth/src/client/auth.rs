//! Owns what a user says about authorization, in one place. Does not own what is made of it.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    drive::IdentitySource,
    flights::Counter,
    flow::Tools,
    login::{Login, LoopbackLogin},
    random::{Random, SystemRandom},
    settings::{Registered, Settings, Way},
    store::{GrantStore, MemoryStore, StoreKey, Swap},
};
use crate::{AuthError, AuthErrorKind, Clock, Rules, Scopes, Secret, SystemClock};

/// How long a person may take to log in.
const DEADLINE: Duration = Duration::from_secs(5 * 60);

/// How a client authorizes itself: who logs in, as which client, and where what was granted is kept.
///
/// ```
/// use turnbuckle_auth::{Auth, FileStore, LoopbackLogin, Secret};
/// // A person, in the browser; what was granted is kept for the next time.
/// let auth = Auth::person(LoopbackLogin::new()).store(FileStore::at("/home/me/.grants"));
/// // A program, by its secret.
/// let auth = Auth::client_credentials("my-client", Secret::new("s3cr3t"))
///     .issuer("https://auth.example.com");
/// assert!(!format!("{auth:?}").contains("s3cr3t"));
/// ```
#[derive(Clone)]
pub struct Auth {
    pub(super) settings: Settings,
    pub(super) store: Arc<dyn GrantStore>,
    pub(super) login: Option<Arc<dyn Login>>,
    pub(super) identity: Option<IdentitySource>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) rules: Rules,
    pub(super) private: bool,
    pub(super) plain_http: bool,
    pub(super) deadline: Duration,
    pub(super) changed: Vec<Arc<dyn Fn() + Send + Sync>>,
    /// Of everything that was made of this and of its clones.
    pub(super) flights: Counter,
}

impl Auth {
    /// A person logs in.
    pub fn person(login: impl Login + 'static) -> Auth {
        Auth { login: Some(Arc::new(login)), ..Auth::with(Settings::default()) }
    }

    /// The client itself, by a secret that someone got for it beforehand; say where, with
    /// [`Auth::issuer`].
    pub fn client_credentials(client_id: impl Into<String>, secret: Secret) -> Auth {
        let mut registered = Registered::new(client_id);
        registered.secret = Some(secret);
        let (way, registered) = (Way::ClientCredentials, Some(registered));
        Auth::with(Settings { way, registered, ..Settings::default() })
    }

    /// By settings of one's own. Without [`Auth::login`] nobody logs in: what needs it fails with
    /// [`AuthErrorKind::Required`].
    pub fn with(settings: Settings) -> Auth {
        Auth {
            settings,
            store: Arc::new(MemoryStore::new()),
            login: None,
            identity: None,
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            rules: Rules::default(),
            private: false,
            plain_http: false,
            deadline: DEADLINE,
            changed: Vec::new(),
            flights: Counter::default(),
        }
    }

    /// A person logs in, in the browser of this machine.
    pub fn browser() -> Auth {
        Auth::person(LoopbackLogin::new())
    }

    /// How a person logs in.
    #[must_use]
    pub fn login(mut self, login: impl Login + 'static) -> Auth {
        self.login = Some(Arc::new(login));
        self
    }

    /// Who says who the person or this program is, for [`Way::Enterprise`] and [`Way::Workload`].
    #[must_use]
    pub fn identity(mut self, identity: IdentitySource) -> Auth {
        self.identity = Some(identity);
        self
    }

    /// Where what was granted is kept; in memory if nothing is said.
    #[must_use]
    pub fn store(mut self, store: impl GrantStore + 'static) -> Auth {
        self.store = Arc::new(store);
        self
    }

    /// What someone registered beforehand.
    #[must_use]
    pub fn registered(mut self, registered: Registered) -> Auth {
        self.settings.registered = Some(registered);
        self
    }

    /// At which authorization server the client was registered beforehand: its secret is shown to no other.
    /// If it isn't said, the first one that a server names is it, for as long as the store remembers, which
    /// trusts that server. To be said after [`Auth::client_credentials`] or [`Auth::registered`].
    ///
    /// ```
    /// use turnbuckle_auth::{Auth, Secret};
    /// let auth = Auth::client_credentials("my-service", Secret::new("s3cr3t"))
    ///     .issuer("https://auth.example.com");
    /// # let _ = auth;
    /// ```
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Auth {
        if let Some(registered) = &mut self.settings.registered {
            registered.issuer = Some(issuer.into());
        }
        self
    }

    /// The address of the client's own document, which is its name where that is understood.
    #[must_use]
    pub fn document(mut self, url: impl Into<String>) -> Auth {
        self.settings.document = Some(url.into());
        self
    }

    /// What to ask for instead of what the server says.
    #[must_use]
    pub fn scopes(mut self, scopes: Scopes) -> Auth {
        self.settings.scopes = Some(scopes);
        self
    }

    /// What people are shown as the name of the client.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Auth {
        self.settings.client_name = name.into();
        self
    }

    /// Everything else that can be decided.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Auth {
        change(&mut self.settings);
        self
    }

    /// How long a person may take to log in, or the store to answer: five minutes if nothing is said.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Auth {
        self.deadline = deadline;
        self
    }

    /// Lets a public server name authorization servers in private networks.
    #[must_use]
    pub fn private_addresses(mut self) -> Auth {
        self.private = true;
        self
    }

    /// Shows tokens to servers over plain `http` too, wherever they are. Whoever is on the way can read
    /// them and use them: only for a network in which that is nobody else. Authorization servers must
    /// be at `https` all the same.
    #[must_use]
    pub fn plain_http(mut self) -> Auth {
        self.plain_http = true;
        self
    }

    /// What holds for each request to an authorization server. Where connections may go is told
    /// from the protected server, see [`Auth::private_addresses`].
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Auth {
        self.rules = rules;
        self
    }

    /// What time it is, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Auth {
        self.clock = Arc::new(clock);
        self
    }

    /// Calls `changed` whenever what is shown from then on may be somebody else's than what was shown
    /// before: someone logged in, or another process changed what is kept. It must not wait.
    #[must_use]
    pub fn on_change(mut self, changed: impl Fn() + Send + Sync + 'static) -> Auth {
        self.changed.push(Arc::new(changed));
        self
    }

    pub(super) fn tell_change(&self) {
        self.changed.iter().for_each(|changed| changed());
    }

    /// Forgets what was granted for the server at this address. Who the client is at its
    /// authorization server stays known. Dropping the future leaves open whether it happened.
    pub async fn log_out(&self, server_url: &str) -> Result<(), AuthError> {
        within(self.deadline, forget(&*self.store, &StoreKey::grant(server_url))).await
    }

    /// Waits, for at most `limit`, until nothing is asked for any more by whatever was made of this and
    /// of its clones, and says whether that is so. To be called before the runtime ends: an
    /// authorization server that has given a new refresh token does not take the old one any more, and
    /// the new one must be kept first. Nobody's login is waited for. Dropping the future ends the wait
    /// and nothing else.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    /// use turnbuckle_auth::Auth;
    /// let auth = Auth::browser();
    /// // … clients with `auth.clone()` …
    /// assert!(auth.settle(Duration::from_secs(30)).await);
    /// # }
    /// ```
    pub async fn settle(&self, limit: Duration) -> bool {
        self.flights.settled(limit).await
    }

    /// For one flow, of a client that is known to belong to this issuer, if its settings name none.
    pub(super) fn tools(&self, issuer: Option<String>) -> Tools {
        let mut settings = self.settings.clone();
        if let (Some(registered), Some(issuer)) = (&mut settings.registered, issuer) {
            registered.issuer.get_or_insert(issuer);
        }
        Tools {
            settings: Arc::new(settings),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }
}

/// What a store answers, if it does so before the deadline.
pub(super) async fn within<T>(
    deadline: Duration,
    asked: impl Future<Output = Result<T, AuthError>>,
) -> Result<T, AuthError> {
    tokio::time::timeout(deadline, asked).await.unwrap_or_else(|_| {
        Err(AuthError::new(AuthErrorKind::Store, "the store of grants does not answer"))
    })
}

/// Deletes what is kept under `key`, whoever writes meanwhile.
pub(super) async fn forget(store: &dyn GrantStore, key: &StoreKey) -> Result<(), AuthError> {
    for _ in 0..8 {
        let Some(stored) = store.load(key).await? else { return Ok(()) };
        if let Swap::Done(_) = store.swap(key, Some(stored.version), None).await? {
            return Ok(());
        }
    }
    Err(AuthError::new(AuthErrorKind::Store, "what is to be deleted is written again and again"))
}

/// Writes `record` under `key`, whoever writes meanwhile; not if it is there already.
pub(super) async fn write(
    store: &dyn GrantStore,
    key: &StoreKey,
    record: Secret,
) -> Result<(), AuthError> {
    for _ in 0..4 {
        let stored = store.load(key).await?;
        if stored.as_ref().is_some_and(|stored| stored.record == record) {
            return Ok(());
        }
        let expected = stored.map(|stored| stored.version);
        if let Swap::Done(_) = store.swap(key, expected, Some(record.clone())).await? {
            return Ok(());
        }
    }
    Err(AuthError::new(AuthErrorKind::Store, "what is to be kept is written again and again"))
}

/// Nothing secret: what the settings show, and no more.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("settings", &self.settings).finish_non_exhaustive()
    }
}
