//! Owns what a host and an origin are: how they are read, and when two are the same. Does not own
//! which of them may speak to a server.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The longest name that the domain name system has.
const LONGEST_NAME: usize = 253;
const LONGEST_SCHEME: usize = 64;

/// A host, and the port if one is given.
#[derive(Clone, Debug)]
pub(super) struct Authority<Name> {
    pub(super) host: HostName<Name>,
    pub(super) port: Option<u16>,
}

/// The name, borrowed or owned, has no dot at its end; case does not count.
#[derive(Clone, Debug)]
pub(super) enum HostName<Name> {
    Name(Name),
    Address(IpAddr),
}

/// Who a page belongs to, as a browser says it.
#[derive(Clone, Debug)]
pub(crate) struct Origin<Name> {
    scheme: Scheme<Name>,
    host: HostName<Name>,
    /// Invariant: not the default of the scheme.
    port: Option<u16>,
}

/// One that has ports that go without saying, or another.
#[derive(Clone, Copy, Debug)]
enum Scheme<Name> {
    Http,
    Https,
    Other(Name),
}

/// Why text is no host or no origin.
pub(super) type AuthorityError = &'static str;

impl<'a> Authority<&'a str> {
    /// Reads `example.com`, `example.com:8443`, `127.0.0.1`, `[::1]:80`.
    pub(super) fn read(text: &'a str) -> Result<Authority<&'a str>, AuthorityError> {
        if text.contains('@') {
            return Err("it has a user name");
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or("its bracket is not closed")?;
            let address: Ipv6Addr =
                address.parse().map_err(|_| "what is in brackets is not an IPv6 address")?;
            let port = match rest.strip_prefix(':') {
                Some(port) => port_of(port)?,
                None if rest.is_empty() => None,
                None => return Err("only a port may follow the bracket"),
            };
            // An IPv4 address in IPv6 clothes is that IPv4 address.
            let host = HostName::Address(IpAddr::V6(address).to_canonical());
            return Ok(Authority { host, port });
        }
        let (host, port) = match text.split_once(':') {
            Some((_, rest)) if rest.contains(':') => {
                return Err("an IPv6 address has to be in brackets");
            }
            Some((host, port)) => (host, port_of(port)?),
            None => (text, None),
        };
        let name = host.strip_suffix('.').unwrap_or(host);
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(Authority { host: HostName::Address(address.into()), port });
        }
        check_name(name)?;
        Ok(Authority { host: HostName::Name(name), port })
    }

    pub(super) fn to_owned(&self) -> Authority<String> {
        Authority { host: self.host.to_owned(), port: self.port }
    }
}

impl<Name: AsRef<str>> HostName<Name> {
    pub(super) fn is<Other: AsRef<str>>(&self, other: &HostName<Other>) -> bool {
        match (self, other) {
            (HostName::Name(one), HostName::Name(two)) => {
                one.as_ref().eq_ignore_ascii_case(two.as_ref())
            }
            (HostName::Address(one), HostName::Address(two)) => one == two,
            _ => false,
        }
    }

    /// Whether it can only mean this machine. RFC 6761 §6.3 gives all of `localhost` to loopback.
    pub(super) fn is_loopback(&self) -> bool {
        match self {
            HostName::Address(address) => address.is_loopback(),
            HostName::Name(name) => {
                let last = name.as_ref().rsplit('.').next();
                last.is_some_and(|label| label.eq_ignore_ascii_case("localhost"))
            }
        }
    }
}

impl HostName<&str> {
    fn to_owned(&self) -> HostName<String> {
        match self {
            HostName::Name(name) => HostName::Name(name.to_ascii_lowercase()),
            HostName::Address(address) => HostName::Address(*address),
        }
    }
}

impl<'a> Origin<&'a str> {
    /// Reads `https://app.example.com`, `http://localhost:3000`, `tauri://localhost`.
    pub(super) fn read(text: &'a str) -> Result<Origin<&'a str>, AuthorityError> {
        let (scheme, rest) = text.split_once("://").ok_or("it does not begin with a scheme")?;
        if rest.contains(['/', '?', '#']) {
            return Err("an origin ends with its host or port");
        }
        let scheme = Scheme::read(scheme)?;
        let Authority { host, port } = Authority::read(rest)?;
        let port = port.filter(|port| Some(*port) != scheme.port());
        Ok(Origin { scheme, host, port })
    }

    pub(super) fn to_owned(&self) -> Origin<String> {
        let scheme = match self.scheme {
            Scheme::Http => Scheme::Http,
            Scheme::Https => Scheme::Https,
            Scheme::Other(name) => Scheme::Other(name.to_ascii_lowercase()),
        };
        Origin { scheme, host: self.host.to_owned(), port: self.port }
    }
}

impl<Name: AsRef<str>> Origin<Name> {
    pub(super) fn is<Other: AsRef<str>>(&self, other: &Origin<Other>) -> bool {
        self.scheme.is(&other.scheme) && self.host.is(&other.host) && self.port == other.port
    }

    /// Whether a request to this authority stays where the page is from. Whether the request
    /// came over TLS is not known here, a proxy may have ended it: a port that goes without
    /// saying on one side may do so on the other.
    pub(super) fn is_at<Other: AsRef<str>>(&self, authority: &Authority<Other>) -> bool {
        let Some(default) = self.scheme.port() else {
            return false;
        };
        let own = self.port.unwrap_or(default);
        self.host.is(&authority.host) && own == authority.port.unwrap_or(default)
    }

    /// Whether it is a page of a server on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        self.scheme.port().is_some() && self.host.is_loopback()
    }
}

impl<'a> Scheme<&'a str> {
    fn read(text: &'a str) -> Result<Scheme<&'a str>, AuthorityError> {
        let named = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if !begins || !text.bytes().all(named) || text.len() > LONGEST_SCHEME {
            return Err("its scheme is not one");
        }
        Ok(match text {
            _ if text.eq_ignore_ascii_case("http") => Scheme::Http,
            _ if text.eq_ignore_ascii_case("https") => Scheme::Https,
            other => Scheme::Other(other),
        })
    }
}

impl<Name: AsRef<str>> Scheme<Name> {
    fn port(&self) -> Option<u16> {
        match self {
            Scheme::Http => Some(80),
            Scheme::Https => Some(443),
            Scheme::Other(_) => None,
        }
    }

    fn is<Other: AsRef<str>>(&self, other: &Scheme<Other>) -> bool {
        match (self, other) {
            (Scheme::Http, Scheme::Http) | (Scheme::Https, Scheme::Https) => true,
            (Scheme::Other(one), Scheme::Other(two)) => {
                one.as_ref().eq_ignore_ascii_case(two.as_ref())
            }
            _ => false,
        }
    }
}

impl<Name: AsRef<str>> fmt::Display for HostName<Name> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostName::Name(name) => f.write_str(name.as_ref()),
            HostName::Address(IpAddr::V4(address)) => address.fmt(f),
            HostName::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl<Name: AsRef<str>> fmt::Display for Origin<Name> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match &self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Other(name) => name.as_ref(),
        };
        write!(f, "{scheme}://{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// A port. None at all after the colon means the default, says RFC 3986 §3.2.3.
fn port_of(text: &str) -> Result<Option<u16>, AuthorityError> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("its port is not a number");
    }
    match text.parse() {
        Ok(0) | Err(_) => Err("its port is not between 1 and 65535"),
        Ok(port) => Ok(Some(port)),
    }
}

fn check_name(name: &str) -> Result<(), AuthorityError> {
    if name.is_empty() {
        return Err("it names no host");
    }
    if name.len() > LONGEST_NAME {
        return Err("its name is longer than names may be");
    }
    if !name.is_ascii() {
        return Err("its name has to be in ASCII, as `xn--…`");
    }
    if name.split('.').any(str::is_empty) {
        return Err("a part of its name is empty");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return Err("its name has characters that no host has");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_read_as_rfc_3986_writes_them() {
        for (text, host, port) in [
            ("example.com", "example.com", None),
            ("example.com.", "example.com", None),
            ("EXAMPLE.com:8443", "EXAMPLE.com", Some(8443)),
            ("example.com.:80", "example.com", Some(80)),
            ("example.com:", "example.com", None),
            ("my_host-1", "my_host-1", None),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[::1]", "[::1]", None),
            ("[::1]:80", "[::1]", Some(80)),
            ("[0:0::0:1]:", "[::1]", None),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1", Some(80)),
        ] {
            let read = Authority::read(text).unwrap();
            assert_eq!((read.host.to_string().as_str(), read.port), (host, port), "{text}");
        }
        for text in [
            "",
            ":80",
            ".",
            "a..b",
            ".a",
            "a..",
            "user@example.com",
            "user:pass@example.com",
            "example.com:0",
            "example.com:65536",
            "example.com:99999999999",
            "example.com:+80",
            "example.com:-1",
            "example.com:8x",
            "example.com:80:80",
            "::1",
            "[::1",
            "[::1]80",
            "[::1%25eth0]",
            "[127.0.0.1]",
            "[]",
            "exämple.com",
            "a b",
            "a/b",
            "a%2eb",
            "a,b",
            "*",
        ] {
            assert!(Authority::read(text).is_err(), "{text}");
        }
        assert!(Authority::read(&"a.".repeat(127)).is_ok());
        assert!(Authority::read(&"a".repeat(254)).is_err());
    }

    #[test]
    fn only_what_can_mean_nothing_else_is_loopback() {
        let is = |text| Authority::read(text).unwrap().host.is_loopback();
        for text in [
            "localhost",
            "LOCALHOST.",
            "app.localhost",
            "127.0.0.1",
            "127.255.0.9:1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost:8080",
        ] {
            assert!(is(text), "{text}");
        }
        for text in [
            "localhost.example.com",
            "notlocalhost",
            "127.0.0.1.example.com",
            "127.1",
            "0.0.0.0",
            "2130706433",
            "0x7f.0.0.1",
            "[::]",
            "[::2]",
            "10.0.0.1",
            "localhost.localdomain",
        ] {
            assert!(!is(text), "{text}");
        }
    }

    #[test]
    fn origins_are_the_same_whatever_goes_without_saying() {
        for (one, two) in [
            ("https://example.com", "HTTPS://Example.COM:443"),
            ("http://example.com:80", "http://example.com."),
            ("http://[::1]:3000", "http://[0::1]:3000"),
            ("tauri://localhost", "TAURI://localhost"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ] {
            assert!(Origin::read(one).unwrap().is(&Origin::read(two).unwrap()), "{one} {two}");
            assert!(Origin::read(one).unwrap().to_owned().is(&Origin::read(two).unwrap()));
        }
        for (one, two) in [
            ("https://example.com", "http://example.com"),
            ("https://example.com", "https://example.com:80"),
            ("https://example.com", "https://app.example.com"),
            ("https://example.com:8443", "https://example.com"),
            ("tauri://localhost", "http://localhost"),
            ("one://localhost", "two://localhost"),
            ("one://localhost:80", "one://localhost"),
        ] {
            assert!(!Origin::read(one).unwrap().is(&Origin::read(two).unwrap()), "{one} {two}");
        }
        for text in [
            "",
            "null",
            "*",
            "example.com",
            "https:example.com",
            "https://",
            "https://example.com/",
            "https://example.com/path",
            "https://example.com?x",
            "https://user@example.com",
            "://example.com",
            "1http://example.com",
            "ht tp://example.com",
            "https://a, https://b",
            "https://a https://b",
            "https://example.com:0",
        ] {
            assert!(Origin::read(text).is_err(), "{text}");
        }
        let shown = Origin::read("HTTPS://Example.com.:443").unwrap().to_owned().to_string();
        assert_eq!(shown, "https://example.com");
        assert_eq!(Origin::read("http://[::1]:3000").unwrap().to_string(), "http://[::1]:3000");
    }
}
