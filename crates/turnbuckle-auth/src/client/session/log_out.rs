//! Giving back what was granted (RFC 7009) and forgetting it.

use std::time::Duration;

use http::header;

use super::Session;
use crate::{
    AuthError, AuthErrorKind, Fetch as _, Secret,
    client::{
        auth::{forget, within},
        authenticate::authenticate,
        grant::{Grant, Tokens},
        metadata::{document, server_metadata_urls},
        text::{check_address, get, post_form, text},
    },
};

/// How long a renewal that has begun is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// What came of logging out. In each case nothing is kept any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoggedOut {
    /// Nothing was kept.
    Already,
    /// The authorization server has taken the tokens back.
    Revoked,
    /// The authorization server takes nothing back: the tokens are forgotten here, and good until
    /// they end.
    Forgotten,
    /// The same, because asking it to take them back failed.
    NotRevoked(AuthError),
}

impl Session {
    pub(crate) async fn log_out(&self) -> Result<LoggedOut, AuthError> {
        let lease = self.auth.store.lease(&self.key, self.longest());
        // What is being renewed is given back as what it becomes; but nobody's login is waited for.
        let lease = tokio::time::timeout(PATIENCE, lease).await;
        let grant = self.kept().await?.grant;
        // First: whatever happens then, it is not used any more.
        within(self.auth.deadline, forget(&*self.auth.store, &self.key)).await?;
        self.unlearn();
        self.let_in();
        drop(lease);
        let Some((grant, tokens)) = grant.and_then(|grant| Some((grant.clone(), grant.tokens?)))
        else {
            return Ok(LoggedOut::Already);
        };
        Ok(match self.revoke(&grant, &tokens).await {
            Ok(true) => LoggedOut::Revoked,
            Ok(false) => LoggedOut::Forgotten,
            Err(error) => LoggedOut::NotRevoked(error),
        })
    }

    /// Whether there is anyone to take it back.
    async fn revoke(&self, grant: &Grant, tokens: &Tokens) -> Result<bool, AuthError> {
        let Some(endpoint) = self.revocation_endpoint(&grant.issuer).await? else {
            return Ok(false);
        };
        // With the one goes the other (RFC 7009 §2.1).
        let (token, hint) = match &tokens.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access, "access_token"),
        };
        let mut pairs = vec![("token", token.clone()), ("token_type_hint", Secret::new(hint))];
        let key = self.auth.settings.key.as_ref();
        let now = self.auth.clock.now();
        let shown = authenticate(&grant.registration, &grant.issuer, key, now, &mut pairs)?;
        let mut request = post_form(&endpoint, &pairs)?;
        if let Some(shown) = shown {
            request.headers_mut().insert(header::AUTHORIZATION, shown);
        }
        let status = self.fetch.fetch(request, &self.auth.rules).await?.status();
        if status.is_success() {
            return Ok(true);
        }
        let message = format!("the authorization server answers {}", status.as_u16());
        Err(AuthError::new(AuthErrorKind::Refused, message))
    }

    async fn revocation_endpoint(&self, issuer: &str) -> Result<Option<String>, AuthError> {
        for url in server_metadata_urls(issuer)? {
            let response = self.fetch.fetch(get(&url)?, &self.auth.rules).await?;
            let Some(said) = document(&response, &url)? else { continue };
            if text(&said, "issuer") != Some(issuer) {
                let message = "the authorization server says that it is another one";
                return Err(AuthError::new(AuthErrorKind::Metadata, message));
            }
            let Some(endpoint) = text(&said, "revocation_endpoint") else { return Ok(None) };
            check_address(endpoint)?;
            return Ok(Some(endpoint.to_owned()));
        }
        Ok(None)
    }
}
