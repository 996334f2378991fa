use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::*;
use crate::token::registration::RegisteredBy;

fn registration(method: TokenAuth) -> Registration {
    let mut registration = Registration::public("client:1", RegisteredBy::Beforehand);
    registration.method = method;
    registration.secret = Some(Secret::new("a:b c%ä"));
    registration
}

fn names(form: &Form) -> Vec<(&'static str, String)> {
    form.iter().map(|(name, value)| (*name, value.expose().to_owned())).collect()
}

type Shown = (Vec<(&'static str, String)>, Option<HeaderValue>);

fn sent(registration: &Registration, key: Option<&SigningKey>) -> Result<Shown, AuthError> {
    let mut form = Form::new();
    let header = authenticate(registration, "https://issuer", key, 1_000, &mut form)?;
    Ok((names(&form), header))
}

// req: client-auth:token-endpoint-auth-method
#[test]
fn each_method_shows_what_it_must_and_no_more() {
    let id = ("client_id", "client:1".to_owned());
    let (form, header) = sent(&registration(TokenAuth::None), None).unwrap();
    assert_eq!((form, header), (vec![id.clone()], None));

    let (form, header) = sent(&registration(TokenAuth::Post), None).unwrap();
    assert_eq!(header, None);
    assert_eq!(form, [id, ("client_secret", "a:b c%ä".to_owned())]);

    let (form, header) = sent(&registration(TokenAuth::Basic), None).unwrap();
    assert!(form.is_empty());
    let header = header.unwrap();
    assert!(header.is_sensitive());
    let encoded = header.to_str().unwrap().strip_prefix("Basic ").unwrap().to_owned();
    let pair = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
    assert_eq!(pair, "client%3A1:a%3Ab%20c%25%C3%A4");
}

// req: client-auth:private-key-jwt
#[test]
fn an_assertion_is_for_the_issuer_and_for_once() {
    let key = SigningKey::generate().unwrap().with_key_id("k");
    let registration = registration(TokenAuth::PrivateKeyJwt);
    let claims = || {
        let (form, header) = sent(&registration, Some(&key)).unwrap();
        assert_eq!(header, None);
        let form: std::collections::BTreeMap<_, _> = form.into_iter().collect();
        assert_eq!(form.len(), 3);
        assert_eq!(form["client_id"], "client:1");
        let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
        assert_eq!(form["client_assertion_type"], kind);
        let parts: Vec<Value> = form["client_assertion"]
            .split('.')
            .take(2)
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!(parts[0]["alg"], "ES256");
        assert_eq!(parts[0]["kid"], "k");
        parts[1].clone()
    };
    let first = claims();
    assert_eq!(first["iss"], "client:1");
    assert_eq!(first["sub"], "client:1");
    assert_eq!(first["aud"], "https://issuer");
    assert_eq!(first["iat"], 1_000);
    assert_eq!(first["exp"], 1_120);
    assert_ne!(first["jti"], claims()["jti"]);
}

#[test]
fn what_is_missing_is_said() {
    let error = sent(&registration(TokenAuth::PrivateKeyJwt), None).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Settings);
    for method in [TokenAuth::Basic, TokenAuth::Post] {
        let mut registration = registration(method);
        registration.secret = None;
        let error = sent(&registration, None).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Settings, "{method:?}");
    }
}
