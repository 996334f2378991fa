//! The text that a grant is kept as.

use serde::{Deserialize, Serialize};

use super::{Endpoints, Grant, RegisteredBy, Registration, TokenAuth, Tokens};
use crate::{Scheme, Scopes, Secret};

/// Later versions may add members; a change that this code would misread raises it.
const VERSION: u32 = 1;

pub(super) fn write(grant: &Grant) -> Secret {
    to_text(&GrantRecord {
        version: VERSION,
        issuer: grant.issuer.clone(),
        resource: grant.resource.clone(),
        scopes: grant.scopes.to_string(),
        registration: registration_record(&grant.registration),
        tokens: grant.tokens.as_ref().map(|tokens| TokensRecord {
            access: Hidden(tokens.access.clone()),
            scheme: tokens.scheme.name().to_owned(),
            refresh: tokens.refresh.clone().map(Hidden),
            expires_at: tokens.expires_at,
            granted: tokens.granted.as_ref().map(Scopes::to_string),
        }),
        authorize: grant.endpoints.authorize.clone(),
        token: grant.endpoints.token.clone(),
        proof_key: grant.proof_key.clone().map(Hidden),
    })
}

pub(super) fn read(record: &Secret) -> Option<Grant> {
    let record: GrantRecord = serde_json::from_str(record.expose()).ok()?;
    if record.version > VERSION {
        return None;
    }
    let tokens = match record.tokens {
        None => None,
        Some(tokens) => Some(Tokens {
            access: tokens.access.0,
            scheme: Scheme::from_name(&tokens.scheme)?,
            refresh: tokens.refresh.map(|hidden| hidden.0),
            expires_at: tokens.expires_at,
            granted: tokens.granted.map(|text| text.split(' ').collect()),
        }),
    };
    Some(Grant {
        issuer: record.issuer,
        resource: record.resource,
        scopes: record.scopes.split(' ').collect(),
        registration: registration(record.registration)?,
        tokens,
        endpoints: Endpoints { authorize: record.authorize, token: record.token },
        proof_key: record.proof_key.map(|hidden| hidden.0),
    })
}

pub(super) fn write_registration(registration: &Registration) -> Secret {
    to_text(&registration_record(registration))
}

pub(super) fn read_registration(record: &Secret) -> Option<Registration> {
    registration(serde_json::from_str(record.expose()).ok()?)
}

#[derive(Serialize, Deserialize)]
struct GrantRecord {
    version: u32,
    issuer: String,
    resource: Option<String>,
    scopes: String,
    registration: RegistrationRecord,
    tokens: Option<TokensRecord>,
    authorize: Option<String>,
    token: String,
    proof_key: Option<Hidden>,
}

#[derive(Serialize, Deserialize)]
struct RegistrationRecord {
    client_id: String,
    secret: Option<Hidden>,
    method: String,
    origin: String,
    redirect_uri: Option<String>,
    secret_expires_at: Option<u64>,
    #[serde(default)]
    scopes: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct TokensRecord {
    access: Hidden,
    scheme: String,
    refresh: Option<Hidden>,
    expires_at: Option<u64>,
    granted: Option<String>,
}

/// Written as its text: only here may a secret be serialized.
struct Hidden(Secret);

impl Serialize for Hidden {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Hidden, D::Error> {
        String::deserialize(deserializer).map(|text| Hidden(Secret::new(text)))
    }
}

fn registration_record(registration: &Registration) -> RegistrationRecord {
    RegistrationRecord {
        client_id: registration.client_id.clone(),
        secret: registration.secret.clone().map(Hidden),
        method: registration.method.name().to_owned(),
        origin: registration.origin.name().to_owned(),
        redirect_uri: registration.redirect_uri.clone(),
        secret_expires_at: registration.secret_expires_at,
        scopes: registration.scopes.as_ref().map(Scopes::to_string),
    }
}

fn registration(record: RegistrationRecord) -> Option<Registration> {
    Some(Registration {
        client_id: record.client_id,
        secret: record.secret.map(|hidden| hidden.0),
        method: TokenAuth::from_name(&record.method)?,
        origin: RegisteredBy::ALL.into_iter().find(|origin| origin.name() == record.origin)?,
        redirect_uri: record.redirect_uri,
        secret_expires_at: record.secret_expires_at,
        scopes: record.scopes.map(|text| text.split(' ').collect()),
    })
}

fn to_text(record: &impl Serialize) -> Secret {
    // Room for all of it: a text that grows leaves copies behind that nobody zeroes.
    let mut text = Vec::with_capacity(64 * 1024);
    // These records have nothing in them that JSON can't say, and a Vec takes everything.
    let written = serde_json::to_writer(&mut text, record);
    debug_assert!(written.is_ok());
    Secret::new(String::from_utf8(text).unwrap_or_default())
}
