//! Runs clippy on every combination of features that a user can choose.

use std::time::Instant;

use crate::workspace;

/// The crates whose features are public API.
const CRATES: [&str; 4] =
    ["turnbuckle-auth", "turnbuckle", "turnbuckle-host", "turnbuckle-gateway"];

/// Features that do nothing without `client` or `server`.
const HALVES: [&str; 4] = ["http", "http,auth", "sse-2024", "validate"];

/// Runs clippy, with warnings as errors, on every combination of [`combinations`].
pub(crate) fn run() -> Result<(), String> {
    let members = workspace::members()?;
    for name in CRATES {
        let package = members
            .iter()
            .find(|package| package.name == name)
            .ok_or_else(|| format!("the workspace has no package `{name}`"))?;
        for flags in combinations(package.features.keys().map(String::as_str)) {
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

/// Tests need more of `turnbuckle-auth` than a user gets with the feature, which hides missing
/// features: the library is also checked without them.
fn targets(flags: &[String]) -> &'static [&'static str] {
    let is_auth =
        |set: &String| set.split(',').any(|feature| matches!(feature, "auth" | "keyring"));
    if flags.iter().any(is_auth) { &["--lib", "--all-targets"] } else { &["--all-targets"] }
}

/// Returns all features, none, each alone, and [`HALVES`] with each side. `default` is a set of others
/// and is not checked by itself.
fn combinations<'a>(features: impl Iterator<Item = &'a str>) -> Vec<Vec<String>> {
    let features: Vec<&str> = features.filter(|feature| *feature != "default").collect();
    let sides = HALVES
        .into_iter()
        .flat_map(|half| ["client", "server"].map(|side| format!("{side},{half}")))
        .filter(|set| set.split(',').all(|name| features.contains(&name)));
    let sets = features.iter().map(|feature| (*feature).to_owned()).chain(sides);
    let mut all = vec![vec!["--all-features".to_owned()], vec!["--no-default-features".to_owned()]];
    all.extend(
        sets.map(|set| vec!["--no-default-features".to_owned(), "--features".to_owned(), set]),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_checked_alone_and_with_a_side() {
        let sets = |features: &[&str]| {
            let flags = combinations(features.iter().copied()).into_iter();
            flags.filter_map(|flags| flags.get(2).cloned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            sets(&["client", "default", "http", "server"]),
            "client http server client,http server,http"
        );
        assert_eq!(sets(&["client", "testing"]), "client testing");
        let flags = |set: &str| vec!["--features".to_owned(), set.to_owned()];
        assert_eq!(targets(&flags("client,http,auth")), ["--lib", "--all-targets"]);
        assert_eq!(targets(&flags("client,http")), ["--all-targets"]);
    }
}
