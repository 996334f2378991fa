//! The last leg: asking for tokens, once more if the proof lacked something, and renewing them.

use bytes::Bytes;
use http::{Request, Response};

use super::{Draft, Flow, Next, State, Step, plan::Plan};
use crate::{
    AuthError, AuthErrorKind, Scheme, SigningKey,
    client::{
        grant::Grant,
        registration,
        text::check_address,
        token::{ClientKeys, Given, TokenRequest, nonce_wanted},
    },
};

/// A request for a token that was sent.
pub(super) struct PendingTokenRequest {
    request: TokenRequest,
    /// What the server wanted to find in the proof.
    nonce: Option<String>,
}

impl PendingTokenRequest {
    pub(super) fn new(request: TokenRequest) -> PendingTokenRequest {
        PendingTokenRequest { request, nonce: None }
    }

    pub(super) fn build(
        &self,
        client: Option<&SigningKey>,
        proof: Option<&SigningKey>,
        now: u64,
    ) -> Result<Request<Bytes>, AuthError> {
        self.request.build(ClientKeys { client, proof, nonce: self.nonce.as_deref(), now })
    }

    pub(super) fn read(&self, response: &Response<Bytes>) -> Result<Given, AuthError> {
        self.request.read(response)
    }

    /// Whether it is to be sent again, with the nonce that the server wants in the proof. Once: one
    /// that is never content would be asked for ever.
    fn takes_nonce(&mut self, draft: &Draft, response: &Response<Bytes>) -> bool {
        let wanted = nonce_wanted(response);
        let again = wanted.is_some() && self.nonce.is_none() && draft.proof.is_some();
        if again {
            self.nonce = wanted;
        }
        again
    }
}

impl Flow {
    pub(super) fn ask_for_token(&mut self, draft: Draft, request: TokenRequest) -> Next {
        let asking = PendingTokenRequest::new(request);
        let request = self.build(&draft, &asking)?;
        self.state = State::Token(draft, asking);
        Ok(Step::Send(request))
    }

    pub(super) fn token_given(
        &mut self,
        draft: Draft,
        mut asking: PendingTokenRequest,
        response: &Response<Bytes>,
    ) -> Next {
        if asking.takes_nonce(&draft, response) {
            let request = self.build(&draft, &asking)?;
            self.state = State::Token(draft, asking);
            return Ok(Step::Send(request));
        }
        self.done(draft, asking.read(response)?)
    }

    /// Renews tokens. The plan says how to go on if they are no longer good for that.
    pub(super) fn refresh_with(&mut self, mut grant: Grant, plan: Option<Box<Plan>>) -> Next {
        grant.registration = registration::current(self.settings(), &grant);
        let Some(token) = grant.tokens.as_ref().and_then(|tokens| tokens.refresh.clone()) else {
            let message = "the tokens can't be renewed: there is no refresh token";
            return Err(AuthError::new(AuthErrorKind::Required, message));
        };
        check_address(&grant.endpoints.token)?;
        let proof = grant.proof_key.as_ref().map(SigningKey::from_pkcs8).transpose()?;
        let draft = Draft { grant, proof };
        let grant = &draft.grant;
        // No scope: RFC 6749 §6 takes that for all that was granted.
        let request = TokenRequest::new(
            &grant.endpoints.token,
            &grant.issuer,
            &grant.registration,
            "refresh_token",
        )
        .with("refresh_token", token.expose())
        .with_resource(grant.resource.as_deref());
        let asking = PendingTokenRequest::new(request);
        let request = self.build(&draft, &asking)?;
        self.state = State::Refresh(draft, asking, plan);
        Ok(Step::Send(request))
    }

    pub(super) fn refreshed(
        &mut self,
        draft: Draft,
        mut asking: PendingTokenRequest,
        plan: Option<Box<Plan>>,
        response: &Response<Bytes>,
    ) -> Next {
        if asking.takes_nonce(&draft, response) {
            let request = self.build(&draft, &asking)?;
            self.state = State::Refresh(draft, asking, plan);
            return Ok(Step::Send(request));
        }
        match (asking.read(response), plan) {
            (Ok(given), _) => self.done(draft, given),
            (Err(error), Some(plan)) if error.kind() == AuthErrorKind::Expired => self.anew(*plan),
            (Err(error), _) => Err(error),
        }
    }

    fn done(&mut self, mut draft: Draft, given: Given) -> Next {
        let scheme = if draft.proof.is_some() { Scheme::Dpop } else { Scheme::Bearer };
        let earlier = draft.grant.tokens.take();
        let (refresh, granted) = match earlier {
            Some(tokens) => (tokens.refresh, tokens.granted),
            None => (None, None),
        };
        let mut tokens = given.into_tokens(scheme, self.now(), refresh)?;
        tokens.granted = tokens.granted.or(granted);
        draft.grant.tokens = Some(tokens);
        Ok(Step::Done(Box::new(draft.grant)))
    }

    fn build(
        &self,
        draft: &Draft,
        asking: &PendingTokenRequest,
    ) -> Result<Request<Bytes>, AuthError> {
        asking.build(self.settings().key.as_ref(), draft.proof.as_ref(), self.now())
    }
}
