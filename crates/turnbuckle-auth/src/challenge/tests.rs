use proptest::prelude::*;

use super::*;

fn read(values: &[&str]) -> Option<Challenge> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
    }
    Challenge::read(&headers)
}

fn bearer() -> Challenge {
    Challenge::default()
}

fn metadata(url: &str) -> Option<String> {
    Some(url.to_owned())
}

#[test]
fn headers_are_read() {
    let dpop = || Challenge { scheme: Scheme::Dpop, ..bearer() };
    let scoped = |scope: &str| Challenge { scope: Some(scope.parse().unwrap()), ..bearer() };
    let failed = |error: &str| Challenge { error: Some(error.to_owned()), ..bearer() };
    let cases: &[(&[&str], Option<Challenge>)] = &[
        (&[], None),
        (&[""], None),
        (&["Basic realm=\"x\""], None),
        (&["Bearer"], Some(bearer())),
        (&["bEARER"], Some(bearer())),
        (&["Bearer scope=\"b a\""], Some(scoped("a b"))),
        (&["Bearer scope=a"], Some(scoped("a"))),
        (
            &["Bearer scope = \"a\" , error = x"],
            Some(Challenge { error: Some("x".into()), ..scoped("a") }),
        ),
        // A scope within another's text is not a scope.
        (&["Bearer realm=\"scope=b, DPoP\", scope=\"a\""], Some(scoped("a"))),
        (&["Bearer realm=\"a \\\" scope=b\", error=\"e\\\\x\""], Some(failed("e\\x"))),
        // Several in one header, several headers.
        (&["Basic realm=\"x\", Bearer error=\"e\""], Some(failed("e"))),
        (&["Negotiate, Bearer error=e"], Some(failed("e"))),
        (&["Negotiate YWJj==, Bearer error=e"], Some(failed("e"))),
        (&["Negotiate YWJj", "Bearer error=e"], Some(failed("e"))),
        (&["Bearer error=e, Negotiate YWJj=="], Some(failed("e"))),
        (&["Bearer error=e, Basic error=other"], Some(failed("e"))),
        (&["Bearer error=e", "Bearer error=f"], Some(failed("e"))),
        (&["Bearer error=e, error=f"], Some(failed("e"))),
        // The stronger one first, with what the other said of the resource.
        (
            &["Bearer error=e, error_description=d, DPoP algs=\"ES256\""],
            Some(Challenge {
                error: Some("e".into()),
                error_description: Some("d".into()),
                ..dpop()
            }),
        ),
        // Each error with its own text.
        (
            &["Bearer error=e, error_description=d", "DPoP error=f"],
            Some(Challenge { error: Some("f".into()), ..dpop() }),
        ),
        (
            &["Bearer resource_metadata=\"https://h/m\", error=e", "DPoP error=use_dpop_nonce"],
            Some(Challenge {
                resource_metadata: metadata("https://h/m"),
                error: Some("use_dpop_nonce".into()),
                ..dpop()
            }),
        ),
        (
            &["Bearer resource_metadata=https://h/m?a=b, error=e"],
            Some(Challenge { resource_metadata: metadata("https://h/m?a=b"), ..failed("e") }),
        ),
        // What makes no sense ends the reading of that header, not of the next.
        (&["Bearer error=\"e", "Bearer error=f"], Some(bearer())),
        (&["(x)", "Bearer error=f"], Some(failed("f"))),
        (&[",, ,Bearer error=e,,"], Some(failed("e"))),
    ];
    for (values, expected) in cases {
        assert_eq!(&read(values), expected, "{values:?}");
    }
}

#[test]
fn reading_is_bounded() {
    let long = format!("Bearer error=e, x=\"{}\"", "y".repeat(17 * 1024));
    assert_eq!(read(&[&long]), None);
    let schemes = "a, ".repeat(20) + "Bearer";
    assert_eq!(read(&[&schemes]), None);
    let mut parameters: String = (0..40).map(|at| format!("p{at}=1, ")).collect();
    parameters.insert_str(0, "Bearer ");
    assert_eq!(read(&[&(parameters + "error=e")]), Some(bearer()));
    let scopes: Vec<String> = (0..100).map(|at| format!("s{at}")).collect();
    let challenge = read(&[&format!("Bearer scope=\"{}\"", scopes.join(" "))]).unwrap();
    assert_eq!(challenge.scope.unwrap().iter().count(), 64);
}

#[test]
fn a_challenge_is_written() {
    assert_eq!(bearer().to_header(), "Bearer");
    let challenge = Challenge {
        scheme: Scheme::Dpop,
        error: Some("invalid_token".into()),
        error_description: Some("\"no\"\r\nX: y".into()),
        scope: Some("b a".parse().unwrap()),
        resource_metadata: metadata("https://h/m"),
    };
    let expected = concat!(
        r#"DPoP error="invalid_token", error_description="\"no\"??X: y", "#,
        r#"scope="a b", resource_metadata="https://h/m""#
    );
    assert_eq!(challenge.to_header(), expected);
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        error in proptest::option::of("[ -~]{0,20}"),
        error_description in proptest::option::of("[ -~]{0,20}"),
        scopes in proptest::option::of("[a-z:]{1,5}( [a-z:]{1,5}){0,3}"),
        resource_metadata in proptest::option::of("[ -~]{0,20}"),
        scheme in prop_oneof![Just(Scheme::Bearer), Just(Scheme::Dpop)],
    ) {
        let scope = scopes.map(|text| text.parse().unwrap());
        let challenge =
            Challenge { scheme, error, error_description, scope, resource_metadata };
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, challenge.to_header());
        prop_assert_eq!(Challenge::read(&headers), Some(challenge));
    }

    #[test]
    fn no_header_breaks_it(value in "[ -~\t\u{80}-\u{ff}]{0,60}") {
        let bytes: Vec<u8> = value.chars().map(|char| char as u8).collect();
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            headers.insert(WWW_AUTHENTICATE, value);
        }
        Challenge::read(&headers);
    }
}
