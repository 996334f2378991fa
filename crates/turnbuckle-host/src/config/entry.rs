//! Reads the entry of one server, in each of the spellings that hosts use.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    dotenv,
    expand::{Variables, expand},
    server::{HttpConfig, ProcessConfig, ServerConfig, Word},
};

/// Members with the URL of a server. Windsurf and Gemini have names of their own.
const ADDRESSES: [&str; 3] = ["url", "serverUrl", "httpUrl"];
const PROCESS_TYPES: [&str; 2] = ["stdio", "local"];
const HTTP_TYPES: [&str; 5] =
    ["http", "sse", "streamable-http", "streamableHttp", "streamable_http"];
/// The other members that are read.
const MEMBERS: [&str; 9] =
    ["type", "command", "args", "env", "envFile", "cwd", "headers", "disabled", "enabled"];

/// Reads an entry. The error is a sentence that begins with the member.
pub(super) fn read(
    entry: &Value,
    variables: &Variables<'_>,
    folder: Option<&Path>,
) -> Result<ServerConfig, String> {
    let Some(members) = entry.as_object() else {
        return Err("an object is expected".to_owned());
    };
    note_ignored(members);
    let entry = Entry { members, variables };
    let addresses: Vec<_> =
        ADDRESSES.into_iter().filter(|name| entry.member(name).is_some()).collect();
    match (entry.member("command"), addresses.as_slice()) {
        (None, []) => Err("neither `command` nor `url` is there".to_owned()),
        (Some(_), [url, ..]) => Err(format!("`command` and `{url}` are both there: one is enough")),
        (None, [one, other, ..]) => {
            Err(format!("`{one}` and `{other}` are both there: one is enough"))
        }
        (Some(_), []) => entry.process(folder).map(ServerConfig::from),
        (None, [url]) => entry.http(url).map(ServerConfig::from),
    }
}

/// Returns whether the entry disables its server.
pub(super) fn is_disabled(entry: &Value) -> bool {
    entry["disabled"] == Value::Bool(true) || entry["enabled"] == Value::Bool(false)
}

struct Entry<'a> {
    members: &'a Map<String, Value>,
    variables: &'a Variables<'a>,
}

impl Entry<'_> {
    /// Returns a member that is not null.
    fn member(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn process(&self, folder: Option<&Path>) -> Result<ProcessConfig, String> {
        self.check_type(&PROCESS_TYPES, "command")?;
        let mut process = ProcessConfig::of(self.word("command")?);
        if let Some(arguments) = self.member("args") {
            let Some(arguments) = arguments.as_array() else {
                return Err("`args`: an array of strings is expected".to_owned());
            };
            for (index, argument) in arguments.iter().enumerate() {
                process = process.word(self.expanded(&format!("args[{index}]"), argument)?);
            }
        }
        // First, so that the variables of `env` override them.
        for (name, value) in self.env_file(folder)? {
            process = process.env(name, value);
        }
        for (name, value) in self.object("env")? {
            process = match value {
                Value::Null => process.env_remove(name),
                value => process.env(name, self.expanded(&format!("env.{name}"), value)?.value),
            };
        }
        if self.member("cwd").is_some() {
            let Word { value, shown } = self.word("cwd")?;
            // An absolute path stays as it is.
            let directory = folder.map_or_else(|| value.as_str().into(), |at| at.join(&value));
            process = process.directory(directory, shown);
        }
        Ok(process)
    }

    /// Returns the variables of `envFile`.
    fn env_file(&self, folder: Option<&Path>) -> Result<Vec<(String, String)>, String> {
        if self.member("envFile").is_none() {
            return Ok(Vec::new());
        }
        let Word { value, shown } = self.word("envFile")?;
        let path = match folder {
            // An absolute path stays as it is.
            Some(folder) => folder.join(value),
            None if Path::new(&value).is_absolute() => value.into(),
            None => {
                return Err(format!("`envFile`: there is no folder that `{shown}` could be in"));
            }
        };
        // The expanded path may hold a secret.
        let wrong = |why: &dyn std::fmt::Display| format!("`envFile`: {shown}: {why}");
        let text = super::read_text(&path).map_err(|error| wrong(&error))?;
        dotenv::parse(&text).map_err(|why| wrong(&why))
    }

    fn http(&self, url: &str) -> Result<HttpConfig, String> {
        self.check_type(&HTTP_TYPES, url)?;
        let mut http = HttpConfig::of(self.word(url)?);
        for (name, value) in self.object("headers")? {
            http = http.header(name, self.expanded(&format!("headers.{name}"), value)?.value);
        }
        Ok(http)
    }

    /// Checks that `type` fits the other members. All HTTP types are the same here: which HTTP transport
    /// the server has is found by connecting.
    fn check_type(&self, fitting: &[&str], because: &str) -> Result<(), String> {
        let Some(kind) = self.member("type") else { return Ok(()) };
        match kind.as_str() {
            Some(kind) if fitting.contains(&kind) => Ok(()),
            Some(kind) if PROCESS_TYPES.contains(&kind) || HTTP_TYPES.contains(&kind) => {
                Err(format!("`type`: `{kind}` does not go with `{because}`"))
            }
            Some(kind) => {
                Err(format!("`type`: `{kind}` is not known here; `stdio` and `http` are"))
            }
            None => Err("`type`: a string is expected".to_owned()),
        }
    }

    /// Returns a member that has to be a string and not empty.
    fn word(&self, name: &str) -> Result<Word, String> {
        let word = self.members.get(name).map(|value| self.expanded(name, value));
        let word = word.unwrap_or_else(|| Err(format!("`{name}`: a string is expected")))?;
        if word.value.is_empty() { Err(format!("`{name}`: is empty")) } else { Ok(word) }
    }

    fn object(&self, name: &str) -> Result<impl Iterator<Item = (&String, &Value)>, String> {
        let members = match self.member(name) {
            None => None,
            Some(Value::Object(members)) => Some(members),
            Some(_) => return Err(format!("`{name}`: an object is expected")),
        };
        Ok(members.into_iter().flatten())
    }

    /// Expands the variables of a value. Numbers and booleans are accepted as strings.
    fn expanded(&self, member: &str, value: &Value) -> Result<Word, String> {
        let shown = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(format!("`{member}`: a string is expected")),
        };
        let value = expand(&shown, self.variables).map_err(|why| format!("`{member}`: {why}"))?;
        if value.contains('\0') {
            return Err(format!("`{member}`: holds a zero character"));
        }
        Ok(Word { value, shown })
    }
}

/// Logs members that only other hosts read.
fn note_ignored(members: &Map<String, Value>) {
    for name in members.keys() {
        let name = name.as_str();
        if !MEMBERS.contains(&name) && !ADDRESSES.contains(&name) {
            tracing::debug!(member = name, "a member of a server's entry is ignored");
        }
    }
}
