//! A tool that no server offers is a function that nobody uses.
#![deny(dead_code)]

use turnbuckle::tool;

/// Add two integers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn main() {}
