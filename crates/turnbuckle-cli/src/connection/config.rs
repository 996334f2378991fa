//! The way from a name on the command line to the server of that name in an `mcp.json`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use turnbuckle_host::{McpConfig, ServerConfig};

use crate::{args::Connection, exit::Failure, progress::Line, target::Target};

/// Files of a folder that may have the name. They are written by whoever made the folder, and say which
/// program is started: they count only if they are named.
const OF_A_FOLDER: [&str; 3] = ["mcp.json", ".mcp.json", ".vscode/mcp.json"];

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
            let own = own_file(|variable| std::env::var_os(variable));
            let found = match own.filter(|file| file.is_file()) {
                Some(file) => in_own_file(&file, name, line)?,
                None => None,
            };
            found.map_or_else(|| typed(target), Ok)
        }
        (None, None) => typed(target),
    }
}

/// The server of a command line or URL.
fn typed(target: &Target) -> Result<ServerConfig, Failure> {
    target.is_no_bare_address()?;
    Ok(target.server())
}

/// What to say when a word that was no name in the user's own file turned out to be no program: that
/// a file of this folder was not looked at.
pub(crate) fn overlooked(connection: &Connection) -> Option<String> {
    connection.target.word().filter(|_| connection.config.is_none())?;
    let file = OF_A_FOLDER.into_iter().find(|file| Path::new(file).is_file())?;
    Some(format!("note: {file} of this folder counts only if it is named: --config {file}"))
}

/// Where the user's own servers are.
fn own_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // As the XDG base directories have it, one that is not absolute does not count.
    let folder = |name| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = if cfg!(windows) {
        folder("APPDATA")?
    } else {
        folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?
    };
    Some(folder.join("turnbuckle").join("mcp.json"))
}

fn read(file: &Path) -> turnbuckle::Result<McpConfig> {
    McpConfig::reader().inputs(|_| None).read(file)
}

/// The failure for an entry of a file that is not a server.
fn unusable(broken: &turnbuckle::Error) -> Failure {
    let sentence = broken.to_string();
    let hint = if sentence.contains("the input `") {
        "; this command asks for no inputs: write `${env:NAME}` in the file, and set the variable"
    } else {
        ""
    };
    Failure::usage(format!("{sentence}{hint}"))
}

fn in_file(file: &Path, name: &str) -> Result<ServerConfig, Failure> {
    let config = read(file).map_err(|error| Failure::usage(error.to_string()))?;
    match config.server(name) {
        Some(Ok(server)) => Ok(server.clone()),
        Some(Err(broken)) => Err(unusable(broken)),
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

/// The server of this name in the user's own file. Which it is, is said: whoever typed the name of a
/// program should know that it is not what is started.
fn in_own_file(file: &Path, name: &str, line: &Line) -> Result<Option<ServerConfig>, Failure> {
    let config = match read(file) {
        Ok(config) => config,
        // It may have nothing to do with this.
        Err(error) => {
            line.say(&format!("note: a file is left out in the search for `{name}`: {error}"));
            return Ok(None);
        }
    };
    match config.server(name) {
        Some(Ok(server)) => {
            line.say(&format!("note: `{name}` is {server}, as {} says", file.display()));
            Ok(Some(server.clone()))
        }
        Some(Err(broken)) => Err(unusable(broken)),
        None => Ok(None),
    }
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
    fn a_name_is_looked_for_in_the_user_s_own_file_and_a_broken_one_is_passed_by() {
        let text =
            r#"{"servers": {"a": {"command": "first"}, "b": {"url": "http://b/mcp"}, "c": {}}}"#;
        let folder = folder("own", &[("mcp.json", text), ("broken.json", "{")]);
        let line = Line::on_stderr();
        let found = |file: &str, name: &str| in_own_file(&folder.join(file), name, &line);
        assert_eq!(found("mcp.json", "a").unwrap().unwrap().to_string(), "first");
        assert_eq!(found("mcp.json", "b").unwrap().unwrap().to_string(), "http://b/mcp");
        assert!(found("mcp.json", "c").unwrap_err().sentence().contains("server `c`"));
        assert_eq!(found("mcp.json", "d").unwrap(), None);
        assert_eq!(found("broken.json", "a").unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn the_user_s_own_file_is_where_no_folder_can_put_it() {
        let own = |variables: &[(&str, &str)]| {
            own_file(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let at = |path: &str| Some(PathBuf::from(path));
        let both = [("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/etc/ada")];
        assert_eq!(own(&both), at("/etc/ada/turnbuckle/mcp.json"));
        assert_eq!(own(&both[..1]), at("/home/ada/.config/turnbuckle/mcp.json"));
        let relative = [("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "config")];
        assert_eq!(own(&relative), at("/home/ada/.config/turnbuckle/mcp.json"));
        for none in [&[][..], &[("HOME", "")], &[("HOME", "."), ("XDG_CONFIG_HOME", ".")]] {
            assert_eq!(own(none), None);
        }
    }

    #[test]
    fn a_name_that_is_not_in_the_file_is_answered_with_those_that_are() {
        let text = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "${NO_SUCH_NAME}"},
                "i": {"command": "x", "args": ["${input:key}"]}}}"#;
        let folder = folder("names", &[("some.json", text), ("none.json", r#"{"servers": {}}"#)]);
        let sentence = |file: &str, name: &str| {
            in_file(&folder.join(file), name).unwrap_err().sentence().to_owned()
        };
        assert_eq!(in_file(&folder.join("some.json"), "a").unwrap().to_string(), "x");
        assert!(sentence("some.json", "c").ends_with("some.json: it has `a`, `b`, `i`"));
        assert!(sentence("some.json", "i").contains("write `${env:NAME}` in the file"));
        assert!(sentence("some.json", "b").contains("`NO_SUCH_NAME` is not set"));
        assert!(sentence("none.json", "a").ends_with("none.json: it has none"));
        assert!(sentence("no.json", "a").contains("can't be read"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
