//! Two processes with eight tasks each, one store, and a refresh token that is good once.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};

use turnbuckle::auth::{
    Auth, FileStore, Grant, GrantStore, Lease, Secret, Settings, StoreFuture, StoreKey, Stored,
    Swap, Version,
    testing::{Endpoint, Fault},
};

use crate::world::{MODERN, Watch, World, connect, said};

const PLACE: &str = "TURNBUCKLE_TEST_RENEWING_PROCESS";
const SERVER: &str = "TURNBUCKLE_TEST_RENEWING_SERVER";
const KNOWS: &str = "TURNBUCKLE_TEST_RENEWING_KNOWS";
const TEST: &str = "processes::eight_tasks_in_each_of_two_processes_refresh_once";

const TWO_HOURS: u64 = 2 * 3600;
const TASKS: usize = 8;

/// A directory that goes away with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process with a client that has the token, and waits for the start.
struct Other {
    child: Child,
    said: std::io::Lines<BufReader<ChildStderr>>,
}

impl Other {
    fn start(place: &Path, server: &str, knows: &str) -> Other {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", TEST])
            .env(PLACE, place)
            .env(SERVER, server)
            .env(KNOWS, knows)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        Other { child, said }
    }

    fn hears(mut self, word: &'static str) -> Other {
        let heard: Vec<String> = self.said.by_ref().map_while(Result::ok).collect_until(word);
        assert!(heard.last().is_some_and(|line| line.contains(word)), "{heard:?}");
        self
    }

    fn tell(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn succeeds(mut self) {
        let rest: Vec<_> = self.said.by_ref().map_while(Result::ok).collect();
        assert!(self.child.wait().unwrap().success(), "{rest:?}");
    }
}

trait CollectUntil: Iterator<Item = String> + Sized {
    /// Up to the line with this word in it.
    fn collect_until(self, word: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for line in self {
            lines.push(line);
            if lines.last().is_some_and(|line| line.contains(word)) {
                break;
            }
        }
        lines
    }
}

impl<I: Iterator<Item = String>> CollectUntil for I {}

/// Says when a lease is asked for: whoever does so has found out that the old token is no good.
struct Telling(FileStore);

impl GrantStore for Telling {
    fn load(&self, key: &StoreKey) -> StoreFuture<'_, Option<Stored>> {
        self.0.load(key)
    }

    fn swap(
        &self,
        key: &StoreKey,
        expected: Option<Version>,
        record: Option<Secret>,
    ) -> StoreFuture<'_, Swap> {
        self.0.swap(key, expected, record)
    }

    fn lease(&self, key: &StoreKey, longest: Duration) -> StoreFuture<'_, Lease> {
        eprintln!("leases");
        self.0.lease(key, longest)
    }
}

fn wait_for_a_line() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// What each of the two processes does.
async fn eight_calls(place: &Path) {
    let (url, knows) = (env::var(SERVER).unwrap(), env::var(KNOWS).unwrap());
    let clock = Watch::default();
    let store = Telling(FileStore::at(place));
    let auth = Auth::with(Settings::default()).store(store).clock(clock.clone());
    let client = connect(&url, auth, MODERN).await.unwrap();
    assert_eq!(said(&client).await.unwrap(), "hello");
    eprintln!("ready");
    tokio::task::spawn_blocking(wait_for_a_line).await.unwrap();
    if knows == "itself" {
        clock.forward(TWO_HOURS);
    }
    let calls: Vec<_> = (0..TASKS)
        .map(|_| client.clone())
        .map(|client| tokio::spawn(async move { said(&client).await }))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "hello");
    }
}

async fn kept(store: &FileStore, url: &str) -> Secret {
    let stored = store.load(&StoreKey::grant(url)).await.unwrap().unwrap();
    Grant::from_record(&stored.record).unwrap().tokens.unwrap().refresh.unwrap()
}

async fn apart<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(act).await.unwrap()
}

// req: client-auth:refresh:transparent, client-auth:refresh:rotation-handling
#[tokio::test(flavor = "multi_thread")]
async fn eight_tasks_in_each_of_two_processes_refresh_once() {
    if let Some(place) = env::var_os(PLACE) {
        return eight_calls(Path::new(&place)).await;
    }
    for knows in ["itself", "by refusal"] {
        let name = format!("turnbuckle-renewing-{}", std::process::id());
        let folder = Folder(env::temp_dir().join(name));
        let (world, store) = (World::new().await, FileStore::at(&folder.0));
        let auth = world.auth().store(store.clone()).clock(world.clock.clone());
        let own = world.client(auth).await;
        assert_eq!(said(&own).await.unwrap(), "hello");
        let before = kept(&store, &world.url).await;

        let mut others = Vec::new();
        for _ in 0..2 {
            let other = Other::start(&folder.0, &world.url, knows);
            others.push(apart(move || other.hears("ready")).await);
        }
        assert_eq!(world.asked()[2], 1);
        world.clock.forward(TWO_HOURS);
        // Nobody's renewal is over before everyone has begun theirs.
        world.provider.fail(Endpoint::Token, Fault::Held);
        others.iter_mut().for_each(Other::tell);
        for other in std::mem::take(&mut others) {
            others.push(apart(move || other.hears("leases")).await);
        }
        world.provider.requested(Endpoint::Token, 2).await;
        if knows != "itself" {
            world.has_answered(401, 1 + 2 * TASKS).await;
        }
        world.provider.heal();
        for other in others {
            apart(move || other.succeeds()).await;
        }
        assert_eq!((world.asked()[2], world.person.logins()), (2, 1), "{knows}");

        // What is kept is the one that was given, and it is good for the next time.
        let after = kept(&store, &world.url).await;
        assert!(after != before, "{knows}: the old one is kept");
        world.clock.forward(TWO_HOURS);
        assert_eq!(said(&own).await.unwrap(), "hello");
        assert_eq!((world.asked()[2], world.person.logins()), (3, 1), "{knows}");
        assert!(kept(&store, &world.url).await != after);
    }
}
