//! The ways by which nobody logs in: the client's own credentials, an identity from an organization
//! or from a platform.

use bytes::Bytes;
use http::Response;

use super::{
    Draft, Flow, IdentityKind, IdentityRequest, Next, State, Step, plan::Plan,
    tokens::PendingTokenRequest,
};
use crate::{
    AuthError, AuthErrorKind, Secret,
    client::{
        grant::{RegisteredBy, Registration},
        registration::{self, Choice},
        settings::{IdentityProvider, Way},
        text::check_address,
        token::TokenRequest,
    },
};

const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

impl Flow {
    pub(super) fn without_person(&mut self, plan: Plan) -> Next {
        let previous = self.asked.previous.as_ref();
        let registration = match registration::choose(self.settings(), &plan.server, previous)? {
            Choice::Known(registration) => registration,
            // Never chosen without a person.
            Choice::Dynamic => return Err(settings("a client can't register itself for this")),
        };
        let draft = plan.draft(registration);
        let kind = match &self.settings().way {
            Way::Enterprise(_) => IdentityKind::Enterprise,
            Way::Workload => IdentityKind::Workload,
            Way::Person | Way::ClientCredentials => {
                let request = self.request(&draft, "client_credentials");
                return self.ask_for_token(draft, request);
            }
        };
        let request = IdentityRequest {
            kind,
            audience: draft.grant.issuer.clone(),
            resource: draft.grant.resource.clone(),
        };
        self.state = State::Identity(draft);
        Ok(Step::Identity(request))
    }

    pub(super) fn identified(&mut self, draft: Draft, identity: &Secret) -> Next {
        let Way::Enterprise(provider) = &self.settings().way else {
            let request = self.request(&draft, JWT_BEARER).with("assertion", identity.expose());
            return self.ask_for_token(draft, request);
        };
        check_address(&provider.token_endpoint)?;
        let grant = &draft.grant;
        let request = TokenRequest::new(
            &provider.token_endpoint,
            &provider.token_endpoint,
            &client_there(provider),
            TOKEN_EXCHANGE,
        )
        .with("requested_token_type", ID_JAG)
        .with("audience", &grant.issuer)
        .with_resource(grant.resource.as_deref())
        .with_scopes(&grant.scopes)
        .with("subject_token", identity.expose())
        .with("subject_token_type", &provider.identity_type);
        // What is exchanged is no access token, so nothing is bound to a key here.
        let asking = PendingTokenRequest::new(request);
        let request = asking.build(self.settings().key.as_ref(), None, self.now())?;
        self.state = State::Exchange(draft, asking);
        Ok(Step::Send(request))
    }

    pub(super) fn exchanged(
        &mut self,
        draft: Draft,
        asking: PendingTokenRequest,
        response: &Response<Bytes>,
    ) -> Next {
        let given = asking.read(response)?;
        if given.issued.as_deref() != Some(ID_JAG) {
            let message = "the identity provider gave something else than was asked for";
            return Err(AuthError::new(AuthErrorKind::Response, message));
        }
        let request = self.request(&draft, JWT_BEARER).with("assertion", given.access.expose());
        self.ask_for_token(draft, request)
    }

    fn request(&self, draft: &Draft, grant_type: &str) -> TokenRequest {
        let grant = &draft.grant;
        TokenRequest::new(&grant.endpoints.token, &grant.issuer, &grant.registration, grant_type)
            .with_resource(grant.resource.as_deref())
            .with_scopes(&grant.scopes)
    }
}

/// Who the client is at an identity provider, which is no authorization server of anything here.
fn client_there(provider: &IdentityProvider) -> Registration {
    let mut registration =
        Registration::public(provider.client_id.as_str(), RegisteredBy::Beforehand);
    registration.secret = provider.secret.clone();
    registration.method = provider.method;
    registration
}

fn settings(message: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Settings, message)
}
