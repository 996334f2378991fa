//! Tests of files as a store.

use std::{
    env,
    io::{BufRead as _, BufReader},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use super::*;
use crate::{AuthErrorKind, client::store::contract};

const LONGEST: Duration = Duration::from_secs(60);

/// A directory that goes away with the test.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnbuckle-grants-{}-{number}", std::process::id());
        Place(env::temp_dir().join(name))
    }

    fn store(&self) -> FileStore {
        FileStore::at(self.0.join("grants"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key() -> StoreKey {
    StoreKey::grant("https://mcp.example.com/mcp")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

async fn written(store: &FileStore, text: &str) -> Version {
    match store.swap(&key(), None, Some(Secret::new(text))).await.unwrap() {
        Swap::Done(version) => version,
        Swap::Conflict => panic!("something was there"),
    }
}

#[tokio::test]
async fn keeps_the_contract_of_stores() {
    let place = Place::new();
    contract::holds(&place.store(), &place.store()).await;
}

#[tokio::test]
async fn only_its_owner_can_read_what_it_writes() {
    let place = Place::new();
    let store = place.store();
    written(&store, "s3cr3t").await;
    drop(store.lease(&key(), LONGEST).await.unwrap());
    assert_eq!(mode(&place.0), 0o700);
    assert_eq!(mode(store.directory()), 0o700);
    let mut files = 0;
    for entry in fs::read_dir(store.directory()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        assert!(!path.to_str().unwrap().contains("example"), "a name tells the server");
        files += 1;
    }
    assert_eq!(files, 3, "record, lock and lease");
}

#[tokio::test]
async fn what_others_can_read_is_refused() {
    let place = Place::new();
    let store = place.store();
    let version = written(&store, "s3cr3t").await;
    let record = store.directory().join(key().digest());
    for (path, open, closed) in [(store.directory(), 0o750, 0o700), (&*record, 0o604, 0o600)] {
        fs::set_permissions(path, fs::Permissions::from_mode(open)).unwrap();
        let swapped = store.swap(&key(), Some(version.clone()), None).await.unwrap_err();
        let loaded = store.load(&key()).await.map(|_| ()).unwrap_err();
        for error in [swapped, loaded] {
            assert_eq!(error.kind(), AuthErrorKind::Store);
            assert!(error.to_string().contains("open to others"), "{error}");
            assert!(!error.to_string().contains("s3cr3t"));
        }
        fs::set_permissions(path, fs::Permissions::from_mode(closed)).unwrap();
    }
    assert!(store.load(&key()).await.unwrap().is_some());
}

#[tokio::test]
async fn nonsense_is_an_error_that_shows_nothing_and_the_rest_of_a_dead_writer_is_none() {
    let place = Place::new();
    let store = place.store();
    let version = written(&store, "first").await;
    let record = store.directory().join(key().digest());
    fs::write(record.with_extension("new"), "half of s3cr3t").unwrap();
    let swap = store.swap(&key(), Some(version), Some(Secret::new("second"))).await.unwrap();
    assert!(matches!(swap, Swap::Done(_)));
    assert!(!record.with_extension("new").exists());
    let stored = store.load(&key()).await.unwrap().unwrap();
    assert_eq!(stored.record.expose(), "second");

    for nonsense in ["s3cr3t without version", "short\ns3cr3t", ""] {
        fs::write(&record, nonsense).unwrap();
        let error = store.load(&key()).await.map(|_| ()).unwrap_err();
        assert!(!error.to_string().contains("s3cr3t"), "{error}");
    }
    File::options().write(true).open(&record).unwrap().set_len(LIMIT + 1).unwrap();
    assert!(store.load(&key()).await.is_err());
}

#[tokio::test]
async fn a_read_makes_nothing() {
    let place = Place::new();
    assert!(place.store().load(&key()).await.unwrap().is_none());
    assert!(!place.0.exists());
}

#[test]
fn the_directory_is_the_platforms() {
    let with = |pairs: &'static [(&str, &str)]| {
        data_directory(move |name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
        })
    };
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[("HOME", "relative")]), None);
    let home: &[_] = &[("HOME", "/home/me"), ("XDG_DATA_HOME", "relative")];
    let under =
        if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    assert_eq!(with(home), Some(Path::new("/home/me").join(under)));
    let chosen = with(&[("HOME", "/home/me"), ("XDG_DATA_HOME", "/data")]);
    assert_eq!(chosen, Some(PathBuf::from("/data")));
}

/// Set in the second process: what it does, and where.
const ROLE: &str = "TURNBUCKLE_TEST_SECOND_PROCESS";

/// This test once more, in a process of its own.
fn second_process(test: &str, place: &Place) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "--nocapture", &format!("client::store::file::tests::{test}")])
        .env(ROLE, &place.0)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The place of the first process, if this is the second.
fn role() -> Option<FileStore> {
    env::var_os(ROLE).map(|place| FileStore::at(Path::new(&place).join("grants")))
}

/// Reads a number and writes the next, as whoever renews a grant does.
async fn count(store: &FileStore, times: u32) {
    for _ in 0..times {
        let _lease = store.lease(&key(), LONGEST).await.unwrap();
        let stored = store.load(&key()).await.unwrap();
        let number = stored.as_ref().map_or(0, |stored| stored.record.expose().parse().unwrap());
        let next = Secret::new(format!("{}", number + 1_u32));
        let swap = store.swap(&key(), stored.map(|stored| stored.version), Some(next));
        assert!(matches!(swap.await.unwrap(), Swap::Done(_)), "someone wrote during a lease");
    }
}

#[tokio::test]
async fn two_processes_take_turns() {
    if let Some(store) = role() {
        return count(&store, 100).await;
    }
    let place = Place::new();
    let child = second_process("two_processes_take_turns", &place);
    let store = place.store();
    // Two tasks here and one process there.
    tokio::join!(count(&store, 50), count(&store, 50));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stored = store.load(&key()).await.unwrap().unwrap();
    assert_eq!(stored.record.expose(), "200");
}

#[tokio::test]
async fn a_process_that_dies_loses_its_lease() {
    if let Some(store) = role() {
        let _lease = store.lease(&key(), LONGEST).await.unwrap();
        eprintln!("held");
        // Until it is killed, or the first process is gone.
        let _ = io::stdin().read_line(&mut String::new());
        return;
    }
    let place = Place::new();
    let mut child = second_process("a_process_that_dies_loses_its_lease", &place);
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said.map_while(Result::ok).any(|line| line.contains("held")));

    let store = place.store();
    let lease = File::open(store.record(&key()).with_extension("lease")).unwrap();
    assert!(matches!(lease.try_lock(), Err(fs::TryLockError::WouldBlock)));
    let waiting = tokio::spawn(async move { store.lease(&key(), LONGEST).await });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(waiting.await.unwrap().is_ok());
}
