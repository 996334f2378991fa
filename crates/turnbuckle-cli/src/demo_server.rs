//! Owns the demo server: tools that show what a server can do, and count what happens to
//! them. Does not own the wire it is served on.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use turnbuckle::{
    Args, Changes, Ctx, Json, Server, State, Tool, ToolError, tool, types::ToolAnnotations,
};

/// The demo server.
pub(crate) fn server() -> Server {
    let mut info =
        turnbuckle::types::Implementation::new("turnbuckle-demo", env!("CARGO_PKG_VERSION"));
    info.title = Some("Turnbuckle's demo server".to_owned());
    let server = Server::new("turnbuckle-demo", env!("CARGO_PKG_VERSION"));
    let changes = server.changes();
    server
        .info(info)
        .instructions("Tools that show calls, progress, errors and cancellation. None changes anything.")
        .state(Counts::default())
        .state(changes)
        .tools([
            tool("echo", echo).title("Echo").description("Returns the text it is given."),
            tool("add", add).title("Add").description("Adds two integers."),
            tool("sleep", sleep_for).title("Sleep").description("Does nothing for a while."),
            tool("countdown", countdown)
                .title("Count down")
                .description("Reports progress `from` times, then says `done`."),
            tool("announce", announce).title("Announce").description(
                "Tells every client that listens that the list of tools has changed, although it \
                 has not.",
            ),
            tool("fail", fail).title("Fail").description("Fails with the message it is given."),
            tool("panic", panic).title("Panic").description(
                "Panics. The caller gets an internal error; the server lives on.",
            ),
            tool("stats", stats).title("Statistics").description(
                "Tells how many calls of the other tools were started, completed and cancelled, \
                 and how many are running.",
            ),
        ]
        .map(harmless))
}

fn harmless(tool: Tool) -> Tool {
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(true);
    annotations.open_world_hint = Some(false);
    tool.annotations(annotations)
}

/// What happened to the calls of all tools but `stats`.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub(crate) struct Stats {
    /// Calls whose handler began.
    pub(crate) started: u64,
    /// Calls whose handler ran to its end, in whatever way: an error or a panic is an end too.
    pub(crate) completed: u64,
    /// Calls whose handler was stopped before its end.
    pub(crate) cancelled: u64,
    /// Calls whose handler is running.
    pub(crate) in_flight: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// The text to return.
    text: String,
}

async fn echo(Args(echo): Args<Echo>, State(counts): State<Counts>) -> String {
    counts.count(async { echo.text }).await
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The one integer.
    a: i64,
    /// The other integer.
    b: i64,
}

#[derive(JsonSchema, Serialize)]
struct Sum {
    /// Both together.
    sum: i64,
}

async fn add(Args(add): Args<Add>, State(counts): State<Counts>) -> Result<Json<Sum>, ToolError> {
    counts
        .count(async {
            let sum = add.a.checked_add(add.b);
            sum.map(|sum| Json(Sum { sum }))
                .ok_or(ToolError::new("the sum is too large for an integer of 64 bits"))
        })
        .await
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    /// For how many milliseconds.
    ms: u64,
}

async fn sleep_for(Args(Sleep { ms }): Args<Sleep>, State(counts): State<Counts>) -> String {
    counts
        .count(async {
            sleep(Duration::from_millis(ms)).await;
            format!("slept for {ms} ms")
        })
        .await
}

#[derive(Deserialize, JsonSchema)]
struct Countdown {
    /// How many steps there are.
    from: u32,
    /// Milliseconds before each step: 100 if absent.
    delay_ms: Option<u64>,
}

async fn countdown(
    Args(Countdown { from, delay_ms }): Args<Countdown>,
    ctx: Ctx,
    State(counts): State<Counts>,
) -> &'static str {
    let delay = Duration::from_millis(delay_ms.unwrap_or(100));
    counts
        .count(async {
            for step in 1..=from {
                sleep(delay).await;
                ctx.progress(step).total(from).message(format!("{} to go", from - step)).await;
            }
            "done"
        })
        .await
}

async fn announce(State(changes): State<Changes>, State(counts): State<Counts>) -> String {
    counts
        .count(async {
            changes.tools();
            let streams = changes.listeners();
            let noun = if streams == 1 { "stream" } else { "streams" };
            format!("told {streams} {noun}")
        })
        .await
}

#[derive(Deserialize, JsonSchema)]
struct Fail {
    /// What the error says.
    message: String,
}

async fn fail(Args(fail): Args<Fail>, State(counts): State<Counts>) -> Result<(), ToolError> {
    counts.count(async { Err(ToolError::new(fail.message)) }).await
}

async fn panic(State(counts): State<Counts>) {
    counts.count(async { panic!("the tool `panic` was called") }).await
}

async fn stats(State(counts): State<Counts>) -> Json<Stats> {
    Json(*counts.lock())
}

/// Counts that all handlers share.
#[derive(Clone, Debug, Default)]
struct Counts(Arc<Mutex<Stats>>);

impl Counts {
    /// Runs the body of a handler, and counts how it ends.
    async fn count<T>(&self, body: impl Future<Output = T>) -> T {
        let mut running = Running::new(self);
        let result = body.await;
        running.end = End::Completed;
        result
    }

    fn lock(&self) -> MutexGuard<'_, Stats> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run of a handler.
struct Running<'a> {
    counts: &'a Counts,
    end: End,
}

enum End {
    Completed,
    /// What is true of a handler that is dropped before it says otherwise.
    Cancelled,
}

impl<'a> Running<'a> {
    fn new(counts: &'a Counts) -> Running<'a> {
        let mut stats = counts.lock();
        stats.started += 1;
        stats.in_flight += 1;
        drop(stats);
        Running { counts, end: End::Cancelled }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut stats = self.counts.lock();
        stats.in_flight -= 1;
        match self.end {
            End::Cancelled if !std::thread::panicking() => stats.cancelled += 1,
            _ => stats.completed += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle::Client;

    use super::*;

    async fn client() -> Client {
        Client::in_process(&server()).await.unwrap()
    }

    async fn stats_of(client: &Client) -> Stats {
        let result = client.call_tool("stats", ()).await.unwrap();
        result.structured_content.unwrap().decode().unwrap()
    }

    #[tokio::test]
    async fn every_tool_has_a_title_and_a_description() {
        let tools = client().await.tools().all().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut expected =
            ["echo", "add", "sleep", "countdown", "announce", "fail", "panic", "stats"];
        assert_eq!(names.len(), expected.len());
        expected.sort_unstable();
        assert!(expected.iter().all(|name| names.contains(name)), "{names:?}");
        assert!(tools.iter().all(|tool| tool.title.is_some() && tool.description.is_some()));
    }

    #[tokio::test]
    async fn every_ending_is_counted_as_what_it_is() {
        let client = client().await;
        client.call_tool("echo", json!({"text": "hi"})).await.unwrap();
        let failed = client.call_tool("fail", json!({"message": "no"})).await.unwrap();
        assert_eq!(failed.is_error, Some(true));
        assert!(client.call_tool("panic", ()).await.is_err());
        let expected = Stats { started: 3, completed: 3, cancelled: 0, in_flight: 0 };
        assert_eq!(stats_of(&client).await, expected);
    }

    #[tokio::test]
    async fn a_dropped_call_counts_as_cancelled() {
        let client = client().await;
        let mut sleeping = client.call_tool("sleep", json!({"ms": 3_600_000})).into_future();
        let running = tokio::select! {
            biased;
            _ = &mut sleeping => panic!("it did not sleep"),
            stats = stats_of(&client) => stats,
        };
        assert_eq!(running, Stats { started: 1, completed: 0, cancelled: 0, in_flight: 1 });
        drop(sleeping);
        let stopped = Stats { started: 1, completed: 0, cancelled: 1, in_flight: 0 };
        assert_eq!(stats_of(&client).await, stopped);
    }

    #[tokio::test(start_paused = true)]
    async fn a_countdown_reports_each_step_and_then_says_done() {
        let (sender, receiver) = std::sync::mpsc::sync_channel(16);
        let result = client()
            .await
            .call_tool("countdown", json!({"from": 3}))
            .on_progress(move |progress| sender.send((progress.progress, progress.total)).unwrap())
            .await
            .unwrap();
        assert_eq!(result.content[0].as_text(), Some("done"));
        let steps: Vec<_> = receiver.iter().collect();
        assert_eq!(steps, [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);
    }

    #[tokio::test]
    async fn a_sum_that_does_not_fit_is_an_error_for_the_caller() {
        let client = client().await;
        let sum = client.call_tool("add", json!({"a": 2, "b": 40})).await.unwrap();
        assert_eq!(sum.structured_content.unwrap().as_str(), r#"{"sum":42}"#);
        let over = client.call_tool("add", json!({"a": i64::MAX, "b": 1})).await.unwrap();
        assert_eq!(over.is_error, Some(true));
    }
}
