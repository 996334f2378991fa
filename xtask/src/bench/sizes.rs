//! The sizes of the candidates' programs and the number of their crates.

use std::{collections::BTreeSet, path::Path};

use super::{
    OURS, chosen, home, programs,
    results::Results,
    wire::{HTTP, STDIO},
};
use crate::workspace;

/// Adds the size of each candidate's stripped server, in millions of bytes: one that only speaks
/// stdio, and one that speaks HTTP too.
pub(crate) fn binaries(candidates: &[&str], results: &mut Results) -> Result<(), String> {
    let mut add = |scenario, candidate, metric, program: &Path| -> Result<(), String> {
        let size = std::fs::metadata(program)
            .map_err(|error| format!("{} is not there: {error}", program.display()))?
            .len();
        results.add(scenario, candidate, metric, size as f64 / 1e6);
        Ok(())
    };
    for candidate in chosen(STDIO.candidates, candidates) {
        add(STDIO.sizes, candidate, "binary_mb", &programs::stdio_only(candidate))?;
    }
    for candidate in chosen(HTTP.candidates, candidates) {
        add(HTTP.sizes, candidate, "binary_mb", &programs::server(candidate))?;
    }
    Ok(())
}

/// Adds the number of crates of those servers.
pub(crate) fn crates(candidates: &[&str], results: &mut Results) -> Result<(), String> {
    let manifest = home().join("Cargo.toml");
    let manifest = manifest.to_string_lossy();
    let ours = |features: &str| tree(&["--package", OURS, "--features", features]);
    let bench = |package, features: &[&str]| {
        let package = ["--manifest-path", &manifest, "--package", package];
        tree(&[&package, features].concat())
    };
    for candidate in chosen(&super::CANDIDATES, candidates) {
        match candidate {
            OURS => {
                results.add(STDIO.sizes, OURS, "crates", ours("server,macros")?);
                let crates = ours("server,macros,validate")?;
                results.add(STDIO.sizes, OURS, "crates_with_validate", crates);
                results.add(HTTP.sizes, OURS, "crates", ours("server,macros,http")?);
            }
            "limit-hyper" => {
                results.add(HTTP.sizes, candidate, "crates", bench("limit-server", &[])?);
            }
            name if name.starts_with("rmcp") => {
                results.add(STDIO.sizes, name, "crates", bench("rmcp-server", &[])?);
                let with = bench("rmcp-server", &["--features", "http"])?;
                results.add(HTTP.sizes, name, "crates", with);
            }
            _ => {}
        }
    }
    Ok(())
}

fn tree(arguments: &[&str]) -> Result<f64, String> {
    let text = workspace::output(
        workspace::cargo()
            .args(["tree", "--edges", "normal", "--no-default-features", "--prefix", "none"])
            .args(arguments),
    )?;
    Ok(distinct(&text) as f64)
}

/// Lines are `name version …`; a crate that comes again is marked and counts once.
fn distinct(tree: &str) -> usize {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect::<BTreeSet<_>>()
        .len()
}
