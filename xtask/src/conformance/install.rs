//! Owns: where the suite and the Node that runs it are, once `conformance/package-lock.json` is
//! installed. Does not own: which versions those are; the lock file does.

use std::path::{Path, PathBuf};

use crate::common::npm;

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
    npm::install(&root.join("conformance"), &home, "the conformance suite")?;
    Ok(Installed {
        node: home.join("node_modules/node/bin/node"),
        program: home.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
        home,
    })
}
