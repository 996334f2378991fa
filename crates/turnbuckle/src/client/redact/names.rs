//! Owns which members hold secrets, by what they are called. Does not own what is done about it.

/// What a name says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Plain,
    Secret,
    /// Of no use to anyone who reads it, and perhaps to someone who should not.
    Opaque,
}

/// Parts of names of secrets, without case and dividers.
const PARTS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "authorization",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "credential",
    "cookie",
    "codeverifier",
    "authorizationcode",
    "authcode",
    "assertion",
    "sessionid",
    "connectionstring",
    "bearer",
];

/// Whole names of secrets.
const WHOLE: &[&str] = &["pwd", "pin", "otp", "jwt", "auth", "pat"];

/// Names that only sound like it: the protocol's own, and how much a model may say.
const HARMLESS: &[&str] = &["progresstoken", "maxtokens", "tokentype", "tokenendpoint"];

pub(super) fn naming(name: &str) -> Naming {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    if plain == "requeststate" {
        return Naming::Opaque;
    }
    if HARMLESS.contains(&plain.as_str()) {
        return Naming::Plain;
    }
    // Tokens in the plural are counted; one is kept.
    let token = plain.contains("token") && !plain.ends_with("tokens");
    if token || WHOLE.contains(&&*plain) || PARTS.iter().any(|part| plain.contains(part)) {
        return Naming::Secret;
    }
    Naming::Plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "token",
            "access_token",
            "refreshToken",
            "X-Auth-Token",
            "password",
            "dbPassword",
            "client_secret",
            "Authorization",
            "api_key",
            "apiKey",
            "API-KEY",
            "aws_access_key_id",
            "cookie",
            "Set-Cookie",
            "credentials",
            "private_key",
            "code_verifier",
            "pin",
            "PWD",
            "mcp-session-id",
        ] {
            assert_eq!(naming(name), Naming::Secret, "{name}");
        }
        for name in [
            "progressToken",
            "maxTokens",
            "inputTokens",
            "name",
            "keyboard",
            "code",
            "author",
            "pinned",
            "token_type",
            "cursor",
            "authors",
            "key",
        ] {
            assert_eq!(naming(name), Naming::Plain, "{name}");
        }
        assert_eq!(naming("requestState"), Naming::Opaque);
    }
}
