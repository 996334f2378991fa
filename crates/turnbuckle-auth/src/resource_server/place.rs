//! The addresses around a resource, made of its text: where it is, where it tells of itself.

use std::net::IpAddr;

use url::{Host, Url};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// A resource's own string and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct ResourceLocation {
    /// As it was given: tokens must name it like that.
    pub(super) resource: String,
    /// Scheme, host and port, as they were given.
    pub(super) origin: String,
    pub(super) metadata_path: String,
}

impl ResourceLocation {
    /// # Errors
    /// A sentence, if it can't be the address of a resource.
    pub(super) fn of(resource: &str) -> Result<ResourceLocation, &'static str> {
        let url = Url::parse(resource).map_err(|_| "the resource is no address")?;
        if !is_safe(&url) {
            return Err("the resource must be at https, or at http on this machine");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the resource must have no query and no fragment");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the resource must have no user and no password");
        }
        let host = resource.find("://").map_or(0, |at| at + 3);
        let path = resource[host..].find('/').map_or(resource.len(), |at| host + at);
        let (origin, path) = resource.split_at(path);
        // RFC 9728 §3.1: a slash that only ends the host is left out.
        let metadata_path = format!("{WELL_KNOWN}{}", if path == "/" { "" } else { path });
        Ok(ResourceLocation {
            resource: resource.to_owned(),
            origin: origin.to_owned(),
            metadata_path,
        })
    }

    pub(super) fn metadata_url(&self) -> String {
        format!("{}{}", self.origin, self.metadata_path)
    }

    /// What a client asked for that is seen here as this path: routers and proxies before a server
    /// take away what the resource's own path begins with.
    pub(super) fn url(&self, seen: &str) -> String {
        let own = &self.resource[self.origin.len().min(self.resource.len())..];
        let is_own = own.len() > 1 && (seen == "/" || own.ends_with(seen));
        format!("{}{}", self.origin, if is_own { own } else { seen })
    }
}

/// Whether it may be asked for keys, or with credentials: https, or http on this machine.
pub(super) fn is_safe(url: &Url) -> bool {
    match (url.scheme(), url.host()) {
        ("https", Some(_)) => true,
        ("http", Some(Host::Domain(name))) => name == "localhost",
        ("http", Some(Host::Ipv4(address))) => IpAddr::from(address).is_loopback(),
        ("http", Some(Host::Ipv6(address))) => IpAddr::from(address).is_loopback(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_where_the_resource_says() {
        for (resource, url) in [
            ("https://h", "https://h/.well-known/oauth-protected-resource"),
            ("https://h/", "https://h/.well-known/oauth-protected-resource"),
            ("https://h:8443/mcp", "https://h:8443/.well-known/oauth-protected-resource/mcp"),
            ("https://h/a/b/", "https://h/.well-known/oauth-protected-resource/a/b/"),
            (
                "http://127.0.0.1:1/mcp",
                "http://127.0.0.1:1/.well-known/oauth-protected-resource/mcp",
            ),
            ("http://[::1]:1/mcp", "http://[::1]:1/.well-known/oauth-protected-resource/mcp"),
        ] {
            let place = ResourceLocation::of(resource).unwrap();
            assert_eq!(place.metadata_url(), url);
            assert_eq!(place.resource, resource);
        }
        let place = ResourceLocation::of("https://h/api/mcp").unwrap();
        for (seen, url) in [
            ("/api/mcp", "https://h/api/mcp"),
            ("/mcp", "https://h/api/mcp"),
            ("/", "https://h/api/mcp"),
            ("/api/sse", "https://h/api/sse"),
        ] {
            assert_eq!(place.url(seen), url);
        }
        assert_eq!(ResourceLocation::of("https://h").unwrap().url("/"), "https://h/");
        for wrong in [
            "",
            "/mcp",
            "mcp",
            "http://h/mcp",
            "ftp://h",
            "https://h/?a",
            "https://h/#a",
            "https://u:p@h",
        ] {
            assert!(ResourceLocation::of(wrong).is_err(), "{wrong}");
        }
    }
}
