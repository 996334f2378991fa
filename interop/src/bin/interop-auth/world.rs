//! Owns: what checks look at: the provider, the protected servers, the person. Does not own: a check.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle::{
    Client, ClientBuilder, Revision,
    auth::{
        Auth, AuthError, AuthErrorKind, Clock, Grant, GrantStore as _, HandledLogin, LoopbackLogin,
        MemoryStore, SigningKey, StoreKey, SystemClock, Tokens,
    },
};

use crate::{authority, serve::REDIRECT, web::Web};

/// What clients that have a secret have. Each character of it means something somewhere.
pub(crate) const SECRET: &str = "a secret: 100% +/&=?";

/// Where a client says who it is.
pub(crate) const DOCUMENT: &str = "/client.json";

/// Everyone.
pub(crate) struct World {
    pub(crate) issuer: String,
    pub(crate) signer: SigningKey,
    pub(crate) web: Web,
    revision: Option<Revision>,
    /// Of the protected servers.
    origin: String,
    root: String,
}

/// Whoever sits before a browser, and how often they logged in.
#[derive(Clone)]
pub(crate) struct Person {
    web: Web,
    logins: Arc<AtomicUsize>,
}

impl World {
    pub(crate) fn new(
        folder: &Path,
        issuer: &str,
        revision: Option<Revision>,
        url: &str,
    ) -> Result<World, String> {
        let root = fs::read_to_string(folder.join(authority::ROOT));
        Ok(World {
            issuer: issuer.to_owned(),
            signer: authority::signer(folder)?,
            web: Web::new(folder)?,
            revision,
            origin: url.strip_suffix("/mcp").ok_or("the URL ends with /mcp")?.to_owned(),
            root: root.map_err(|error| error.to_string())?,
        })
    }

    /// One of the protected servers.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    pub(crate) fn person(&self) -> Person {
        Person { web: self.web.clone(), logins: Arc::default() }
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let builder = Client::builder().no_proxy().tls_root(self.root.clone());
        match self.revision {
            Some(revision) => builder.revision(revision),
            None => builder,
        }
    }

    pub(crate) async fn connect(&self, path: &str, auth: Auth) -> Result<Client, String> {
        self.builder().auth(auth).connect(self.at(path)).await.map_err(|error| error.to_string())
    }

    /// Logs in, whether that is needed or not.
    pub(crate) async fn log_in(&self, path: &str, auth: Auth) -> Result<(), String> {
        let done = self.builder().auth(auth).log_in(self.at(path)).await;
        done.map_err(|error| error.to_string())
    }

    /// Renews a token at the provider as anyone could who has read what is kept, and gives the
    /// answer.
    pub(crate) async fn refresh(&self, grant: &Grant, tokens: &Tokens) -> Result<Value, String> {
        let refresh = tokens.refresh.as_ref().ok_or("there is nothing to renew with")?;
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", grant.registration.client_id.as_str()),
            ("refresh_token", refresh.expose()),
        ];
        self.web.post(&grant.endpoints.token, &form).await?.json()
    }

    /// What the provider was asked so far, and how that ended.
    pub(crate) async fn seen(&self) -> Result<Vec<Value>, String> {
        let seen = self.web.get(&format!("{}/seen", self.issuer)).await?.json()?;
        seen.as_array().cloned().ok_or_else(|| format!("this was not seen: {seen}"))
    }

    /// The same of what one client asked, which registered itself and so is like no other.
    pub(crate) async fn seen_of(&self, grant: &Grant) -> Result<Vec<Value>, String> {
        let mut seen = self.seen().await?;
        seen.retain(|it| it["client"] == grant.registration.client_id);
        Ok(seen)
    }

    /// What was granted for one of the protected servers.
    pub(crate) async fn grant(
        &self,
        store: &MemoryStore,
        path: &str,
    ) -> Result<(Grant, Tokens), String> {
        let stored = store.load(&StoreKey::grant(&self.at(path))).await;
        let record = stored.map_err(|error| error.to_string())?.ok_or("nothing is kept")?.record;
        let grant = Grant::from_record(&record).ok_or("what is kept is unreadable")?;
        let tokens = grant.tokens.clone().ok_or("what is kept has no token")?;
        Ok((grant, tokens))
    }
}

impl Person {
    /// Logs in by a browser that is sent back to a listener on this machine.
    pub(crate) fn auth(&self) -> Auth {
        let (person, runtime) = (self.clone(), tokio::runtime::Handle::current());
        let login = LoopbackLogin::new().opener(move |url| {
            person.logins.fetch_add(1, Ordering::Relaxed);
            let (web, url) = (person.web.clone(), url.to_owned());
            runtime.spawn(async move {
                let ended = web.log_in(&url).await;
                let answered = match ended {
                    Ok(back) => web.call_back(&back).await.map(|_| ()),
                    Err(sentence) => Err(sentence),
                };
                if let Err(sentence) = answered {
                    eprintln!("the browser is lost: {sentence}");
                }
            });
            Ok(())
        });
        Auth::person(login.deadline(Duration::from_secs(15)))
    }

    /// The same, always sent back to the same address, which nobody but the client knows of.
    pub(crate) fn handled(&self) -> Auth {
        let person = self.clone();
        Auth::person(HandledLogin::new(REDIRECT, move |request| {
            let person = person.clone();
            person.logins.fetch_add(1, Ordering::Relaxed);
            async move {
                let back = person.web.log_in(&request.url).await;
                back.map_err(|sentence| AuthError::new(AuthErrorKind::NotLoggedIn, sentence))
            }
        }))
    }

    pub(crate) fn logins(&self) -> usize {
        self.logins.load(Ordering::Relaxed)
    }
}

/// A clock that can be put back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Arc<AtomicU64>);

impl Watch {
    pub(crate) fn back(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for Watch {
    fn now(&self) -> u64 {
        SystemClock.now() - self.0.load(Ordering::Relaxed)
    }
}

/// What a tool says to a text.
pub(crate) async fn said(client: &Client, tool: &str) -> Result<String, String> {
    let text = match tool {
        "whoami" => json!({}),
        _ => json!({"text": "hello"}),
    };
    let result = client.call_tool(tool, text).await.map_err(|error| error.to_string())?;
    Ok(result.to_text())
}
