//! Against a real secret service, on a bus of its own.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use super::*;
use crate::{AuthErrorKind, client::store::contract};

/// Set in the process that has the bus in its environment.
const ROLE: &str = "TURNBUCKLE_TEST_KEYRING";
const PLACE: &str = "TURNBUCKLE_TEST_KEYRING_PLACE";

/// A bus, and a keyring on it; both end with the test.
struct Service {
    place: PathBuf,
    address: String,
    running: Vec<Child>,
}

impl Service {
    fn start() -> Service {
        let name = format!("turnbuckle-keyring-{}", std::process::id());
        let place = env::temp_dir().join(name);
        fs::create_dir_all(place.join("run")).unwrap();
        let mut service = Service { place, address: String::new(), running: Vec::new() };
        let bus = ["--session", "--print-address", "--nofork"];
        let mut said = service.spawn("dbus-daemon", &bus);
        said.read_line(&mut service.address).unwrap();
        service.address = service.address.trim().to_owned();
        assert!(!service.address.is_empty(), "dbus-daemon ended before it said where it is");
        let keyring = ["--foreground", "--unlock", "--components=secrets"];
        // It closes its output when it has begun.
        let mut said = service.spawn("gnome-keyring-daemon", &keyring);
        said.read_to_string(&mut String::new()).unwrap();
        assert!((0..1_000).any(|_| service.is_there()), "gnome-keyring-daemon is not on the bus");
        service
    }

    fn spawn(&mut self, program: &str, arguments: &[&str]) -> BufReader<ChildStdout> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        let mut child =
            private(&mut command, &self.place, &self.address).spawn().unwrap_or_else(|error| {
                panic!("{program}: {error}; `apt-get install dbus gnome-keyring` installs it")
            });
        // The keyring's password: an empty line. Without one it would make no keyring.
        let _ = child.stdin.take().unwrap().write_all(b"\n");
        let said = child.stdout.take().unwrap();
        self.running.push(child);
        BufReader::new(said)
    }

    /// Whether someone on the bus is the secret service.
    fn is_there(&self) -> bool {
        let mut command = Command::new("dbus-send");
        command.args(["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/"]);
        command.args(["org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"]);
        let output = private(&mut command, &self.place, &self.address).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("boolean true")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for child in self.running.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// Nothing of the user's own: neither home, nor bus, nor display.
fn private<'a>(command: &'a mut Command, place: &Path, address: &str) -> &'a mut Command {
    for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        command.env(name, place);
    }
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command.env("XDG_RUNTIME_DIR", place.join("run"));
    match address {
        "" => command.env_remove("DBUS_SESSION_BUS_ADDRESS"),
        address => command.env("DBUS_SESSION_BUS_ADDRESS", address),
    }
}

/// Once more in a process with the bus at `address` in its environment.
fn again(role: &str, test: &str, place: &Path, address: &str) {
    let mut command = Command::new(env::current_exe().unwrap());
    let name = format!("client::store::keyring::tests::{test}");
    command.args(["--exact", "--nocapture", &name]).env(ROLE, role).env(PLACE, place);
    let output = private(&mut command, place, address).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{role}: {said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{test} did not run");
}

/// What this process is to do, and with which store, if it is not the first.
fn role() -> Option<(String, KeyringStore)> {
    let role = env::var(ROLE).ok()?;
    let locks = FileStore::at(Path::new(&env::var_os(PLACE)?).join("locks"));
    Some((role, KeyringStore::named("turnbuckle-test", locks)))
}

fn key() -> StoreKey {
    StoreKey::grant("https://kept.example.com/mcp")
}

#[tokio::test]
async fn keeps_the_contract_of_stores() {
    match role() {
        None => {
            let service = Service::start();
            for role in ["keep", "find"] {
                again(role, "keeps_the_contract_of_stores", &service.place, &service.address);
            }
            // The keyring has it; no file does.
            for file in fs::read_dir(service.place.join("locks")).unwrap() {
                assert_eq!(file.unwrap().metadata().unwrap().len(), 0);
            }
        }
        Some((role, store)) if role == "keep" => {
            contract::holds(&store, &store.clone()).await;
            let record = Some(Secret::new("kept ".repeat(10_000)));
            assert!(matches!(store.swap(&key(), None, record).await.unwrap(), Swap::Done(_)));
        }
        Some((_, store)) => find(&store).await,
    }
}

/// What another process kept.
async fn find(store: &KeyringStore) {
    let stored = store.load(&key()).await.unwrap().unwrap();
    assert_eq!(stored.record.expose(), "kept ".repeat(10_000));
    let swap = store.swap(&key(), Some(stored.version), None).await.unwrap();
    assert!(matches!(swap, Swap::Done(_)));
    assert!(store.load(&key()).await.unwrap().is_none());

    // What somebody else put there is no grant, and is not shown.
    let digest = key().digest();
    let put = move || {
        let entry = keyring::Entry::new("turnbuckle-test", &digest).unwrap();
        entry.set_password("s3cr3t").unwrap();
        Ok(())
    };
    apart(put).await.unwrap();
    let error = store.load(&key()).await.map(|_| ()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
}

#[tokio::test]
async fn without_a_keyring_there_is_an_error_and_no_file_instead() {
    if let Some((_, store)) = role() {
        let error = store.load(&key()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Store);
        let record = Some(Secret::new("s3cr3t"));
        assert!(store.swap(&key(), None, record).await.is_err());
        return;
    }
    let place = env::temp_dir().join(format!("turnbuckle-no-keyring-{}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    let nowhere = format!("unix:path={}/none", place.display());
    let test = "without_a_keyring_there_is_an_error_and_no_file_instead";
    again("fail", test, &place, &nowhere);
    fs::remove_dir_all(&place).unwrap();
}
