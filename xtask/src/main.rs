//! The project's own tasks, each a subcommand of `cargo xtask`. `.ci/run` runs them in order.

mod api;
mod bench;
mod common;
mod conformance;
mod dependencies;
mod features;
mod fuzz;
mod hostile;
mod interop;
mod models;
mod requirements;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Check the project's rules that neither the compiler nor clippy knows
    Tidy,
    /// Run clippy on all features, on none, on each alone and with a side
    CiFeatures,
    /// Write the public API of every library to docs/api
    Api {
        /// Fail if the files are not current, instead of writing them
        #[arg(long)]
        check: bool,
    },
    /// Build every published crate from its own package
    Package,
    /// Check licences, sources, duplicates and rust-version of dependencies
    Dependencies,
    /// Run the fuzz targets, each for its share of the time
    Fuzz(fuzz::Options),
    /// Run the concurrency models under many schedules
    Models,
    /// Measure beside the bare limit and rmcp, write docs/benchmarks.md
    Bench(bench::Options),
    /// Run the official conformance suite on both roles
    Conformance(conformance::Options),
    /// Run real peers against Turnbuckle in both roles, write docs/interop.md
    Interop(interop::Options),
    /// Attack real processes, with bounds on their memory, descriptors, threads and time
    Hostile(hostile::Options),
    /// Put a server under load for a while, and fail if something is lost, wrong or grows
    Soak(hostile::SoakOptions),
    /// List the tests that prove each requirement in target/requirements.md
    Requirements {
        /// Fail if a requirement that is due has neither a test nor a reason
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Tidy => tidy::run(),
        Task::CiFeatures => features::run(),
        Task::Api { check } => api::run(check),
        Task::Package => workspace::package_published(),
        Task::Dependencies => dependencies::run(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Models => models::run(),
        Task::Bench(options) => bench::run(&options),
        Task::Conformance(options) => conformance::run(&options),
        Task::Interop(options) => interop::run(&options),
        Task::Hostile(options) => hostile::run(&options),
        Task::Soak(options) => hostile::soak(&options),
        Task::Requirements { check } => requirements::run(check),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked_together() {
        let parse = |line: &str| Task::try_parse_from([""].into_iter().chain(line.split(' ')));
        for line in [
            "conformance --all --write",
            "conformance --scenario sse-retry --repeat 3",
            "interop --only rmcp --only http",
            "bench --rounds 5 --only turnbuckle,limit-pipe",
            "bench --count --gate",
            "hostile --quick --seed 7 --only unread",
            "soak --minutes 3",
            "requirements --check",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
        for line in [
            "conformance --server --client",
            "conformance --write",
            "conformance --write --all --client",
            "conformance --repeat 3",
            "conformance --scenario a --repeat 0",
            "interop --check --only rmcp",
            "bench --gate",
            "bench --build --quick",
            "bench --quick --count",
            "bench --only nothing",
            "soak --minutes 0",
            "tidy --fast",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
