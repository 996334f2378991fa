//! Owns what tells one answer from another: the request, the server, who asks, and the revision.
//! Does not own the answers.

use std::{
    fmt::Write as _,
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use ring::digest::{Context, SHA256};
use turnbuckle_types::{Method, Revision};

use super::freshness::Audience;

/// A request, as far as the answers of one client to one server depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub(super) method: Method,
    /// Their text without `_meta`, as this crate writes it; empty for none.
    pub(super) params: String,
}

/// What an answer is about: what is forgotten together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    /// All pages of a list.
    List(Method),
    /// The resource with this URI.
    Resource(String),
}

impl Request {
    pub(super) fn topic(&self) -> Topic {
        #[derive(serde::Deserialize)]
        struct Read {
            uri: String,
        }
        if self.method != Method::ReadResource {
            return Topic::List(self.method);
        }
        let read = serde_json::from_str::<Read>(&self.params);
        Topic::Resource(read.map(|read| read.uri).unwrap_or_default())
    }

    /// Whether this asks for a page after the first.
    pub(super) fn is_later_page(&self) -> bool {
        self.method != Method::ReadResource && self.params.contains(r#""cursor""#)
    }
}

/// Under which an answer is kept in a [`CacheStore`](crate::CacheStore). Both parts are digests:
/// they say nothing of server, principal or request, and are never the same for two of them.
///
/// The pages of a list are one group, as is what can be read of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    group: String,
    page: String,
}

impl CacheKey {
    /// What is forgotten together: 64 hexadecimal digits.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Which one of the group: 64 hexadecimal digits.
    pub fn page(&self) -> &str {
        &self.page
    }
}

/// Whose answers they are, and who asked for them.
pub(super) struct Identity {
    server: [u8; 32],
    principal: [u8; 32],
}

/// What is known of a server, or of who asks it.
pub(crate) enum Known {
    /// These parts are all that matters.
    Parts(Vec<Vec<u8>>),
    /// Nothing that someone else could not be, too.
    Nothing,
}

impl Known {
    /// A program with all that it was given.
    pub(crate) fn command(command: &Command) -> Known {
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
        Known::Parts(parts)
    }

    fn digest(&self, purpose: &str) -> [u8; 32] {
        match self {
            Known::Parts(parts) => {
                let parts = parts.iter().map(Vec::as_slice);
                digest([purpose.as_bytes()].into_iter().chain(parts))
            }
            Known::Nothing => {
                let alone = alone();
                digest([purpose.as_bytes(), b"alone", alone.as_bytes()])
            }
        }
    }
}

impl Identity {
    /// `able` is what the client declares: it counts for everyone.
    pub(super) fn new(server: &Known, principal: &Known, able: &[u8]) -> Identity {
        let server = digest([server.digest("server").as_slice(), able]);
        Identity { server, principal: principal.digest("principal") }
    }

    pub(super) fn key(
        &self,
        audience: Audience,
        revision: Revision,
        request: &Request,
    ) -> CacheKey {
        CacheKey {
            group: self.group(audience, revision, &request.topic()),
            page: hex(&digest([request.params.as_bytes()])),
        }
    }

    pub(super) fn group(&self, audience: Audience, revision: Revision, topic: &Topic) -> String {
        let principal: &[u8] = match audience {
            Audience::Everyone => b"",
            Audience::Principal => &self.principal,
        };
        let (method, uri) = match topic {
            Topic::List(method) => (*method, ""),
            Topic::Resource(uri) => (Method::ReadResource, uri.as_str()),
        };
        let texts = [revision.as_str(), method.as_str(), uri].map(str::as_bytes);
        hex(&digest([self.server.as_slice(), principal].into_iter().chain(texts)))
    }
}

/// Each part with its length, so that no two lists of parts are the same text.
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

/// What no one else has, in this process or in another.
fn alone() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let random = [(); 2].map(|()| RandomState::new().hash_one(count));
    format!("{:?} {count} {random:?} {:?}", std::process::id(), SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, params: &str) -> Request {
        Request { method, params: params.to_owned() }
    }

    fn known(parts: &[&str]) -> Known {
        Known::Parts(parts.iter().map(|part| part.as_bytes().to_vec()).collect())
    }

    #[test]
    fn each_thing_that_an_answer_depends_on_tells_keys_apart() {
        let modern = Revision::V2026_07_28;
        let list = request(Method::ListTools, "");
        let key = |server: &[&str], principal: &[&str], revision, request: &Request| {
            let identity = Identity::new(&known(server), &known(principal), b"{}");
            identity.key(Audience::Principal, revision, request)
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
        let identity = |principal| Identity::new(&known(&["a"]), &known(&[principal]), b"{}");
        let (alice, bob) = (identity("alice"), identity("bob"));
        let group = |identity: &Identity, audience| {
            identity.group(audience, Revision::LATEST, &Topic::List(Method::ListTools))
        };
        let everyone = Audience::Everyone;
        assert_eq!(group(&alice, everyone), group(&bob, everyone));
        assert_ne!(group(&alice, everyone), group(&alice, Audience::Principal));
        let able = Identity::new(&known(&["a"]), &known(&["alice"]), br#"{"sampling":{}}"#);
        assert_ne!(group(&able, everyone), group(&alice, everyone), "a server may go by that");
        let unknown = || Identity::new(&Known::Nothing, &known(&["alice"]), b"{}");
        assert_ne!(group(&unknown(), everyone), group(&unknown(), everyone));
    }

    #[test]
    fn a_program_is_known_by_all_that_it_was_given() {
        let text = |command: &mut Command| Known::command(command).digest("");
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
        let identity = Identity::new(&known(&["server"]), &known(&["Bearer hunter2"]), b"{}");
        let request = request(Method::ReadResource, r#"{"uri":"secret:1"}"#);
        let key = identity.key(Audience::Principal, Revision::LATEST, &request);
        assert_eq!((key.group().len(), key.page().len()), (64, 64));
        assert!(key.group().bytes().chain(key.page().bytes()).all(|byte| byte.is_ascii_hexdigit()));
    }
}
