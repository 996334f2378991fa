//! Installs the packages of a `package-lock.json`.

use std::{fs, path::Path, process::Command};

use super::files::{create, read, write};
use crate::workspace;

/// Installs the packages of the lock file in `from` into `home`, unless that has been done.
pub(crate) fn install(from: &Path, home: &Path, what: &str) -> Result<(), String> {
    let lock = read(&from.join("package-lock.json"))?;
    let stamp = home.join("installed-lock.json");
    // The stamp is the lock file itself: written last, so a half-done installation has none.
    if fs::read_to_string(&stamp).is_ok_and(|text| text == lock) {
        return Ok(());
    }
    eprintln!("installing {what}");
    create(home)?;
    for name in ["package.json", "package-lock.json"] {
        write(&home.join(name), &read(&from.join(name))?)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    workspace::run(npm.current_dir(home))?;
    let node = home.join("node_modules/node");
    if node.exists() {
        // The package's own install script does the same; npm runs no scripts here.
        let mut script = Command::new("node");
        script.arg("installArchSpecificPackage.js").env("npm_config_loglevel", "error");
        workspace::run(script.current_dir(node))?;
    }
    write(&stamp, &lock)
}
