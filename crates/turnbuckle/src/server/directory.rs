//! Owns a directory as a family of resources. Does not own which files may be read, nor how.

use std::{
    io::ErrorKind,
    panic::Location,
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle_types::{BlobResourceContents, Resource, ResourceContents, TextResourceContents};

use super::{
    Args, NotFound, Server, Template, ToolError, blocking_template,
    uri::{
        SafePath,
        directory::{Contents, Extent, File, LONGEST_FILE, list, read},
    },
};

impl Server {
    /// Offers the files below a directory as resources: `guide/start.md` is
    /// `file:///docs/guide/start.md` if `base` is `file:///docs`.
    ///
    /// Files are listed and read as they are at that moment. Only regular files within the
    /// directory exist: what a path or a symbolic link leads to outside of it does not, nor do hidden
    /// files. A file may have up to 16 MiB.
    ///
    /// ```no_run
    /// use turnbuckle::Server;
    /// let server = Server::new("docs", "1.0").directory("file:///docs", "./docs");
    /// # let _ = server;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn directory(self, base: &str, path: impl AsRef<Path>) -> Server {
        let template = directory(base, path.as_ref()).placed(Location::caller());
        self.template(template)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Wanted {
    path: String,
}

fn directory(base: &str, path: &Path) -> Template {
    let base: Arc<str> = base.trim_end_matches('/').into();
    // Also if the program goes elsewhere later.
    let root: Arc<Path> = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path)).into();
    let (listed, below) = (root.clone(), base.clone());
    let list = move || {
        let (root, base) = (listed.clone(), below.clone());
        async move { tokio::task::spawn_blocking(move || files(&root, &base)).await? }
    };
    let is_there = root.is_dir();
    let read = move |Args(Wanted { path }): Args<Wanted>| contents(&root, path);
    let mut template = blocking_template(format!("{base}/{{+path}}"), read).list(list);
    if !is_there {
        let problem = format!("`{}` is not a directory", path.display());
        template.offer.problems.push(problem);
    }
    let name = base.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&base);
    template.name(name)
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Every file, as a resource.
fn files(root: &Path, base: &str) -> Result<Vec<Resource>, AnyError> {
    let listing = list(root)?;
    if listing.extent == Extent::Part {
        tracing::warn!(directory = %root.display(), "too many files: not all are listed");
    }
    let resource = |file: File| {
        let name = file.path.segments().last().unwrap_or_default();
        let mut resource = Resource::new(format!("{base}/{}", escaped(file.path.as_str())), name);
        resource.mime_type = file.mime_type.map(str::to_owned);
        resource.size = Some(file.size);
        resource
    };
    Ok(listing.files.into_iter().map(resource).collect())
}

/// What is in one file. A path that is not safe is that of no file.
fn contents(root: &Path, path: String) -> Result<ResourceContents, AnyError> {
    let path = SafePath::new(path).map_err(|_| NotFound)?;
    let contents = read(root, &path, LONGEST_FILE).map_err(|error| -> AnyError {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => {
                NotFound.into()
            }
            ErrorKind::FileTooLarge => ToolError::new(error.to_string()).into(),
            _ => error.into(),
        }
    })?;
    // Without a URI, that of the request is meant.
    Ok(match contents {
        Contents::Text { text, mime_type } => {
            let mut contents = TextResourceContents::new("", text);
            contents.mime_type = Some(mime_type.to_owned());
            contents.into()
        }
        Contents::Bytes { bytes, mime_type } => {
            let mut contents = BlobResourceContents::new("", STANDARD.encode(bytes));
            contents.mime_type = Some(mime_type.to_owned());
            contents.into()
        }
    })
}

/// RFC 3986 §2.3: whatever is not unreserved, but for `/`, is escaped.
fn escaped(path: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}
