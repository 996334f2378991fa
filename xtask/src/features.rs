//! Runs clippy on every combination of features that a user can choose.

use std::time::Instant;

use crate::workspace;

/// The crates whose features are public API.
const CRATES: [&str; 4] =
    ["turnbuckle-auth", "turnbuckle", "turnbuckle-host", "turnbuckle-gateway"];

/// What has a half for either side: features that do nothing without one.
const HALVES: [&str; 4] = ["http", "http,auth", "sse-2024", "validate"];

/// Runs clippy, with warnings as errors, on every combination of [`combinations`].
pub(crate) fn run() -> Result<(), String> {
    let packages = workspace::packages()?;
    for name in CRATES {
        let package = packages
            .iter()
            .find(|package| package.name == name)
            .ok_or_else(|| format!("the workspace has no package `{name}`"))?;
        for flags in combinations(&package.features) {
            for targets in targets(&flags) {
                let started = Instant::now();
                workspace::run(
                    workspace::cargo()
                        .args(["clippy", "--quiet", "--package", name, targets])
                        .args(&flags)
                        .args(["--", "-D", "warnings"]),
                )?;
                let took = started.elapsed().as_secs_f64();
                println!("clippy {name} {targets} {}: clean, {took:.0} s", flags.join(" "));
            }
        }
    }
    Ok(())
}

/// What tests need of `turnbuckle-auth` is more than a user gets with the feature, and hides what is
/// missing: so the library is looked at without them, too.
fn targets(flags: &[String]) -> &'static [&'static str] {
    let is_auth =
        |set: &String| set.split(',').any(|feature| matches!(feature, "auth" | "keyring"));
    if flags.iter().any(is_auth) { &["--lib", "--all-targets"] } else { &["--all-targets"] }
}

/// All features, none, each alone, then what has a half for either side with each. `default` is a set
/// of others and has no turn of its own.
fn combinations(features: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![vec!["--all-features".to_owned()], vec!["--no-default-features".to_owned()]];
    let alone = features.iter().filter(|feature| *feature != "default").cloned();
    let is_known = |name: &str| features.iter().any(|feature| feature == name);
    let sides = HALVES
        .into_iter()
        .flat_map(|half| ["client", "server"].map(|side| format!("{side},{half}")))
        .filter(|set| set.split(',').all(is_known));
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
        let features = ["auth", "client", "default", "http", "server", "sse-2024", "validate"]
            .map(str::to_owned);
        let lines = |features: &[String]| {
            let flags = combinations(features).into_iter();
            flags.map(|flags| flags.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(
            lines(&features),
            [
                "--all-features",
                "--no-default-features",
                "--no-default-features --features auth",
                "--no-default-features --features client",
                "--no-default-features --features http",
                "--no-default-features --features server",
                "--no-default-features --features sse-2024",
                "--no-default-features --features validate",
                "--no-default-features --features client,http",
                "--no-default-features --features server,http",
                "--no-default-features --features client,http,auth",
                "--no-default-features --features server,http,auth",
                "--no-default-features --features client,sse-2024",
                "--no-default-features --features server,sse-2024",
                "--no-default-features --features client,validate",
                "--no-default-features --features server,validate",
            ]
        );
        let flags = |set: &str| vec!["--features".to_owned(), set.to_owned()];
        assert_eq!(targets(&flags("client,http,auth")), ["--lib", "--all-targets"]);
        assert_eq!(targets(&flags("client,http")), ["--all-targets"]);
        let of_neither = ["client", "testing"].map(str::to_owned);
        assert_eq!(lines(&of_neither).len(), 4);
        let without_sides = ["default", "http"].map(str::to_owned);
        assert_eq!(lines(&without_sides).len(), 3);
    }
}
