//! The checkout: its directory, its packages, and running cargo in it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable for `cargo run`; the built-in value serves a binary started by hand.
    let here = std::env::var("CARGO_MANIFEST_DIR")
        .unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&here).parent().map(Path::to_owned).unwrap_or_default()
}

/// The directory that cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that started this program, or the one on the path.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs `command` to its end with our own output, and fails with one sentence when it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| could_not_start(command, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{}` failed: {status}", line_of(command)))
}

/// Runs `command` to its end and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| could_not_start(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{}` failed: {}\n{complaint}", line_of(command), output.status))
}

/// A member of the workspace, as far as the tasks care.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) published: bool,
    pub(crate) has_library: bool,
    pub(crate) features: Vec<String>,
    /// What each of its features brings along.
    pub(crate) brings: BTreeMap<String, Vec<String>>,
    /// Features of members that it asks for: the member, and the feature.
    pub(crate) asks: Vec<(String, String)>,
    /// Names of direct dependencies of every kind, without those that live in the workspace.
    pub(crate) dependencies: Vec<String>,
}

/// The members of the workspace, asked from cargo.
pub(crate) fn packages() -> Result<Vec<Package>, String> {
    let text = output(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    parse_metadata(&text)
}

fn parse_metadata(text: &str) -> Result<Vec<Package>, String> {
    let metadata: Value = serde_json::from_str(text)
        .map_err(|error| format!("cargo's metadata is not JSON: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo's metadata lists no packages")?;
    Ok(packages.iter().map(package).collect())
}

fn package(value: &Value) -> Package {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut dependencies: Vec<String> = value["dependencies"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|dependency| dependency["path"].is_null())
        .map(|dependency| text(&dependency["name"]))
        .collect();
    dependencies.sort();
    dependencies.dedup();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
    let inside = value["dependencies"].as_array().into_iter().flatten();
    let inside = inside.filter(|dependency| !dependency["path"].is_null());
    let asks = inside.flat_map(|dependency| {
        let features: Vec<String> = texts(&dependency["features"]);
        features.into_iter().map(|feature| (text(&dependency["name"]), feature))
    });
    let brings: BTreeMap<String, Vec<String>> = value["features"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(feature, brings)| (feature.clone(), texts(brings)))
        .collect();
    Package {
        name: text(&value["name"]),
        // `publish` is null where a package may go anywhere, and an empty list for `publish = false`.
        published: value["publish"].is_null(),
        has_library: value["targets"].as_array().into_iter().flatten().any(is_library),
        features: brings.keys().cloned().collect(),
        brings,
        asks: asks.collect(),
        dependencies,
    }
}

fn is_library(target: &Value) -> bool {
    target["kind"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(|kind| *kind == "lib" || *kind == "proc-macro"))
}

/// Packages the published crates and builds each from its own package, with the other packages in
/// place of the registry.
pub(crate) fn package_published() -> Result<(), String> {
    let packages = packages()?;
    let published = packages.iter().filter(|package| package.published);
    let mut command = cargo();
    command.args(["package", "--quiet", "--allow-dirty", "--locked"]);
    command.args(published.flat_map(|package| ["--package", &package.name]));
    run(&mut command)
}

fn could_not_start(command: &Command, error: &std::io::Error) -> String {
    format!("`{}` could not be started: {error}", line_of(command))
}

fn line_of(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_gives_names_features_and_outside_dependencies() {
        let text = r#"{"packages": [
            {"name": "a", "publish": null, "targets": [{"kind": ["lib"]}], "features": {"x": [], "default": ["x"]},
             "dependencies": [{"name": "serde", "path": null}, {"name": "serde", "path": null},
                              {"name": "b", "path": "/somewhere", "features": ["y"]}]},
            {"name": "b", "publish": [], "features": {}, "dependencies": []}]}"#;
        let packages = parse_metadata(text).unwrap();
        assert_eq!(packages[0].name, "a");
        assert!(packages[0].published && packages[0].has_library);
        assert_eq!(packages[0].features, ["default", "x"]);
        assert_eq!(packages[0].brings["default"], ["x"]);
        assert_eq!(packages[0].asks, [("b".to_owned(), "y".to_owned())]);
        assert_eq!(packages[0].dependencies, ["serde"]);
        assert!(!packages[1].published);
    }

    #[test]
    fn metadata_that_is_no_json_is_an_error() {
        assert!(parse_metadata("error: no manifest").is_err());
    }
}
