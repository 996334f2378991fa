//! Finding the authorization server of a protected one.

use std::collections::VecDeque;

use bytes::Bytes;
use http::Response;
use url::Url;

use super::{Flow, Next, State, Step};
use crate::{
    AuthError, AuthErrorKind,
    client::{
        metadata::{
            ResourceMetadata, ServerMetadata, document, resource_metadata_urls,
            server_metadata_urls,
        },
        settings::ResourceParameter,
        text::{check_address, get, quote},
    },
};

/// Where a flow looks for the authorization server's own description.
pub(super) struct DiscoveryTarget {
    resource: Option<ResourceMetadata>,
    /// What it may call itself.
    issuers: Vec<String>,
    /// The protected server's origin, where a server without any document is asked by convention.
    convention: Option<String>,
}

impl Flow {
    pub(super) fn discover(&mut self) -> Next {
        let server = self.server_url()?;
        let hint = self.asked.challenge.as_ref().and_then(|it| it.resource_metadata.as_deref());
        self.ask_resource(resource_metadata_urls(&server, hint).into())
    }

    pub(super) fn resource_answered(
        &mut self,
        at: &str,
        left: VecDeque<String>,
        response: &Response<Bytes>,
    ) -> Next {
        let found = match document(response, at)? {
            Some(document) => ResourceMetadata::read(&document)?,
            None => None,
        };
        let Some(resource) = found else { return self.ask_resource(left) };
        self.check_resource(&resource)?;
        let issuer = self.choose_issuer(&resource)?;
        self.ask_server(DiscoveryTarget {
            resource: Some(resource),
            issuers: vec![issuer],
            convention: None,
        })
    }

    pub(super) fn server_answered(
        &mut self,
        place: DiscoveryTarget,
        at: &str,
        left: VecDeque<String>,
        response: &Response<Bytes>,
    ) -> Next {
        let found = match document(response, at)? {
            Some(document) => ServerMetadata::read(&document, &place.issuers)?,
            None => None,
        };
        match found {
            Some(server) => self.plan(place.resource.as_ref(), server),
            None => self.ask_server_at(place, left),
        }
    }

    fn ask_resource(&mut self, mut left: VecDeque<String>) -> Next {
        if let Some(at) = left.pop_front() {
            check_address(&at)?;
            let request = get(&at)?;
            self.state = State::Resource { at, left };
            return Ok(Step::Send(request));
        }
        if let Some(pinned) = &self.settings().pinned {
            let issuers = vec![pinned.issuer.clone()];
            return self.ask_server(DiscoveryTarget { resource: None, issuers, convention: None });
        }
        // 2025-03-26: the protected server is its own authorization server, at the root.
        let origin = self.server_url()?.origin().ascii_serialization();
        // Nobody has spelt that name, so both spellings of it are right.
        let issuers = vec![origin.clone(), format!("{origin}/")];
        self.ask_server(DiscoveryTarget { resource: None, issuers, convention: Some(origin) })
    }

    fn ask_server(&mut self, place: DiscoveryTarget) -> Next {
        if let Some(pinned) = &self.settings().pinned
            && let Some(endpoints) = &pinned.endpoints
        {
            let authorize = endpoints.authorize.as_deref();
            authorize.map_or(Ok(()), check_address)?;
            check_address(&endpoints.token)?;
            let issuer = pinned.issuer.clone();
            let mut server = ServerMetadata::undescribed(issuer, endpoints.clone(), None);
            // Whoever says where to ask also says who to be.
            server.documents = self.settings().document.is_some();
            return self.plan(place.resource.as_ref(), server);
        }
        let issuer = place.issuers.first().map(String::as_str).unwrap_or_default();
        let left = server_metadata_urls(issuer)?.into();
        self.ask_server_at(place, left)
    }

    fn ask_server_at(&mut self, place: DiscoveryTarget, mut left: VecDeque<String>) -> Next {
        if let Some(at) = left.pop_front() {
            let request = get(&at)?;
            self.state = State::Server { place, at, left };
            return Ok(Step::Send(request));
        }
        match place.convention {
            Some(origin) => {
                let server = ServerMetadata::by_convention(&origin);
                check_address(&server.endpoints.token)?;
                self.plan(None, server)
            }
            None => {
                let issuer = place.issuers.first().map(String::as_str).unwrap_or_default();
                let message = format!(
                    "the authorization server `{}` does not say where it is asked",
                    quote(issuer, &[])
                );
                Err(AuthError::new(AuthErrorKind::Metadata, message))
            }
        }
    }

    /// The document must be about this very server: a token for another one would be shown here.
    fn check_resource(&self, metadata: &ResourceMetadata) -> Result<(), AuthError> {
        let fixed = match &self.settings().resource {
            ResourceParameter::Fixed(fixed) => *fixed == metadata.resource,
            ResourceParameter::Auto | ResourceParameter::Omit => false,
        };
        if fixed || metadata.is_about(&self.server_url()?) {
            return Ok(());
        }
        let message = format!(
            "the server's metadata is about another resource, `{}`",
            quote(&metadata.resource, &[])
        );
        Err(AuthError::new(AuthErrorKind::Metadata, message))
    }

    /// One that is pinned, or known already, else the first.
    fn choose_issuer(&self, metadata: &ResourceMetadata) -> Result<String, AuthError> {
        let listed = &metadata.authorization_servers;
        let wrong = |message: String| Err(AuthError::new(AuthErrorKind::Metadata, message));
        if let Some(pinned) = &self.settings().pinned {
            if listed.is_empty() || listed.contains(&pinned.issuer) {
                return Ok(pinned.issuer.clone());
            }
            let message = "does not rely on the authorization server that is pinned";
            return wrong(format!("the server {message}, `{}`", quote(&pinned.issuer, &[])));
        }
        let registered = self.settings().registered.as_ref().and_then(|it| it.issuer.as_ref());
        let previous = self.asked.previous.as_ref().map(|grant| &grant.issuer);
        let known = [registered, previous].into_iter().flatten().find(|it| listed.contains(it));
        match known.or(listed.first()) {
            Some(issuer) => Ok(issuer.clone()),
            None => wrong("the server's metadata names no authorization server".to_owned()),
        }
    }

    pub(super) fn server_url(&self) -> Result<Url, AuthError> {
        match Url::parse(&self.asked.server_url) {
            Ok(url) if matches!(url.scheme(), "https" | "http") => Ok(url),
            _ => Err(AuthError::new(AuthErrorKind::Settings, "the server's address is none")),
        }
    }
}
