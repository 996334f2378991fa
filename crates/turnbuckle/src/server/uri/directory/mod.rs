//! Lists and reads the files of a directory. All functions block on the file system.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use super::safe::{SafePath, safe_join};

/// The most files that a listing has.
const MOST_FILES: usize = 10_000;
/// The most directory entries that are looked at for it.
const MOST_NAMES: usize = 100_000;
const DEEPEST: usize = 64;

/// The longest file that is read.
pub(crate) const LONGEST_FILE: u64 = 16 * 1024 * 1024;

/// The files below a directory.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Sorted by path.
    pub(crate) files: Vec<File>,
    pub(crate) extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// The directory has too many files.
    Part,
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: SafePath,
    pub(crate) size: u64,
    /// Guessed from the extension.
    pub(crate) mime_type: Option<&'static str>,
}

/// The contents of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    Text { text: String, mime_type: &'static str },
    Bytes { bytes: Vec<u8>, mime_type: &'static str },
}

/// Lists the files below a directory.
///
/// Hidden files and files in hidden directories are left out; so are names that are no [`SafePath`],
/// symbolic links to directories or out of the root, and anything that is not a regular file.
pub(crate) fn list(root: &Path) -> io::Result<Listing> {
    list_at_most(root, MOST_FILES, MOST_NAMES)
}

/// Reads a file below a directory; not if it has more bytes than `longest`.
///
/// Files that [`list`] leaves out are not found.
pub(crate) fn read(root: &Path, path: &SafePath, longest: u64) -> io::Result<Contents> {
    let root = root.canonicalize()?;
    let file = file_at(&root, path)?;
    let mut bytes = Vec::new();
    // One byte more than allowed, so that a file that grows is noticed.
    fs::File::open(file)?.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let sentence = format!("the file has more than {longest} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, sentence));
    }
    let known = mime_type(path);
    if known.is_some_and(|known| !is_text(known)) {
        return Ok(Contents::Bytes { bytes, mime_type: known.unwrap_or(BYTES) });
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Contents::Text { text, mime_type: known.unwrap_or("text/plain") },
        Err(error) => {
            Contents::Bytes { bytes: error.into_bytes(), mime_type: known.unwrap_or(BYTES) }
        }
    })
}

const BYTES: &str = "application/octet-stream";

fn list_at_most(root: &Path, most_files: usize, most_names: usize) -> io::Result<Listing> {
    let root = root.canonicalize()?;
    let mut lister = Lister { root: &root, most_files, names_left: most_names, files: Vec::new() };
    let extent = lister.directory("", fs::read_dir(&root)?, DEEPEST);
    let mut files = lister.files;
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(Listing { files, extent })
}

struct Lister<'r> {
    root: &'r Path,
    most_files: usize,
    names_left: usize,
    files: Vec<File>,
}

impl Lister<'_> {
    /// Adds the files of a directory. Entries that cannot be accessed are left out.
    fn directory(&mut self, prefix: &str, entries: fs::ReadDir, depth: usize) -> Extent {
        let mut names = Vec::new();
        for entry in entries.flatten() {
            if self.names_left == 0 {
                return Extent::Part;
            }
            self.names_left -= 1;
            names.extend(entry.file_name().into_string().ok().zip(entry.file_type().ok()));
        }
        // So that the same files are left out each time.
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in names {
            let Ok(path) = SafePath::new(format!("{prefix}{name}")) else { continue };
            if is_hidden(&name) {
                continue;
            }
            if kind.is_dir() {
                let Ok(entries) = fs::read_dir(self.root.join(path.as_path())) else { continue };
                if depth == 0
                    || self.directory(&format!("{path}/"), entries, depth - 1) == Extent::Part
                {
                    return Extent::Part;
                }
                continue;
            }
            let Ok(size) = file_at(self.root, &path).and_then(|file| Ok(fs::metadata(file)?.len()))
            else {
                continue;
            };
            if self.files.len() == self.most_files {
                return Extent::Part;
            }
            self.files.push(File { mime_type: mime_type(&path), path, size });
        }
        Extent::Whole
    }
}

/// Returns the resolved path of a file that may be read. The root is canonical.
fn file_at(root: &Path, path: &SafePath) -> io::Result<std::path::PathBuf> {
    let not_found = || io::Error::new(io::ErrorKind::NotFound, "there is no such file");
    let file = safe_join(root, path).map_err(|error| match error.kind() {
        // Do not reveal the link.
        io::ErrorKind::PermissionDenied => not_found(),
        _ => error,
    })?;
    let inside = file.strip_prefix(root).map_err(|_| not_found())?;
    let leads_to_hidden = inside.iter().any(|name| name.to_str().is_none_or(is_hidden));
    // Opening a pipe would block until another process writes to it.
    if path.segments().any(is_hidden) || leads_to_hidden || !fs::metadata(&file)?.is_file() {
        return Err(not_found());
    }
    Ok(file)
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

fn is_text(mime_type: &str) -> bool {
    const TEXTS: [&str; 5] = [
        "application/json",
        "application/toml",
        "application/xml",
        "application/yaml",
        "image/svg+xml",
    ];
    mime_type.starts_with("text/") || TEXTS.contains(&mime_type)
}

/// Returns the media type by the extension, ignoring case.
fn mime_type(path: &SafePath) -> Option<&'static str> {
    let extension = path.as_path().extension()?.to_str()?.to_ascii_lowercase();
    let known = MIME_TYPES.iter().find(|(extensions, _)| extensions.contains(&extension.as_str()));
    known.map(|(_, mime_type)| *mime_type)
}

const MIME_TYPES: &[(&[&str], &str)] = &[
    (&["txt", "log", "text"], "text/plain"),
    (&["md", "markdown"], "text/markdown"),
    (&["html", "htm"], "text/html"),
    (&["css"], "text/css"),
    (&["csv"], "text/csv"),
    (&["js", "mjs"], "text/javascript"),
    (&["rs"], "text/x-rust"),
    (&["py"], "text/x-python"),
    (&["ts", "tsx", "jsx", "c", "h", "cpp", "hpp", "go", "java", "rb", "sh", "sql"], "text/plain"),
    (&["json"], "application/json"),
    (&["toml"], "application/toml"),
    (&["xml"], "application/xml"),
    (&["yaml", "yml"], "application/yaml"),
    (&["svg"], "image/svg+xml"),
    (&["png"], "image/png"),
    (&["jpg", "jpeg"], "image/jpeg"),
    (&["gif"], "image/gif"),
    (&["webp"], "image/webp"),
    (&["ico"], "image/x-icon"),
    (&["mp3"], "audio/mpeg"),
    (&["wav"], "audio/wav"),
    (&["ogg"], "audio/ogg"),
    (&["mp4"], "video/mp4"),
    (&["webm"], "video/webm"),
    (&["pdf"], "application/pdf"),
    (&["zip"], "application/zip"),
    (&["gz"], "application/gzip"),
    (&["tar"], "application/x-tar"),
    (&["wasm"], "application/wasm"),
];

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::TempDir;
