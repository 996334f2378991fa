//! Owns the comparison with a decoder that keeps track of where it is. Does not own single cases.

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment};

use super::{
    super::{failure_of, find, read},
    spoil::{broken, one_of, spoilt},
    types::{All, Even, External, FINE, Internal, Item, Root},
    written,
};

fn tracked(path: &Path) -> Vec<String> {
    let write = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } | Segment::Enum { variant: key } => Some(format!("{key:?}")),
        Segment::Unknown => None,
    };
    path.iter().filter_map(write).collect()
}

/// Where a text fails to be a `T`: as it is found, as it is tracked, and the message.
fn places<T: DeserializeOwned>(text: &str) -> Option<(Vec<String>, Vec<String>, String)> {
    let failure = read::<T>(text).err()?;
    let mut decoder = serde_json::Deserializer::from_str(text);
    let error = serde_path_to_error::deserialize::<_, T>(&mut decoder).err()?;
    assert_eq!(error.inner().to_string(), failure.error.to_string());
    let found = written(&find(text, &failure, failure_of::<T>).steps);
    let (mut tracked, message) = (tracked(error.path()), failure.message());
    // The name is in the message. What has it, is what is wrong.
    let is_named =
        message.starts_with("unknown field") || message.starts_with("invalid type: unit variant");
    if is_named && tracked.len() == found.len() + 1 {
        tracked.pop();
    }
    Some((found, tracked, message))
}

fn agree<T: DeserializeOwned>(text: &str) {
    let Some((found, tracked, message)) = places::<T>(text) else { return };
    // Keys that are no strings are not tracked.
    let is_key_untracked = tracked == ["\"by_choice\""] && found.starts_with(&tracked);
    // What a visitor says of itself right after it read a member counts as said of the member.
    let is_of_member = tracked.len() + 1 == found.len()
        && found.starts_with(&tracked)
        && (message.starts_with("`type` must be ")
            || (message.starts_with("invalid type: string") && found.ends_with(&["\"t\"".into()])));
    if !is_key_untracked && !is_of_member {
        assert_eq!(found, tracked, "{message}: {text}");
    }
}

#[test]
fn what_is_spoilt_is_fine_at_first() {
    assert!(read::<All>(FINE).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn on_the_place_of_a_value_that_does_not_fit(seed: u64, wrongs in 1_usize..3) {
        agree::<All>(&spoilt(FINE, seed, wrongs));
    }

    #[test]
    fn whatever_the_root_is(seed: u64, wrongs in 0_usize..2) {
        let text = spoilt(&one_of(FINE, seed), seed, wrongs);
        agree::<Root>(&text);
        agree::<External>(&text);
        agree::<Internal>(&text);
        agree::<Item>(&text);
        agree::<Even>(&text);
        agree::<std::collections::BTreeMap<String, Even>>(&text);
        agree::<std::collections::BTreeMap<String, Vec<Item>>>(&text);
        agree::<Vec<u8>>(&text);
    }

    /// What is tracked ends where the decoder skips what it has no use for.
    #[test]
    fn on_the_place_of_what_is_no_json(seed: u64) {
        if let Some(text) = broken(&spoilt(FINE, seed, 0), seed)
            && serde_json::from_str::<&RawValue>(&text).is_err()
            && let Some((found, tracked, message)) = places::<All>(&text)
        {
            let is_further = found.starts_with(&tracked) || message == "expected `\"`";
            prop_assert!(is_further, "{found:?} {tracked:?} {message}: {text}");
        }
    }

    #[test]
    fn nothing_makes_the_search_panic(text in "[\\[\\]{},:\"\\\\ua0 \nä]{0,24}", seed: u64) {
        for text in [&text, &format!("{{\"list\":{text}")] {
            if let Err(failure) = read::<All>(text) {
                find(text, &failure, failure_of::<All>);
            }
            // A position in another text.
            if let Err(failure) = read::<Item>(&spoilt(FINE, seed, 1)) {
                find(text, &failure, failure_of::<Item>);
            }
        }
    }
}
