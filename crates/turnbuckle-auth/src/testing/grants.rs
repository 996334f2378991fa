//! Owns what each grant demands before a token is given. Does not own how the answer looks.

use serde_json::{Map, Value, json};

use super::{
    InsecureAuthorizationServer,
    reply::Problem,
    state::{Lasting, State},
    token::TokenCaller,
};
use crate::{
    Scopes, Secret,
    jose::{
        KeySet, encode,
        jwt::{self, TokenRules},
        sha256,
    },
};

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// `typ` of an identity assertion that is itself a grant.
const ID_JAG_TYPE: &str = "oauth-id-jag+jwt";

impl InsecureAuthorizationServer {
    /// RFC 6749 §4.1.3, RFC 7636 §4.6.
    pub(super) fn by_code(&self, asking: &TokenCaller<'_>) -> Result<Value, Problem> {
        let wrong = |text: &str| Problem::new("invalid_grant", text);
        let client = asking.client()?;
        let name = asking.form.needed("code")?;
        let lasting = {
            let mut state = self.lock();
            state.shown.extend(asking.form.field("code_verifier").map(Secret::new));
            let now = self.clock.now();
            let code = state.codes.get_mut(name).ok_or_else(|| wrong("no such code"))?;
            let was_used = std::mem::replace(&mut code.used, true);
            let code = code.clone();
            if was_used {
                // RFC 6749 §4.1.2: someone has it who should not; what it gave is taken back.
                state.revoked.insert(code.lasting.family);
                return Err(wrong("the code was used before"));
            }
            if code.client_id != client.client_id {
                return Err(wrong("the code is another client's"));
            }
            if asking.form.field("redirect_uri") != Some(code.redirect_uri.as_str()) {
                return Err(wrong("the redirect address is another"));
            }
            let verifier = asking.form.needed("code_verifier")?;
            if !(43..=128).contains(&verifier.len()) || encode(sha256(verifier)) != code.challenge {
                return Err(wrong("the code verifier is wrong"));
            }
            if now >= code.expires {
                return Err(wrong("the code has expired"));
            }
            code.lasting
        };
        same_resource(asking, &lasting)?;
        Ok(self.tokens(asking, &self.settings.subject, lasting, Some(client)))
    }

    /// RFC 6749 §6, with a new refresh token each time.
    pub(super) fn by_refresh(&self, asking: &TokenCaller<'_>) -> Result<Value, Problem> {
        let wrong = |text: &str| Problem::new("invalid_grant", text);
        let client = asking.client()?;
        let name = asking.form.needed("refresh_token")?;
        let mut lasting = {
            let mut state = self.lock();
            let State { refreshes, revoked, .. } = &mut *state;
            let kept = refreshes.get_mut(name).ok_or_else(|| wrong("no such refresh token"))?;
            if kept.client_id != client.client_id {
                return Err(wrong("the refresh token is another client's"));
            }
            if kept.thumbprint.is_some() && kept.thumbprint != asking.thumbprint {
                return Err(wrong("the refresh token is bound to another key"));
            }
            // RFC 9700 §4.14.2: two have it, and one of them should not.
            if kept.used {
                revoked.insert(kept.lasting.family);
            }
            if revoked.contains(&kept.lasting.family) {
                return Err(wrong("the refresh token is no good any more"));
            }
            same_resource(asking, &kept.lasting)?;
            kept.used = true;
            kept.lasting.clone()
        };
        if asking.form.field("scope").is_some() {
            let fewer = self.scopes_asked(asking.form)?;
            if !lasting.scopes.contains_all(&fewer) {
                return Err(Problem::new("invalid_scope", "more than was consented to"));
            }
            lasting.scopes = fewer;
        }
        Ok(self.tokens(asking, &self.settings.subject, lasting, Some(client)))
    }

    /// RFC 6749 §4.4.
    pub(super) fn by_credentials(&self, asking: &TokenCaller<'_>) -> Result<Value, Problem> {
        let subject = asking.proven()?.client_id.clone();
        let lasting = self.asked(asking)?;
        Ok(self.tokens(asking, &subject, lasting, None))
    }

    /// RFC 7523 §2.1: someone else says who it is. A client need not say who it is itself.
    pub(super) fn by_assertion(&self, asking: &TokenCaller<'_>) -> Result<Value, Problem> {
        let wrong = |text: &str| Problem::new("invalid_grant", text);
        let assertion = asking.form.needed("assertion")?;
        let issuer = jwt::unverified_issuer(assertion).ok_or_else(|| wrong("no assertion"))?;
        let trusted = self.settings.trusted.iter().find(|(name, _)| *name == issuer);
        let (_, keys) = trusted.ok_or_else(|| wrong("the assertion's issuer is unknown"))?;
        let claims = self.believed(assertion, &issuer, keys, std::slice::from_ref(&self.issuer))?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let subject = text("sub").ok_or_else(|| wrong("the assertion names nobody"))?;
        let named = text("client_id");
        let shown = asking.client.as_ref().map(|client| client.client_id.as_str());
        if named.is_some() && named != shown {
            return Err(wrong("the assertion is for another client"));
        }
        let mut lasting = self.asked(asking)?;
        if let Some(resource) = text("resource") {
            lasting.resource = Some(resource.to_owned());
        }
        if lasting.scopes.is_empty() {
            lasting.scopes = text("scope").unwrap_or_default().split(' ').collect();
        }
        Ok(self.tokens(asking, subject, lasting, None))
    }

    /// RFC 8693: an ID token for an assertion to another server, or an access token for one to go on.
    pub(super) fn by_exchange(&self, asking: &TokenCaller<'_>) -> Result<Value, Problem> {
        let wrong = |text: &str| Problem::new("invalid_request", text);
        let client_id = asking.client()?.client_id.clone();
        let form = asking.form;
        let token = form.needed("subject_token")?;
        let keys = KeySet::of([self.public_key()]);
        let requested = form.field("requested_token_type").unwrap_or(ACCESS_TOKEN);
        match (form.needed("subject_token_type")?, requested) {
            (ID_TOKEN, ID_JAG) => {
                let claims =
                    self.believed(token, &self.issuer, &keys, std::slice::from_ref(&client_id))?;
                let mut all = self.claims("", self.clock.now());
                all.extend(claims.get("sub").map(|sub| ("sub".to_owned(), sub.clone())));
                all.insert("aud".into(), form.needed("audience")?.into());
                let elsewhere = asking.client()?.elsewhere.clone().unwrap_or(client_id);
                all.insert("client_id".into(), elsewhere.into());
                let resource = form.resource()?;
                all.extend(resource.map(|resource| ("resource".to_owned(), resource.into())));
                let scope = form.field("scope");
                all.extend(scope.map(|scope| ("scope".to_owned(), scope.into())));
                let mut state = self.lock();
                all.insert("jti".into(), format!("assertion-{}", state.next()).into());
                let made = state.sign(ID_JAG_TYPE, &all);
                Ok(json!({
                    "access_token": made.expose(),
                    "issued_token_type": ID_JAG,
                    "token_type": "N_A",
                    "expires_in": self.settings.access_lifetime,
                }))
            }
            (ACCESS_TOKEN, ACCESS_TOKEN) => {
                asking.proven()?;
                let claims = self.shown(token).ok_or_else(|| wrong("no such token"))?;
                let text =
                    |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
                let had: Scopes = text("scope").split(' ').collect();
                let mut lasting = self.asked(asking)?;
                let audience = form.field("audience").map(str::to_owned);
                lasting.resource = lasting.resource.or(audience);
                if !had.contains_all(&lasting.scopes) {
                    return Err(Problem::new("invalid_scope", "more than the token is good for"));
                }
                if lasting.scopes.is_empty() {
                    lasting.scopes = had;
                }
                let mut answer = self.tokens(asking, text("sub"), lasting, None);
                answer["issued_token_type"] = ACCESS_TOKEN.into();
                Ok(answer)
            }
            _ => Err(wrong("no such exchange")),
        }
    }

    /// What an access token says that is still good, also one that was issued by hand.
    fn shown(&self, token: &str) -> Option<Map<String, Value>> {
        let state = self.lock();
        let given = state.accesses.get(token);
        let given = given.filter(|(_, family)| !state.revoked.contains(family));
        let claims = given.map(|(claims, _)| claims).or_else(|| state.issued.get(token))?;
        let expiry = claims.get("exp").and_then(Value::as_u64)?;
        (self.clock.now() < expiry).then(|| claims.clone())
    }

    /// What a request without a login asks for.
    fn asked(&self, asking: &TokenCaller<'_>) -> Result<Lasting, Problem> {
        let resource = asking.form.resource()?;
        let scopes = self.scopes_asked(asking.form)?;
        let family = self.lock().next();
        Ok(Lasting { family, resource, scopes })
    }

    fn believed(
        &self,
        token: &str,
        issuer: &str,
        keys: &KeySet,
        audiences: &[String],
    ) -> Result<Map<String, Value>, Problem> {
        let types = &["jwt", ID_JAG_TYPE];
        let now = self.clock.now();
        let rules = TokenRules { issuer, audiences, types, now, skew: 5 };
        jwt::verify(token, keys, &rules)
            .map_err(|rejected| Problem::new("invalid_grant", rejected.to_string()))
    }
}

/// RFC 8707 §2.2: not another one than was consented to.
fn same_resource(asking: &TokenCaller<'_>, lasting: &Lasting) -> Result<(), Problem> {
    match asking.form.resource()? {
        Some(asked) if lasting.resource.as_ref() != Some(&asked) => {
            Err(Problem::new("invalid_target", "another resource than before"))
        }
        _ => Ok(()),
    }
}
