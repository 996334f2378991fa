//! Building programs with cargo and finding them.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::workspace;

/// Cargo's messages about a build.
#[derive(Debug)]
pub(crate) struct Built(String);

impl Built {
    /// Runs a `cargo build` that the caller has prepared.
    pub(crate) fn build(command: &mut Command) -> Result<Built, String> {
        command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
        workspace::output(command).map(Built)
    }

    /// Returns the messages, a JSON object in each line.
    pub(crate) fn messages(&self) -> &str {
        &self.0
    }

    /// Returns the path of a program.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf, String> {
        let messages = self.0.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .filter(|message| message["target"]["name"] == name)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .ok_or_else(|| format!("cargo built no `{name}`"))
    }
}
