//! Against a real secret service, on a bus of its own.

use std::{env, fs, path::Path, process::Command};

use super::{
    bus::{Service, private},
    *,
};
use crate::{AuthErrorKind, client::store::contract};

/// Set in the process that has the bus in its environment.
const ROLE: &str = "TURNBUCKLE_TEST_KEYRING";
const PLACE: &str = "TURNBUCKLE_TEST_KEYRING_PLACE";

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
