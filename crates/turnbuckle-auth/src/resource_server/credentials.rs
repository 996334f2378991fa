//! Owns what a request brings as a credential: one token, in `Authorization` (RFC 6750 §2.1,
//! RFC 9449 §7.1), and one proof. Does not own whether it is any good.

use http::{HeaderMap, header::AUTHORIZATION};

use crate::{Scheme, Secret};

/// A token and how it is shown.
pub(super) struct Shown {
    pub(super) scheme: Scheme,
    pub(super) token: Secret,
}

/// Why there is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotShown {
    /// None was sent, or only something that is not for us.
    Nothing,
    /// What was sent can't be read, or there are two.
    Malformed,
}

/// Only headers are looked at: a token in an address ends in logs.
pub(super) fn shown(headers: &HeaderMap) -> Result<Shown, NotShown> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = all.next() else { return Err(NotShown::Nothing) };
    if all.next().is_some() {
        return Err(NotShown::Malformed);
    }
    let value = value.to_str().map_err(|_| NotShown::Malformed)?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let Some(scheme) = Scheme::from_name(scheme) else { return Err(NotShown::Nothing) };
    let token = token.trim_matches(' ');
    if !is_token(token) {
        return Err(NotShown::Malformed);
    }
    Ok(Shown { scheme, token: Secret::new(token) })
}

/// The one proof that came; nothing if there is none, or more than one.
pub(super) fn proof(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all("dpop").iter();
    let first = all.next()?;
    if all.next().is_some() {
        return None;
    }
    first.to_str().ok()
}

/// RFC 9110 §11.2, `token68`.
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !body.is_empty() && body.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(values: &[&[u8]]) -> Result<(Scheme, String), NotShown> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        shown(&headers).map(|shown| (shown.scheme, shown.token.expose().to_owned()))
    }

    #[test]
    fn one_token_in_the_header() {
        assert_eq!(read(&[b"Bearer a.b-c_d~e+f/g=="]).unwrap().1, "a.b-c_d~e+f/g==");
        assert_eq!(read(&[b"bEARER  abc"]).unwrap(), (Scheme::Bearer, "abc".into()));
        assert_eq!(read(&[b"DPoP abc"]).unwrap(), (Scheme::Dpop, "abc".into()));
        let cases: [(&[&[u8]], NotShown); 9] = [
            (&[], NotShown::Nothing),
            (&[b"Basic YTpi"], NotShown::Nothing),
            (&[b""], NotShown::Nothing),
            (&[b"Bearer"], NotShown::Malformed),
            (&[b"Bearer "], NotShown::Malformed),
            (&[b"Bearer a b"], NotShown::Malformed),
            (&[b"Bearer =a"], NotShown::Malformed),
            (&[b"Bearer \xff"], NotShown::Malformed),
            (&[b"Bearer a", b"Bearer a"], NotShown::Malformed),
        ];
        for (values, expected) in cases {
            assert_eq!(read(values), Err(expected), "{values:?}");
        }
    }

    #[test]
    fn one_proof() {
        let mut headers = HeaderMap::new();
        assert_eq!(proof(&headers), None);
        headers.append("dpop", HeaderValue::from_static("a.b.c"));
        assert_eq!(proof(&headers), Some("a.b.c"));
        headers.append("dpop", HeaderValue::from_static("a.b.c"));
        assert_eq!(proof(&headers), None);
    }
}
