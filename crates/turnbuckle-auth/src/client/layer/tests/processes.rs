//! Two real processes that share a store, and a provider that both can reach: its state is
//! files too.

use std::{
    env,
    fs::{self, File},
    io::{BufRead as _, BufReader, Lines, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};

use http::Response;
use serde_json::json;

use super::*;
use crate::{
    Endpoints, FileStore, Lease, RegisteredBy, Rules, Scheme, Secret, StoreFuture, Stored, Swap,
    Tokens, Version,
};

const PLACE: &str = "TURNBUCKLE_TEST_TWO_PROCESSES";

/// Rotates a refresh token, and writes down each time that one is used.
struct Rotating(PathBuf);

impl Rotating {
    fn rotate(&self, used: &str) -> (u16, serde_json::Value) {
        let lock = File::create(self.0.join("provider.lock")).unwrap();
        lock.lock().unwrap();
        let mut log = File::options().append(true).create(true).open(self.0.join("log")).unwrap();
        writeln!(log, "{used}").unwrap();
        let times = fs::read_to_string(self.0.join("log")).unwrap().lines().count();
        if used != format!("refresh-{}", times - 1) {
            return (400, json!({"error": "invalid_grant"}));
        }
        let body = json!({
            "access_token": format!("access-{times}"), "token_type": "Bearer",
            "refresh_token": format!("refresh-{times}"), "expires_in": 3600,
        });
        (200, body)
    }
}

impl Fetch for Rotating {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        _: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        let used = url::form_urlencoded::parse(request.body())
            .find(|(name, _)| name == "refresh_token")
            .map(|(_, token)| token.into_owned());
        let (status, body) = self.rotate(&used.unwrap_or_default());
        let response =
            Response::builder().status(status).header("content-type", "application/json");
        let response = response.body(body.to_string().into()).unwrap();
        Box::pin(async move { Ok(response) })
    }
}

/// A server that takes the first renewed token only.
#[derive(Clone)]
struct Second;

impl Service<Request<Bytes>> for Second {
    type Response = Response<Bytes>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Response<Bytes>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let good = request.headers().get("authorization").is_some_and(|it| it == "Bearer access-1");
        let status = if good { 200 } else { 401 };
        std::future::ready(Ok(Response::builder().status(status).body(Bytes::new()).unwrap()))
    }
}

fn grant() -> Grant {
    Grant {
        issuer: "https://auth.example.com".to_owned(),
        resource: Some(SERVER.to_owned()),
        scopes: Scopes::none(),
        registration: Registration::public("client", RegisteredBy::Beforehand),
        tokens: Some(Tokens {
            access: Secret::new("access-0"),
            scheme: Scheme::Bearer,
            refresh: Some(Secret::new("refresh-0")),
            expires_at: Some(1),
            granted: None,
        }),
        endpoints: Endpoints {
            authorize: None,
            token: "https://auth.example.com/token".to_owned(),
        },
        proof_key: None,
    }
}

/// Says when a lease is asked for: whoever does so has found out that the old token is no good.
struct Telling<S>(S);

impl<S: crate::GrantStore> crate::GrantStore for Telling<S> {
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

/// One of two processes: knows the old token, waits for the start, and then calls eight times at once.
async fn eight_calls(place: &Path, store: impl crate::GrantStore + 'static) {
    if store.load(&StoreKey::grant(SERVER)).await.unwrap().is_none() {
        let swap = store.swap(&StoreKey::grant(SERVER), None, Some(grant().to_record())).await;
        assert!(matches!(swap.unwrap(), Swap::Done(_)));
    }
    let auth = Auth::with(Settings::default()).store(Telling(store));
    let layer = AuthLayer::new(auth, SERVER, Arc::new(Rotating(place.to_owned()))).unwrap();
    assert!(layer.session.shown().await.unwrap() == Some(Secret::new("access-0")));
    eprintln!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let request = Request::post(SERVER).body(Bytes::new()).unwrap();
            tokio::spawn(layer.layer(Second).call(request))
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), StatusCode::OK);
    }
}

/// This test in another process.
struct Process {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Process {
    fn start(test: &str, place: &Path, change: impl FnOnce(&mut Command)) -> Process {
        let mut command = Command::new(env::current_exe().unwrap());
        let name = format!("client::layer::tests::processes::{test}");
        command.args(["--exact", "--nocapture", &name]).env(PLACE, place);
        change(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        Process { child, said }
    }

    fn hear(&mut self, word: &str) {
        let mut before = Vec::new();
        for line in self.said.by_ref().map_while(Result::ok) {
            if line.contains(word) {
                return;
            }
            before.push(line);
        }
        panic!("it never said `{word}`, but {before:?}");
    }

    fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn succeeds(mut self) {
        let rest: Vec<_> = self.said.by_ref().map_while(Result::ok).collect();
        assert!(self.child.wait().unwrap().success(), "{rest:?}");
    }
}

/// Runs a test in two processes at once. No token is given before both want one.
fn twice(test: &str, place: &Path, change: impl Fn(&mut Command)) {
    let mut processes = Vec::new();
    for _ in 0..2 {
        processes.push(Process::start(test, place, &change));
        processes.last_mut().unwrap().hear("ready");
    }
    let held = File::create(place.join("provider.lock")).unwrap();
    held.lock().unwrap();
    processes.iter_mut().for_each(Process::go);
    processes.iter_mut().for_each(|process| process.hear("leases"));
    drop(held);
    processes.into_iter().for_each(Process::succeeds);
    assert_eq!(fs::read_to_string(place.join("log")).unwrap(), "refresh-0\n");
}

#[tokio::test]
async fn eight_tasks_in_each_of_two_processes_renew_once() {
    let here = env::var_os(PLACE).map(PathBuf::from);
    if let Some(place) = here {
        return eight_calls(&place, FileStore::at(place.join("grants"))).await;
    }
    let place = env::temp_dir().join(format!("turnbuckle-two-{}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    twice("eight_tasks_in_each_of_two_processes_renew_once", &place, |_| {});
    fs::remove_dir_all(&place).unwrap();
}

/// In a real secret service, on a bus of its own.
#[cfg(all(feature = "keyring", target_os = "linux"))]
#[tokio::test]
async fn two_processes_renew_once_what_a_keyring_keeps() {
    let here = env::var_os(PLACE).map(PathBuf::from);
    if let Some(place) = here {
        let store =
            crate::KeyringStore::named("turnbuckle-two", FileStore::at(place.join("locks")));
        return eight_calls(&place, store).await;
    }
    use crate::client::store::keyring::bus;
    let service = bus::Service::start();
    let (place, address) = (&service.place, &service.address);
    twice("two_processes_renew_once_what_a_keyring_keeps", place, |command| {
        bus::private(command, place, address);
    });
}
