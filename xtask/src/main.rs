//! The project's own tasks, each a subcommand of `cargo xtask`. `.ci/run` runs them in order.

mod api;
mod bench;
mod common;
mod conformance;
mod dependencies;
mod features;
mod interop;
mod requirements;
mod tidy;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  tidy                     check the project's rules that neither the compiler nor clippy knows
  ci-features              run clippy on all features, on none, on each alone and with a side
  api [--check]            write the public API of every library to docs/api, or compare it
  package                  build every published crate from its own package
  dependencies             check licences, sources, duplicates and rust-version of dependencies
  bench [--quick]          measure beside the bare limit and rmcp, write docs/benchmarks.md
        [--only A,B,…]     only these candidates
        [--rounds N]       rounds of each measurement (default 3)
  bench --count [--gate]   count instructions and allocations per request with valgrind;
                           --gate counts only ours and fails above the targets
  bench --build            build the README's server cold, beside rmcp's
  conformance              run the official conformance suite on both roles
        [--server|--client] [--scenario NAME] [--all] [--write]
  interop                  run real peers against us, both roles, write docs/interop.md
        [--only WORD]… [--check]
  requirements [--check]   list which test proves which requirement in target/requirements.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((task, rest)) => match (task.as_str(), rest) {
            ("tidy", []) => tidy::run(),
            ("api", options) => api::run(options),
            ("ci-features", []) => features::run(),
            ("dependencies", []) => dependencies::run(),
            ("bench", options) => bench::run(options),
            ("conformance", options) => conformance::run(options),
            ("interop", options) => interop::run(options),
            ("package", []) => workspace::package_published(),
            ("requirements", options) => requirements::run(options),
            _ => Err(USAGE.to_owned()),
        },
        None => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
