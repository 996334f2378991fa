//! Owns: how large programs are and how many crates they bring. Does not own: what is too much.

use std::collections::BTreeSet;

use super::programs::Programs;
use super::results::Results;
use super::{OURS, home};
use crate::workspace;

const SCENARIO: &str = "sizes";

/// Adds the size of each candidate's stripped server, in millions of bytes.
pub(crate) fn binaries(
    programs: &Programs,
    candidates: &[String],
    results: &mut Results,
) -> Result<(), String> {
    for candidate in candidates {
        let program = programs.server(candidate).program;
        let size = std::fs::metadata(&program)
            .map_err(|error| format!("{} is not there: {error}", program.display()))?
            .len();
        results.add(SCENARIO, candidate, "binary_mb", size as f64 / 1e6);
    }
    Ok(())
}

/// Adds how many crates a server that only speaks stdio is made of.
pub(crate) fn crates(candidates: &[String], results: &mut Results) -> Result<(), String> {
    for candidate in candidates {
        match candidate.as_str() {
            OURS => {
                let count = |features| tree(&["--package", OURS, "--features", features]);
                results.add(SCENARIO, OURS, "crates", count("server,macros")?);
                let with = count("server,macros,validate")?;
                results.add(SCENARIO, OURS, "crates_with_validate", with);
            }
            name if name.starts_with("rmcp") => {
                let manifest = home().join("Cargo.toml");
                let manifest = manifest.to_string_lossy();
                let count = tree(&["--manifest-path", &manifest, "--package", "rmcp-server"])?;
                results.add(SCENARIO, name, "crates", count);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_counts_once_for_each_version() {
        let tree =
            "a v1.0.0 (/somewhere)\nb v2.0.0\nb v2.0.0 (*)\nb v3.0.0\nc v1.0.0 (proc-macro)\n";
        assert_eq!(distinct(tree), 4);
    }
}
