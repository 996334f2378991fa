//! Owns how folders on the command line become roots. Does not own what servers do in them.

use std::path::{Path, PathBuf};

use turnbuckle::types::Root;

use crate::exit::Failure;

/// The roots that these folders are. Fails if one is not there.
pub(crate) fn roots(folders: &[PathBuf]) -> Result<Vec<Root>, Failure> {
    let root = |folder: &PathBuf| {
        let whole = std::fs::canonicalize(folder).map_err(|error| {
            Failure::usage(format!("{} can't be a root: {error} (--root)", folder.display()))
        })?;
        let uri = file_uri(&whole)
            .ok_or_else(|| Failure::usage(format!("{} has no URI (--root)", folder.display())))?;
        let mut root = Root::new(uri);
        root.name = whole.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        Ok(root)
    };
    folders.iter().map(root).collect()
}

/// The `file:` URI of an absolute path; `None` for one that is no text.
fn file_uri(path: &Path) -> Option<String> {
    let path = path.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
    // Windows writes a whole path as `\\?\C:\folder`.
    let path = path.strip_prefix("//?/").unwrap_or(&path);
    let mut uri = "file://".to_owned();
    if !path.starts_with('/') {
        uri.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b':' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_path_becomes_a_uri() {
        let uri = |path: &str| file_uri(Path::new(path)).unwrap();
        assert_eq!(uri("/home/ada/engine"), "file:///home/ada/engine");
        assert_eq!(uri("/a b/ü#?%"), "file:///a%20b/%C3%BC%23%3F%25");
    }

    #[test]
    fn a_folder_is_made_whole_and_must_be_there() {
        let here = roots(&[".".into()]).unwrap();
        assert!(here[0].uri.starts_with("file:///"), "{here:?}");
        assert!(!here[0].uri.ends_with('.'), "{here:?}");
        let failure = roots(&["no/such/folder".into()]).unwrap_err();
        assert!(failure.sentence().starts_with("no/such/folder can't be a root: "));
    }
}
