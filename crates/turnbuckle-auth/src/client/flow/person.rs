//! The way by which a person logs in: becoming a client, sending them off, reading what they come
//! back with.

use bytes::Bytes;
use http::Response;

use super::{Draft, Flow, LoginRequest, Next, State, Step, plan::Plan};
use crate::{
    AuthError, AuthErrorKind, SigningKey,
    client::{
        code::Attempt,
        grant::{Registration, TokenAuth},
        metadata::ServerMetadata,
        registration::{self, Choice},
        text::quote,
        token::TokenRequest,
    },
};

impl Flow {
    pub(super) fn become_client(&mut self, plan: Plan) -> Next {
        self.redirect_uri()?;
        check_login(&plan.server)?;
        let previous = self.asked.previous.as_ref();
        match registration::choose(self.settings(), &plan.server, previous)? {
            Choice::Known(registration) => self.log_in(plan, registration),
            Choice::Dynamic => {
                let same = previous.filter(|grant| grant.issuer == plan.server.issuer);
                match same.map(|grant| grant.registration.clone()) {
                    Some(known) if self.reusable(&known, &plan)? => self.log_in(plan, known),
                    _ => {
                        let issuer = plan.server.issuer.clone();
                        self.state = State::Recall(plan);
                        Ok(Step::Recall(issuer))
                    }
                }
            }
        }
    }

    pub(super) fn recalled(&mut self, plan: Plan, known: Option<Registration>) -> Next {
        if let Some(known) = known
            && self.reusable(&known, &plan)?
        {
            return self.log_in(plan, known);
        }
        let endpoint = plan.server.register.as_deref().unwrap_or_default();
        let redirect_uri = self.redirect_uri()?;
        let (request, method) = registration::request(
            self.settings(),
            &plan.server,
            endpoint,
            redirect_uri,
            &plan.scopes,
        )?;
        self.state = State::Register(plan, method);
        Ok(Step::Send(request))
    }

    pub(super) fn registered(
        &mut self,
        plan: Plan,
        asked: TokenAuth,
        response: &Response<Bytes>,
    ) -> Next {
        let mut registration = registration::read(response, asked, self.redirect_uri()?)?;
        if let Some(given) = &mut registration.scopes {
            // What was asked for and not given would not be given the next time either.
            *given = given.union(&registration::nameable(&plan.server, &plan.scopes));
        }
        self.log_in(plan, registration)
    }

    pub(super) fn called_back(&mut self, draft: Draft, attempt: &Attempt, answer: &str) -> Next {
        let code = attempt.read(answer)?;
        let grant = &draft.grant;
        let request = TokenRequest::new(
            &grant.endpoints.token,
            &grant.issuer,
            &grant.registration,
            "authorization_code",
        )
        .with("code", code.expose())
        .with("redirect_uri", attempt.redirect_uri())
        .with("code_verifier", attempt.verifier().expose())
        .with_resource(grant.resource.as_deref());
        self.ask_for_token(draft, request)
    }

    fn log_in(&mut self, plan: Plan, registration: Registration) -> Next {
        let redirect_uri = self.redirect_uri()?.to_owned();
        let attempt = Attempt::new(&plan.server, &redirect_uri, &*self.tools.random)?;
        let draft = plan.draft(registration);
        let endpoint = draft.grant.endpoints.authorize.as_deref().unwrap_or_default();
        let thumbprint = draft.proof.as_ref().map(SigningKey::thumbprint);
        let url = attempt.url(endpoint, &draft.grant, thumbprint.as_deref());
        let issuer = draft.grant.issuer.clone();
        self.state = State::LogIn(draft, attempt);
        Ok(Step::LogIn(LoginRequest { url, redirect_uri, issuer }))
    }

    fn reusable(&self, known: &Registration, plan: &Plan) -> Result<bool, AuthError> {
        Ok(registration::reusable(known, self.redirect_uri()?, self.now())
            && registration::covers(known, &plan.server, &plan.scopes))
    }

    /// Only where someone is waited for can someone log in.
    fn redirect_uri(&self) -> Result<&str, AuthError> {
        self.asked.redirect_uri.as_deref().ok_or_else(|| {
            let error = AuthError::new(AuthErrorKind::Required, "someone must log in");
            match &self.asked.challenge {
                Some(challenge) => error.with_challenge(challenge.clone()),
                None => error,
            }
        })
    }
}

fn check_login(server: &ServerMetadata) -> Result<(), AuthError> {
    let wrong = |what: &str| {
        let message = format!("the authorization server `{}` {what}", quote(&server.issuer, &[]));
        Err(AuthError::new(AuthErrorKind::Metadata, message))
    };
    if server.endpoints.authorize.is_none() {
        return wrong("does not say where one logs in");
    }
    // 2026-07-28 security-considerations §Authorization Code Protection: MUST refuse.
    if !server.s256 {
        return wrong("does not say that it knows PKCE by S256, without which codes can be stolen");
    }
    Ok(())
}
