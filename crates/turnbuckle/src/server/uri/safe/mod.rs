//! Paths from clients: which are accepted, and that they stay below their root.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A relative path that stays below its root, on every system.
///
/// Take it as an argument in place of a `String`: any other text never reaches the handler. Refused
/// are `..`, `.`, an absolute path, a drive or a share, a backslash, a colon, a
/// control character such as NUL, an empty name, a name that ends in a dot or a space, and the names
/// of devices on Windows. The decoded text is checked, so `%2e%2e%2f` is refused; a text that is escaped
/// twice is a name with a `%` in it.
///
/// A symbolic link can still lead out: [`safe_join`] refuses that.
///
/// ```
/// use turnbuckle::server::SafePath;
/// let path: SafePath = "guide/start.md".parse()?;
/// assert_eq!(path.segments().collect::<Vec<_>>(), ["guide", "start.md"]);
/// assert!("../secrets".parse::<SafePath>().is_err());
/// assert!("/etc/passwd".parse::<SafePath>().is_err());
/// # Ok::<(), turnbuckle::server::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SafePath(String);

impl SafePath {
    /// Checks a path.
    pub fn new(path: impl Into<String>) -> Result<SafePath, PathError> {
        let path = path.into();
        // This mistake has its own message.
        if path.starts_with('/') {
            return Err(PathError("must not begin with `/`"));
        }
        path.split('/').try_for_each(check_segment)?;
        Ok(SafePath(path))
    }

    /// Returns the path, with `/` between its segments.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// Returns the segments, of which there is at least one.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

/// A single name of a file or a directory, under the rules of [`SafePath`].
///
/// ```
/// use turnbuckle::server::PathSegment;
/// assert_eq!("start.md".parse::<PathSegment>()?.as_str(), "start.md");
/// assert!("guide/start.md".parse::<PathSegment>().is_err());
/// # Ok::<(), turnbuckle::server::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathSegment(String);

impl PathSegment {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<PathSegment, PathError> {
        let name = name.into();
        if name.contains('/') {
            return Err(PathError("must be a single name, without `/`"));
        }
        check_segment(&name)?;
        Ok(PathSegment(name))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as a path.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl From<PathSegment> for SafePath {
    fn from(segment: PathSegment) -> SafePath {
        SafePath(segment.0)
    }
}

/// A path that is not safe.
///
/// ```
/// use turnbuckle::server::SafePath;
/// assert_eq!(SafePath::new("a/../b").unwrap_err().to_string(), "must not have `.` or `..` in it");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathError(&'static str);

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for PathError {}

/// Returns the absolute path of a file below a root, with all symbolic links resolved.
///
/// Fails with [`NotFound`](io::ErrorKind::NotFound) if nothing is there, and with
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if a symbolic link leads out of the root.
/// Use the path at once: a process that may write below the root can replace the file. This blocks on
/// the file system; in an async function, run it on a blocking thread.
///
/// ```no_run
/// use turnbuckle::server::{SafePath, safe_join};
/// let path: SafePath = "guide/start.md".parse()?;
/// let text = std::fs::read_to_string(safe_join("docs".as_ref(), &path)?)?;
/// # drop(text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn safe_join(root: &Path, path: &SafePath) -> io::Result<PathBuf> {
    let root = root.canonicalize()?;
    // Segment by segment, because `/` is no separator in canonical paths on Windows.
    let mut joined = root.clone();
    joined.extend(path.segments());
    let joined = joined.canonicalize()?;
    if joined.starts_with(&root) {
        return Ok(joined);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the path leads out of its root"))
}

fn check_segment(name: &str) -> Result<(), PathError> {
    let sentence = match name {
        "" => "must not have an empty name in it",
        "." | ".." => "must not have `.` or `..` in it",
        name if name.contains('\\') => "must not have `\\` in it: write `/`",
        name if name.contains(':') => "must not have `:` in it",
        name if name.contains(char::is_control) => "must not have control characters in it",
        // Windows removes them, so `...` and `.. ` are other names there.
        name if name.ends_with(['.', ' ']) => {
            "must not have a name in it that ends in `.` or a space"
        }
        name if is_device(name) => "must not have the name of a device in it",
        _ => return Ok(()),
    };
    Err(PathError(sentence))
}

/// Returns whether a name is a device on Windows, with any extension, and spaces before it.
fn is_device(name: &str) -> bool {
    const NAMES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
    const NUMBERED: [&str; 2] = ["COM", "LPT"];
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ').to_ascii_uppercase();
    let is_number = |rest: &str| {
        let mut chars = rest.chars();
        matches!((chars.next(), chars.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    };
    NAMES.contains(&stem.as_str())
        || NUMBERED.iter().any(|kind| stem.strip_prefix(kind).is_some_and(is_number))
}

macro_rules! text_like {
    ($($type:ident $description:literal)*) => {$(
        impl FromStr for $type {
            type Err = PathError;

            fn from_str(text: &str) -> Result<$type, PathError> {
                $type::new(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<Path> for $type {
            fn as_ref(&self) -> &Path {
                self.as_path()
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                $type::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn schema_id() -> std::borrow::Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($type)).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "minLength": 1, "description": $description })
            }
        }
    )*};
}

text_like! {
    SafePath "A relative path with `/` between its names, without `..`."
    PathSegment "The name of a file or a directory."
}

#[cfg(test)]
mod tests;
