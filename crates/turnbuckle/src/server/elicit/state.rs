//! Owns what a client keeps for a request that asked for input: how it is sealed, to whom and to
//! what it is bound, when it is worth nothing any more. Does not own the questions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use turnbuckle_types::{Named, Raw, RpcError};

use super::canonical;
use crate::{
    protocol::sealed::{Id, KeyRing},
    server::methods::FOREIGN_STATE,
};

/// The longest sealed state. Answers and kept values come with every round.
pub(super) const LONGEST: usize = 64 * 1024;

/// What it is sealed for, before what it is bound to. Another layout needs another.
const PURPOSE: &[u8] = b"request state 2\n";

/// What a state is bound to stands as it is up to this length, and is digested beyond: both bind the
/// same, but a digest costs more than all else about a short one.
const SHORT: usize = 512;

/// What names one state, for stores that let each be used once.
pub(super) type StateId = Id;

/// Whom and what a state belongs to. What was sealed for another does not open.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StateBinding(Vec<u8>);

impl StateBinding {
    /// `name` is the tool's or the prompt's, or the resource's URI; `arguments` is the text of a
    /// JSON value, of which the order of members and the spelling of values don't matter.
    pub(super) fn new(
        principal: Option<&str>,
        method: &str,
        name: &str,
        arguments: &str,
    ) -> StateBinding {
        let principal_length = principal.map_or(0, str::len);
        let length = principal_length + method.len() + name.len() + arguments.len();
        let mut bound = Vec::with_capacity(PURPOSE.len() + length + 64);
        bound.extend_from_slice(PURPOSE);
        // Nobody is not the one with the empty name.
        bound.push(u8::from(principal.is_some()));
        for part in [principal.unwrap_or_default(), method, name] {
            // With their lengths, so that no two bindings give the same text.
            bound.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bound.extend_from_slice(part.as_bytes());
        }
        canonical::write(arguments, &mut bound);
        if bound.len() > SHORT {
            let digest = digest(&SHA256, &bound);
            bound.truncate(PURPOSE.len());
            // Neither nobody nor somebody, so that no digest is taken for the text of another.
            bound.push(2);
            bound.extend_from_slice(digest.as_ref());
        }
        StateBinding(bound)
    }
}

/// What is sealed: the numbers as they are, and what else there is as JSON. Its members are short
/// because all of it travels with every round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SealedState {
    /// How often the request has asked so far.
    #[serde(skip)]
    pub(super) round: u32,
    /// When it is worth nothing any more, in seconds of Unix time.
    #[serde(skip)]
    expires: u64,
    /// The answers that were given, each of which has been checked.
    #[serde(rename = "a", default, skip_serializing_if = "Named::is_empty")]
    pub(super) answers: Named<Raw>,
    /// What is not to be done twice.
    #[serde(rename = "o", default, skip_serializing_if = "Named::is_empty")]
    pub(super) once: Named<Raw>,
    /// What the handler keeps by hand.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(super) by_hand: Option<Raw>,
}

/// Why a state is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateRefusal {
    /// It was not sealed here, or not for this request.
    Foreign,
    Expired,
    TooManyRounds,
    /// It may be used once, and was.
    Spent,
}

impl From<StateRefusal> for RpcError {
    fn from(refusal: StateRefusal) -> RpcError {
        RpcError::invalid_params(match refusal {
            StateRefusal::Foreign => FOREIGN_STATE,
            StateRefusal::Expired => {
                "`params.requestState` has expired; send the request again without it"
            }
            StateRefusal::TooManyRounds => "the request has asked for input too often",
            StateRefusal::Spent => {
                "`params.requestState` was used before; send the request again without it"
            }
        })
    }
}

/// Why there is no state to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateTooLong;

impl SealedState {
    /// The text that the client keeps until `now` and a while.
    pub(super) fn seal(
        mut self,
        keys: &KeyRing,
        binding: &StateBinding,
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<String, StateTooLong> {
        self.expires = seconds(now).saturating_add(lifetime.as_secs());
        let text = self.write().map_err(|_| StateTooLong)?;
        // Base64 makes it longer by a third; what can't fit need not be sealed first.
        if text.len() > LONGEST {
            return Err(StateTooLong);
        }
        let sealed = keys.seal(&binding.0, &text).1;
        if sealed.len() > LONGEST { Err(StateTooLong) } else { Ok(sealed) }
    }

    /// Reads what a client sent back.
    pub(super) fn open(
        keys: &KeyRing,
        binding: &StateBinding,
        sealed: &str,
        now: SystemTime,
    ) -> Result<(StateId, SealedState), StateRefusal> {
        let opened = keys.open_within(LONGEST, &binding.0, sealed.as_bytes());
        let (id, text) = opened.ok_or(StateRefusal::Foreign)?;
        let kept = SealedState::read(&text).ok_or(StateRefusal::Foreign)?;
        if kept.expires <= seconds(now) {
            return Err(StateRefusal::Expired);
        }
        Ok((id, kept))
    }

    fn write(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = Vec::with_capacity(128);
        text.extend_from_slice(&self.round.to_be_bytes());
        text.extend_from_slice(&self.expires.to_be_bytes());
        let is_empty = self.answers.is_empty() && self.once.is_empty() && self.by_hand.is_none();
        if !is_empty {
            serde_json::to_writer(&mut text, self)?;
        }
        Ok(text)
    }

    fn read(text: &[u8]) -> Option<SealedState> {
        let (round, text) = text.split_first_chunk()?;
        let (expires, text) = text.split_first_chunk()?;
        let (round, expires) = (u32::from_be_bytes(*round), u64::from_be_bytes(*expires));
        let kept = match text {
            [] => SealedState::default(),
            text => serde_json::from_str(str::from_utf8(text).ok()?).ok()?,
        };
        Some(SealedState { round, expires, ..kept })
    }

    /// When it expires.
    pub(super) fn until(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.expires)).unwrap_or(UNIX_EPOCH)
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(60);

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000)
    }

    fn binding() -> StateBinding {
        StateBinding::new(Some("ada"), "tools/call", "greet", r#"{"a":1,"b":[2]}"#)
    }

    fn kept() -> SealedState {
        SealedState {
            round: 2,
            answers: Named::from([("name", Raw::empty_object())]),
            once: Named::from([("charge", Raw::null())]),
            by_hand: Some(Raw::from(serde_json::json!("mine"))),
            ..SealedState::default()
        }
    }

    fn sealed(keys: &KeyRing) -> String {
        kept().seal(keys, &binding(), now(), LIFETIME).unwrap()
    }

    fn opened(
        keys: &KeyRing,
        binding: &StateBinding,
        text: &str,
    ) -> Result<SealedState, StateRefusal> {
        SealedState::open(keys, binding, text, now()).map(|(_, kept)| kept)
    }

    #[test]
    fn what_was_sealed_comes_back_with_another_id_each_time() {
        let keys = KeyRing::random();
        let [one, two] = [sealed(&keys), sealed(&keys)];
        let (first, back) = SealedState::open(&keys, &binding(), &one, now()).unwrap();
        let (second, _) = SealedState::open(&keys, &binding(), &two, now()).unwrap();
        assert_eq!(SealedState { expires: 0, ..back.clone() }, kept());
        assert_eq!(back.until(), now() + LIFETIME);
        assert_ne!(first, second);
        assert!(!one.contains("mine"));
    }

    #[test]
    fn a_changed_or_cut_text_is_refused_whatever_byte_it_is() {
        let keys = KeyRing::random();
        let text = sealed(&keys);
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(
                opened(&keys, &binding(), &changed),
                Err(StateRefusal::Foreign),
                "byte {at}"
            );
            assert_eq!(
                opened(&keys, &binding(), &text[..at]),
                Err(StateRefusal::Foreign),
                "cut {at}"
            );
        }
        for garbage in
            ["", "x", "null", "{}", "-TAMPERED", "\u{1F600}", &format!("{text}-TAMPERED")]
        {
            assert_eq!(opened(&keys, &binding(), garbage), Err(StateRefusal::Foreign), "{garbage}");
        }
    }

    #[test]
    fn it_opens_for_its_own_request_only() {
        let keys = KeyRing::random();
        let text = sealed(&keys);
        for (principal, method, name, arguments) in [
            (Some("bob"), "tools/call", "greet", r#"{"a":1,"b":[2]}"#),
            (Some(""), "tools/call", "greet", r#"{"a":1,"b":[2]}"#),
            (None, "tools/call", "greet", r#"{"a":1,"b":[2]}"#),
            (Some("ada"), "prompts/get", "greet", r#"{"a":1,"b":[2]}"#),
            (Some("ada"), "tools/call", "delete", r#"{"a":1,"b":[2]}"#),
            (Some("ada"), "tools/callg", "reet", r#"{"a":1,"b":[2]}"#),
            (Some("ada"), "tools/call", "greet", r#"{"a":1,"b":[3]}"#),
            (Some("ada"), "tools/call", "greet", r#"{"a":1}"#),
            (Some("ada"), "tools/call", "greet", "{}"),
        ] {
            let other = StateBinding::new(principal, method, name, arguments);
            let refused = opened(&keys, &other, &text);
            assert_eq!(
                refused,
                Err(StateRefusal::Foreign),
                "{principal:?} {method} {name} {arguments}"
            );
        }
        let spelled = r#" { "b" : [2], "\u0061" : 1.0 } "#;
        let same = StateBinding::new(Some("ada"), "tools/call", "greet", spelled);
        assert!(opened(&keys, &same, &text).is_ok(), "the same arguments, spelled otherwise");
        let nobody = StateBinding::new(None, "tools/call", "greet", "{}");
        assert_ne!(nobody, StateBinding::new(Some(""), "tools/call", "greet", "{}"));
    }

    #[test]
    fn long_arguments_bind_as_short_ones_do() {
        let keys = KeyRing::random();
        let bound = |last: &str| {
            let arguments = format!(r#"{{"text":"{}{last}"}}"#, "x".repeat(SHORT));
            StateBinding::new(Some("ada"), "tools/call", "greet", &arguments)
        };
        let text = kept().seal(&keys, &bound("a"), now(), LIFETIME).unwrap();
        assert!(opened(&keys, &bound("a"), &text).is_ok());
        assert_eq!(opened(&keys, &bound("b"), &text), Err(StateRefusal::Foreign));
        assert_eq!(bound("a").0.len(), PURPOSE.len() + 1 + 32);
    }

    #[test]
    fn it_expires() {
        let keys = KeyRing::random();
        let text = sealed(&keys);
        let at = |seconds| {
            let now = now() + Duration::from_secs(seconds);
            SealedState::open(&keys, &binding(), &text, now).err()
        };
        assert_eq!((at(0), at(59)), (None, None));
        assert_eq!(
            (at(60), at(100_000)),
            (Some(StateRefusal::Expired), Some(StateRefusal::Expired))
        );
    }

    #[test]
    fn keys_can_be_changed_while_it_travels() {
        let old = KeyRing::new([1; 32]);
        let text = sealed(&old);
        assert!(opened(&KeyRing::new([2; 32]).and_accept([1; 32]), &binding(), &text).is_ok());
        let gone = opened(&KeyRing::new([2; 32]), &binding(), &text);
        assert_eq!(gone, Err(StateRefusal::Foreign));
    }

    #[test]
    fn what_is_too_long_is_neither_sealed_nor_opened() {
        let keys = KeyRing::random();
        let with = |length: usize| SealedState {
            by_hand: Some(Raw::from(serde_json::json!("x".repeat(length)))),
            ..SealedState::default()
        };
        let seal = |length| with(length).seal(&keys, &binding(), now(), LIFETIME);
        let long = seal(48_000).unwrap();
        assert!(long.len() <= LONGEST && opened(&keys, &binding(), &long).is_ok());
        assert_eq!(seal(49_200), Err(StateTooLong));
        assert_eq!(seal(1_000_000), Err(StateTooLong));
        let longer = "A".repeat(LONGEST + 1);
        assert_eq!(opened(&keys, &binding(), &longer), Err(StateRefusal::Foreign));
    }

    #[test]
    fn a_session_id_is_no_state() {
        let keys = KeyRing::random();
        let id = keys.seal(b"session", b"{\"r\":0,\"e\":99999}").1;
        assert_eq!(opened(&keys, &binding(), &id), Err(StateRefusal::Foreign));
    }
}
