//! The comparison with a decoder that keeps track of its place.

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use super::{
    super::{Culprit, read},
    spoil::{one_of, spoilt},
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
    let found = written(&failure.place(text, Culprit::Around));
    Some((found, tracked(error.path()), failure.message()))
}

/// What is found has what is tracked in it: it may be less exact, but never leads elsewhere.
fn agree<T: DeserializeOwned>(text: &str) {
    let Some((found, tracked, message)) = places::<T>(text) else { return };
    // Keys that are no strings are not tracked.
    let is_key_untracked = tracked == ["\"by_choice\""] && found.starts_with(&tracked);
    assert!(
        is_key_untracked || tracked.starts_with(&found),
        "{found:?} {tracked:?} {message}: {text}"
    );
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

    #[test]
    fn nothing_makes_the_search_panic(text in "[\\[\\]{},:\"\\\\ua0 \nä]{0,24}", seed: u64) {
        for text in [&text, &format!("{{\"list\":{text}")] {
            if let Err(failure) = read::<All>(text) {
                failure.place(text, Culprit::Value);
            }
            // A position in another text.
            if let Err(failure) = read::<Item>(&spoilt(FINE, seed, 1)) {
                failure.place(text, Culprit::Around);
            }
        }
    }
}
