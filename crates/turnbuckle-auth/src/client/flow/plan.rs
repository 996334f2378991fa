//! Owns what is asked for: for which resource, for which scopes, bound to which key. Does not own
//! as whom.

use super::{Draft, Flow, Next, Renewal};
use crate::{
    AuthError, AuthErrorKind, Scheme, Scopes, SigningKey,
    client::{
        grant::{Grant, Registration},
        metadata::{DpopKnown, ResourceMetadata, ServerMetadata},
        settings::{DpopUse, Offline, ResourceParameter, Way},
    },
};

/// The scope that asks for tokens that outlive a login.
const OFFLINE: &str = "offline_access";

/// All of a grant that does not depend on who the client is.
pub(super) struct Plan {
    pub(super) server: ServerMetadata,
    pub(super) resource: Option<String>,
    pub(super) scopes: Scopes,
    pub(super) proof: Option<SigningKey>,
}

impl Plan {
    pub(super) fn draft(self, registration: Registration) -> Draft {
        let grant = Grant {
            issuer: self.server.issuer,
            resource: self.resource,
            scopes: self.scopes,
            registration,
            tokens: None,
            endpoints: self.server.endpoints,
            proof_key: self.proof.as_ref().map(SigningKey::to_pkcs8),
        };
        Draft { grant, proof: self.proof }
    }
}

impl Flow {
    pub(super) fn plan(
        &mut self,
        resource: Option<&ResourceMetadata>,
        server: ServerMetadata,
    ) -> Next {
        let plan = Plan {
            resource: self.resource_parameter(resource)?,
            scopes: self.scopes(resource, &server),
            proof: self.proof_key(resource, &server)?,
            server,
        };
        match self.renewable(&plan) {
            Some(grant) => self.refresh_with(grant, Some(Box::new(plan))),
            None => self.anew(plan),
        }
    }

    /// As if there had been nothing before.
    pub(super) fn anew(&mut self, plan: Plan) -> Next {
        match &self.settings().way {
            Way::Person => self.become_client(plan),
            Way::ClientCredentials | Way::Enterprise(_) | Way::Workload => {
                self.without_person(plan)
            }
        }
    }

    fn renewable(&self, plan: &Plan) -> Option<Grant> {
        let previous = self.asked.previous.as_ref()?;
        let has_token = previous.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some());
        let same = previous.issuer == plan.server.issuer && previous.resource == plan.resource;
        let enough = previous.scopes.contains_all(&without_offline(&plan.scopes));
        let wanted = self.asked.renewal == Renewal::Refresh;
        // What is not bound to a key is renewed as something that is not.
        let bound = plan.proof.is_none() || previous.proof_key.is_some();
        (wanted && has_token && same && enough && bound).then(|| Grant {
            // They may have moved.
            endpoints: plan.server.endpoints.clone(),
            ..previous.clone()
        })
    }

    fn resource_parameter(
        &self,
        metadata: Option<&ResourceMetadata>,
    ) -> Result<Option<String>, AuthError> {
        Ok(match (&self.settings().resource, metadata) {
            (ResourceParameter::Omit, _) => None,
            (ResourceParameter::Fixed(resource), _) => Some(resource.clone()),
            (ResourceParameter::Auto, Some(metadata)) => Some(metadata.resource.clone()),
            (ResourceParameter::Auto, None) => {
                let url = self.server_url()?;
                // RFC 8707 §2: neither fragment nor, if possible, query; and no slash alone.
                let path = Some(url.path()).filter(|path| *path != "/").unwrap_or_default();
                Some(format!("{}{path}", url.origin().ascii_serialization()))
            }
        })
    }

    /// 2026-07-28 authorization §Scope Selection Strategy and §Step-Up Authorization Flow.
    fn scopes(&self, resource: Option<&ResourceMetadata>, server: &ServerMetadata) -> Scopes {
        let challenge = self.asked.challenge.as_ref();
        let challenged = challenge.and_then(|challenge| challenge.scope.clone());
        // What one authorization server calls its scopes is nothing to another.
        let earlier = self.asked.previous.as_ref().filter(|grant| grant.issuer == server.issuer);
        let earlier = earlier.map(|grant| without_offline(&grant.scopes));
        let earlier = earlier.filter(|scopes| !scopes.is_empty());
        let known = server.scopes.as_ref().is_some_and(|scopes| scopes.contains(OFFLINE));
        let wanted = match (&self.settings().scopes, challenged) {
            (Some(chosen), challenged) => {
                // What the user chose is enough until the server says that it isn't.
                let lacking = challenge.and_then(|it| it.error.as_deref());
                let more = challenged.filter(|_| lacking == Some("insufficient_scope"));
                chosen.union(&more.unwrap_or_default())
            }
            (None, Some(challenged)) => challenged,
            (None, None) if earlier.is_some() => Scopes::none(),
            (None, None) => resource.and_then(|it| it.scopes.clone()).unwrap_or_default(),
        };
        // Only the user may insist on what the authorization server does not know.
        let insisted = self.settings().scopes.as_ref().is_some_and(|it| it.contains(OFFLINE));
        let mut wanted = wanted.union(&earlier.unwrap_or_default());
        if !known && !insisted {
            wanted = without_offline(&wanted);
        }
        let person = matches!(self.settings().way, Way::Person);
        if known && person && self.settings().offline == Offline::WhereKnown {
            wanted = wanted.union(&Scopes::from_iter([OFFLINE]));
        }
        wanted
    }

    fn proof_key(
        &self,
        resource: Option<&ResourceMetadata>,
        server: &ServerMetadata,
    ) -> Result<Option<SigningKey>, AuthError> {
        let challenged = self.asked.challenge.as_ref().map(|challenge| challenge.scheme);
        let earlier = self.asked.previous.as_ref().filter(|grant| grant.issuer == server.issuer);
        let earlier_key = earlier.and_then(|grant| grant.proof_key.as_ref());
        let needed = match (self.settings().dpop, server.dpop) {
            (DpopUse::Never, _) => false,
            (DpopUse::Always, DpopKnown::Others) => {
                let message = "the authorization server binds no token to a key that signs ES256";
                return Err(AuthError::new(AuthErrorKind::Metadata, message));
            }
            (DpopUse::Always, DpopKnown::Es256 | DpopKnown::Unsaid) => true,
            (DpopUse::Auto, DpopKnown::Es256) => {
                challenged == Some(Scheme::Dpop)
                    || resource.is_some_and(|metadata| metadata.dpop_required)
                    || earlier_key.is_some()
            }
            (DpopUse::Auto, DpopKnown::Others | DpopKnown::Unsaid) => false,
        };
        match (needed, earlier_key) {
            (false, _) => Ok(None),
            // A key that can't be read is lost; nothing is bound to it any more.
            (true, Some(key)) => {
                SigningKey::from_pkcs8(key).or_else(|_| SigningKey::generate()).map(Some)
            }
            (true, None) => SigningKey::generate().map(Some),
        }
    }
}

fn without_offline(scopes: &Scopes) -> Scopes {
    scopes.iter().filter(|scope| *scope != OFFLINE).collect()
}
