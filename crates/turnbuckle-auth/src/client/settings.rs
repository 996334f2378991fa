//! Owns what a user may decide about authorization. Does not own what is decided when nothing is
//! said.

use std::fmt;

use super::grant::{Endpoints, RegisteredBy, TokenAuth, hidden};
use crate::{Scopes, Secret, SigningKey};

/// What a user decided about authorization.
///
/// ```
/// use turnbuckle_auth::{ResourceParameter, Settings};
/// let mut settings = Settings::default();
/// settings.client_name = "My client".into();
/// settings.resource = ResourceParameter::Omit;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Who answers for the client.
    pub way: Way,
    /// What someone registered beforehand.
    pub registered: Option<Registered>,
    /// The address of the client's own document, which is its name where that is understood.
    pub document: Option<String>,
    /// What the client signs with, where it proves who it is by a signature.
    pub key: Option<SigningKey>,
    /// What is said of whom the token is for.
    pub resource: ResourceParameter,
    /// What to ask for instead of what the server says.
    pub scopes: Option<Scopes>,
    /// The only authorization server to use.
    pub pinned: Option<Pinned>,
    /// Whether tokens are bound to a key.
    pub dpop: DpopUse,
    /// Whether to ask for tokens that outlive a login.
    pub offline: Offline,
    /// What people are shown as the name of the client.
    pub client_name: String,
    /// What kind of client this is; told from where answers to logins go if nothing is said.
    pub application: Option<ApplicationType>,
    /// The ways of becoming a client, the preferred one first; one that is left out isn't used.
    pub order: Vec<RegisteredBy>,
}

/// Who answers for the client.
#[derive(Clone, Debug, Default)]
pub enum Way {
    /// A person logs in.
    #[default]
    Person,
    /// The client itself (RFC 6749 §4.4).
    ClientCredentials,
    /// The organization, by the identity that it gave to a person.
    Enterprise(IdentityProvider),
    /// The platform that the client runs on, by a token that it gave it (RFC 7523 §2.1).
    Workload,
}

/// An organization's provider of identities, where an identity is exchanged for the right to ask
/// an authorization server.
///
/// ```
/// use turnbuckle_auth::IdentityProvider;
/// let provider = IdentityProvider::new("https://idp.example.com/token", "client-there");
/// assert!(provider.secret.is_none());
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct IdentityProvider {
    /// Where it is asked.
    pub token_endpoint: String,
    /// Who the client is there.
    pub client_id: String,
    /// What it proves that with there.
    pub secret: Option<Secret>,
    /// How it proves that there.
    pub method: TokenAuth,
    /// What kind of identity is shown: an OpenID ID token if nothing else is said.
    pub identity_type: String,
}

/// What someone registered beforehand.
///
/// ```
/// use turnbuckle_auth::{Registered, Secret};
/// let mut registered = Registered::new("my-client");
/// registered.issuer = Some("https://auth.example.com".into());
/// registered.secret = Some(Secret::new("s3cr3t"));
/// assert!(!format!("{registered:?}").contains("s3cr3t"));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Registered {
    /// Where: used at no other. If it isn't said, the first one that a server names is it, which
    /// trusts that server; what proves who the client is is then shown to no other, for as long as
    /// the store remembers.
    pub issuer: Option<String>,
    /// The client's name there.
    pub client_id: String,
    /// Its secret there.
    pub secret: Option<Secret>,
    /// How it proves who it is, if not by the best way that it can and the server knows.
    pub method: Option<TokenAuth>,
}

/// What is said of whom the token is for: RFC 8707's `resource`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResourceParameter {
    /// What the protected server says of itself, else its address.
    #[default]
    Auto,
    /// This.
    Fixed(String),
    /// Nothing, for an authorization server that refuses to hear it.
    Omit,
}

/// The only authorization server to use.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// Its name for itself.
    pub issuer: String,
    /// Where it is asked, if its own description of itself is not to be.
    pub endpoints: Option<Endpoints>,
}

/// Whether tokens are bound to a key (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DpopUse {
    /// If the protected server asks for it and the authorization server knows it.
    #[default]
    Auto,
    /// Always: a token that is not bound is refused.
    Always,
    /// Never.
    Never,
}

/// Whether to ask for tokens that outlive a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offline {
    /// Where the authorization server says that it knows `offline_access`.
    #[default]
    WhereKnown,
    /// Nowhere.
    Never,
}

/// What kind of client this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationType {
    /// On a person's own machine.
    Native,
    /// On a server.
    Web,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            way: Way::default(),
            registered: None,
            document: None,
            key: None,
            resource: ResourceParameter::default(),
            scopes: None,
            pinned: None,
            dpop: DpopUse::default(),
            offline: Offline::default(),
            client_name: "Turnbuckle".to_owned(),
            application: None,
            order: RegisteredBy::ALL.to_vec(),
        }
    }
}

impl IdentityProvider {
    /// One that the client shows no secret to.
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
    ) -> IdentityProvider {
        IdentityProvider {
            token_endpoint: token_endpoint.into(),
            client_id: client_id.into(),
            secret: None,
            method: TokenAuth::None,
            identity_type: "urn:ietf:params:oauth:token-type:id_token".to_owned(),
        }
    }
}

impl Registered {
    /// A client without a secret.
    pub fn new(client_id: impl Into<String>) -> Registered {
        Registered { issuer: None, client_id: client_id.into(), secret: None, method: None }
    }
}

impl ApplicationType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ApplicationType::Native => "native",
            ApplicationType::Web => "web",
        }
    }
}

impl fmt::Debug for IdentityProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityProvider")
            .field("token_endpoint", &self.token_endpoint)
            .field("client_id", &self.client_id)
            .field("secret", &hidden(self.secret.as_ref()))
            .field("method", &self.method)
            .field("identity_type", &self.identity_type)
            .finish()
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("secret", &hidden(self.secret.as_ref()))
            .field("method", &self.method)
            .finish()
    }
}
