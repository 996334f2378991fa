//! The endpoints that give, explain and revoke tokens.

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

use super::{
    Endpoint, Fault, InsecureAuthorizationServer, InsecureClient,
    clients::{FormFields, Proves},
    reply::{self, Problem},
    state::{Lasting, Refresh},
    unsigned,
};
use crate::jose::dpop::{self, Refused};

/// Who asks for a token.
pub(super) struct TokenCaller<'a> {
    pub(super) form: &'a FormFields,
    pub(super) client: Option<InsecureClient>,
    /// Of the key that it has proven to have.
    pub(super) thumbprint: Option<String>,
}

impl TokenCaller<'_> {
    pub(super) fn client(&self) -> Result<&InsecureClient, Problem> {
        let nobody = || Problem::new("invalid_client", "no client says who it is").with_status(401);
        self.client.as_ref().ok_or_else(nobody)
    }

    /// One that has proven who it is.
    pub(super) fn proven(&self) -> Result<&InsecureClient, Problem> {
        match self.client()? {
            InsecureClient { proves: Proves::Nothing, .. } => {
                Err(Problem::new("unauthorized_client", "the client can't prove who it is"))
            }
            client => Ok(client),
        }
    }
}

impl InsecureAuthorizationServer {
    pub(super) fn token(&self, request: &Request<Bytes>) -> Response<Bytes> {
        match self.given(request) {
            Ok(answer) => reply::json(200, &answer),
            Err(problem) => problem.into_response(),
        }
    }

    fn given(&self, request: &Request<Bytes>) -> Result<Value, Problem> {
        let form = FormFields::read(request.body())?;
        let client = self.authenticated(request, &form)?;
        let thumbprint = self.proven_key(request)?;
        let asking = TokenCaller { form: &form, client, thumbprint };
        match form.needed("grant_type")? {
            "authorization_code" => self.by_code(&asking),
            "refresh_token" => self.by_refresh(&asking),
            "client_credentials" => self.by_credentials(&asking),
            "urn:ietf:params:oauth:grant-type:jwt-bearer" => self.by_assertion(&asking),
            "urn:ietf:params:oauth:grant-type:token-exchange" => self.by_exchange(&asking),
            _ => Err(Problem::new("unsupported_grant_type", "no such grant")),
        }
    }

    /// RFC 9449 §5: the token will be bound to this key.
    fn proven_key(&self, request: &Request<Bytes>) -> Result<Option<String>, Problem> {
        let wrong = |text: String| Problem::new("invalid_dpop_proof", text);
        let proofs: Vec<_> = request.headers().get_all("dpop").iter().collect();
        let proof = match proofs[..] {
            [] => return Ok(None),
            [proof] => proof.to_str().map_err(|_| wrong("no readable proof".into()))?,
            _ => return Err(wrong("more than one proof".into())),
        };
        let url = self.address(Endpoint::Token);
        let now = self.clock.now();
        let expected = dpop::ExpectedProof {
            method: request.method().as_str(),
            url: &url,
            access_token: None,
            thumbprint: None,
            nonces: self.settings.nonces.as_ref(),
            now,
            oldest: 60,
            skew: 5,
        };
        let replays = std::sync::Arc::clone(&self.lock().replays);
        match (dpop::check(proof, &expected, &replays), &self.settings.nonces) {
            (Ok(checked), _) => Ok(Some(checked.thumbprint)),
            (Err(refused @ Refused::Nonce), Some(nonces)) => {
                let problem = Problem::new("use_dpop_nonce", refused.to_string());
                Err(problem.with_nonce(nonces.issue(now)))
            }
            (Err(refused), _) => Err(wrong(refused.to_string())),
        }
    }

    /// An access token, and a refresh token if `refreshes` says whose.
    pub(super) fn tokens(
        &self,
        asking: &TokenCaller<'_>,
        subject: &str,
        lasting: Lasting,
        refreshes: Option<&InsecureClient>,
    ) -> Value {
        let mut claims = self.claims(subject, self.clock.now());
        let mut state = self.lock();
        claims.insert("jti".into(), format!("token-{}", state.next()).into());
        if let Some(resource) = &lasting.resource {
            claims.insert("aud".into(), resource.as_str().into());
        }
        if let Some(client) = &asking.client {
            claims.insert("client_id".into(), client.client_id.as_str().into());
        }
        let mut answer = json!({
            "token_type": "Bearer",
            "expires_in": self.settings.access_lifetime,
        });
        if !lasting.scopes.is_empty() {
            claims.insert("scope".into(), lasting.scopes.to_string().into());
            answer["scope"] = lasting.scopes.to_string().into();
        }
        if let Some(thumbprint) = &asking.thumbprint {
            claims.insert("cnf".into(), json!({ "jkt": thumbprint }));
            answer["token_type"] = "DPoP".into();
        }
        let access = match state.faults.get(&Endpoint::Token) {
            Some(Fault::Unsigned) => unsigned(&claims),
            Some(Fault::Claims(other)) => {
                let mut claims = claims.clone();
                claims.extend(other.clone());
                state.sign("at+jwt", &claims)
            }
            _ => state.sign("at+jwt", &claims),
        };
        let access = access.expose().to_owned();
        state.accesses.insert(access.clone(), (claims, lasting.family));
        answer["access_token"] = access.into();
        if let Some(client) = refreshes.filter(|client| client.refreshes) {
            let refresh = format!("refresh-{}", state.next());
            // RFC 9449 §5: of a client without a secret, the refresh token is bound as well.
            let is_public = matches!(client.proves, Proves::Nothing);
            let kept = Refresh {
                client_id: client.client_id.clone(),
                lasting,
                thumbprint: asking.thumbprint.clone().filter(|_| is_public),
                used: false,
            };
            state.refreshes.insert(refresh.clone(), kept);
            answer["refresh_token"] = refresh.into();
        }
        answer
    }

    /// RFC 7662. Whoever asks must be a client that has proven who it is.
    pub(super) fn introspect(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let explained = FormFields::read(request.body()).and_then(|form| {
            let client = self.authenticated(request, &form)?;
            TokenCaller { form: &form, client, thumbprint: None }
                .proven()
                .map_err(|problem| problem.with_status(401))?;
            Ok(self.explained(form.needed("token")?))
        });
        explained.map_or_else(Problem::into_response, |answer| reply::json(200, &answer))
    }

    fn explained(&self, token: &str) -> Value {
        let state = self.lock();
        let inactive = json!({"active": false});
        let Some((claims, family)) = state.accesses.get(token) else { return inactive };
        let expiry = claims.get("exp").and_then(Value::as_u64).unwrap_or(0);
        if state.revoked.contains(family) || expiry <= self.clock.now() {
            return inactive;
        }
        let mut answer = Value::Object(claims.clone());
        answer["active"] = true.into();
        answer["token_type"] = if claims.contains_key("cnf") { "DPoP" } else { "Bearer" }.into();
        answer
    }

    /// RFC 7009: what is not known is as good as revoked.
    pub(super) fn revoke(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let revoked = FormFields::read(request.body()).and_then(|form| {
            let client = self.authenticated(request, &form)?;
            let asking = TokenCaller { form: &form, client, thumbprint: None };
            let client_id = asking.client()?.client_id.clone();
            let token = form.needed("token")?;
            let mut state = self.lock();
            let by_refresh = state.refreshes.get(token).filter(|it| it.client_id == client_id);
            let by_access = state.accesses.get(token).filter(|(claims, _)| {
                claims.get("client_id").and_then(Value::as_str) == Some(&client_id)
            });
            let family = by_refresh.map(|it| it.lasting.family).or(by_access.map(|(_, it)| *it));
            state.revoked.extend(family);
            Ok(())
        });
        revoked.map_or_else(Problem::into_response, |()| reply::empty(200))
    }
}
