//! Building programs with cargo and finding them.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::workspace;

/// What cargo said about a build.
#[derive(Debug)]
pub(crate) struct Built(String);

impl Built {
    /// Runs `cargo build` as far as the caller has prepared it.
    pub(crate) fn build(command: &mut Command) -> Result<Built, String> {
        command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
        workspace::output(command).map(Built)
    }

    /// Cargo's messages, a JSON object in each line.
    pub(crate) fn messages(&self) -> &str {
        &self.0
    }

    /// Where a program is.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf, String> {
        executable(&self.0, name).ok_or_else(|| format!("cargo built no `{name}`"))
    }
}

/// Where cargo says that it has put a program.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_where_cargo_says() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":null}"#,
            "\nnot JSON\n",
            r#"{"reason":"compiler-artifact","target":{"name":"b"},"executable":"/t/b"}"#,
        );
        let built = Built(messages.to_owned());
        assert_eq!(built.program("b"), Ok(PathBuf::from("/t/b")));
        assert!(built.program("a").is_err());
    }
}
