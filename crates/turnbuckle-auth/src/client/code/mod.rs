//! One login: what is sent along with the person (PKCE, `state`, who is asked), and which answer is
//! the one to it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest;
use url::form_urlencoded;

use super::{
    grant::Grant,
    metadata::ServerMetadata,
    random::{Random, unguessable},
    text::{form, quote},
};
use crate::{AuthError, AuthErrorKind, Scopes, Secret};

/// The longest answer that is looked at.
const LONGEST_ANSWER: usize = 16 * 1024;

/// What has to be known of a login until it is answered.
pub(crate) struct Attempt {
    verifier: Secret,
    state: Secret,
    redirect_uri: String,
    /// Of validated metadata, so that an answer of another can be told (RFC 9207).
    issuer: String,
    names_itself: bool,
}

impl Attempt {
    pub(crate) fn new(
        server: &ServerMetadata,
        redirect_uri: &str,
        random: &dyn Random,
    ) -> Result<Attempt, AuthError> {
        Ok(Attempt {
            verifier: unguessable(random)?,
            state: unguessable(random)?,
            redirect_uri: redirect_uri.to_owned(),
            issuer: server.issuer.clone(),
            names_itself: server.names_itself,
        })
    }

    /// Where the person is sent. Of what is secret only `state` is in it, which is made for that.
    pub(crate) fn url(&self, endpoint: &str, grant: &Grant, key: Option<&str>) -> String {
        let scopes = Some(&grant.scopes).filter(|scopes| !scopes.is_empty()).map(Scopes::to_string);
        let challenge = self.challenge();
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", grant.registration.client_id.as_str()),
            ("redirect_uri", self.redirect_uri.as_str()),
            ("state", self.state.expose()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ];
        pairs.extend(scopes.as_deref().map(|scopes| ("scope", scopes)));
        pairs.extend(grant.resource.as_deref().map(|resource| ("resource", resource)));
        // RFC 9449 §10: a stolen code is of no use without the key either.
        pairs.extend(key.map(|thumbprint| ("dpop_jkt", thumbprint)));
        // OpenID Connect gives refresh tokens only to those who ask the person for it.
        if grant.scopes.contains("offline_access") {
            pairs.push(("prompt", "consent"));
        }
        // RFC 6749 §3.1: a query that is there already is kept.
        let between = if endpoint.contains('?') { '&' } else { '?' };
        format!("{endpoint}{between}{}", form(pairs))
    }

    /// The code in the answer: the address that the person was sent back to, or only its query.
    ///
    /// # Errors
    /// If it is not the answer to this login, or says no.
    pub(crate) fn read(&self, answer: &str) -> Result<Secret, AuthError> {
        if answer.len() > LONGEST_ANSWER {
            return Err(other("the answer to the login is too long"));
        }
        let answer = AuthorizationResponse::read(answer)?;
        if answer.state.is_none_or(|state| state != self.state) {
            return Err(other("the answer is not to the login that was begun: `state` is another"));
        }
        // Before anything else is believed of it, and that goes for errors too. The strings are
        // compared as they are: 2026-07-28 authorization §Authorization Response Validation.
        match answer.issuer {
            Some(issuer) if issuer != self.issuer => {
                return Err(other("the answer is from another authorization server: wrong `iss`"));
            }
            None if self.names_itself => {
                return Err(other("the answer does not say which server it is from: no `iss`"));
            }
            _ => {}
        }
        if let Some(error) = answer.error {
            let hidden = [self.state.clone(), self.verifier.clone()];
            let code = quote(&error, &hidden);
            let said = answer.description.map(|said| quote(&said, &hidden));
            let message = match said.filter(|said| !said.is_empty()) {
                Some(said) => format!("the login was refused: {code} ({said})"),
                None => format!("the login was refused: {code}"),
            };
            let kind = match error.as_str() {
                "invalid_scope" => AuthErrorKind::Scope,
                "server_error" | "temporarily_unavailable" => AuthErrorKind::Unreachable,
                _ => AuthErrorKind::Refused,
            };
            return Err(AuthError::new(kind, message).with_oauth_code(code));
        }
        answer.code.ok_or_else(|| other("the answer to the login has no code"))
    }

    pub(crate) fn verifier(&self) -> &Secret {
        &self.verifier
    }

    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// RFC 7636 §4.2.
    fn challenge(&self) -> String {
        let digest = digest::digest(&digest::SHA256, self.verifier.expose().as_bytes());
        URL_SAFE_NO_PAD.encode(digest)
    }
}

#[derive(Default)]
struct AuthorizationResponse {
    state: Option<Secret>,
    issuer: Option<String>,
    code: Option<Secret>,
    error: Option<String>,
    description: Option<String>,
}

impl AuthorizationResponse {
    fn read(text: &str) -> Result<AuthorizationResponse, AuthError> {
        let text = text.split('#').next().unwrap_or_default();
        // A `?` before anything is set begins the query; a later one belongs to a value.
        let query = match (text.find('?'), text.find('=')) {
            (Some(mark), Some(equals)) if mark < equals => &text[mark + 1..],
            _ => text,
        };
        let mut answer = AuthorizationResponse::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let repeated = match name.as_ref() {
                "state" => answer.state.replace(Secret::new(value)).is_some(),
                "iss" => answer.issuer.replace(value.into_owned()).is_some(),
                "code" => answer.code.replace(Secret::new(value)).is_some(),
                "error" => answer.error.replace(value.into_owned()).is_some(),
                "error_description" => answer.description.replace(value.into_owned()).is_some(),
                _ => false,
            };
            // RFC 6749 §3.1 forbids it, and which of two is meant can't be told.
            if repeated {
                return Err(other("the answer to the login says something twice"));
            }
        }
        answer.code = answer.code.filter(|code| !code.expose().is_empty());
        Ok(answer)
    }
}

fn other(message: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Response, message)
}

#[cfg(test)]
mod tests;
