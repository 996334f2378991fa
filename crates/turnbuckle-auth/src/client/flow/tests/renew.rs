//! Renewing what there was, and what happens when the authorization server is another.

use super::*;
use crate::client::{grant::RegisteredBy, settings::Registered};

fn granted(provider: &mut Provider) -> Grant {
    provider.authorize(&Settings::default(), challenged("a")).unwrap()
}

fn renewing(previous: Grant) -> Asked {
    Asked { previous: Some(previous), renewal: Renewal::Refresh, ..challenged("a") }
}

// req: client-auth:refresh:rotation-handling
#[test]
fn a_refresh_carries_all_that_the_grant_knows() {
    let mut provider = Provider::new();
    let grant = granted(&mut provider);
    provider.sent.clear();
    provider.tokens.push_back((200, None, given("hide-second")));
    let body = json!({ "access_token": "hide-third", "token_type": "bearer" });
    provider.tokens.push_back((200, None, body));
    let second = provider.refresh(&grant).unwrap();
    let third = provider.refresh(&second).unwrap();
    assert_eq!(provider.urls(), [&*grant.endpoints.token, &grant.endpoints.token]);
    let form = &provider.sent[0].form;
    assert_eq!(form["grant_type"], "refresh_token");
    assert_eq!(form["refresh_token"], "hide-refresh");
    assert_eq!(form["resource"], SERVER);
    assert_eq!(form["client_id"], "dynamic");
    assert!(!form.contains_key("scope"));
    let tokens = third.tokens.unwrap();
    assert_eq!(tokens.access.expose(), "hide-third");
    assert_eq!(tokens.refresh.unwrap().expose(), "hide-refresh", "none was sent, so it stays");
    assert_eq!(tokens.expires_at, None);
    assert_eq!(third.scopes, grant.scopes);
    assert_eq!(third.issuer, grant.issuer);
}

#[test]
fn only_what_is_lost_is_said_to_be() {
    let mut provider = Provider::new();
    let grant = granted(&mut provider);
    for (status, code, kind) in [
        (400, "invalid_grant", AuthErrorKind::Expired),
        (401, "invalid_client", AuthErrorKind::Refused),
        (503, "invalid_grant", AuthErrorKind::Unreachable),
    ] {
        let said = "hide-refresh is used up";
        let body = json!({ "error": code, "error_description": said });
        provider.tokens.push_back((status, None, body));
        let error = provider.refresh(&grant).unwrap_err();
        assert_eq!((error.kind(), error.oauth_code()), (kind, Some(code)));
    }
    let mut bare = grant;
    bare.tokens.as_mut().unwrap().refresh = None;
    assert_eq!(provider.refresh(&bare).unwrap_err().kind(), AuthErrorKind::Required);
    bare.tokens = None;
    assert_eq!(provider.refresh(&bare).unwrap_err().kind(), AuthErrorKind::Required);
}

#[test]
fn what_can_be_renewed_needs_nobody() {
    let mut provider = Provider::new();
    let previous = granted(&mut provider);
    provider.sent.clear();
    provider.logins.clear();
    let asked = Asked { redirect_uri: None, ..renewing(previous.clone()) };
    provider.authorize(&Settings::default(), asked).unwrap();
    assert_eq!(provider.urls(), [HINT, DESCRIBED, "https://auth.example/token"]);
    assert_eq!(provider.sent[2].form["grant_type"], "refresh_token");
    assert!(provider.logins.is_empty());

    // Refused: then someone must log in, if there is anyone.
    let used_up = || (400, None, json!({ "error": "invalid_grant" }));
    provider.tokens.push_back(used_up());
    let asked = Asked { redirect_uri: None, ..renewing(previous.clone()) };
    let error = provider.authorize(&Settings::default(), asked).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Required);
    assert!(error.challenge().is_some());
    provider.tokens.push_back(used_up());
    provider.authorize(&Settings::default(), renewing(previous.clone())).unwrap();
    assert_eq!(provider.logins.len(), 1);

    // A server that is down takes nothing away.
    provider.tokens.push_back((503, None, json!({})));
    let error = provider.authorize(&Settings::default(), renewing(previous)).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unreachable);
    assert_eq!(provider.logins.len(), 1);
}

// req: client-auth:stepup:refresh-bypass-on-superset
#[test]
fn what_was_for_less_is_not_renewed() {
    let mut provider = Provider::new();
    let previous = granted(&mut provider);
    for change in ["more", "no token", "other resource"] {
        provider.logins.clear();
        provider.sent.clear();
        let mut asked = renewing(previous.clone());
        let earlier = asked.previous.as_mut().unwrap();
        match change {
            "more" => {
                asked.challenge.as_mut().unwrap().scope = Some("b".parse().unwrap());
            }
            "no token" => earlier.tokens.as_mut().unwrap().refresh = None,
            _ => earlier.resource = Some("https://mcp.example/other".into()),
        }
        provider.authorize(&Settings::default(), asked).unwrap();
        assert_eq!(provider.logins.len(), 1, "{change}");
        let types: Vec<_> =
            provider.token_requests().iter().map(|sent| &sent.form["grant_type"]).collect();
        assert_eq!(types, ["authorization_code"], "{change}");
    }
}

// req: client-auth:as-binding, client-auth:as-migration:reregister, client-auth:as-migration:no-cred-reuse
// req: client-auth:as-migration:no-token-reuse
#[test]
fn at_another_authorization_server_all_begins_anew() {
    let mut provider = Provider::new();
    let previous = granted(&mut provider);
    let second = "https://second.example";
    let described_at = format!("{second}/.well-known/oauth-authorization-server");
    provider.documents.insert(HINT.into(), resource(SERVER, &[second]));
    provider.documents.insert(described_at.clone(), described(second));
    provider.registration.1["client_id"] = "at-second".into();
    provider.login_adds = format!("&iss={}", encoded(second));
    provider.sent.clear();
    provider.recalls.clear();
    let grant = provider.authorize(&Settings::default(), renewing(previous)).unwrap();
    let register = format!("{second}/register");
    let token = format!("{second}/token");
    assert_eq!(provider.urls(), [HINT, &described_at, &register, &token]);
    assert_eq!(provider.recalls, [second]);
    assert_eq!(provider.logins[1]["client_id"], "at-second");
    assert_eq!(provider.logins[1]["scope"], "a");
    assert_eq!(provider.sent[3].form["client_id"], "at-second");
    assert_eq!(grant.issuer, second);
    assert_eq!(grant.registration.client_id, "at-second");
}

// req: client-auth:as-migration:cimd-portable
#[test]
fn a_clients_document_is_good_everywhere() {
    let mut provider = Provider::new();
    provider.edit(DESCRIBED, "client_id_metadata_document_supported", true.into());
    let settings = Settings {
        document: Some("https://client.example/client.json".into()),
        ..Settings::default()
    };
    let mut previous = provider.authorize(&settings, asked()).unwrap();
    previous.issuer = "https://first.example".into();
    let grant = provider.authorize(&settings, renewing(previous)).unwrap();
    assert_eq!(grant.registration.origin, RegisteredBy::Document);
    assert_eq!(provider.logins[1]["client_id"], "https://client.example/client.json");
}

#[test]
fn a_secret_that_was_changed_is_the_one_that_is_shown() {
    let with = |secret: &str| {
        let mut registered = Registered::new("known");
        registered.issuer = Some(ISSUER.into());
        registered.secret = Some(Secret::new(secret));
        Settings { registered: Some(registered), ..Settings::default() }
    };
    let mut provider = Provider::new();
    let mut grant = provider.authorize(&with("hide-old"), asked()).unwrap();
    let mut shown = |settings: &Settings, grant: &Grant| {
        let (flow, step) = Flow::refresh(tools(settings), grant.clone());
        provider.drive(flow, step).unwrap();
        provider.sent.last().unwrap().headers["authorization"].clone()
    };
    assert_eq!(shown(&with("hide-old"), &grant), basic("known", "hide-old"));
    assert_eq!(shown(&with("hide-new"), &grant), basic("known", "hide-new"));
    // It is another's.
    grant.issuer = "https://other.example".into();
    assert_eq!(shown(&with("hide-new"), &grant), basic("known", "hide-old"));
}
