//! Reads `mcp.json`, the file in which editors and desktop hosts list their servers.

mod dotenv;
mod entry;
mod expand;
mod server;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

pub use server::{HttpConfig, ProcessConfig, ServerConfig};

use jsonc_parser::ParseOptions;
use turnbuckle::{
    __seam::{error as new_error, with_source},
    Error, ErrorKind, Result,
};

use expand::Variables;

/// The longest file that is read.
const BYTES: u64 = 1 << 20;

/// JSON with comments and trailing commas, as editors allow it.
const JSONC: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The servers of an `mcp.json`.
///
/// Both forms are read: `{"mcpServers": {…}}` of desktop hosts and most editors, and
/// `{"servers": {…}}` of VS Code; comments and trailing commas are allowed. Variables are replaced
/// in `command`, `args`, `env`, `envFile`, `cwd`, `url` and `headers`: `${NAME}`, `${NAME:-default}`,
/// `${env:NAME}`, `${input:id}`, `${userHome}`, `${workspaceFolder}`. Variables in `env` override those of
/// an `envFile`. A broken entry does not affect the others.
///
/// ```
/// use turnbuckle_host::McpConfig;
///
/// let text = r#"{
///     // comments are allowed
///     "mcpServers": {
///         "notes": {"command": "notes-server", "args": ["--in", "${NOTES:-notes}"]},
///         "search": {"url": "https://mcp.example.com/mcp", "headers": {"x-key": "${NO_SUCH_KEY}"}},
///     }
/// }"#;
/// let config = McpConfig::parse_with(text, |_| None)?;
/// assert_eq!(config.server("notes").unwrap().unwrap().to_string(), "notes-server --in ${NOTES:-notes}");
/// let broken = config.server("search").unwrap().unwrap_err();
/// assert!(broken.to_string().contains("`headers.x-key`: the environment variable `NO_SUCH_KEY` is not set"));
/// # Ok::<(), turnbuckle::Error>(())
/// ```
#[derive(Debug)]
pub struct McpConfig {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    server: Result<ServerConfig>,
    use_of: Use,
}

/// Whether a server is started with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Enabled,
    Disabled,
}

impl McpConfig {
    /// Reads a file of at most 1 MiB. It blocks the thread.
    pub fn read(path: impl AsRef<Path>) -> Result<McpConfig> {
        McpConfig::reader().read(path)
    }

    /// Parses a text, with the environment of this process.
    pub fn parse(text: &str) -> Result<McpConfig> {
        McpConfig::reader().parse(text)
    }

    /// Parses a text, with the given environment.
    pub fn parse_with(
        text: &str,
        env: impl Fn(&str) -> Option<String> + Send + Sync,
    ) -> Result<McpConfig> {
        McpConfig::reader().env(env).parse(text)
    }

    /// Returns a reader, which has the sources of variables as settings.
    pub fn reader<'a>() -> ConfigReader<'a> {
        ConfigReader {
            env: Box::new(|name| std::env::var(name).ok()),
            inputs: None,
            workspace: None,
        }
    }

    /// Returns all servers in the order of the file, including disabled ones. The error of a broken entry
    /// says what is wrong.
    pub fn servers(&self) -> impl Iterator<Item = (&str, Result<&ServerConfig, &Error>)> {
        self.entries.iter().map(|entry| (entry.name.as_str(), entry.server.as_ref()))
    }

    /// Returns the server of this name.
    pub fn server(&self, name: &str) -> Option<Result<&ServerConfig, &Error>> {
        self.entry(name).map(|entry| entry.server.as_ref())
    }

    /// Returns whether the file disables this server (`"disabled": true`).
    pub fn is_disabled(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.use_of == Use::Disabled)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

/// Reads an [`McpConfig`], with settings for the values of its variables.
///
/// ```
/// use turnbuckle_host::McpConfig;
/// let text = r#"{"servers": {"a": {"command": "a", "env": {"KEY": "${input:key}"}}}}"#;
/// let config = McpConfig::reader()
///     .inputs(|id| (id == "key").then(|| "from a prompt".to_owned()))
///     .parse(text)?;
/// assert!(config.server("a").unwrap().is_ok());
/// # Ok::<(), turnbuckle::Error>(())
/// ```
#[must_use = "nothing is read until `read` or `parse` is called"]
pub struct ConfigReader<'a> {
    env: OwnedLookup<'a>,
    inputs: Option<OwnedLookup<'a>>,
    workspace: Option<PathBuf>,
}

type OwnedLookup<'a> = Box<dyn Fn(&str) -> Option<String> + Send + Sync + 'a>;

impl<'a> ConfigReader<'a> {
    /// Sets the values of `${NAME}` and `${env:NAME}`. The default is the environment of this process.
    pub fn env(mut self, env: impl Fn(&str) -> Option<String> + Send + Sync + 'a) -> Self {
        self.env = Box::new(env);
        self
    }

    /// Sets the values of `${input:id}`, which for example asks the user. Without it, a server with an
    /// input is an error.
    pub fn inputs(mut self, inputs: impl Fn(&str) -> Option<String> + Send + Sync + 'a) -> Self {
        self.inputs = Some(Box::new(inputs));
        self
    }

    /// Sets the value of `${workspaceFolder}`. The default is the folder of the file, or its parent if the
    /// folder is an editor's own (`.vscode`, `.cursor`).
    pub fn workspace_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// Reads a file of at most 1 MiB. It blocks the thread. A relative `cwd` or `envFile` is relative to
    /// the file's folder.
    pub fn read(self, path: impl AsRef<Path>) -> Result<McpConfig> {
        let path = path.as_ref();
        let text = text_of(path)?;
        // Relative paths must not depend on a later change of the working directory.
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.parse_in(&text, &path.display().to_string(), whole.parent())
    }

    /// Parses a text, and reads the `envFile`s in it. A relative `cwd` or `envFile` is relative to the
    /// workspace folder, if there is one.
    pub fn parse(self, text: &str) -> Result<McpConfig> {
        self.parse_in(text, "the configuration", None)
    }

    fn parse_in(self, text: &str, source: &str, folder: Option<&Path>) -> Result<McpConfig> {
        let broken = |why: String| new_error(ErrorKind::Codec, format!("{source}: {why}"));
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let file: File = jsonc_parser::parse_to_serde_value(text, &JSONC)
            .map_err(|error| broken(error.to_string()))?;
        if file.desktop.is_none() && file.editor.is_none() {
            return Err(broken("neither `mcpServers` nor `servers` is there".to_owned()));
        }
        let workspace = self.workspace.as_deref().or_else(|| folder.map(workspace_of));
        let inputs = self.inputs.as_deref().map(|inputs| inputs as &dyn Fn(&str) -> _);
        let variables = Variables { env: &*self.env, inputs, workspace };
        let mut entries: Vec<Entry> = Vec::new();
        for (name, value) in [file.desktop, file.editor].into_iter().flatten().flat_map(|all| all.0)
        {
            let server = entry::read(&value, &variables, folder.or(workspace))
                .map_err(|why| broken(format!("server `{name}`: {why}")));
            let use_of = if entry::is_disabled(&value) { Use::Disabled } else { Use::Enabled };
            let entry = Entry { name, server, use_of };
            // As usual in JSON, the last member of a name counts.
            match entries.iter_mut().find(|before| before.name == entry.name) {
                Some(before) => {
                    tracing::warn!(server = entry.name, "is there twice; the last one counts");
                    *before = entry;
                }
                None => entries.push(entry),
            }
        }
        Ok(McpConfig { entries })
    }
}

impl fmt::Debug for ConfigReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigReader").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

fn text_of(path: &Path) -> Result<String> {
    read_text(path).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            new_error(ErrorKind::Limit, format!("{} {error}", path.display()))
        }
        _ => {
            let message = format!("{} can't be read: {error}", path.display());
            with_source(new_error(ErrorKind::Io, message), error)
        }
    })
}

/// Reads a file of at most [`BYTES`].
fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES {
        let message = format!("is longer than {BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// Returns the workspace that a file in this folder belongs to.
fn workspace_of(folder: &Path) -> &Path {
    let own = folder.file_name().is_some_and(|name| name == ".vscode" || name == ".cursor");
    if own { folder.parent().unwrap_or(folder) } else { folder }
}

#[derive(Default)]
struct File {
    desktop: Option<Ordered>,
    editor: Option<Ordered>,
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<File, D::Error> {
        struct FileVisitor;
        impl<'de> Visitor<'de> for FileVisitor {
            type Value = File;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with `mcpServers` or `servers`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<File, A::Error> {
                let mut file = File::default();
                while let Some(name) = members.next_key::<String>()? {
                    match name.as_str() {
                        "mcpServers" => file.desktop = members.next_value()?,
                        "servers" => file.editor = members.next_value()?,
                        _ => {
                            members.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(file)
            }
        }
        deserializer.deserialize_map(FileVisitor)
    }
}

/// The members of an object, in the order of the text.
struct Ordered(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ordered, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Ordered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of servers by their names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Ordered(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}
