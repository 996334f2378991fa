//! What is asked for.

use super::*;
use crate::client::settings::Offline;

fn scope(provider: &Provider) -> Option<&str> {
    provider.logins.last().unwrap().get("scope").map(String::as_str)
}

// req: client-auth:scope-selection:priority
#[test]
fn the_challenge_goes_before_the_description() {
    // Challenged, described, asked for.
    for (challenge, described, expected) in [
        (Some("mcp:basic"), None, Some("mcp:basic")),
        (Some("mcp:basic"), Some(json!(["mcp:decoy"])), Some("mcp:basic")),
        (None, Some(json!(["mcp:write", "mcp:read"])), Some("mcp:read mcp:write")),
        (None, Some(json!([])), None),
        (None, None, None),
    ] {
        let mut provider = Provider::new();
        if let Some(described) = described {
            provider.edit(HINT, "scopes_supported", described);
        }
        let asked = challenge.map_or_else(asked, challenged);
        let grant = provider.authorize(&Settings::default(), asked).unwrap();
        assert_eq!(scope(&provider), expected);
        assert_eq!(grant.scopes.to_string(), expected.unwrap_or_default());
        let registered = provider.sent[2].json.get("scope").and_then(Value::as_str);
        assert_eq!(registered, expected);
    }
}

// req: client-auth:403-scope-union, client-auth:stepup:scope-union
#[test]
fn more_is_asked_for_with_all_that_was_before() {
    let mut provider = Provider::new();
    provider.edit(HINT, "scopes_supported", json!(["mcp:profile"]));
    let settings = Settings::default();
    let previous = provider.authorize(&settings, challenged("mcp:basic")).unwrap();
    let mut more = Asked { previous: Some(previous), ..challenged("mcp:write") };
    more.challenge.as_mut().unwrap().error = Some("insufficient_scope".into());
    let grant = provider.authorize(&settings, more).unwrap();
    assert_eq!(scope(&provider), Some("mcp:basic mcp:write"));
    assert_eq!(grant.scopes.to_string(), "mcp:basic mcp:write");
    assert_eq!(grant.registration.client_id, "dynamic");
    let registrations = provider.urls().iter().filter(|url| url.contains("register")).count();
    assert_eq!(registrations, 1, "the same client asks again");

    // Without a scope in the challenge, what was asked for before is asked for again.
    let again = Asked { previous: Some(grant), ..asked() };
    provider.authorize(&settings, again).unwrap();
    assert_eq!(scope(&provider), Some("mcp:basic mcp:write"));
}

#[test]
fn the_user_may_choose() {
    let settings = Settings { scopes: Some("own".parse().unwrap()), ..Settings::default() };
    let mut provider = Provider::new();
    provider.authorize(&settings, challenged("theirs")).unwrap();
    assert_eq!(scope(&provider), Some("own"));
    let mut more = challenged("theirs");
    more.challenge.as_mut().unwrap().error = Some("insufficient_scope".into());
    provider.authorize(&settings, more).unwrap();
    assert_eq!(scope(&provider), Some("own theirs"));
}

// req: client-auth:authorize:offline-access-consent
#[test]
fn offline_access_is_asked_for_only_where_it_is_known() {
    let known = Some(json!(["x", "offline_access"]));
    let (never, insisting) = (
        Settings { offline: Offline::Never, ..Settings::default() },
        Settings { scopes: Some("offline_access".parse().unwrap()), ..Settings::default() },
    );
    let default = Settings::default();
    for (settings, described, challenge, expected) in [
        (&default, known.clone(), None, Some("offline_access")),
        (&default, known.clone(), Some("a"), Some("a offline_access")),
        (&default, Some(json!(["x"])), Some("a"), Some("a")),
        (&default, None, Some("a"), Some("a")),
        // A server that asks for it does not make it known.
        (&default, None, Some("a offline_access"), Some("a")),
        (&never, known.clone(), Some("a"), Some("a")),
        (&insisting, None, None, Some("offline_access")),
    ] {
        let mut provider = Provider::new();
        provider.edit(DESCRIBED, "scopes_supported", described.unwrap_or_default());
        let asked = challenge.map_or_else(asked, challenged);
        provider.authorize(settings, asked).unwrap();
        assert_eq!(scope(&provider), expected);
        let prompt = provider.logins[0].get("prompt").map(String::as_str);
        let offline = expected.is_some_and(|scopes| scopes.contains("offline_access"));
        assert_eq!(prompt, offline.then_some("consent"));
        assert_eq!(
            provider.sent[2].json["grant_types"],
            json!(["authorization_code", "refresh_token"])
        );
    }
}
