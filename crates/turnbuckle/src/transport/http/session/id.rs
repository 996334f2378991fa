//! Session ids: sealed texts that carry the handshake, so that a server keeps nothing of a session
//! that is not in use.

use std::{
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::super::timing::OPEN_SESSION_IDS;
use crate::{
    protocol::{classify::ClientHello, sealed::KeyRing},
    transport::http::session::store::SessionId,
};
use lru::LruCache;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use turnbuckle_types::{
    ClientCapabilities, ElicitationCapability, Implementation, Initialize, Raw, RootsCapability,
    SamplingCapability,
};

const PURPOSE: &[u8] = b"session";

/// How much of each of a client's names is kept.
const NAME: usize = 120;

/// The content of a session id.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticket {
    pub(crate) session: SessionId,
    owner: SessionOwner,
    /// As far as the id carries it.
    pub(crate) hello: Arc<ClientHello>,
    /// The id is not accepted from then on.
    pub(crate) expires: SystemTime,
}

/// The principal that opened a session; all requests without one have the same owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionOwner([u8; 16]);

impl SessionOwner {
    pub(crate) fn new(principal: Option<&str>) -> SessionOwner {
        static NONE: LazyLock<SessionOwner> = LazyLock::new(|| SessionOwner::of(""));
        // No principal differs from one with an empty name.
        principal.map_or_else(|| *NONE, |name| SessionOwner::of(&format!("+{name}")))
    }

    fn of(text: &str) -> SessionOwner {
        let mut short = [0; 16];
        short.copy_from_slice(&digest(&SHA256, text.as_bytes()).as_ref()[..16]);
        SessionOwner(short)
    }
}

/// Creates and opens session ids.
///
/// The last [`OPEN_SESSION_IDS`] are kept open, so that they are not decrypted with every request.
/// Only ids that this key ring has opened are kept: made-up ones displace none. Expiry and owner are
/// checked with every request, and the session store knows which sessions have ended.
pub(crate) struct SessionIds {
    keys: KeyRing,
    /// By the end of the id, which is random.
    open: Mutex<LruCache<[u8; 16], OpenId>>,
}

struct OpenId {
    text: Box<[u8]>,
    ticket: Arc<Ticket>,
}

impl SessionIds {
    pub(crate) fn new(keys: KeyRing) -> SessionIds {
        SessionIds { keys, open: Mutex::new(LruCache::sparse(OPEN_SESSION_IDS)) }
    }

    /// Creates the id of a new session.
    pub(crate) fn create(
        &self,
        hello: &ClientHello,
        owner: SessionOwner,
        expires: SystemTime,
    ) -> (SessionId, String) {
        let until = expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let body = Body::of(hello, owner, until);
        let text = serde_json::to_vec(&body).unwrap_or_default();
        let (session, id) = self.keys.seal(PURPOSE, &text);
        (SessionId(session), id)
    }

    /// Opens the id of a session. Returns `None` if it is none, belongs to another owner, or has
    /// expired.
    pub(crate) fn open(
        &self,
        id: &[u8],
        owner: SessionOwner,
        now: SystemTime,
    ) -> Option<Arc<Ticket>> {
        let end = *id.last_chunk()?;
        let known = self.lock().get(&end).filter(|open| *open.text == *id).map(OpenId::ticket);
        let ticket = match known {
            Some(ticket) => ticket,
            None => {
                let open = OpenId { text: id.into(), ticket: Arc::new(self.decrypt(id)?) };
                let ticket = open.ticket();
                self.lock().put(end, open);
                ticket
            }
        };
        (ticket.owner == owner && ticket.expires > now).then_some(ticket)
    }

    fn decrypt(&self, id: &[u8]) -> Option<Ticket> {
        let (session, text) = self.keys.open(PURPOSE, id)?;
        let body: Body = serde_json::from_slice(&text).ok()?;
        let expires = UNIX_EPOCH.checked_add(Duration::from_secs(body.until))?;
        let owner = SessionOwner(body.owner);
        Some(Ticket { session: SessionId(session), owner, hello: Arc::new(body.hello()?), expires })
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<[u8; 16], OpenId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenId {
    fn ticket(&self) -> Arc<Ticket> {
        self.ticket.clone()
    }
}

/// What is sealed. Its members are short because all of it travels with every request.
#[derive(Serialize, Deserialize)]
struct Body {
    #[serde(rename = "o")]
    owner: [u8; 16],
    #[serde(rename = "u")]
    until: u64,
    #[serde(rename = "r")]
    revision: String,
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "v")]
    version: String,
    /// One bit a capability.
    #[serde(rename = "c")]
    can: u16,
}

impl Body {
    fn of(hello: &ClientHello, owner: SessionOwner, until: u64) -> Body {
        Body {
            owner: owner.0,
            until,
            revision: hello.revision.as_str().to_owned(),
            name: short(&hello.client.client_info.name),
            version: short(&hello.client.client_info.version),
            can: bits(&hello.client.capabilities),
        }
    }

    fn hello(self) -> Option<ClientHello> {
        let client = Implementation::new(self.name, self.version);
        let client = Initialize::new(self.revision.as_str(), capabilities(self.can), client);
        Some(ClientHello { revision: self.revision.parse().ok()?, client })
    }
}

/// The beginning of a name. Without control characters: they say nothing, and each would be six
/// characters long where it is kept.
fn short(text: &str) -> String {
    let mut kept = String::new();
    for character in text.chars().take(NAME).filter(|character| !character.is_control()) {
        if kept.len() + character.len_utf8() > NAME {
            break;
        }
        kept.push(character);
    }
    kept
}

const ROOTS: u16 = 1;
const ROOTS_CHANGE: u16 = 1 << 1;
const SAMPLING: u16 = 1 << 2;
const SAMPLING_CONTEXT: u16 = 1 << 3;
const SAMPLING_TOOLS: u16 = 1 << 4;
const ELICITATION: u16 = 1 << 5;
const ELICITATION_FORM: u16 = 1 << 6;
const ELICITATION_URL: u16 = 1 << 7;

fn bits(capabilities: &ClientCapabilities) -> u16 {
    let mut bits = 0;
    let mut set = |bit, is| bits |= if is { bit } else { 0 };
    if let Some(roots) = &capabilities.roots {
        set(ROOTS, true);
        set(ROOTS_CHANGE, roots.list_changed == Some(true));
    }
    if let Some(sampling) = &capabilities.sampling {
        set(SAMPLING, true);
        set(SAMPLING_CONTEXT, sampling.context.is_some());
        set(SAMPLING_TOOLS, sampling.tools.is_some());
    }
    if let Some(elicitation) = &capabilities.elicitation {
        set(ELICITATION, true);
        set(ELICITATION_FORM, elicitation.form.is_some());
        set(ELICITATION_URL, elicitation.url.is_some());
    }
    bits
}

fn capabilities(bits: u16) -> ClientCapabilities {
    let is = |bit| bits & bit != 0;
    let empty = |bit| is(bit).then(Raw::empty_object);
    let mut capabilities = ClientCapabilities::new();
    capabilities.roots = is(ROOTS).then(|| {
        let mut roots = RootsCapability::new();
        roots.list_changed = is(ROOTS_CHANGE).then_some(true);
        roots
    });
    capabilities.sampling = is(SAMPLING).then(|| {
        let mut sampling = SamplingCapability::new();
        sampling.context = empty(SAMPLING_CONTEXT);
        sampling.tools = empty(SAMPLING_TOOLS);
        sampling
    });
    capabilities.elicitation = is(ELICITATION).then(|| {
        let mut elicitation = ElicitationCapability::new();
        elicitation.form = empty(ELICITATION_FORM);
        elicitation.url = empty(ELICITATION_URL);
        elicitation
    });
    capabilities
}

#[cfg(test)]
mod tests {
    use turnbuckle_types::Revision;

    use super::*;
    use crate::protocol::sealed::LONGEST;

    fn hello(name: &str) -> ClientHello {
        let all = ROOTS | SAMPLING | SAMPLING_TOOLS | ELICITATION | ELICITATION_URL;
        let client = Implementation::new(name, "1.0");
        ClientHello {
            revision: Revision::V2025_06_18,
            client: Initialize::new("2025-06-18", capabilities(all), client),
        }
    }

    #[test]
    fn an_id_carries_the_hello() {
        let ids = SessionIds::new(KeyRing::random());
        let owner = SessionOwner::new(Some("alice"));
        let expires = UNIX_EPOCH + Duration::from_secs(100);
        let (session, id) = ids.create(&hello("client"), owner, expires);
        let ticket = ids.open(id.as_bytes(), owner, UNIX_EPOCH).unwrap();
        let expected = Ticket { session, owner, hello: Arc::new(hello("client")), expires };
        assert_eq!(*ticket, expected);
    }

    #[test]
    fn whatever_a_client_calls_itself_its_id_is_short_and_visible_ascii() {
        let ids = SessionIds::new(KeyRing::random());
        let owner = SessionOwner([255; 16]);
        let end_of_9999 = 253_402_300_799;
        let expires = UNIX_EPOCH + Duration::from_secs(end_of_9999);
        for name in ["\u{1}", "\u{1}é", "\"", "\\", "\u{7f}", "\u{2028}", "𝄞", "a"] {
            let mut hello = hello(&name.repeat(5000));
            hello.client.client_info.version = name.repeat(5000);
            hello.client.capabilities = capabilities(u16::MAX);
            let id = ids.create(&hello, owner, expires).1;
            assert!(id.len() <= LONGEST, "{name:?}: {}", id.len());
            assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
            let ticket = ids.open(id.as_bytes(), owner, UNIX_EPOCH).unwrap();
            assert!(
                hello
                    .client
                    .client_info
                    .name
                    .replace('\u{1}', "")
                    .starts_with(&ticket.hello.client.client_info.name)
            );
        }
    }

    #[test]
    fn a_text_that_was_sealed_for_something_else_is_no_id() {
        let ids = SessionIds::new(KeyRing::random());
        let owner = SessionOwner::new(None);
        let body = Body::of(&hello("c"), owner, 100);
        let text = serde_json::to_vec(&body).unwrap();
        let is_one = |sealed: String| ids.open(sealed.as_bytes(), owner, UNIX_EPOCH).is_some();
        assert!(is_one(ids.keys.seal(PURPOSE, &text).1));
        assert!(!is_one(ids.keys.seal(b"cursor", &text).1));
        assert!(!is_one(ids.keys.seal(PURPOSE, b"{}").1));
        let unknown = Body { revision: "1999-01-01".into(), ..body };
        assert!(!is_one(ids.keys.seal(PURPOSE, &serde_json::to_vec(&unknown).unwrap()).1));
    }

    #[test]
    fn an_id_is_for_its_owner_and_for_a_time() {
        let ids = SessionIds::new(KeyRing::random());
        let expires = UNIX_EPOCH + Duration::from_secs(100);
        let id = ids.create(&hello("c"), SessionOwner::new(Some("alice")), expires).1;
        let can =
            |principal, now| ids.open(id.as_bytes(), SessionOwner::new(principal), now).is_some();
        assert!(can(Some("alice"), UNIX_EPOCH));
        assert!(!can(Some("alice"), expires));
        for other in [None, Some("bob"), Some("")] {
            assert!(!can(other, UNIX_EPOCH), "{other:?}");
        }
        assert_ne!(SessionOwner::new(None), SessionOwner::new(Some("")));
    }

    #[test]
    fn every_capability_bit_survives() {
        for bit in 0..8 {
            let bits_of_one = match 1 << bit {
                bit @ (ROOTS_CHANGE | ROOTS) => bit | ROOTS,
                bit @ (SAMPLING_CONTEXT | SAMPLING_TOOLS | SAMPLING) => bit | SAMPLING,
                bit => bit | ELICITATION,
            };
            assert_eq!(bits(&capabilities(bits_of_one)), bits_of_one);
        }
    }

    #[test]
    fn open_ids_are_bounded_and_each_is_opened_again_after_it_was_dropped() {
        let ids = SessionIds::new(KeyRing::random());
        let owner = SessionOwner::new(None);
        let expires = UNIX_EPOCH + Duration::from_secs(100);
        let first = ids.create(&hello("first"), owner, expires).1;
        let open = |id: &str| ids.open(id.as_bytes(), owner, UNIX_EPOCH);
        let ticket = open(&first).unwrap();
        assert!(Arc::ptr_eq(&ticket, &open(&first).unwrap()));
        for _ in 0..OPEN_SESSION_IDS.get() {
            assert!(open(&ids.create(&hello("c"), owner, expires).1).is_some());
            assert!(ids.lock().len() <= OPEN_SESSION_IDS.get());
        }
        let again = open(&first).unwrap();
        assert!(!Arc::ptr_eq(&ticket, &again));
        assert_eq!(ticket, again);
        // The end of a known id alone opens nothing.
        let other = format!("A{}", &first[1..]);
        assert!(other == first || open(&other).is_none());
    }
}
