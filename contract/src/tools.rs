//! Owns the tools. Does not own what they count: the ledger does.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle::{
    Args, Ctx, Json, Limits, RpcError, Server, State, ToolError,
    elicit::elicit,
    server::{ToolDef, blocking_tool},
    tool,
    types::LogLevel,
};

use crate::{Fixture, LONG_GRACE, Ledger, SECRET, SHORT_GRACE};

/// A server with every tool of the suite.
///
/// ```
/// use turnbuckle::Limits;
/// use turnbuckle_contract::{Fixture, server};
/// let fixture = Fixture::default();
/// server(&fixture, Limits::default()).check().unwrap();
/// assert_eq!(fixture.of("key").started, 0);
/// ```
pub fn server(fixture: &Fixture, limits: Limits) -> Server {
    let server = Server::new("contract", "1.0")
        .instructions("A fixture.")
        .limits(limits)
        .state(fixture.clone())
        .tools(plain_tools())
        .tools(failing_tools())
        .tools(holding_tools())
        .tools(speaking_tools())
        .tool(tool("inquire", inquire));
    fixture.watches(server.changes());
    server
}

#[derive(Deserialize, JsonSchema)]
struct Key {
    key: String,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Bytes {
    bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    n: u32,
}

#[derive(Deserialize, JsonSchema)]
struct KeyedSteps {
    key: String,
    n: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    key: String,
    method: String,
}

/// A request as its handler sees it.
#[derive(Serialize, JsonSchema)]
struct Identity {
    /// The id's token: a string has its quotes.
    id: String,
    revision: String,
    token: Option<String>,
}

/// What `inquire` asks for.
#[derive(Deserialize, JsonSchema)]
struct Reply {
    #[expect(dead_code, reason = "it is asked for, and that is all")]
    name: Option<String>,
}

/// Asks the client twice under its key before it answers.
async fn inquire(
    Args(Key { key }): Args<Key>,
    ctx: Ctx,
    State(fixture): State<Fixture>,
) -> Result<String, ToolError> {
    fixture.start(&key).finish();
    for question in ["first", "second"] {
        ctx.ask(question, elicit::<Reply>(key.clone())).await?;
    }
    Ok(format!("{} rounds", fixture.of(&key).started))
}

fn plain_tools() -> [ToolDef; 8] {
    [
        tool("echo", async |Args(Text { text }): Args<Text>| text),
        tool("add", async |Args(Add { a, b }): Args<Add>| Json(Sum { sum: a + b })),
        tool("huge", async |Args(Bytes { bytes }): Args<Bytes>| "x".repeat(bytes)),
        tool("identity", async |ctx: Ctx| {
            let token = ctx.meta().progress_token().ok().flatten();
            Json(Identity {
                id: ctx.request_id().to_string(),
                revision: ctx.revision().to_string(),
                token: token.map(|token| token.to_string()),
            })
        }),
        tool("report", async |State(fixture): State<Fixture>| Json::<Ledger>(fixture.ledger())),
        tool("release", async |Args(Key { key }): Args<Key>, State(fixture): State<Fixture>| {
            fixture.release(&key);
        }),
        tool("touch", async |State(fixture): State<Fixture>| fixture.touch()),
        tool("leave", async |State(fixture): State<Fixture>| fixture.leave()),
    ]
}

fn failing_tools() -> [ToolDef; 6] {
    async fn panic() -> String {
        panic!("{SECRET}")
    }
    fn panic_blocking() -> String {
        panic!("{SECRET}")
    }
    async fn broken() -> Result<String, std::io::Error> {
        Err(std::io::Error::other(SECRET))
    }
    async fn refuse() -> Result<String, RpcError> {
        Err(RpcError::new(-32099, "refused").with_data(&json!({"why": [1, "two"]})))
    }
    async fn panic_later(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>) -> String {
        let _running = fixture.start(&key);
        fixture.gate(&key).await;
        panic!("{SECRET}")
    }
    [
        tool("panic", panic),
        blocking_tool("panic_blocking", panic_blocking),
        tool("panic_later", panic_later),
        tool("broken", broken),
        tool("refuse", refuse),
        tool("fail", async |Args(Text { text }): Args<Text>| {
            Err::<(), ToolError>(ToolError::new(text))
        }),
    ]
}

fn holding_tools() -> [ToolDef; 7] {
    [
        tool("hold", hold),
        tool("moved", moved),
        tool("shielded", shielded),
        tool("cooperative", cooperative).cooperative(LONG_GRACE),
        tool("stubborn", cooperative).cooperative(SHORT_GRACE),
        blocking_tool("blocking", blocking),
        blocking_tool("deaf", deaf),
    ]
}

/// Waits until released.
async fn hold(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>) -> String {
    let running = fixture.start(&key);
    fixture.gate(&key).await;
    running.finish();
    key
}

/// Waits until released, and has a task elsewhere that learns of a cancel and then tries to
/// speak for the dead.
async fn moved(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>, ctx: Ctx) -> String {
    let running = fixture.start(&key);
    let elsewhere = (ctx.clone(), fixture.clone(), key.clone());
    tokio::spawn(async move {
        let (ctx, fixture, key) = elsewhere;
        tokio::select! {
            () = ctx.cancelled() => {}
            () = fixture.gate(&key) => return,
        }
        ctx.progress(1_000).await;
        ctx.log(LogLevel::Emergency, "said after the cancel").await;
        fixture.count(&key, |count| count.cancelled += u64::from(ctx.is_cancelled()));
    });
    fixture.gate(&key).await;
    running.finish();
    key
}

/// Waits until released in a piece that nothing stops: `reached` counts that piece's end.
async fn shielded(
    Args(Key { key }): Args<Key>,
    State(fixture): State<Fixture>,
    ctx: Ctx,
) -> String {
    let running = fixture.start(&key);
    let piece = {
        let (fixture, key) = (fixture.clone(), key.clone());
        async move {
            fixture.gate(&key).await;
            fixture.count(&key, |count| count.reached += 1);
            key
        }
    };
    let key = ctx.shielded(piece).await;
    running.finish();
    key
}

/// Sees that it is cancelled, and then still waits until released.
async fn cooperative(
    Args(Key { key }): Args<Key>,
    State(fixture): State<Fixture>,
    ctx: Ctx,
) -> String {
    let running = fixture.start(&key);
    tokio::select! {
        () = fixture.gate(&key) => {}
        () = ctx.cancelled() => {
            fixture.count(&key, |count| count.cancelled += 1);
            fixture.gate(&key).await;
        }
    }
    running.finish();
    key
}

/// A sync function that ends when it is released or sees that it is cancelled.
fn blocking(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>, ctx: Ctx) -> String {
    let running = fixture.start(&key);
    wait(|| fixture.is_open(&key) || ctx.is_cancelled());
    if !fixture.is_open(&key) {
        fixture.count(&key, |count| count.cancelled += 1);
    }
    running.finish();
    key
}

/// A sync function that ends when it is released, cancelled or not.
fn deaf(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>, ctx: Ctx) -> String {
    let running = fixture.start(&key);
    wait(|| fixture.is_open(&key));
    fixture.count(&key, |count| count.cancelled += u64::from(ctx.is_cancelled()));
    running.finish();
    key
}

/// Holds the thread until `wish` holds. A thread that is forgotten would keep a test that has
/// failed from ending, so it does not wait for ever.
pub(crate) fn wait(wish: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(25);
    while !wish() {
        assert!(Instant::now() < deadline, "nobody let this thread go");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

fn speaking_tools() -> [ToolDef; 7] {
    [
        tool("progress", async |Args(Steps { n }): Args<Steps>, ctx: Ctx| {
            for step in 1..=n {
                ctx.progress(step).total(n).await;
            }
            "done"
        }),
        tool("progress_then_hold", progress_then_hold),
        tool("late", late),
        tool("log", async |Args(Text { text }): Args<Text>, ctx: Ctx| {
            ctx.log(LogLevel::Info, text).await;
        }),
        tool("ask", ask),
        tool("noise", async |Args(Text { text }): Args<Text>| noise(&text)),
        tool("mutter", async |Args(Text { text }): Args<Text>| eprintln!("{text}")),
    ]
}

/// Reports progress, counts that as `reached`, then waits until released.
async fn progress_then_hold(
    Args(KeyedSteps { key, n }): Args<KeyedSteps>,
    State(fixture): State<Fixture>,
    ctx: Ctx,
) -> String {
    let running = fixture.start(&key);
    for step in 1..=n {
        ctx.progress(step).total(n).await;
    }
    fixture.count(&key, |count| count.reached += 1);
    fixture.gate(&key).await;
    running.finish();
    key
}

/// Answers at once, and leaves a task that speaks when released: `reached` counts that.
async fn late(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>, ctx: Ctx) -> String {
    let answer = key.clone();
    tokio::spawn(async move {
        fixture.gate(&key).await;
        ctx.progress(1_000).await;
        ctx.log(LogLevel::Emergency, "said after the end").await;
        fixture.count(&key, |count| count.reached += 1);
    });
    answer
}

/// Asks the client something, and gives up when released.
async fn ask(
    Args(Question { key, method }): Args<Question>,
    State(fixture): State<Fixture>,
    ctx: Ctx,
) -> Result<String, ToolError> {
    let running = fixture.start(&key);
    let answer = tokio::select! {
        answer = ctx.request(&method, ()) => answer,
        () = fixture.gate(&key) => {
            running.finish();
            return Ok("gave up".to_owned());
        }
    };
    running.finish();
    match answer {
        Ok(raw) => Ok(raw.as_str().to_owned()),
        Err(error) => Err(ToolError::new(error.to_string())),
    }
}

/// Prints, and lets a child of its own print, where a careless handler would.
fn noise(text: &str) -> Result<(), std::io::Error> {
    println!("{text} from println");
    eprintln!("{text} from eprintln");
    let status = std::process::Command::new("sh")
        .args(["-c", &format!("cat; echo '{text} from a child'")])
        .status()?;
    status.success().then_some(()).ok_or_else(|| std::io::Error::other("the child failed"))
}
