//! Owns the tests of places. Does not own those of the sentences about them.

mod agreement;
mod cases;
mod spoil;
mod types;

use super::Step;

fn written(steps: &[Step]) -> Vec<String> {
    let write = |step: &Step| match step {
        Step::Key(key) => format!("{key:?}"),
        Step::Index(index) => index.to_string(),
    };
    steps.iter().map(write).collect()
}
