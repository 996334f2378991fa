//! The authorization endpoint: whoever comes is logged in and consents.

use bytes::Bytes;
use http::{Method, Request, Response};
use url::Url;

use super::{
    Fault, InsecureAuthorizationServer,
    clients::FormFields,
    reply::{self, Problem},
    state::{Code, Lasting},
};
use crate::{Scopes, Secret};

/// For how many seconds a code is good.
const CODE_LIFETIME: u64 = 60;

impl InsecureAuthorizationServer {
    pub(super) fn authorize(
        &self,
        request: &Request<Bytes>,
        fault: Option<Fault>,
    ) -> Response<Bytes> {
        let fields = match *request.method() {
            Method::POST => request.body().to_vec(),
            _ => request.uri().query().unwrap_or_default().as_bytes().to_vec(),
        };
        // RFC 6749 §4.1.2.1: nobody is sent to an address that was not registered.
        let (form, redirect_uri) = match self.redirect_target(&fields) {
            Ok(both) => both,
            Err(problem) => return problem.into_response(),
        };
        let answer = match &fault {
            Some(Fault::Denied) => Err(Problem::new("access_denied", "whoever came said no")),
            _ => self.code(&form, redirect_uri.as_str()),
        };
        let Ok(mut target) = Url::parse(&redirect_uri) else { return reply::empty(400) };
        {
            let mut query = target.query_pairs_mut();
            match &answer {
                Ok(code) => query.append_pair("code", code),
                Err(problem) => query
                    .append_pair("error", problem.code)
                    .append_pair("error_description", &problem.text),
            };
            match (&fault, form.field("state")) {
                (Some(Fault::WrongState), _) => query.append_pair("state", "another"),
                (_, Some(state)) => query.append_pair("state", state),
                (_, None) => &mut query,
            };
            // RFC 9207 §2, in errors too.
            match &fault {
                Some(Fault::NoIssuer) => &mut query,
                Some(Fault::WrongIssuer(other)) => query.append_pair("iss", other),
                _ => query.append_pair("iss", &self.issuer),
            };
        }
        reply::redirect(target.as_str())
    }

    fn redirect_target(&self, fields: &[u8]) -> Result<(FormFields, String), Problem> {
        let form = FormFields::read(fields)?;
        let client_id = form.needed("client_id")?;
        let client = self.lock().clients.get(client_id).cloned();
        let client = client.ok_or_else(|| Problem::new("invalid_client", "no such client"))?;
        let redirect_uri = form.needed("redirect_uri")?.to_owned();
        if !client.redirect_uris.contains(&redirect_uri) {
            return Err(Problem::new("invalid_request", "the redirect address is not registered"));
        }
        Ok((form, redirect_uri))
    }

    fn code(&self, form: &FormFields, redirect_uri: &str) -> Result<String, Problem> {
        if form.field("response_type") != Some("code") {
            return Err(Problem::new("unsupported_response_type", "only `code` is known"));
        }
        let challenge = form.needed("code_challenge")?;
        if form.field("code_challenge_method") != Some("S256") || challenge.len() != 43 {
            return Err(Problem::new("invalid_request", "PKCE with S256 is needed"));
        }
        let resource = form.resource()?;
        let scopes = self.scopes_asked(form)?;
        let client_id = form.needed("client_id")?.to_owned();
        let mut state = self.lock();
        state.shown.extend(form.field("state").map(Secret::new));
        let family = state.next();
        let code = format!("code-{family}");
        let given = Code {
            client_id,
            redirect_uri: redirect_uri.to_owned(),
            challenge: challenge.to_owned(),
            lasting: Lasting { family, resource, scopes },
            expires: self.clock.now() + CODE_LIFETIME,
            used: false,
        };
        state.codes.insert(code.clone(), given);
        Ok(code)
    }

    pub(super) fn scopes_asked(&self, form: &FormFields) -> Result<Scopes, Problem> {
        let asked: Scopes = form.field("scope").unwrap_or_default().split(' ').collect();
        match &self.settings.scopes {
            Some(known) if !known.contains_all(&asked) => {
                Err(Problem::new("invalid_scope", "there is no such scope"))
            }
            _ => Ok(asked),
        }
    }
}
