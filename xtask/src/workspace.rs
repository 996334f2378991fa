//! The checkout: its directory, its packages, and running cargo in it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

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

/// Runs `command` to its end with the output of this program.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| could_not_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", line_of(command))) }
}

/// Runs `command` to its end and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| could_not_start(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{}` failed: {}\n{complaint}", line_of(command), output.status))
}

/// The part of `cargo metadata` that the tasks read.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) resolve: Resolve,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// A package as the workspace builds it.
#[derive(Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) features: Vec<String>,
    pub(crate) deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Edge {
    /// The id of the dependency.
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct EdgeKind {
    /// `None` for a normal dependency.
    pub(crate) kind: Option<String>,
}

/// A package of the graph.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// `None` for a member of the workspace.
    pub(crate) source: Option<String>,
    pub(crate) rust_version: Option<String>,
    /// Empty for `publish = false`.
    pub(crate) publish: Option<Vec<String>>,
    pub(crate) targets: Vec<Target>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Where a member of the workspace is.
    pub(crate) path: Option<String>,
}

impl Package {
    pub(crate) fn is_published(&self) -> bool {
        self.source.is_none() && self.publish.is_none()
    }

    pub(crate) fn has_library(&self) -> bool {
        let mut kinds = self.targets.iter().flat_map(|target| &target.kind);
        kinds.any(|kind| kind == "lib" || kind == "proc-macro")
    }
}

/// Returns the members of the workspace and all of their dependencies.
pub(crate) fn metadata(options: &[&str]) -> Result<Metadata, String> {
    let mut command = cargo();
    let text = output(command.args(["metadata", "--format-version=1", "--locked"]).args(options))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo's metadata is unreadable: {error}"))
}

/// Returns the members of the workspace.
pub(crate) fn members() -> Result<Vec<Package>, String> {
    let mut packages = metadata(&[])?.packages;
    packages.retain(|package| package.source.is_none());
    Ok(packages)
}

/// Packages the published crates and builds each from its own package, with the other packages in
/// place of the registry.
pub(crate) fn package_published() -> Result<(), String> {
    let members = members()?;
    let published = members.iter().filter(|package| package.is_published());
    published.clone().for_each(remove_unpacked);
    let mut command = cargo();
    command.args(["package", "--quiet", "--allow-dirty", "--locked"]);
    command.args(published.flat_map(|package| ["--package", &package.name]));
    run(&mut command)
}

/// Removes the copies that cargo has unpacked from earlier packages of this version. cargo does not notice
/// that the content of a package has changed.
fn remove_unpacked(package: &Package) {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let registries = home.and_then(|home| std::fs::read_dir(home.join("registry/src")).ok());
    for registry in registries.into_iter().flatten().flatten() {
        // A registry in a directory has no name before its hash.
        if registry.file_name().to_string_lossy().starts_with('-') {
            let copy = format!("{}-{}", package.name, package.version);
            // There may be none.
            let _ = std::fs::remove_dir_all(registry.path().join(copy));
        }
    }
}

fn could_not_start(command: &Command, error: &std::io::Error) -> String {
    format!("`{}` could not be started: {error}", line_of(command))
}

fn line_of(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
