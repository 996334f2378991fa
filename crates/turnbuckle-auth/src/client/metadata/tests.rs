use serde_json::json;

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

// req: client-auth:prm-discovery:fallback-order
#[test]
fn a_protected_server_is_looked_for_in_order() {
    const NAME: &str = "https://h/.well-known/oauth-protected-resource";
    let at = |path: &str| format!("{NAME}{path}");
    let cases = [
        ("https://h/mcp", None, vec![at("/mcp"), at("")]),
        ("https://h/a/b/", None, vec![at("/a/b"), at("")]),
        ("https://h/mcp?x=1#y", None, vec![at("/mcp"), at("")]),
        ("https://h", None, vec![at("")]),
        ("https://h/", None, vec![at("")]),
        ("https://user:word@h/mcp", None, vec![at("/mcp"), at("")]),
        (
            "https://h/mcp",
            Some("https://h/x.json"),
            vec!["https://h/x.json".into(), at("/mcp"), at("")],
        ),
    ];
    for (server, hint, expected) in cases {
        assert_eq!(resource_metadata_urls(&url(server), hint), expected, "{server}");
    }
    let hint = at("/mcp");
    assert_eq!(
        resource_metadata_urls(&url("https://h/mcp"), Some(&hint)),
        [at("/mcp"), at("")],
        "no place is asked twice"
    );
}

// req: client-auth:as-metadata-discovery:priority-order
#[test]
fn an_authorization_server_is_looked_for_in_order() {
    let root = [
        "https://h/.well-known/oauth-authorization-server",
        "https://h/.well-known/openid-configuration",
    ];
    let below = [
        "https://h/.well-known/oauth-authorization-server/a/b",
        "https://h/.well-known/openid-configuration/a/b",
        "https://h/a/b/.well-known/openid-configuration",
    ];
    assert_eq!(server_metadata_urls("https://h").unwrap(), root);
    assert_eq!(server_metadata_urls("https://h/").unwrap(), root);
    assert_eq!(server_metadata_urls("https://h/a/b").unwrap(), below);
    assert_eq!(server_metadata_urls("https://h/a/b/").unwrap(), below);
    // The string is not touched.
    assert_eq!(
        server_metadata_urls("https://H:443/%7Ea").unwrap()[0],
        "https://H:443/.well-known/oauth-authorization-server/%7Ea"
    );
    for bad in ["", "h", "http://h", "https://h?x", "https://h#x", "file:///x"] {
        assert!(server_metadata_urls(bad).is_err(), "{bad}");
    }
}

// req: client-auth:prm-resource-mismatch
#[test]
fn a_resource_is_the_server_or_above_it() {
    let server = "https://h/a/mcp";
    let good = [
        "https://h/a/mcp",
        "https://h/a/mcp/",
        "https://h/a",
        "https://h/a/",
        "https://h",
        "https://h/",
        "https://H:443/a",
    ];
    let bad = [
        "https://h/a/mc",
        "https://h/a/mcp/x",
        "https://h/b",
        "https://h/A/mcp",
        "https://h/a/mcp?x=1",
        "https://h/a/mcp#x",
        "https://h:8443/a/mcp",
        "http://h/a/mcp",
        "https://evil.example/a/mcp",
        "https://h.evil.example/a/mcp",
        "https://h@evil.example/a/mcp",
        "https://x@h/a/mcp",
        "https://h/b/../c",
        "/a/mcp",
        "urn:x",
        "data:x",
    ];
    for (resources, expected) in [(&good[..], true), (&bad[..], false)] {
        for resource in resources {
            let metadata = ResourceMetadata::read(&map(json!({ "resource": resource })));
            let metadata = metadata.unwrap().unwrap();
            assert_eq!(metadata.is_about(&url(server)), expected, "{resource}");
            assert_eq!(metadata.resource, *resource);
        }
    }
    let asked = map(json!({ "resource": "https://h/mcp?tenant=1" }));
    let metadata = ResourceMetadata::read(&asked).unwrap().unwrap();
    assert!(metadata.is_about(&url("https://h/mcp?tenant=1")));
    assert!(!metadata.is_about(&url("https://h/mcp?tenant=2")));
}

#[test]
fn what_a_protected_server_says_is_bounded() {
    let names: Vec<String> = (0..200).map(|at| format!("https://h{at}")).collect();
    let document = map(json!({
        "resource": "https://h",
        "authorization_servers": names,
        "scopes_supported": names,
        "dpop_bound_access_tokens_required": true,
    }));
    let metadata = ResourceMetadata::read(&document).unwrap().unwrap();
    assert_eq!(metadata.authorization_servers.len(), 16);
    assert_eq!(metadata.scopes.unwrap().iter().count(), 64);
    assert!(metadata.dpop_required);
    assert!(ResourceMetadata::read(&map(json!({ "x": 1 }))).unwrap().is_none());
    let nameless = map(json!({ "authorization_servers": ["https://a"] }));
    assert!(ResourceMetadata::read(&nameless).is_err());
}

fn described() -> Value {
    json!({
        "issuer": "https://a/t",
        "authorization_endpoint": "https://a/authorize",
        "token_endpoint": "https://a/token",
        "registration_endpoint": "https://a/register",
        "scopes_supported": ["x", "offline_access"],
        "code_challenge_methods_supported": ["plain", "S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_post", "by_fax", "none"],
        "grant_types_supported": ["authorization_code"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
        "dpop_signing_alg_values_supported": ["RS256", "ES256"],
    })
}

fn read_server(document: Value) -> Result<Option<ServerMetadata>, AuthError> {
    ServerMetadata::read(&map(document), &["https://a/t".to_owned()])
}

#[test]
fn what_an_authorization_server_says_is_read() {
    let server = read_server(described()).unwrap().unwrap();
    assert_eq!(server.issuer, "https://a/t");
    assert_eq!(server.endpoints.authorize.as_deref(), Some("https://a/authorize"));
    assert_eq!(server.endpoints.token, "https://a/token");
    assert_eq!(server.register.as_deref(), Some("https://a/register"));
    assert!(server.scopes.unwrap().contains("offline_access"));
    assert_eq!(server.methods, Some(vec![TokenAuth::Post, TokenAuth::None]));
    assert_eq!(server.grants, Some(vec!["authorization_code".to_owned()]));
    assert!(server.s256 && server.names_itself && server.documents);
    assert_eq!(server.dpop, DpopKnown::Es256);

    let bare = json!({ "issuer": "https://a/t", "token_endpoint": "https://a/token" });
    let server = read_server(bare).unwrap().unwrap();
    assert!(server.endpoints.authorize.is_none() && server.register.is_none());
    assert!(!server.s256 && !server.names_itself && !server.documents);
    assert!(server.methods.is_none() && server.grants.is_none() && server.scopes.is_none());
    assert_eq!(server.dpop, DpopKnown::Unsaid);
}

// req: client-auth:as-metadata-discovery:issuer-validation
#[test]
fn the_issuer_is_compared_byte_for_byte() {
    for issuer in ["https://a/t/", "https://A/t", "https://a:443/t", "https://a", "https://a/%74"] {
        let mut document = described();
        document["issuer"] = issuer.into();
        let error = read_server(document).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Metadata, "{issuer}");
    }
    let mut document = described();
    document.as_object_mut().unwrap().remove("issuer");
    assert!(read_server(document).unwrap().is_none());
}

#[test]
fn endpoints_must_be_safe_to_ask() {
    for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
        for bad in [
            "http://a/x",
            "javascript:alert(1)",
            "file:///x",
            "https://a/x#y",
            "x",
            "http://localhost/x",
        ] {
            let mut document = described();
            document[name] = bad.into();
            let error = read_server(document).unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{name} {bad}");
        }
    }
    let mut document = described();
    document.as_object_mut().unwrap().remove("token_endpoint");
    assert_eq!(read_server(document).unwrap_err().kind(), AuthErrorKind::Metadata);
}

#[test]
fn pkce_is_known_only_by_s256() {
    for (methods, expected) in [
        (json!(["S256"]), true),
        (json!(["plain"]), false),
        (json!(["s256"]), false),
        (json!([]), false),
        (json!("S256"), false),
        (Value::Null, false),
    ] {
        let mut document = described();
        document["code_challenge_methods_supported"] = methods.clone();
        assert_eq!(read_server(document).unwrap().unwrap().s256, expected, "{methods}");
    }
}

#[test]
fn only_a_later_try_is_an_error() {
    let answer = |status: u16, body: &str| {
        let body = Bytes::from(body.to_owned());
        document(&Response::builder().status(status).body(body).unwrap(), "https://h")
    };
    assert!(answer(200, "{}").unwrap().is_some());
    for (status, body) in [
        (200, "<html>"),
        (200, "[]"),
        (200, ""),
        (204, "{}"),
        (302, "{}"),
        (400, "{}"),
        (401, "{}"),
        (403, "{}"),
        (404, "{}"),
        (405, "{}"),
    ] {
        assert!(answer(status, body).unwrap().is_none(), "{status} {body}");
    }
    for status in [429, 500, 502, 503, 504] {
        let error = answer(status, "{}").err().unwrap();
        assert_eq!(error.kind(), AuthErrorKind::Unreachable, "{status}");
    }
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(1024 * 1024));
    assert!(answer(200, &long).unwrap().is_none());
}

#[test]
fn by_convention_all_is_at_the_origin() {
    let server = ServerMetadata::by_convention("https://h");
    assert_eq!(server.endpoints.authorize.as_deref(), Some("https://h/authorize"));
    assert_eq!(server.endpoints.token, "https://h/token");
    assert_eq!(server.register.as_deref(), Some("https://h/register"));
    assert!(server.s256 && !server.names_itself && !server.documents);
}
