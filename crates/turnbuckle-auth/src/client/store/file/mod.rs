//! Grants in files that only their owner can read, and locks that die with their process.
//!
//! One key has up to three files, named by its digest: the record, `.lock` (held for the moment of
//! a swap) and `.lease` (held while someone renews). The last two are never deleted: whoever waits
//! for a lock would then hold another file's.

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use zeroize::Zeroizing;

use super::{
    GrantStore, Lease, StoreFuture, StoreKey, Stored, Swap, Version, failed,
    shelf::{Shelf, open, replace},
    thread::apart,
};
use crate::{AuthError, Secret};

/// The longest file that is read.
const LIMIT: u64 = 1 << 20;

/// Keeps each grant in a file of a directory.
///
/// Directory and files can be read by their owner only (modes 0700 and 0600), and a directory or a
/// file that others can read is refused. On Windows the permissions of the user's own folder hold.
/// Files are replaced, never changed: a reader sees the old one or the new one.
///
/// ```
/// use turnbuckle_auth::FileStore;
/// let store = FileStore::at("/home/me/.grants");
/// assert_eq!(store.directory().to_str(), Some("/home/me/.grants"));
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    /// In the user's own directory for data: `turnbuckle/grants` under `$XDG_DATA_HOME` or
    /// `~/.local/share`, `~/Library/Application Support` on macOS, `%LOCALAPPDATA%` on Windows.
    pub fn new() -> Result<FileStore, AuthError> {
        let data = data_directory(|name| env::var_os(name).map(PathBuf::from));
        let data = data.ok_or_else(|| failed("there is no home directory to keep grants in"))?;
        Ok(FileStore::at(data.join("turnbuckle").join("grants")))
    }

    /// In this directory, which is made when it is first written to.
    pub fn at(directory: impl Into<PathBuf>) -> FileStore {
        FileStore { directory: directory.into() }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn record(&self, key: &StoreKey) -> PathBuf {
        self.directory.join(key.digest())
    }

    /// Takes the lock that guards a swap. Blocks.
    pub(super) fn lock(&self, key: &StoreKey) -> Result<File, AuthError> {
        self.locked(key, "lock")
    }

    fn locked(&self, key: &StoreKey, kind: &str) -> Result<File, AuthError> {
        self.prepare()?;
        let path = self.record(key).with_extension(kind);
        let file = private(OpenOptions::new().write(true).create(true).truncate(false))
            .open(&path)
            .map_err(|error| about(&path, "can't be opened", &error))?;
        fs4::FileExt::lock(&file).map_err(|error| about(&path, "can't be locked", &error))?;
        Ok(file)
    }

    /// Has the file system write down what the directory's files are called. What is written is
    /// written without it, unless the machine stops just then.
    fn sync_directory(&self) {
        #[cfg(unix)]
        if let Err(error) = File::open(&self.directory).and_then(|it| it.sync_all()) {
            tracing::debug!(%error, "the directory of the grants could not be synced");
        }
    }

    /// Makes the directory, and sees that it is private.
    fn prepare(&self) -> Result<(), AuthError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let made = builder.create(&self.directory);
        made.map_err(|error| about(&self.directory, "can't be made", &error))?;
        let metadata = fs::metadata(&self.directory);
        let metadata = metadata.map_err(|error| about(&self.directory, "can't be seen", &error))?;
        owners_only(&self.directory, &metadata)
    }
}

impl Shelf for FileStore {
    fn read(&self, key: &StoreKey) -> Result<Option<Stored>, AuthError> {
        let path = self.record(key);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(about(&path, "can't be opened", &error)),
        };
        let unread = |error: io::Error| about(&path, "can't be read", &error);
        let metadata = file.metadata().map_err(unread)?;
        owners_only(&path, &metadata)?;
        if metadata.len() > LIMIT {
            return Err(failed(format!("{} is too long to be a grant", path.display())));
        }
        // Made as long as the file, so that no copy is left behind by growing.
        let length = usize::try_from(metadata.len()).unwrap_or_default();
        let mut text = Zeroizing::new(String::with_capacity(length + 1));
        (&file).take(LIMIT).read_to_string(&mut text).map_err(unread)?;
        let (version, record) = open(&text)
            .ok_or_else(|| failed(format!("{} holds no grant; delete it", path.display())))?;
        Ok(Some(Stored { version, record }))
    }

    fn write(&self, key: &StoreKey, text: &Secret) -> Result<(), AuthError> {
        let path = self.record(key);
        if text.expose().len() as u64 > LIMIT {
            return Err(failed("a grant is too long to be kept"));
        }
        // One name is enough: only the holder of the lock writes it. What is there is the rest of
        // a process that died.
        let temporary = path.with_extension("new");
        let unwritten = |error: io::Error| about(&temporary, "can't be written", &error);
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritten(error)),
            _ => {}
        }
        let mut file = private(OpenOptions::new().write(true).create_new(true))
            .open(&temporary)
            .map_err(unwritten)?;
        let written = file.write_all(text.expose().as_bytes()).and_then(|()| file.sync_all());
        drop(file);
        let renamed = written.and_then(|()| fs::rename(&temporary, &path));
        renamed.map_err(|error| {
            // Nothing secret stays behind; that this may fail too changes nothing.
            let _ = fs::remove_file(&temporary);
            unwritten(error)
        })?;
        self.sync_directory();
        Ok(())
    }

    fn delete(&self, key: &StoreKey) -> Result<(), AuthError> {
        let path = self.record(key);
        fs::remove_file(&path).map_err(|error| about(&path, "can't be deleted", &error))?;
        self.sync_directory();
        Ok(())
    }
}

impl GrantStore for FileStore {
    fn load(&self, key: &StoreKey) -> StoreFuture<'_, Option<Stored>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(apart(move || match fs::metadata(&store.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(about(&store.directory, "can't be seen", &error)),
            Ok(metadata) => {
                owners_only(&store.directory, &metadata)?;
                store.read(&key)
            }
        }))
    }

    fn swap(
        &self,
        key: &StoreKey,
        expected: Option<Version>,
        record: Option<Secret>,
    ) -> StoreFuture<'_, Swap> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(apart(move || {
            let _lock = store.lock(&key)?;
            replace(&store, &key, expected.as_ref(), record.as_ref())
        }))
    }

    /// Held by a lock of the system's, which ends with the process: `longest` is not needed.
    fn lease(&self, key: &StoreKey, _longest: Duration) -> StoreFuture<'_, Lease> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(apart(move || store.locked(&key, "lease").map(Lease::new)))
    }
}

fn data_directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // The XDG base directory specification: what is not absolute is to be ignored.
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return absolute("LOCALAPPDATA");
    }
    absolute("XDG_DATA_HOME").or_else(|| {
        let under =
            if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
        absolute("HOME").map(|home| home.join(under))
    })
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(unix)]
fn owners_only(path: &Path, metadata: &fs::Metadata) -> Result<(), AuthError> {
    let mode = std::os::unix::fs::MetadataExt::mode(metadata) & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(failed(format!(
        "{path} holds secrets and is open to others (mode {mode:o}): `chmod go= {path}`"
    )))
}

#[cfg(not(unix))]
fn owners_only(_: &Path, _: &fs::Metadata) -> Result<(), AuthError> {
    Ok(())
}

fn about(path: &Path, what: &str, error: &io::Error) -> AuthError {
    failed(format!("{} {what}: {error}", path.display()))
}

#[cfg(all(test, unix))]
mod tests;
