//! Owns what a protected server asks for with 401 and 403: `WWW-Authenticate`, read and written.
//! Does not own what is done about it.

mod read;

use http::{HeaderMap, HeaderValue, header::WWW_AUTHENTICATE};

use crate::Scopes;

/// How a token is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Scheme {
    /// Whoever has the token may use it (RFC 6750).
    #[default]
    Bearer,
    /// Only whoever has its key may use it (RFC 9449).
    Dpop,
}

impl Scheme {
    /// As it is written in `Authorization` and `WWW-Authenticate`.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Bearer => "Bearer",
            Scheme::Dpop => "DPoP",
        }
    }

    /// Names of schemes have no case (RFC 9110 §11.1), nor have types of tokens (RFC 6749 §5.1).
    pub(crate) fn from_name(name: &str) -> Option<Scheme> {
        [Scheme::Bearer, Scheme::Dpop]
            .into_iter()
            .find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }
}

/// What a protected server asks for.
///
/// ```
/// use http::{HeaderMap, header::WWW_AUTHENTICATE};
/// use turnbuckle_auth::Challenge;
///
/// let mut headers = HeaderMap::new();
/// let asked = r#"Basic realm="x", Bearer error="insufficient_scope", scope="files:write""#;
/// headers.insert(WWW_AUTHENTICATE, asked.parse().unwrap());
/// let challenge = Challenge::read(&headers).unwrap();
/// assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
/// assert!(challenge.scope.unwrap().contains("files:write"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// How the token must be shown.
    pub scheme: Scheme,
    /// What was wrong with the token that was shown; nothing if none was.
    pub error: Option<String>,
    /// The same for a reader.
    pub error_description: Option<String>,
    /// What the token must be good for.
    pub scope: Option<Scopes>,
    /// Where the server says more of itself (RFC 9728).
    pub resource_metadata: Option<String>,
}

impl Challenge {
    /// The challenge in a response's headers that this crate can meet. `DPoP` goes before `Bearer`.
    pub fn read(headers: &HeaderMap) -> Option<Challenge> {
        let mut dpop = None;
        let mut bearer = None;
        for header in headers.get_all(WWW_AUTHENTICATE).iter().take(read::MOST_HEADERS) {
            // A header may hold Latin-1; what isn't ASCII can only be in texts for readers.
            let text: String = header.as_bytes().iter().map(|byte| char::from(*byte)).collect();
            for (name, parameters) in read::challenges(&text) {
                let Some(scheme) = Scheme::from_name(name) else { continue };
                let place = match scheme {
                    Scheme::Dpop => &mut dpop,
                    Scheme::Bearer => &mut bearer,
                };
                place.get_or_insert_with(|| Challenge::from_parameters(scheme, parameters));
            }
        }
        match (dpop, bearer) {
            (Some(mut dpop), Some(bearer)) => {
                // Both are about one resource: what one leaves out the other may have said.
                dpop.resource_metadata = dpop.resource_metadata.or(bearer.resource_metadata);
                dpop.scope = dpop.scope.or(bearer.scope);
                // A text for readers belongs to the error that it came with.
                if dpop.error.is_none() {
                    dpop.error = bearer.error;
                    dpop.error_description = dpop.error_description.or(bearer.error_description);
                }
                Some(dpop)
            }
            (dpop, bearer) => dpop.or(bearer),
        }
    }

    /// As the value of `WWW-Authenticate`.
    pub fn to_header(&self) -> HeaderValue {
        let scope = self.scope.as_ref().map(Scopes::to_string);
        let parameters = [
            ("error", self.error.as_deref()),
            ("error_description", self.error_description.as_deref()),
            ("scope", scope.as_deref()),
            ("resource_metadata", self.resource_metadata.as_deref()),
        ];
        let mut text = self.scheme.name().to_owned();
        let mut between = " ";
        for (name, value) in parameters {
            let Some(value) = value else { continue };
            text.push_str(between);
            text.push_str(name);
            text.push('=');
            push_quoted(&mut text, value);
            between = ", ";
        }
        // Only visible ASCII was pushed, so this can't fail; the bare scheme is right in any case.
        HeaderValue::from_str(&text)
            .unwrap_or_else(|_| HeaderValue::from_static(self.scheme.name()))
    }

    fn from_parameters(scheme: Scheme, parameters: Vec<(&str, String)>) -> Challenge {
        let mut challenge = Challenge { scheme, ..Challenge::default() };
        for (name, value) in parameters {
            let place = match name.to_ascii_lowercase().as_str() {
                "error" => &mut challenge.error,
                "error_description" => &mut challenge.error_description,
                "resource_metadata" => &mut challenge.resource_metadata,
                "scope" => {
                    let scopes = value.split_ascii_whitespace().take(read::MOST_SCOPES).collect();
                    challenge.scope.get_or_insert(scopes);
                    continue;
                }
                _ => continue,
            };
            place.get_or_insert(value);
        }
        challenge
    }
}

fn push_quoted(text: &mut String, value: &str) {
    text.push('"');
    for char in value.chars() {
        match char {
            '"' | '\\' => text.extend(['\\', char]),
            ' '..='~' => text.push(char),
            _ => text.push('?'),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests;
