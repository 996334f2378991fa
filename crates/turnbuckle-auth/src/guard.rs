//! Owns which addresses may be asked, by their text and by their number. Does not own asking.
//!
//! A server that is asked for its metadata names further addresses, and whoever runs it chooses
//! them. What a public server must not choose is an address that only this machine can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::{Addresses, AuthError, AuthErrorKind};

/// The longest address that is asked.
const LONGEST: usize = 8 << 10;

/// Where a server is: scheme, host and port, and with them what it may point to.
///
/// ```
/// use turnbuckle_auth::{Addresses, Origin};
/// let origin = Origin::of("https://mcp.example.com/mcp?x=1")?;
/// assert_eq!(origin.as_str(), "https://mcp.example.com");
/// assert_eq!(origin.addresses(), Addresses::Public);
/// assert_eq!(Origin::of("http://localhost:8080/mcp")?.addresses(), Addresses::AlsoPrivate);
/// # Ok::<_, turnbuckle_auth::AuthError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    text: String,
    addresses: Addresses,
    http: PlainHttp,
}

/// Whether a server that is not on this machine may be asked over `http`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PlainHttp {
    Refused,
    Allowed,
}

impl Origin {
    /// Of an `http` or `https` address.
    pub fn of(url: &str) -> Result<Origin, AuthError> {
        let url = parse(url)?;
        let text = url.origin().ascii_serialization();
        let addresses =
            if is_private_host(&url) { Addresses::AlsoPrivate } else { Addresses::Public };
        Ok(Origin { text, addresses, http: PlainHttp::Refused })
    }

    /// As `Origin` headers spell it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What a server here may point to: a public one to public ones only. A name that can't be
    /// public (`localhost`, a single label, `.local`, `.internal`, `.home.arpa`) counts as private.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Lets it point to private networks, because whoever runs this client says so.
    #[must_use]
    pub fn with_private_addresses(mut self) -> Origin {
        self.addresses = Addresses::AlsoPrivate;
        self
    }

    /// Lets it be asked over plain `http` itself, wherever it is: nobody is on the way, or whoever runs
    /// this client says that it does not matter. What it points to must be encrypted all the same.
    ///
    /// ```
    /// use turnbuckle_auth::{may_ask, Origin};
    /// let server = Origin::of("http://mcp.example.com/mcp")?;
    /// assert!(may_ask("http://mcp.example.com/about", &server).is_err());
    /// let server = server.with_plain_http();
    /// assert!(may_ask("http://mcp.example.com/about", &server).is_ok());
    /// assert!(may_ask("http://auth.example.com/token", &server).is_err());
    /// # Ok::<_, turnbuckle_auth::AuthError>(())
    /// ```
    #[must_use]
    pub fn with_plain_http(mut self) -> Origin {
        self.http = PlainHttp::Allowed;
        self
    }

    /// Whether nobody on the way can read what this server is shown, or may.
    #[cfg(feature = "client")]
    pub(crate) fn may_be_shown_tokens(&self) -> bool {
        let url = self.text.parse::<Url>();
        let sealed = |url: Url| url.scheme() == "https" || is_loopback_host(&url);
        self.http == PlainHttp::Allowed || url.is_ok_and(sealed)
    }
}

/// Whether what a server says may make this client ask `url`: `https`, or `http` on this machine;
/// no user or password in it; nothing private when the server itself is public.
///
/// ```
/// use turnbuckle_auth::{may_ask, Origin};
/// let server = Origin::of("https://mcp.example.com/mcp")?;
/// assert!(may_ask("https://auth.example.com/token", &server).is_ok());
/// assert!(may_ask("http://auth.example.com/token", &server).is_err());
/// assert!(may_ask("https://10.0.0.1/token", &server).is_err());
/// # Ok::<_, turnbuckle_auth::AuthError>(())
/// ```
pub fn may_ask(url: &str, from: &Origin) -> Result<(), AuthError> {
    let url = parse(url)?;
    let refuse = |why: &str| Err(forbidden(format!("{} is not asked: {why}", place(&url))));
    let plain = from.http == PlainHttp::Allowed && url.origin().ascii_serialization() == from.text;
    if url.scheme() == "http" && !is_loopback_host(&url) && !plain {
        return refuse("it is not encrypted (https)");
    }
    if from.addresses == Addresses::Public && is_private_host(&url) {
        return refuse("a public server pointed to a private address");
    }
    match literal(&url) {
        Some(ip) if !may_dial(ip, from.addresses) => refuse("its address is reserved"),
        _ => Ok(()),
    }
}

/// Whether a connection to `ip` may be made. Names are resolved first, and every address that comes
/// out is asked about here, so that a public name can't lead into a private network.
///
/// ```
/// use turnbuckle_auth::{may_dial, Addresses};
/// assert!(may_dial("93.184.215.14".parse().unwrap(), Addresses::Public));
/// assert!(!may_dial("::ffff:192.168.0.1".parse().unwrap(), Addresses::Public));
/// assert!(may_dial("192.168.0.1".parse().unwrap(), Addresses::AlsoPrivate));
/// ```
pub fn may_dial(ip: IpAddr, addresses: Addresses) -> bool {
    match ip {
        IpAddr::V4(ip) => may_dial_v4(ip, addresses),
        // An address in an address counts as the inner one.
        IpAddr::V6(ip) => match embedded(ip) {
            Some(inside) => may_dial_v4(inside, addresses),
            None => may_dial_v6(ip, addresses),
        },
    }
}

/// An address for people: without its query, which may hold secrets.
pub(crate) fn place(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Reads an `http` or `https` address that carries no credentials.
pub(crate) fn parse(text: &str) -> Result<Url, AuthError> {
    if text.len() > LONGEST {
        return Err(forbidden("an address is longer than 8 KiB"));
    }
    let url: Url = text.parse().map_err(|_| forbidden("what should be an address is none"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(forbidden(format!(
            "an address with the scheme `{}` is not asked",
            url.scheme()
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(forbidden("an address with a user or a password in it is not asked"));
    }
    if url.host().is_none() {
        return Err(forbidden("an address without a host is not asked"));
    }
    Ok(url)
}

fn forbidden(message: impl Into<String>) -> AuthError {
    AuthError::new(AuthErrorKind::Forbidden, message)
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(ip.into()),
        Host::Domain(_) => None,
    }
}

fn is_loopback_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

fn is_private_host(url: &Url) -> bool {
    /// Names that the public DNS never has (RFC 6762, 8375, and the one that ICANN reserved).
    const NEVER_PUBLIC: [&str; 3] = [".local", ".internal", ".home.arpa"];
    if let Some(ip) = literal(url) {
        return !may_dial(ip, Addresses::Public);
    }
    let Some(Host::Domain(name)) = url.host() else { return true };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    is_loopback_host(url)
        || !name.contains('.')
        || NEVER_PUBLIC.iter().any(|suffix| name.ends_with(suffix))
}

/// The metadata services of clouds hand credentials to whoever asks: never an answer to anything.
const METADATA: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
];
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

fn may_dial_v4(ip: Ipv4Addr, addresses: Addresses) -> bool {
    let [first, second, third, _] = ip.octets();
    let never = ip.is_broadcast() || ip.is_multicast() || first == 0 || METADATA.contains(&ip);
    let private = ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || (first == 100 && (64..128).contains(&second)) // RFC 6598: behind a carrier's NAT
        || (first == 192 && second == 0 && third == 0) // RFC 6890
        || (first == 192 && second == 88 && third == 99) // RFC 7526
        || (first == 198 && (18..20).contains(&second)) // RFC 2544
        || first >= 240; // RFC 1112
    !never && (addresses == Addresses::AlsoPrivate || !private)
}

fn may_dial_v6(ip: Ipv6Addr, addresses: Addresses) -> bool {
    let never = ip.is_unspecified() || ip.is_multicast() || METADATA_V6.contains(&ip);
    // Everything that is not global unicast (2000::/3), and of that what is reserved.
    let segments = ip.segments();
    let global = segments[0] & 0xe000 == 0x2000;
    let reserved = match segments {
        [0x2001, second, ..] => second < 0x200 || second == 0xdb8, // RFC 2928 and 3849
        [first, ..] => first == 0x3fff,                            // RFC 9637
    };
    !never && (addresses == Addresses::AlsoPrivate || (global && !reserved))
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64 (RFC 6052), 6to4.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = ip.segments();
    let pair = |at: usize| {
        let [a, b] = segments[at].to_be_bytes();
        let [c, d] = segments[at + 1].to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(pair(6)),
        [0x2002, ..] => Some(pair(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "https://mcp.example.com/mcp";

    fn origin(url: &str) -> Origin {
        Origin::of(url).unwrap()
    }

    // req: client-auth:token-endpoint:https-guard
    #[test]
    fn only_https_or_this_machine_is_asked() {
        let (public, local) = (origin(PUBLIC), origin("http://localhost:3000/mcp"));
        for (url, from_public, from_local) in [
            ("https://auth.example.com/token", true, true),
            ("https://auth.example.com:8443/token", true, true),
            ("http://auth.example.com/token", false, false),
            ("http://localhost/token", false, true),
            ("http://LOCALHOST./token", false, true),
            ("http://as.localhost:1/token", false, true),
            ("http://127.0.0.1:9/token", false, true),
            ("http://127.1/token", false, true),
            ("http://2130706433/token", false, true),
            ("http://[::1]:9/token", false, true),
            ("http://192.168.0.1/token", false, false),
            ("https://192.168.0.1/token", false, true),
            ("https://[fd00::1]/token", false, true),
            ("https://[::ffff:10.0.0.1]/token", false, true),
            ("https://intranet/token", false, true),
            ("https://auth.corp.internal/token", false, true),
            ("https://169.254.169.254/latest", false, false),
            ("https://0.0.0.0/token", false, false),
            ("https://user@auth.example.com/", false, false),
            ("https://:password@auth.example.com/", false, false),
            ("ftp://auth.example.com/", false, false),
            ("file:///etc/passwd", false, false),
            ("javascript:alert(1)", false, false),
            ("auth.example.com", false, false),
            ("", false, false),
        ] {
            assert_eq!(may_ask(url, &public).is_ok(), from_public, "{url} from a public server");
            assert_eq!(may_ask(url, &local).is_ok(), from_local, "{url} from this machine");
        }
    }

    #[test]
    fn a_refusal_says_where_but_shows_no_query() {
        let error = may_ask("http://a.example/x?token=hush", &origin(PUBLIC)).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Forbidden);
        let text = format!("{error} {error:?}");
        assert!(text.contains("http://a.example/x") && !text.contains("hush"), "{text}");
        let long = format!("https://a.example/{}", "x".repeat(LONGEST));
        assert!(may_ask(&long, &origin(PUBLIC)).is_err());
    }

    #[test]
    fn private_networks_can_be_allowed() {
        let allowed = origin(PUBLIC).with_private_addresses();
        assert!(may_ask("https://10.0.0.1/", &allowed).is_ok());
        assert!(may_ask("http://10.0.0.1/", &allowed).is_err());
    }

    #[test]
    fn every_reserved_range_is_known() {
        for (ip, public, also_private) in [
            ("93.184.215.14", true, true),
            ("127.0.0.1", false, true),
            ("10.1.2.3", false, true),
            ("172.16.0.1", false, true),
            ("172.32.0.1", true, true),
            ("192.168.255.255", false, true),
            ("169.254.1.1", false, true),
            ("169.254.169.254", false, false),
            ("100.64.0.1", false, true),
            ("100.127.255.255", false, true),
            ("100.128.0.1", true, true),
            ("100.100.100.200", false, false),
            ("192.0.0.8", false, true),
            ("192.0.2.1", false, true),
            ("198.19.0.1", false, true),
            ("240.0.0.1", false, true),
            ("224.0.0.1", false, false),
            ("255.255.255.255", false, false),
            ("0.0.0.0", false, false),
            ("0.1.2.3", false, false),
            ("2606:2800:21f:cb07::1", true, true),
            ("::", false, false),
            ("::1", false, true),
            ("fe80::1", false, true),
            ("fec0::1", false, true),
            ("fd12::1", false, true),
            ("fd00:ec2::254", false, false),
            ("fd00:ec2::23", false, false),
            ("fd20:ce::254", false, false),
            ("169.254.170.23", false, false),
            ("168.63.129.16", false, false),
            ("ff02::1", false, false),
            ("2001:db8::1", false, true),
            ("2001::1", false, true),
            ("::ffff:93.184.215.14", true, true),
            ("::ffff:127.0.0.1", false, true),
            ("::ffff:169.254.169.254", false, false),
            ("::10.0.0.1", false, true),
            ("64:ff9b::10.0.0.1", false, true),
            ("64:ff9b::93.184.215.14", true, true),
            ("64:ff9b:1::1", false, true),
            ("2002:a00:1::", false, true),
            ("2002:a9fe:a9fe::", false, false),
        ] {
            let parsed: IpAddr = ip.parse().unwrap();
            assert_eq!(may_dial(parsed, Addresses::Public), public, "{ip}");
            assert_eq!(may_dial(parsed, Addresses::AlsoPrivate), also_private, "{ip}, private");
        }
    }
}
