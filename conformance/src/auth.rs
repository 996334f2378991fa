//! How the client that the suite watches authorizes itself.
//!
//! Owns: who it is said to be. Does not own: anything that follows from that; the SDK does.

use std::{env, error::Error};

use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde::Deserialize;
use turnbuckle::auth::{
    Auth, AuthError, AuthErrorKind, HandledLogin, IdentityProvider, IdentitySource, LoginRequest,
    Registered, Secret, Settings, SigningKey, Way,
};

/// Where people are sent back to. Nobody listens there: where they are sent is all that is read.
const CALLBACK: &str = "http://127.0.0.1:3000/callback";

/// The client's own document. Nobody fetches it either.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// A person who logs in wherever they are sent, unless the suite says who the client is.
pub fn auth() -> Result<Auth, Box<dyn Error>> {
    let Ok(context) = env::var("MCP_CONFORMANCE_CONTEXT") else { return Ok(person()) };
    Ok(match serde_json::from_str(&context)? {
        Known::PreRegistration { client_id, client_secret, issuer } => {
            let mut registered = registered(client_id, Some(client_secret));
            registered.issuer = Some(issuer);
            person().registered(registered)
        }
        Known::ClientCredentialsBasic { client_id, client_secret } => {
            Auth::client_credentials(client_id, Secret::new(client_secret))
        }
        Known::ClientCredentialsJwt { client_id, private_key_pem } => {
            let key = SigningKey::from_pem(&Secret::new(private_key_pem))?;
            by(Way::ClientCredentials, registered(client_id, None))
                .settings(|settings| settings.key = Some(key))
        }
        Known::Enterprise(known) => {
            let provider = IdentityProvider::new(known.idp_token_endpoint, known.idp_client_id);
            let registered = registered(known.client_id, Some(known.client_secret));
            by(Way::Enterprise(provider), registered).identity(identity(known.idp_id_token))
        }
        Known::Workload { client_id, valid_jwt } => {
            by(Way::Workload, registered(client_id, None)).identity(identity(valid_jwt))
        }
        Known::Person => person(),
    })
}

fn person() -> Auth {
    Auth::person(HandledLogin::new(CALLBACK, log_in)).document(DOCUMENT)
}

fn by(way: Way, registered: Registered) -> Auth {
    Auth::with(Settings::default()).settings(|settings| settings.way = way).registered(registered)
}

fn registered(client_id: String, secret: Option<String>) -> Registered {
    let mut registered = Registered::new(client_id);
    registered.secret = secret.map(Secret::new);
    registered
}

fn identity(token: String) -> IdentitySource {
    IdentitySource::new(move |_| {
        let token = Secret::new(token.as_str());
        async { Ok(token) }
    })
}

/// The suite's authorization servers ask nothing: they send everyone back at once.
async fn log_in(request: LoginRequest) -> Result<String, AuthError> {
    let lost = |message: String| AuthError::new(AuthErrorKind::NotLoggedIn, message);
    let browser = Client::builder(TokioExecutor::new()).build_http::<String>();
    let url = request.url.parse().map_err(|_| lost("the address to log in at is none".into()))?;
    let answer = browser.get(url).await.map_err(|error| lost(error.to_string()))?;
    let location = answer.headers().get("location").and_then(|value| value.to_str().ok());
    location.map(str::to_owned).ok_or_else(|| lost(format!("not sent back: {}", answer.status())))
}

/// What the suite tells of who the client is.
#[derive(Deserialize)]
#[serde(tag = "name")]
enum Known {
    #[serde(rename = "auth/pre-registration")]
    PreRegistration { client_id: String, client_secret: String, issuer: String },
    #[serde(rename = "auth/client-credentials-basic")]
    ClientCredentialsBasic { client_id: String, client_secret: String },
    #[serde(rename = "auth/client-credentials-jwt")]
    ClientCredentialsJwt { client_id: String, private_key_pem: String },
    #[serde(rename = "auth/enterprise-managed-authorization")]
    Enterprise(Enterprise),
    /// Two more tokens come with it, which must not be shown to anyone.
    #[serde(rename = "auth/wif-jwt-bearer")]
    Workload { client_id: String, valid_jwt: String },
    #[serde(other)]
    Person,
}

#[derive(Deserialize)]
struct Enterprise {
    client_id: String,
    client_secret: String,
    idp_client_id: String,
    idp_id_token: String,
    idp_token_endpoint: String,
}
