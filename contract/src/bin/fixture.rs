//! The fixture over the standard streams.
//!
//! Owns: the process. Does not own: the tools. `--in-flight N`, `--line-bytes N` and
//! `--listeners N` set limits.

use turnbuckle::{Limits, Result};
use turnbuckle_contract::{Fixture, server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let fixture = Fixture::default();
    server(&fixture, limits()).serve_stdio().with_shutdown(fixture.leaving()).await
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    let mut words = std::env::args().skip(1);
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        // Only the suite starts this program: a value that is no number is a mistake in it.
        let value = value.parse().expect("a limit is a number");
        limits = match name.as_str() {
            "--in-flight" => limits.in_flight(value),
            "--line-bytes" => limits.line_bytes(value),
            "--listeners" => limits.listeners(value),
            _ => panic!("no such option: {name}"),
        };
    }
    limits
}
