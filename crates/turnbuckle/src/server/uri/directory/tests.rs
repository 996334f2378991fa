use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::*;

/// A directory that goes when the test does.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> TempDir {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnbuckle-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.files.iter().map(|file| file.path.as_str()).collect()
}

fn read_at(root: &Path, path: &str) -> io::Result<Contents> {
    read(root, &SafePath::new(path).unwrap(), LONGEST_FILE)
}

#[test]
fn files_are_listed_in_order() {
    let root = TempDir::new("list");
    for path in ["b.md", "a/z.png", "a/b/c", "a.txt", ".env", ".git/config", "a/.hidden"] {
        root.write(path, "12345");
    }
    fs::create_dir(root.path().join("empty")).unwrap();
    let listing = list(root.path()).unwrap();
    assert_eq!(names(&listing), ["a.txt", "a/b/c", "a/z.png", "b.md"]);
    assert_eq!(listing.extent, Extent::Whole);
    let first = &listing.files[0];
    assert_eq!((first.size, first.mime_type), (5, Some("text/plain")));
    assert_eq!(list(&root.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_listing_is_bounded() {
    let root = TempDir::new("bounded");
    for path in ["a/1", "a/2", "b", "c/3"] {
        root.write(path, "");
    }
    let listing = list_at_most(root.path(), 3, 100).unwrap();
    assert_eq!((names(&listing), listing.extent), (vec!["a/1", "a/2", "b"], Extent::Part));
    let listing = list_at_most(root.path(), 4, 100).unwrap();
    assert_eq!((listing.files.len(), listing.extent), (4, Extent::Whole));
    // Three names at the top, two in `a`: none is left for `c`.
    let listing = list_at_most(root.path(), 100, 5).unwrap();
    assert_eq!((names(&listing), listing.extent), (vec!["a/1", "a/2", "b"], Extent::Part));
}

#[test]
fn what_is_text_is_read_as_text() {
    let root = TempDir::new("read");
    let image = [0x89, b'P', b'N', b'G'];
    root.write("a.MD", "# é");
    root.write("b.png", image);
    root.write("text.png", "text");
    root.write("unknown", "words");
    root.write("raw", image);
    root.write("broken.json", image);
    let text = |text: &str, mime_type| Contents::Text { text: text.to_owned(), mime_type };
    let bytes = |bytes: &[u8], mime_type| Contents::Bytes { bytes: bytes.to_vec(), mime_type };
    for (path, expected) in [
        ("a.MD", text("# é", "text/markdown")),
        ("b.png", bytes(&image, "image/png")),
        ("text.png", bytes(b"text", "image/png")),
        ("unknown", text("words", "text/plain")),
        ("raw", bytes(&image, BYTES)),
        ("broken.json", bytes(&image, "application/json")),
    ] {
        assert_eq!(read_at(root.path(), path).unwrap(), expected, "{path}");
    }
}

#[test]
fn a_file_may_be_as_long_as_the_limit() {
    let root = TempDir::new("limit");
    root.write("a", "12345");
    let path = SafePath::new("a").unwrap();
    assert!(read(root.path(), &path, 5).is_ok());
    assert_eq!(read(root.path(), &path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn what_is_hidden_or_no_file_is_not_found() {
    let root = TempDir::new("hidden");
    root.write(".env", "secret");
    root.write(".git/config", "secret");
    root.write("a/b", "");
    for path in [".env", ".git/config", "a", "none", "a/b/c"] {
        let kind = read_at(root.path(), path).unwrap_err().kind();
        let expected = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        assert!(expected.contains(&kind), "{path}: {kind}");
    }
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_only() {
    use std::os::unix::fs::symlink;

    let outside = TempDir::new("outside");
    outside.write("secret", "s");
    let root = TempDir::new("links");
    root.write("a/b.txt", "b");
    root.write(".env", "secret");
    let at = |name: &str| root.path().join(name);
    symlink("a/b.txt", at("inside")).unwrap();
    symlink(outside.path().join("secret"), at("file-out")).unwrap();
    symlink(outside.path(), at("out")).unwrap();
    symlink(".", at("loop")).unwrap();
    symlink(".env", at("env")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(names(&list(root.path()).unwrap()), ["a/b.txt", "inside"]);
    assert!(read_at(root.path(), "inside").is_ok());
    for path in ["file-out", "out/secret", "env", "dangling", "loop", "pipe"] {
        let kind = read_at(root.path(), path).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::NotFound, "{path}");
    }
}
