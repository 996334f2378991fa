//! Owns: what is checked of our client and our protected servers, with the provider between them.
//! Does not own: who they are.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use turnbuckle::{
    Client, ErrorKind,
    auth::{
        Auth, Clock as _, LoggedOut, MemoryStore, Registered, RegisteredBy, Scheme, Secret,
        Settings, SystemClock, TokenAuth, Tokens, Way,
    },
};

use crate::world::{DOCUMENT, SECRET, Watch, World, said};

/// How long one check may take.
const ONE_CHECK: Duration = Duration::from_secs(20);

/// How long a client may take to say goodbye.
const CLOSING: Duration = Duration::from_secs(5);

type Checked = Result<(), String>;

/// Runs every check, and prints a line for each.
pub(crate) async fn run(world: World) {
    let connected = timed(connect(&world)).await;
    let is_connected = connected.is_ok();
    say("connect", connected);
    if is_connected {
        say("register", nothing(timed(register(&world)).await));
        say("document", nothing(timed(document(&world)).await));
        say("code", nothing(timed(code(&world)).await));
        say("audience", nothing(timed(audience(&world)).await));
        say("step-up", nothing(timed(step_up(&world)).await));
        say("renew", nothing(timed(renew(&world)).await));
        say("reuse", nothing(timed(reuse(&world)).await));
        say("dpop", nothing(timed(dpop(&world)).await));
        say("introspect", nothing(timed(introspect(&world)).await));
        say("secret", nothing(timed(secret(&world)).await));
        say("signature", nothing(timed(signature(&world)).await));
        say("log-out", nothing(timed(log_out(&world)).await));
        say("shutdown", nothing(timed(shut_down(&world)).await));
    }
}

async fn timed<T>(check: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    timeout(ONE_CHECK, check).await.unwrap_or_else(|_| Err("it took too long".to_owned()))
}

fn nothing(checked: Checked) -> Result<String, String> {
    checked.map(|()| String::new())
}

/// The detail of a connection is its revision.
fn say(check: &str, outcome: Result<String, String>) {
    let (outcome, detail) = match outcome {
        Ok(detail) => ("pass", detail),
        Err(detail) => ("fail", detail),
    };
    println!("{}", json!({ "check": check, "outcome": outcome, "detail": detail }));
}

/// A client that nobody told anything logs in when it is needed, and finds out what is spoken.
async fn connect(world: &World) -> Result<String, String> {
    let person = world.person();
    let client = world.connect("/mcp", person.auth()).await?;
    same("the tool", said(&client, "echo").await?, "hello".to_owned())?;
    let revision = client.revision().to_string();
    client.shutdown(CLOSING).await;
    same("logins", person.logins(), 1)?;
    Ok(revision)
}

/// It registers itself, once for each provider and not once for each server.
async fn register(world: &World) -> Checked {
    let (person, store) = (world.person(), MemoryStore::new());
    let before = world.seen().await?.len();
    for path in ["/mcp", "/other"] {
        let auth = person.handled().client_name("a client that registers").store(store.clone());
        let client = world.connect(path, auth).await?;
        said(&client, "echo").await?;
        let (grant, _) = world.grant(&store, path).await?;
        same("how it is known", grant.registration.origin, RegisteredBy::Dynamic)?;
        let me = format!("ada, with {}", grant.registration.client_id);
        same("who asks", said(&client, "whoami").await?, me)?;
    }
    let seen = world.seen().await?.split_off(before);
    let made = seen.iter().filter(|it| it["route"] == "registration").collect::<Vec<_>>();
    same("registrations", made.len(), 1)?;
    same("the status", &made[0]["status"], &json!(201))?;
    same("the name", &made[0]["name"], &json!("a client that registers"))
}

/// It needs no registration where it has a document.
async fn document(world: &World) -> Checked {
    let before = world.seen().await?.len();
    let name = world.at(DOCUMENT);
    let client = world.connect("/mcp", world.person().handled().document(&name)).await?;
    same("who asks", said(&client, "whoami").await?, format!("ada, with {name}"))?;
    let seen = world.seen().await?.split_off(before);
    same("registrations", count(&seen, &[("route", "registration")]), 0)
}

/// The code is asked for with a challenge, and code and token for this server.
async fn code(world: &World) -> Checked {
    let (person, store) = (world.person(), MemoryStore::new());
    let client = world.connect("/mcp", person.auth().store(store.clone())).await?;
    said(&client, "echo").await?;
    let (grant, _) = world.grant(&store, "/mcp").await?;
    let seen = world.seen_of(&grant).await?;
    let resource = world.at("/mcp");
    let asked = [
        ("route", "authorization"),
        ("challenge", "S256"),
        ("resource", resource.as_str()),
        ("scope", "offline_access read"),
    ];
    same("logins like that", count(&seen, &asked), 1)?;
    let given =
        [("route", "token"), ("grant", "authorization_code"), ("resource", resource.as_str())];
    same("tokens like that", count(&seen, &given), 1)?;
    same("tokens", count(&seen, &[("route", "token")]), 1)
}

/// A token that was made for one server lets nobody in at another.
async fn audience(world: &World) -> Checked {
    let (person, store) = (world.person(), MemoryStore::new());
    let client = world.connect("/other", person.auth().store(store.clone())).await?;
    said(&client, "echo").await?;
    let (_, tokens) = world.grant(&store, "/other").await?;
    refused(world, "/mcp", &tokens).await?;
    let shown = with_token(world, "/other", &tokens).await.map_err(|error| error.to_string())?;
    same("the tool", shown, "hello".to_owned())
}

/// Who needs more asks for more, and keeps what there was.
async fn step_up(world: &World) -> Checked {
    let (person, before) = (world.person(), world.seen().await?.len());
    let client = world.connect("/mcp", person.auth()).await?;
    said(&client, "echo").await?;
    for _ in 0..2 {
        same("the tool", said(&client, "write").await?, "hello".to_owned())?;
    }
    same("logins", person.logins(), 2)?;
    let seen = world.seen().await?.split_off(before);
    let scopes = seen.iter().filter(|it| it["route"] == "authorization");
    let last = scopes.filter_map(|it| it["scope"].as_str()).next_back().unwrap_or_default();
    let mut asked: Vec<&str> = last.split(' ').collect();
    asked.sort_unstable();
    same("the scopes", asked, vec!["offline_access", "read", "write"])
}

/// A token that has ended, unknown to the client, is renewed without a word; and what renews it
/// changes too.
async fn renew(world: &World) -> Checked {
    let (person, store) = (world.person(), MemoryStore::new());
    let watch = Watch::default();
    let auth = person.auth().store(store.clone()).clock(watch.clone());
    let client = world.connect("/brief", auth).await?;
    said(&client, "echo").await?;
    let (grant, first) = world.grant(&store, "/brief").await?;
    // Counted before the token ends: in a session the stream of the client may be the first to renew it.
    let renewals = [("route", "token"), ("grant", "refresh_token")];
    let before = count(&world.seen_of(&grant).await?, &renewals);
    watch.back(3600);
    end_of(&first).await?;
    same("the tool", said(&client, "echo").await?, "hello".to_owned())?;
    same("logins", person.logins(), 1)?;
    let (_, second) = world.grant(&store, "/brief").await?;
    if first.refresh.is_none() || first.refresh == second.refresh {
        return Err("what renews the token is the same as before".to_owned());
    }
    let after = count(&world.seen_of(&grant).await?, &renewals);
    same("that it was renewed", after > before, true)
}

/// What renewed a token once is refused, and with it goes all that came of it: the client is told
/// so, and logs in anew.
async fn reuse(world: &World) -> Checked {
    let (person, store) = (world.person(), MemoryStore::new());
    let auth = || person.auth().store(store.clone());
    world.log_in("/brief", auth()).await?;
    let (grant, first) = world.grant(&store, "/brief").await?;
    end_of(&first).await?;
    let client = world.connect("/brief", auth()).await?;
    said(&client, "echo").await?;
    let (_, second) = world.grant(&store, "/brief").await?;
    if first.refresh == second.refresh {
        return Err("nothing was renewed".to_owned());
    }
    same("logins", person.logins(), 1)?;
    let again = world.refresh(&grant, &first).await?;
    same("the answer", &again["error"], &json!("invalid_grant"))?;
    end_of(&second).await?;
    same("the tool", said(&client, "echo").await?, "hello".to_owned())?;
    same("logins", person.logins(), 2)
}

/// A token that is bound to a key comes with a proof, with the nonces that provider and server want,
/// and is worth nothing without.
async fn dpop(world: &World) -> Checked {
    let (person, store) = (world.person(), MemoryStore::new());
    let client = world.connect("/bound", person.auth().store(store.clone())).await?;
    same("the tool", said(&client, "echo").await?, "hello".to_owned())?;
    let (_, first) = world.grant(&store, "/bound").await?;
    end_of(&first).await?;
    same("the tool", said(&client, "echo").await?, "hello".to_owned())?;
    same("logins", person.logins(), 1)?;
    let (grant, tokens) = world.grant(&store, "/bound").await?;
    same("the scheme", tokens.scheme, Scheme::Dpop)?;
    refused(world, "/bound", &tokens).await?;
    let seen = world.seen_of(&grant).await?;
    let asked = seen.iter().filter(|it| it["route"] == "token").collect::<Vec<_>>();
    same("requests without a proof", asked.iter().filter(|it| it["proof"] != true).count(), 0)?;
    let nonces = count(&seen, &[("route", "token"), ("error", "use_dpop_nonce")]);
    same("nonces that were asked for", nonces > 0, true)?;
    let renewed = [("route", "token"), ("grant", "refresh_token")];
    same("that it was renewed with a proof", count(&seen, &renewed) > 0, true)
}

/// A token that says nothing itself: the server asks the provider.
async fn introspect(world: &World) -> Checked {
    let (person, store) = (world.person(), MemoryStore::new());
    let before = world.seen().await?.len();
    let client = world.connect("/opaque", person.auth().store(store.clone())).await?;
    let (grant, tokens) = world.grant(&store, "/opaque").await?;
    let me = format!("ada, with {}", grant.registration.client_id);
    same("who asks", said(&client, "whoami").await?, me)?;
    same("parts of the token", tokens.access.expose().split('.').count(), 1)?;
    let seen = world.seen().await?.split_off(before);
    let asked = [("route", "introspection"), ("client", "a server")];
    same("that the provider was asked", count(&seen, &asked) > 0, true)?;
    // It was made for another.
    let client = world.connect("/mcp", person.auth().store(store.clone())).await?;
    said(&client, "echo").await?;
    let (_, other) = world.grant(&store, "/mcp").await?;
    refused(world, "/opaque", &other).await
}

/// A client that is nobody's, with a secret in the header and in the body.
async fn secret(world: &World) -> Checked {
    for (id, method) in [("a robot", TokenAuth::Basic), ("a poster", TokenAuth::Post)] {
        let mut registered = Registered::new(id);
        registered.secret = Some(Secret::new(SECRET));
        registered.method = Some(method);
        let auth = Auth::client_credentials(id, Secret::new(SECRET)).registered(registered);
        alone(world, id, auth).await?;
    }
    Ok(())
}

/// The same with a signature, and again with a token that is bound to a key.
async fn signature(world: &World) -> Checked {
    let mut settings = Settings::default();
    settings.way = Way::ClientCredentials;
    settings.registered = Some(Registered::new("a signer"));
    settings.key = Some(world.signer.clone());
    alone(world, "a signer", Auth::with(settings.clone())).await?;
    let client = world.connect("/bound", Auth::with(settings)).await?;
    same("who asks", said(&client, "whoami").await?, "a signer, with a signer".to_owned())
}

async fn alone(world: &World, id: &str, auth: Auth) -> Checked {
    let before = world.seen().await?.len();
    let client = world.connect("/mcp", auth).await?;
    same("who asks", said(&client, "whoami").await?, format!("{id}, with {id}"))?;
    let seen = world.seen().await?.split_off(before);
    let asked = [("route", "token"), ("grant", "client_credentials"), ("client", id)];
    same("tokens", count(&seen, &asked), 1)
}

/// What was granted is taken back by the provider: it neither renews nor lets in any more.
async fn log_out(world: &World) -> Checked {
    let (person, store) = (world.person(), MemoryStore::new());
    let auth = || person.auth().store(store.clone());
    world.log_in("/opaque", auth()).await?;
    let (grant, tokens) = world.grant(&store, "/opaque").await?;
    let url = world.at("/opaque");
    let out = world.builder().auth(auth()).log_out(&url).await.map_err(|it| it.to_string())?;
    same("logging out", out, LoggedOut::Revoked)?;
    if world.grant(&store, "/opaque").await.is_ok() {
        return Err("something is still kept".to_owned());
    }
    let renewed = world.refresh(&grant, &tokens).await?;
    same("the answer", &renewed["error"], &json!("invalid_grant"))?;
    refused(world, "/opaque", &tokens).await
}

/// A client that is logged in says goodbye, and nobody has to log in for that.
async fn shut_down(world: &World) -> Checked {
    let person = world.person();
    let client = world.connect("/mcp", person.auth()).await?;
    said(&client, "echo").await?;
    let late = |_| "closing took too long".to_owned();
    timeout(CLOSING, client.close()).await.map_err(late)?;
    same("logins", person.logins(), 1)
}

/// Waits until a token is good no more.
async fn end_of(tokens: &Tokens) -> Checked {
    let end = tokens.expires_at.ok_or("the token has no end")?;
    while SystemClock.now() <= end {
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Whoever shows this token, as it is, is let in.
async fn with_token(world: &World, path: &str, tokens: &Tokens) -> turnbuckle::Result<String> {
    let shown = format!("Bearer {}", tokens.access.expose());
    let client: Client =
        world.builder().header("authorization", shown).connect(world.at(path)).await?;
    Ok(client.call_tool("echo", json!({"text": "hello"})).await?.to_text())
}

/// Whoever shows this token, as it is, is turned away because of it.
async fn refused(world: &World, path: &str, tokens: &Tokens) -> Checked {
    let Err(error) = with_token(world, path, tokens).await else {
        return Err(format!("the token is taken at {path}"));
    };
    same("the error", error.kind(), ErrorKind::AuthorizationRequired)?;
    let why = error.challenge().and_then(|challenge| challenge.error.as_deref());
    same("the reason", why, Some("invalid_token"))
}

/// How often the provider was asked like this.
fn count(seen: &[Value], like: &[(&str, &str)]) -> usize {
    seen.iter().filter(|it| like.iter().all(|(key, value)| it[*key] == *value)).count()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Checked {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{what}: {got:?} instead of {wanted:?}"))
}
