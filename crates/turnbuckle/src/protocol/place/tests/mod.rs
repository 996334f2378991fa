//! Tests of the places of errors.

mod agreement;
mod cases;
mod spoil;
mod types;

use super::walk::{Place, Step};

fn written(place: &Place) -> Vec<String> {
    let write = |step: &Step| match step {
        Step::Key(key) => format!("{key:?}"),
        Step::Index(index) => index.to_string(),
    };
    place.0.iter().map(write).collect()
}
