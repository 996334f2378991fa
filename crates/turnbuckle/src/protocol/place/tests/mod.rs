//! Tests of the places of errors.

mod agreement;
mod cases;
mod spoil;
mod types;

use super::walk::{PathStep, ValuePath};

fn written(place: &ValuePath) -> Vec<String> {
    let write = |step: &PathStep| match step {
        PathStep::Key(key) => format!("{key:?}"),
        PathStep::Index(index) => index.to_string(),
    };
    place.0.iter().map(write).collect()
}
