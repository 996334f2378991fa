//! Two real processes that share a file store, and a provider that both can reach: its state is
//! files too.

use std::{
    env,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use http::Response;
use serde_json::json;

use super::*;
use crate::{
    Endpoints, FileStore, RegisteredBy, Rules, Scheme, Secret, Tokens, client::store::Swap,
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

/// Knows the old token, waits for the start, and then calls eight times at once.
async fn eight_calls(place: &Path, start: impl FnOnce()) {
    let auth = Auth::with(Settings::default()).store(FileStore::at(place.join("grants")));
    let layer = AuthLayer::new(auth, SERVER, Arc::new(Rotating(place.to_owned()))).unwrap();
    assert!(layer.session.shown().await.unwrap() == Some(Secret::new("access-0")));
    start();
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

fn second_process(place: &Path) -> Child {
    let test = "client::layer::tests::processes::eight_tasks_in_each_of_two_processes_renew_once";
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "--nocapture", test])
        .env(PLACE, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn eight_tasks_in_each_of_two_processes_renew_once() {
    if let Some(place) = env::var_os(PLACE) {
        let start = || {
            eprintln!("ready");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        };
        return eight_calls(Path::new(&place), start).await;
    }
    let place = env::temp_dir().join(format!("turnbuckle-two-{}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    let store = FileStore::at(place.join("grants"));
    let swap = store.swap(&StoreKey::grant(SERVER), None, Some(grant().to_record())).await;
    assert!(matches!(swap.unwrap(), Swap::Done(_)));

    let mut child = second_process(&place);
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said.by_ref().map_while(Result::ok).any(|line| line.contains("ready")));
    let mut stdin = child.stdin.take().unwrap();
    eight_calls(&place, move || stdin.write_all(b"\n").unwrap()).await;
    let rest: Vec<_> = said.map_while(Result::ok).collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert_eq!(fs::read_to_string(place.join("log")).unwrap(), "refresh-0\n");
    fs::remove_dir_all(&place).unwrap();
}
