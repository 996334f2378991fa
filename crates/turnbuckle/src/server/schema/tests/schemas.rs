//! Owns what the schema of each kind of type looks like, to the letter.
//! Does not own how arguments are decoded.

use serde_json::Value;

use super::zoo::*;
use crate::server::schema::{input_schema_of, lint, output_schema_of};

/// One line per keyword or so is easier to read than one line per schema.
fn joined(lines: &[&str]) -> String {
    lines.concat()
}

macro_rules! input {
    ($type:ty) => {
        input_schema_of::<$type>().unwrap().schema.as_str().to_owned()
    };
}

#[test]
fn dump() {
    macro_rules! each { ($($type:ident),*) => { $( eprintln!("{} {}\n", stringify!($type), input!($type)); )* } }
    for_each_argument_type!(each);
    eprintln!("----");
    macro_rules! each { ($($type:ident),*) => { $( eprintln!("{} {}\n", stringify!($type), output_schema_of::<$type>().unwrap().schema); )* } }
    for_each_argument_type!(each);
}
