//! Owns: that plain `cargo test` builds what stands behind every feature, so that no test of it is
//! left out without a word. Does not own: which features there are.

use std::collections::BTreeSet;

use super::source::Finding;
use crate::workspace::Package;

/// Features that plain `cargo test` does without, and why that is fine.
const APART: &[(&str, &str)] =
    &[("keyring", "needs a secret service: `.ci/run` starts one and runs its tests")];

/// Finds features of members that are neither on by default nor asked for by another member.
pub(crate) fn untested(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let tested = built(package, packages);
        let apart = |feature: &str| APART.iter().any(|(known, _)| *known == feature);
        let untested = package.features.iter().filter(|feature| !tested.contains(feature.as_str()));
        findings.extend(untested.filter(|feature| !apart(feature)).map(|feature| Finding {
            path: "Cargo.toml".to_owned(),
            line: 1,
            sentence: format!(
                "no member asks for the feature `{feature}` of {}, so that `cargo test` runs none \
                 of its tests: ask for it in examples/Cargo.toml",
                package.name
            ),
        }));
    }
    findings
}

/// The features with which the workspace builds a member.
fn built<'a>(package: &'a Package, packages: &'a [Package]) -> BTreeSet<&'a str> {
    let asked = packages.iter().flat_map(|other| &other.asks);
    let asked = asked.filter(|(name, _)| *name == package.name).map(|(_, feature)| &**feature);
    let mut built: BTreeSet<&str> = BTreeSet::new();
    let mut next: Vec<&str> = asked.chain(["default"]).collect();
    while let Some(feature) = next.pop() {
        if built.insert(feature) {
            next.extend(package.brings.get(feature).into_iter().flatten().map(String::as_str));
        }
    }
    built
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, brings: &[(&str, &[&str])], asks: &[(&str, &str)]) -> Package {
        let owned = |text: &&str| (*text).to_owned();
        Package {
            name: name.to_owned(),
            features: brings.iter().map(|(feature, _)| owned(feature)).collect(),
            brings: brings
                .iter()
                .map(|(feature, more)| (owned(feature), more.iter().map(owned).collect()))
                .collect(),
            asks: asks.iter().map(|(name, feature)| (owned(name), owned(feature))).collect(),
            ..Package::default()
        }
    }

    #[test]
    fn a_feature_is_on_by_default_or_asked_for() {
        let brings: &[(&str, &[&str])] =
            &[("default", &["a"]), ("a", &["b"]), ("b", &[]), ("logs", &[]), ("keyring", &[])];
        let sdk = || package("sdk", brings, &[]);
        let found = untested(&[sdk(), package("examples", &[], &[("other", "logs")])]);
        assert_eq!(found.len(), 1);
        assert!(found[0].sentence.starts_with("no member asks for the feature `logs` of sdk"));
        assert_eq!(untested(&[sdk(), package("examples", &[], &[("sdk", "logs")])]).len(), 0);
    }
}
