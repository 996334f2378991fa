//! What the compiler says about functions and methods with attributes, right and wrong ones.
//!
//! Owns: the programs below `ui` and the messages stored beside them. Does not own: what they do
//! when they are called.
//!
//! `TRYBUILD=overwrite cargo test --test ui` stores new messages: read them as a newcomer would.

#![cfg(feature = "macros")]

#[test]
fn the_compiler_says_what_to_write() {
    let programs = trybuild::TestCases::new();
    programs.pass("tests/ui/pass/*.rs");
    programs.compile_fail("tests/ui/fail/*.rs");
}
