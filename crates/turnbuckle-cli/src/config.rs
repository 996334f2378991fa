//! Owns the way from a name on the command line to the server of that name in an `mcp.json`.
//! Does not own the format of the file.

use std::path::{Path, PathBuf};

use turnbuckle::{McpConfig, ServerConfig};

use crate::{args::Connection, exit::Failure, progress::Line, target::Target};

/// Where a name is looked for if no file is named.
const PLACES: [&str; 3] = ["mcp.json", ".mcp.json", ".vscode/mcp.json"];

/// The server that was named, by its command line, its URL or its name in a file.
pub(crate) fn server(connection: &Connection, line: &Line) -> Result<ServerConfig, Failure> {
    let target = &connection.target;
    match (&connection.config, target.word()) {
        (Some(file), Some(name)) => in_file(file, name),
        (Some(_), None) => {
            let kind = match target {
                Target::Http(_) => "a URL",
                Target::Program { .. } => "a command line",
            };
            Err(Failure::usage(format!(
                "--config is for a server that is given by its name, and the target is {kind}"
            )))
        }
        (None, Some(name)) => {
            let found = somewhere(Path::new("."), name, line)?;
            Ok(found.unwrap_or_else(|| target.server()))
        }
        (None, None) => Ok(target.server()),
    }
}

fn in_file(file: &Path, name: &str) -> Result<ServerConfig, Failure> {
    let config = McpConfig::read(file).map_err(|error| Failure::usage(error.to_string()))?;
    match config.server(name) {
        Some(Ok(server)) => Ok(server.clone()),
        Some(Err(broken)) => Err(Failure::usage(broken.to_string())),
        None => {
            let names: Vec<&str> = config.servers().map(|(name, _)| name).collect();
            let file = file.display();
            Err(Failure::usage(if names.is_empty() {
                format!("there is no server `{name}` in {file}: it has none")
            } else {
                format!("there is no server `{name}` in {file}: it has `{}`", names.join("`, `"))
            }))
        }
    }
}

/// The server of this name in the first file of this folder that has it. Which it is, is said:
/// whoever typed the name of a program should know that it is not what is started.
fn somewhere(folder: &Path, name: &str, line: &Line) -> Result<Option<ServerConfig>, Failure> {
    let places = PLACES.iter().map(|place| folder.join(place));
    for file in places.filter(|file| file.is_file()) {
        let config = match McpConfig::read(&file) {
            Ok(config) => config,
            // It may have nothing to do with this.
            Err(error) => {
                line.say(&format!("note: a file is left out in the search for `{name}`: {error}"));
                continue;
            }
        };
        match config.server(name) {
            Some(Ok(server)) => {
                line.say(&format!("note: `{name}` is {server}, as {} says", shown(&file)));
                return Ok(Some(server.clone()));
            }
            Some(Err(broken)) => return Err(Failure::usage(broken.to_string())),
            None => {}
        }
    }
    Ok(None)
}

fn shown(file: &Path) -> String {
    let file: PathBuf = file.strip_prefix(".").unwrap_or(file).to_owned();
    file.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("turnbuckle-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = folder.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder
    }

    #[test]
    fn the_first_file_that_has_the_name_counts_and_a_broken_one_is_passed_by() {
        let folder = folder(
            "places",
            &[
                ("mcp.json", "{"),
                (".mcp.json", r#"{"mcpServers": {"a": {"command": "first"}}}"#),
                (
                    ".vscode/mcp.json",
                    r#"{"servers": {"a": {"command": "second"}, "b": {"url": "http://b/mcp"}, "c": {}}}"#,
                ),
            ],
        );
        let line = Line::on_stderr();
        let found = |name: &str| somewhere(&folder, name, &line);
        assert_eq!(found("a").unwrap().unwrap().to_string(), "first");
        assert_eq!(found("b").unwrap().unwrap().to_string(), "http://b/mcp");
        assert!(found("c").unwrap_err().sentence().contains("server `c`"));
        assert_eq!(found("d").unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_name_that_is_not_in_the_file_is_answered_with_those_that_are() {
        let text =
            r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "${NO_SUCH_NAME}"}}}"#;
        let folder = folder("names", &[("some.json", text), ("none.json", r#"{"servers": {}}"#)]);
        let sentence = |file: &str, name: &str| {
            in_file(&folder.join(file), name).unwrap_err().sentence().to_owned()
        };
        assert_eq!(in_file(&folder.join("some.json"), "a").unwrap().to_string(), "x");
        assert!(sentence("some.json", "c").ends_with("some.json: it has `a`, `b`"));
        assert!(sentence("some.json", "b").contains("`NO_SUCH_NAME` is not set"));
        assert!(sentence("none.json", "a").ends_with("none.json: it has none"));
        assert!(sentence("no.json", "a").contains("can't be read"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
