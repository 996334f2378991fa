//! The keys of cached results: the request, the server, the principal, and the revision.

use std::{fmt::Write as _, process::Command};

use ring::{
    digest::{Context, SHA256},
    rand::{SecureRandom as _, SystemRandom},
};
use turnbuckle_types::{CacheScope, Method, Revision};

/// A request, as the client's own memory identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CachedRequest {
    pub(super) method: Method,
    /// The encoded params without `_meta`; empty for none.
    pub(super) params: String,
}

/// The unit of invalidation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CacheTopic {
    /// All pages of a list.
    List(Method),
    /// The resource with this URI.
    Resource(String),
}

impl CachedRequest {
    pub(super) fn topic(&self) -> CacheTopic {
        #[derive(serde::Deserialize)]
        struct Read {
            uri: String,
        }
        if self.method != Method::ReadResource {
            return CacheTopic::List(self.method);
        }
        let read = serde_json::from_str::<Read>(&self.params);
        CacheTopic::Resource(read.map(|read| read.uri).unwrap_or_default())
    }

    /// Returns `true` for a page after the first.
    pub(super) fn is_later_page(&self) -> bool {
        self.method != Method::ReadResource && self.params.contains(r#""cursor""#)
    }
}

/// The key of an entry in a [`CacheStore`](crate::cache::CacheStore). Both parts are digests, so that they
/// disclose neither server nor principal nor request.
///
/// The pages of a list are one group, as are the results of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    group: String,
    page: String,
}

impl CacheKey {
    /// Returns the group, whose entries are removed together: 64 hexadecimal digits.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the entry's name in its group: 64 hexadecimal digits.
    pub fn page(&self) -> &str {
        &self.page
    }
}

/// The parts that identify a server or a principal; `None` if they are not known.
pub(crate) type IdentityParts = Option<Vec<Vec<u8>>>;

/// Returns the parts of a program: its command line, variables and directory.
pub(crate) fn command_parts(command: &Command) -> Vec<Vec<u8>> {
    let mut parts = vec![b"command".to_vec()];
    let mut add = |kind: &str, part: &std::ffi::OsStr| {
        parts.push(kind.as_bytes().to_vec());
        parts.push(part.as_encoded_bytes().to_vec());
    };
    add("program", command.get_program());
    command.get_args().for_each(|argument| add("argument", argument));
    for (name, value) in command.get_envs() {
        add("name", name);
        value.into_iter().for_each(|value| add("value", value));
    }
    let directory = command.get_current_dir();
    directory.into_iter().for_each(|directory| add("directory", directory.as_os_str()));
    parts
}

/// The server and the principal of a client, as a part of its keys.
pub(super) struct CacheIdentity {
    server: [u8; 32],
    principal: [u8; 32],
}

impl CacheIdentity {
    /// `capabilities` are those of the client: results may depend on them.
    pub(super) fn new(
        server: IdentityParts,
        principal: IdentityParts,
        capabilities: &[u8],
    ) -> CacheIdentity {
        let server = digest([&identify("server", server), capabilities]);
        CacheIdentity { server, principal: identify("principal", principal) }
    }

    pub(super) fn key(
        &self,
        scope: CacheScope,
        revision: Revision,
        request: &CachedRequest,
    ) -> CacheKey {
        let page = hex(&digest([request.params.as_bytes()]));
        CacheKey { group: self.group(scope, revision, &request.topic()), page }
    }

    pub(super) fn group(
        &self,
        scope: CacheScope,
        revision: Revision,
        topic: &CacheTopic,
    ) -> String {
        let principal: &[u8] = match scope {
            CacheScope::Public => b"",
            _ => &self.principal,
        };
        let (method, uri) = match topic {
            CacheTopic::List(method) => (*method, ""),
            CacheTopic::Resource(uri) => (Method::ReadResource, uri.as_str()),
        };
        let texts = [revision.as_str(), method.as_str(), uri].map(str::as_bytes);
        hex(&digest([self.server.as_slice(), principal].into_iter().chain(texts)))
    }
}

/// Digests the parts; unknown ones get a random value, which no other client has.
fn identify(purpose: &str, parts: IdentityParts) -> [u8; 32] {
    let parts = parts.unwrap_or_else(|| {
        let mut random = [0; 32];
        SystemRandom::new().fill(&mut random).expect("the system has no random numbers");
        vec![b"unknown".to_vec(), random.to_vec()]
    });
    digest([purpose.as_bytes()].into_iter().chain(parts.iter().map(Vec::as_slice)))
}

/// Digests each part with its length, so that no two lists of parts are the same text.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, params: &str) -> CachedRequest {
        CachedRequest { method, params: params.to_owned() }
    }

    fn known(parts: &[&str]) -> IdentityParts {
        Some(parts.iter().map(|part| part.as_bytes().to_vec()).collect())
    }

    #[test]
    fn each_thing_that_an_answer_depends_on_tells_keys_apart() {
        let modern = Revision::V2026_07_28;
        let list = request(Method::ListTools, "");
        let key = |server: &[&str], principal: &[&str], revision, request: &CachedRequest| {
            let identity = CacheIdentity::new(known(server), known(principal), b"{}");
            identity.key(CacheScope::Private, revision, request)
        };
        let one = key(&["a"], &["alice"], modern, &list);
        assert_eq!(one, key(&["a"], &["alice"], modern, &list));
        let other = request(Method::ListPrompts, "");
        for different in [
            key(&["b"], &["alice"], modern, &list),
            key(&["a"], &["bob"], modern, &list),
            key(&["a", ""], &["alice"], modern, &list),
            key(&["a"], &["alice"], Revision::V2025_11_25, &list),
            key(&["a"], &["alice"], modern, &other),
        ] {
            assert_ne!(one.group(), different.group());
        }
        let page =
            key(&["a"], &["alice"], modern, &request(Method::ListTools, r#"{"cursor":"2"}"#));
        assert_eq!(one.group(), page.group(), "pages go together");
        assert_ne!(one.page(), page.page());
        let read = |uri: &str| {
            let params = format!(r#"{{"uri":"{uri}"}}"#);
            key(&["a"], &["alice"], modern, &request(Method::ReadResource, &params))
        };
        assert_ne!(read("a:1").group(), read("a:2").group());
    }

    #[test]
    fn only_what_is_for_everyone_has_no_principal() {
        let identity = |principal| CacheIdentity::new(known(&["a"]), known(&[principal]), b"{}");
        let (alice, bob) = (identity("alice"), identity("bob"));
        let group = |identity: &CacheIdentity, scope| {
            identity.group(scope, Revision::LATEST, &CacheTopic::List(Method::ListTools))
        };
        let everyone = CacheScope::Public;
        assert_eq!(group(&alice, everyone), group(&bob, everyone));
        assert_ne!(group(&alice, everyone), group(&alice, CacheScope::Private));
        let able = CacheIdentity::new(known(&["a"]), known(&["alice"]), br#"{"sampling":{}}"#);
        assert_ne!(group(&able, everyone), group(&alice, everyone), "a server may go by that");
        let unknown = || CacheIdentity::new(None, known(&["alice"]), b"{}");
        assert_ne!(group(&unknown(), everyone), group(&unknown(), everyone));
    }

    #[test]
    fn a_program_is_known_by_all_that_it_was_given() {
        let text = |command: &mut Command| identify("", Some(command_parts(command)));
        let plain = text(&mut Command::new("a"));
        assert_eq!(plain, text(&mut Command::new("a")));
        assert_ne!(plain, text(Command::new("a").arg("b")));
        assert_ne!(text(Command::new("a").arg("b").arg("c")), text(Command::new("a").arg("bc")));
        assert_ne!(plain, text(Command::new("a").env("KEY", "1")));
        assert_ne!(
            text(Command::new("a").env("KEY", "2")),
            text(Command::new("a").env("KEY", "1"))
        );
        assert_ne!(plain, text(Command::new("a").current_dir("/")));
    }

    #[test]
    fn a_key_says_nothing_of_what_it_is_made_of() {
        let identity = CacheIdentity::new(known(&["server"]), known(&["Bearer hunter2"]), b"{}");
        let request = request(Method::ReadResource, r#"{"uri":"secret:1"}"#);
        let key = identity.key(CacheScope::Private, Revision::LATEST, &request);
        assert_eq!((key.group().len(), key.page().len()), (64, 64));
        assert!(key.group().bytes().chain(key.page().bytes()).all(|byte| byte.is_ascii_hexdigit()));
    }
}
