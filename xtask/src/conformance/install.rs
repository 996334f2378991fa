//! Owns: the suite and the Node that runs it, installed from `conformance/package-lock.json` into
//! `target/`. Does not own: which versions those are; the lock file does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace;

/// What is needed to run the suite.
#[derive(Debug)]
pub(crate) struct Installed {
    /// The folder with everything that is not ours: packages and results.
    pub(crate) home: PathBuf,
    pub(crate) node: PathBuf,
    pub(crate) program: PathBuf,
}

/// Installs what the lock file says, unless that has been done.
pub(crate) fn install(root: &Path) -> Result<Installed, String> {
    let home = root.join("target/conformance");
    let installed = Installed {
        node: home.join("node_modules/node/bin/node"),
        program: home.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
        home,
    };
    let lock = read(&root.join("conformance/package-lock.json"))?;
    let stamp = installed.home.join("installed-lock.json");
    // The stamp is the lock file itself: written last, so a half-done installation has none.
    if fs::read_to_string(&stamp).is_ok_and(|text| text == lock) {
        return Ok(installed);
    }
    eprintln!("installing the conformance suite");
    create(&installed.home)?;
    for name in ["package.json", "package-lock.json"] {
        let text = read(&root.join("conformance").join(name))?;
        write(&installed.home.join(name), &text)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    workspace::run(npm.current_dir(&installed.home))?;
    // What the package's own install script would do; npm runs no scripts unless told to.
    let mut node = Command::new("node");
    node.arg("installArchSpecificPackage.js").env("npm_config_loglevel", "error");
    workspace::run(node.current_dir(installed.home.join("node_modules/node")))?;
    write(&stamp, &lock)?;
    Ok(installed)
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} is unreadable: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{} is not written: {error}", path.display()))
}

pub(crate) fn create(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{} is not made: {error}", path.display()))
}
