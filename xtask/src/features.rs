//! Owns: which combinations of features clippy looks at.
//! Does not own: the features; the `turnbuckle` crate declares them and cargo reports them.

use std::time::Instant;

use crate::workspace;

/// The crate whose features are public API.
const CRATE: &str = "turnbuckle";

/// Runs clippy, with warnings as errors, on every combination of [`combinations`].
pub(crate) fn run() -> Result<(), String> {
    let packages = workspace::packages()?;
    let package = packages
        .iter()
        .find(|package| package.name == CRATE)
        .ok_or_else(|| format!("the workspace has no package `{CRATE}`"))?;
    for flags in combinations(&package.features) {
        let started = Instant::now();
        workspace::run(
            workspace::cargo()
                .args(["clippy", "--quiet", "--package", CRATE, "--all-targets"])
                .args(&flags)
                .args(["--", "-D", "warnings"]),
        )?;
        println!("clippy {}: clean, {:.0} s", flags.join(" "), started.elapsed().as_secs_f64());
    }
    Ok(())
}

/// All features, none, each alone, then what has a half for either side with each. `default` is a set of others and has no turn of its own.
fn combinations(features: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![vec!["--all-features".to_owned()], vec!["--no-default-features".to_owned()]];
    let alone = features.iter().filter(|feature| *feature != "default").cloned();
    let halves = ["http", "validate"].into_iter();
    let halves = halves.filter(|half| features.iter().any(|feature| feature == half));
    let sides = halves.flat_map(|half| ["client", "server"].map(|side| format!("{side},{half}")));
    for set in alone.chain(sides) {
        all.push(vec!["--no-default-features".to_owned(), "--features".to_owned(), set]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_checked_alone() {
        let features = ["client", "default", "http", "server", "validate"].map(str::to_owned);
        let lines: Vec<String> =
            combinations(&features).into_iter().map(|flags| flags.join(" ")).collect();
        assert_eq!(
            lines,
            [
                "--all-features",
                "--no-default-features",
                "--no-default-features --features client",
                "--no-default-features --features http",
                "--no-default-features --features server",
                "--no-default-features --features validate",
                "--no-default-features --features client,http",
                "--no-default-features --features server,http",
                "--no-default-features --features client,validate",
                "--no-default-features --features server,validate",
            ]
        );
    }
}
