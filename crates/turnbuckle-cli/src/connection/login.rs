//! Owns who logs in for a command, and where what was granted is kept.
//! Does not own when that is needed: the client finds out.

use std::{path::Path, sync::LazyLock, time::Duration};

use turnbuckle::auth::{
    Auth, AuthError, AuthErrorKind, BoxFuture, GrantStore, Login, LoginRequest, LoopbackLogin,
    Settings, StoreKey, Waiting, open_in_browser,
};

use crate::{exit::Failure, interrupt::Interrupt, output::complain, progress::Line};

/// Where answers go that are pasted. Nobody listens there.
const PASTED: &str = "http://127.0.0.1:33418/callback";

/// How long a token that is being renewed is waited for at the end, and after how much of it that is
/// told: as long as one request to an authorization server may take.
const SETTLING: Duration = Duration::from_secs(30);
const SILENT: Duration = Duration::from_secs(1);

/// What every connection of this process is authorized by.
static COMMON: LazyLock<Auth> =
    LazyLock::new(|| Auth::with(Settings::default()).client_name("turnbuckle"));

/// Who logs in when a server wants that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Nobody: what was kept has to do.
    Nobody,
    /// Someone at this machine's browser.
    Browser,
    /// Someone at another machine's, who pastes where it was sent to.
    Pasted,
}

/// How this command authorizes itself.
pub(crate) fn auth(who: Who, line: &Line) -> Result<Auth, Failure> {
    let line = line.clone();
    let store = grants().map_err(|error| Failure::failed(error.to_string()))?;
    let auth = COMMON.clone().store(store);
    Ok(match who {
        Who::Nobody => auth,
        Who::Browser => auth.login(LoopbackLogin::new().opener(move |url| {
            open(&line, url);
            Ok(())
        })),
        Who::Pasted => auth.login(PastedLogin(line)),
    })
}

/// Waits until what is being renewed is kept: a refresh token is good once, and the process that has
/// the next one is about to end. Another Ctrl-C ends that too.
pub(crate) async fn settle() {
    let settled = async {
        if !COMMON.settle(SILENT).await {
            complain("note: a token is being renewed, and kept before this ends");
            COMMON.settle(SETTLING).await;
        }
    };
    match Interrupt::listen() {
        Ok(mut interrupt) => tokio::select! {
            biased;
            () = settled => {}
            () = interrupt.happened() => {}
        },
        Err(_) => settled.await,
    }
}

/// With the deadline that was typed.
pub(crate) fn within(auth: Auth, limit: Option<Duration>) -> Auth {
    match limit {
        Some(limit) => auth.deadline(limit),
        None => auth,
    }
}

/// Whether a login at this address is kept, of the server behind this Unix socket if there is one.
pub(crate) async fn is_kept(url: &str, unix_socket: Option<&Path>) -> bool {
    let Ok(store) = grants() else { return false };
    let key = match unix_socket {
        Some(path) => StoreKey::grant_over_socket(url, path),
        None => StoreKey::grant(url),
    };
    matches!(store.load(&key).await, Ok(Some(_)))
}

#[cfg(feature = "keyring")]
fn grants() -> Result<impl GrantStore + 'static, AuthError> {
    turnbuckle::auth::KeyringStore::new()
}

#[cfg(not(feature = "keyring"))]
fn grants() -> Result<impl GrantStore + 'static, AuthError> {
    turnbuckle::auth::FileStore::new()
}

/// Says where to, too: whoever sits elsewhere, or has closed the page, can still go there.
fn open(line: &Line, url: &str) {
    line.say(&format!("log in with your browser: {url}"));
    if let Err(error) = open_in_browser(url) {
        line.say(&format!("note: {error}; open the address yourself"));
    }
}

/// Shows the address, and reads where the browser was sent to afterwards.
struct PastedLogin(Line);

impl Login for PastedLogin {
    fn redirect_uri(
        &self,
        preferred: Option<&str>,
    ) -> BoxFuture<'_, Result<Box<dyn Waiting>, AuthError>> {
        let redirect_uri = preferred.unwrap_or(PASTED).to_owned();
        let pasting = Pasting { redirect_uri, line: self.0.clone() };
        Box::pin(async move { Ok(Box::new(pasting) as Box<dyn Waiting>) })
    }
}

struct Pasting {
    redirect_uri: String,
    line: Line,
}

impl Waiting for Pasting {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn log_in(
        self: Box<Self>,
        request: LoginRequest,
    ) -> BoxFuture<'static, Result<String, AuthError>> {
        self.line.say(&format!("log in with any browser: {}", request.url));
        self.line
            .say("then paste the address of the page that it is sent to, which need not load:");
        Box::pin(async move {
            let line = tokio::task::spawn_blocking(|| {
                let mut line = String::new();
                std::io::stdin().read_line(&mut line).map(|_| line)
            });
            match line.await {
                Ok(Ok(line)) if !line.trim().is_empty() => Ok(line.trim().to_owned()),
                _ => Err(AuthError::new(AuthErrorKind::NotLoggedIn, "no address was pasted")),
            }
        })
    }
}
