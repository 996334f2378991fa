//! Which redirects are followed, where they lead, and which headers go along.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, StatusCode, Uri, header};

use super::timing::REDIRECTS;
use crate::transport::http::session::client::send::{LAST_EVENT_ID, SESSION};

/// Which redirects a client follows.
///
/// Only 307 and 308 are ever followed, at most five times: the others would turn a call into
/// something else. From `https` to `http`, and from elsewhere to this machine or a private
/// network, none is followed.
///
/// ```
/// use turnbuckle::{Client, http::Redirects};
/// let builder = Client::builder().redirects(Redirects::Never);
/// # let _ = builder;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redirects {
    /// None.
    Never,
    /// Those that stay with the same scheme, host and port.
    #[default]
    SameOrigin,
    /// Also those that lead elsewhere. Headers that were added to the client or the call, and
    /// with them all credentials, do not go along. Nor does the session of the legacy era,
    /// which is a credential too: a server elsewhere that wants one refuses the request.
    AnyOrigin,
}

/// A redirect that is followed.
#[derive(Debug, PartialEq)]
pub(crate) struct Hop {
    pub(crate) to: Uri,
    pub(crate) own_headers: OwnHeaders,
}

/// What becomes of the headers that the user added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnHeaders {
    Kept,
    Dropped,
}

/// Judges a redirect; the error says in one sentence why it is not followed.
pub(crate) fn judge(
    policy: Redirects,
    from: &Uri,
    status: StatusCode,
    location: Option<&[u8]>,
    hops: usize,
) -> Result<Hop, String> {
    let location = location
        .and_then(|location| std::str::from_utf8(location).ok())
        .ok_or("it was redirected without saying where to")?;
    let to = resolve(from, location).ok_or("it was redirected to something that is no address")?;
    let refuse = |why: &str| Err(format!("it was redirected to {}, {why}", place(&to)));
    if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return refuse(&format!("by status {}, which would not repeat the call", status.as_u16()));
    }
    if hops >= REDIRECTS {
        return refuse("after five other redirects");
    }
    let same = origin(from) == origin(&to);
    match policy {
        Redirects::Never => return refuse("and this client follows no redirects"),
        Redirects::SameOrigin if !same => {
            return refuse("which is another origin; connect to that address if you trust it");
        }
        _ => {}
    }
    if from.scheme_str() == Some("https") && to.scheme_str() != Some("https") {
        return refuse("which is not encrypted");
    }
    if is_private(&to) && !is_private(from) {
        return refuse("which is not a public address");
    }
    let own_headers = if same { OwnHeaders::Kept } else { OwnHeaders::Dropped };
    Ok(Hop { to, own_headers })
}

/// Removes the headers that must not go to another origin: those that the caller added to the
/// request, and the session, which is a credential. The last event id is none.
pub(crate) fn drop_credentials(headers: &mut HeaderMap) {
    let is_kept = |name: &HeaderName| {
        [header::CONTENT_TYPE, header::ACCEPT, LAST_EVENT_ID].contains(name)
            || (name.as_str().starts_with("mcp-") && name != SESSION)
    };
    let others: Vec<_> = headers.keys().filter(|name| !is_kept(name)).cloned().collect();
    for name in others {
        headers.remove(name);
    }
}

/// Scheme, host and port, as two addresses are compared.
pub(crate) fn origin(address: &Uri) -> (String, String, u16) {
    let scheme = address.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let host = address.host().unwrap_or_default().to_ascii_lowercase();
    let port = address.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    (scheme, host, port)
}

/// An address for people: without its query, which may hold secrets.
pub(crate) fn place(address: &Uri) -> String {
    let authority = address.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}{}", address.scheme_str().unwrap_or_default(), address.path())
}

/// RFC 3986 §5.2, for what a server may put into `Location`.
pub(crate) fn resolve(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next()?;
    let absolute = location.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    let text = if absolute {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{}://{rest}", base.scheme_str()?)
    } else {
        let path = if location.starts_with('/') {
            location.to_owned()
        } else if location.starts_with('?') || location.is_empty() {
            format!("{}{location}", base.path())
        } else {
            let directory = base.path().rfind('/').map_or("", |at| &base.path()[..at]);
            format!("{directory}/{location}")
        };
        format!("{}://{}{}", base.scheme_str()?, base.authority()?, without_dots(&path))
    };
    let uri: Uri = text.parse().ok()?;
    let plain = matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    plain.then_some(uri)
}

fn without_dots(path: &str) -> String {
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            ".." => {
                kept.pop();
                if last {
                    kept.push("");
                }
            }
            "." if last => kept.push(""),
            "." => {}
            segment => kept.push(segment),
        }
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("/{}{query}", kept.join("/"))
}

/// Whether an address is this machine or a private network, as far as its text tells.
fn is_private(address: &Uri) -> bool {
    let host = address.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        Ok(IpAddr::V6(ip)) => {
            let mapped = ip.to_ipv4_mapped().is_some_and(|ip| {
                ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
            });
            mapped
                || ip.is_loopback()
                || ip.is_unique_local()
                || ip.is_unicast_link_local()
                || ip.is_unspecified()
        }
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    fn to(policy: Redirects, from: &str, location: &str) -> Result<Hop, String> {
        let status = StatusCode::PERMANENT_REDIRECT;
        judge(policy, &uri(from), status, Some(location.as_bytes()), 0)
    }

    #[test]
    fn a_location_is_resolved_against_where_it_came_from() {
        for (base, location, expected) in [
            ("https://a.com/mcp", "/v2/mcp", "https://a.com/v2/mcp"),
            ("https://a.com/x/mcp", "other", "https://a.com/x/other"),
            ("https://a.com/x/mcp", "../other?q=1", "https://a.com/other?q=1"),
            ("https://a.com/x/y/", "./.", "https://a.com/x/y/"),
            ("https://a.com/mcp", "?v=2", "https://a.com/mcp?v=2"),
            ("https://a.com/mcp", "//a.com:443/z", "https://a.com:443/z"),
            ("https://a.com/mcp", "https://a.com/z#part", "https://a.com/z"),
        ] {
            assert_eq!(resolve(&uri(base), location), Some(uri(expected)), "{location}");
        }
        for nonsense in ["ftp://a.com/", "https://", "https://user:pw@a.com/", "javascript:x"] {
            assert_eq!(resolve(&uri("https://a.com/"), nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn the_own_headers_stay_with_the_origin_that_they_were_meant_for() {
        let kept = to(Redirects::SameOrigin, "https://a.com/mcp", "https://A.com:443/x").unwrap();
        assert_eq!(kept.own_headers, OwnHeaders::Kept);
        for elsewhere in ["https://b.com/", "https://a.com:8443/", "https://sub.a.com/"] {
            let dropped = to(Redirects::AnyOrigin, "https://a.com/mcp", elsewhere).unwrap();
            assert_eq!(dropped.own_headers, OwnHeaders::Dropped, "{elsewhere}");
            assert!(to(Redirects::SameOrigin, "https://a.com/mcp", elsewhere).is_err());
            assert!(to(Redirects::Never, "https://a.com/mcp", elsewhere).is_err());
        }
    }

    #[test]
    fn neither_out_of_encryption_nor_into_a_private_network() {
        for (from, location) in [
            ("https://a.com/", "http://a.com/"),
            ("https://a.com/", "https://127.0.0.1/"),
            ("https://a.com/", "https://localhost/"),
            ("https://a.com/", "https://169.254.169.254/latest"),
            ("https://a.com/", "https://[::1]/"),
            ("https://a.com/", "https://[::ffff:10.0.0.1]/"),
            ("http://a.com/", "http://10.0.0.8/"),
        ] {
            assert!(to(Redirects::AnyOrigin, from, location).is_err(), "{location}");
        }
        assert!(to(Redirects::AnyOrigin, "http://127.0.0.1:1/", "http://127.0.0.1:2/").is_ok());
    }

    #[test]
    fn only_what_repeats_the_call_is_followed_and_not_for_ever() {
        let from = uri("https://a.com/");
        for status in [301, 302, 303, 300] {
            let status = StatusCode::from_u16(status).unwrap();
            assert!(judge(Redirects::SameOrigin, &from, status, Some(b"/x"), 0).is_err());
        }
        let status = StatusCode::TEMPORARY_REDIRECT;
        assert!(judge(Redirects::SameOrigin, &from, status, Some(b"/x"), 4).is_ok());
        assert!(judge(Redirects::SameOrigin, &from, status, Some(b"/x"), 5).is_err());
        assert!(judge(Redirects::SameOrigin, &from, status, None, 0).is_err());
        let why =
            to(Redirects::SameOrigin, "https://a.com/", "https://b.com/x?token=1").unwrap_err();
        assert!(why.contains("https://b.com/x") && !why.contains("token"), "{why}");
    }
}
