//! Fuzz targets, all in one program: `FUZZ_TARGET` names the one that runs. Without it, the program
//! prints the names.
//!
//! A target asserts what holds for every input, beyond that nothing panics: a written value reads
//! back, a second reader comes to the same verdict, nothing is accepted that the
//! server did not seal.

#![no_main]

mod endpoint;
mod json;
mod targets;

use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(
    init: {
        chosen();
    },
    |data: &[u8]| chosen()(data)
);

/// Returns the target that `FUZZ_TARGET` names.
fn chosen() -> fn(&[u8]) {
    static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        if let Some((_, target)) = targets::ALL.iter().find(|(known, _)| *known == name) {
            return *target;
        }
        targets::ALL.iter().for_each(|(name, _)| println!("{name}"));
        std::process::exit(if name.is_empty() { 0 } else { 2 })
    })
}
