//! The programs of the peers and of Turnbuckle: installation, builds, commands and versions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::cells::{Cell, Peer, Role, Way};
use crate::{
    common::{
        built::Built,
        files::{read, write},
        npm,
    },
    conformance, workspace,
};

/// A program and its fixed arguments.
pub(crate) type Program = Vec<PathBuf>;

/// The installed programs.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The folder of packages and results.
    pub(crate) home: PathBuf,
    source: PathBuf,
    node: PathBuf,
    ours: Built,
    /// If there is a cell with it.
    rmcp: Option<Built>,
}

impl Programs {
    /// Installs and builds the programs of these cells.
    pub(crate) fn prepare(root: &Path, cells: &[Cell]) -> Result<Programs, String> {
        let (source, home) = (root.join("interop"), root.join("target/interop"));
        let mut rmcp = None;
        for peer in Peer::ALL {
            let (own, place) = (source.join(peer.to_string()), home.join(peer.to_string()));
            let is_needed = |cell: &Cell| {
                cell.peer == peer || peer == Peer::Provider && cell.way == Way::Authorized
            };
            if !cells.iter().any(is_needed) {
                continue;
            }
            match peer {
                Peer::Python2 | Peer::Python1 | Peer::Python18 | Peer::Python10 => {
                    install_python(&own, &place)?;
                }
                Peer::TypeScript2 | Peer::TypeScript1 | Peer::Provider => {
                    install_node(&source, peer, &place)?;
                }
                Peer::Rmcp => rmcp = Some(build_rmcp(&own, &place)?),
            }
        }
        let mut cargo = workspace::cargo();
        cargo.args(["build", "--bins", "--package", "turnbuckle-interop"]);
        if cells.iter().any(|cell| matches!(cell.way, Way::Bridge(_))) {
            cargo.args(["--package", "turnbuckle-cli"]);
        }
        let ours = Built::build(&mut cargo)?;
        Ok(Programs { node: conformance::node(root)?, home, source, ours, rmcp })
    }

    pub(crate) fn server(&self, cell: &Cell) -> Result<Program, String> {
        match cell.role {
            Role::Server => self.peer(cell.peer, "server"),
            Role::Client | Role::Provider => Ok(vec![self.ours.program("interop-server")?]),
        }
    }

    pub(crate) fn client(&self, cell: &Cell) -> Result<Program, String> {
        match cell.role {
            Role::Server | Role::Provider => Ok(vec![self.ours.program("interop-client")?]),
            Role::Client => self.peer(cell.peer, "client"),
        }
    }

    pub(crate) fn provider(&self) -> Result<Program, String> {
        self.peer(Peer::Provider, "server")
    }

    /// Turnbuckle's side of authorization.
    pub(crate) fn auth(&self) -> Result<Program, String> {
        Ok(vec![self.ours.program("interop-auth")?])
    }

    pub(crate) fn bridge(&self) -> Result<Program, String> {
        Ok(vec![self.ours.program("turnbuckle")?, "bridge".into()])
    }

    /// The program of a peer with this name.
    pub(crate) fn peer(&self, peer: Peer, what: &str) -> Result<Program, String> {
        let (source, home) = (self.source.join(peer.to_string()), self.home.join(peer.to_string()));
        Ok(match peer {
            // `-B`: compiled modules would be written beside the sources.
            Peer::Python2 | Peer::Python1 => {
                vec![home.join("bin/python"), "-B".into(), source.join(format!("{what}.py"))]
            }
            Peer::Python18 | Peer::Python10 => {
                let shared = self.source.join("shared/old_server.py");
                vec![home.join("bin/python"), "-B".into(), shared]
            }
            Peer::TypeScript2 | Peer::TypeScript1 | Peer::Provider => {
                vec![self.node.clone(), home.join(format!("{what}.mjs"))]
            }
            Peer::Rmcp => vec![self.rmcp.as_ref().ok_or("rmcp is not built")?.program(what)?],
        })
    }
}

/// Installs the pinned packages into a virtual environment.
fn install_python(source: &Path, home: &Path) -> Result<(), String> {
    let requirements = source.join("requirements.txt");
    let pinned = read(&requirements)?;
    let stamp = home.join("installed-requirements.txt");
    // Written last, so a half-done installation has none.
    if fs::read_to_string(&stamp).is_ok_and(|text| text == pinned) {
        return Ok(());
    }
    eprintln!("installing {}", home.display());
    workspace::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(home))?;
    let mut pip = Command::new(home.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    workspace::run(pip.arg("--requirement").arg(&requirements))?;
    write(&stamp, &pinned)
}

/// Installs packages, and the programs beside them: a module looks for packages in its own folder.
fn install_node(source: &Path, peer: Peer, home: &Path) -> Result<(), String> {
    let own = source.join(peer.to_string());
    npm::install(&own, home, &home.display().to_string())?;
    let (programs, shared): (&[&str], &[&str]) = match peer {
        Peer::Provider => (&["server.mjs"], &[]),
        _ => (
            &["server.mjs", "client.mjs", "login.mjs"],
            &["checks.mjs", "login-checks.mjs", "serving.mjs"],
        ),
    };
    let programs = programs.iter().map(|name| (own.join(name), name));
    let shared = shared.iter().map(|name| (source.join("shared").join(name), name));
    for (from, name) in programs.chain(shared) {
        write(&home.join(name), &read(&from)?)?;
    }
    Ok(())
}

fn build_rmcp(own: &Path, home: &Path) -> Result<Built, String> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--locked", "--manifest-path"]).arg(own.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(home).env("CARGO_PROFILE_DEV_DEBUG", "0");
    Built::build(&mut cargo)
}

/// The pinned packages of each peer, with their versions.
#[derive(Debug)]
pub(crate) struct Versions(Vec<(Peer, Vec<(String, String)>)>);

impl Versions {
    pub(crate) fn read(root: &Path) -> Result<Versions, String> {
        let pinned = |peer: Peer| {
            let folder = root.join("interop").join(peer.to_string());
            let packages = match peer {
                Peer::Python2 | Peer::Python1 | Peer::Python18 | Peer::Python10 => {
                    required(&read(&folder.join("requirements.txt"))?, "mcp")
                }
                Peer::TypeScript2 | Peer::TypeScript1 | Peer::Provider => {
                    depended(&read(&folder.join("package.json"))?)
                }
                Peer::Rmcp => locked(&read(&folder.join("Cargo.lock"))?, "rmcp"),
            };
            if packages.is_empty() {
                return Err(format!("nothing pins the version of {peer}"));
            }
            Ok((peer, packages))
        };
        Peer::ALL.into_iter().map(pinned).collect::<Result<_, _>>().map(Versions)
    }

    /// The version of a peer: of its first package.
    pub(crate) fn of(&self, peer: Peer) -> &str {
        self.packages(peer).first().map_or("", |(_, version)| version)
    }

    /// The packages of a peer and their versions.
    pub(crate) fn packages(&self, peer: Peer) -> &[(String, String)] {
        self.0.iter().find(|(other, _)| *other == peer).map_or(&[], |(_, packages)| packages)
    }

    #[cfg(test)]
    pub(crate) fn fixed(version: &str) -> Versions {
        let pinned = |peer| (peer, vec![("package".to_owned(), version.to_owned())]);
        Versions(Peer::ALL.map(pinned).to_vec())
    }
}

/// `name==version` in a requirements file.
fn required(text: &str, name: &str) -> Vec<(String, String)> {
    let pinned = text.lines().filter_map(|line| line.trim().split_once("=="));
    pinned.filter(|(found, _)| *found == name).map(owned).collect()
}

/// The protocol's own packages, or the provider, among the dependencies in a `package.json`.
fn depended(text: &str) -> Vec<(String, String)> {
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let dependencies = package["dependencies"].as_object().cloned().unwrap_or_default();
    let named = dependencies.iter().filter_map(|(name, version)| Some((name, version.as_str()?)));
    let official = named.filter(|(name, _)| {
        name.starts_with("@modelcontextprotocol/") || **name == Peer::Provider.to_string()
    });
    official.map(|(name, version)| owned((name.as_str(), version))).collect()
}

/// The version of a package in a `Cargo.lock`.
fn locked(text: &str, name: &str) -> Vec<(String, String)> {
    let lock: toml::Table = text.parse().unwrap_or_default();
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let named =
        packages.filter(|package| package.get("name").and_then(|n| n.as_str()) == Some(name));
    named.filter_map(|package| Some(owned((name, package.get("version")?.as_str()?)))).collect()
}

fn owned((name, version): (&str, &str)) -> (String, String) {
    (name.to_owned(), version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_where_they_are_pinned() {
        let pair = |name: &str, version: &str| vec![owned((name, version))];
        assert_eq!(required("mcp-types==1.0\nmcp==2.3.0\n", "mcp"), pair("mcp", "2.3.0"));
        let package = r#"{"dependencies": {"@modelcontextprotocol/sdk": "1.2.3", "zod": "4"}}"#;
        assert_eq!(depended(package), pair("@modelcontextprotocol/sdk", "1.2.3"));
        let lock = "[[package]]\nname = \"rmcp\"\nversion = \"3.8.0\"\n[[package]]\nname = \"x\"\nversion = \"1.0.0\"\n";
        assert_eq!(locked(lock, "rmcp"), pair("rmcp", "3.8.0"));
        assert!(locked(lock, "y").is_empty() && depended("no JSON").is_empty());
    }
}
