//! The demo server: tools, resources and a prompt that show what a server can do.

mod counts;
mod shelf;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use turnbuckle::{
    Args, Ctx, Json, Server, State, ToolError,
    elicit::elicit,
    server::{Changes, ToolDef},
    tool,
    types::{LogLevel, ToolAnnotations},
};

use counts::Counts;
pub(crate) use counts::Stats;
pub(crate) use shelf::wind;

/// The demo server.
pub(crate) fn server() -> Server {
    let mut info =
        turnbuckle::types::Implementation::new("turnbuckle-demo", env!("CARGO_PKG_VERSION"));
    info.title = Some("Turnbuckle's demo server".to_owned());
    let server = Server::new("turnbuckle-demo", env!("CARGO_PKG_VERSION"));
    let changes = server.changes();
    server
        .info(info)
        .instructions(
            "Tools that show calls, progress, questions, errors and cancellation, a few resources \
             and a prompt. Nothing here changes anything.",
        )
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
            tool("greet", greet)
                .title("Greet")
                .description("Asks the user for a name, then greets."),
            tool("log", log).title("Log").description(
                "Logs a message, for those who want messages as severe as this.",
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
        .group(shelf::group())
}

fn harmless(tool: ToolDef) -> ToolDef {
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(true);
    annotations.open_world_hint = Some(false);
    tool.annotations(annotations)
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
struct Name {
    /// What you are called.
    name: String,
}

async fn greet(ctx: Ctx, State(counts): State<Counts>) -> Result<String, ToolError> {
    counts
        .count(async {
            let Name { name } = ctx.ask("name", elicit("What is your name?")).await?;
            Ok(format!("Hello, {name}!"))
        })
        .await
}

#[derive(Deserialize, JsonSchema)]
struct Log {
    /// How severe it is.
    level: Level,
    /// What is said.
    message: String,
}

/// The levels of the protocol.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> LogLevel {
        match level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Notice => LogLevel::Notice,
            Level::Warning => LogLevel::Warning,
            Level::Error => LogLevel::Error,
            Level::Critical => LogLevel::Critical,
            Level::Alert => LogLevel::Alert,
            Level::Emergency => LogLevel::Emergency,
        }
    }
}

async fn log(
    Args(Log { level, message }): Args<Log>,
    ctx: Ctx,
    State(counts): State<Counts>,
) -> &'static str {
    counts
        .count(async {
            ctx.log_from("demo", level.into(), message).await;
            "logged"
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle::{
        Client, Revision,
        types::{ElicitAction, ElicitResult, PromptReference, ResourceTemplateReference},
    };

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
        let mut expected = [
            "echo",
            "add",
            "sleep",
            "countdown",
            "announce",
            "greet",
            "log",
            "fail",
            "panic",
            "stats",
        ];
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

    #[tokio::test]
    async fn who_is_greeted_is_asked_for_in_both_eras() {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let client = Client::builder()
                .revision(revision)
                .on_elicitation(async |_| {
                    let mut answer = ElicitResult::new(ElicitAction::Accept);
                    answer.content = Some(json!({"name": "Ada"}).into());
                    Ok(answer)
                })
                .in_process(&server())
                .await
                .unwrap();
            let greeted = client.call_tool("greet", ()).await.unwrap();
            assert_eq!(greeted.to_text(), "Hello, Ada!", "{revision}");
        }
    }

    #[tokio::test]
    async fn what_there_is_to_read_can_be_read_and_completed() {
        let client = client().await;
        let listed = client.resources().all().await.unwrap();
        let uris: Vec<&str> = listed.iter().map(|resource| resource.uri.as_str()).collect();
        assert_eq!(uris[..2], ["demo://readme", "demo://clock"]);
        for uri in uris {
            assert!(!client.read_resource(uri).await.unwrap().to_text().is_empty(), "{uri}");
        }
        let missing = client.read_resource("demo://items/101").await.unwrap_err();
        assert_eq!(missing.as_rpc().unwrap().code, -32602);
        let review = PromptReference::new("review");
        let found = client.complete(review, "language", "ru").await.unwrap();
        assert_eq!(found.completion.values, ["ruby", "rust"]);
        let items = ResourceTemplateReference::new("demo://items/{id}");
        let found = client.complete(items, "id", "9").await.unwrap();
        assert_eq!(found.completion.values.len(), 11);
        let arguments = json!({"language": "rust", "code": "fn main() {}"});
        let prompt = client.get_prompt("review", arguments).await.unwrap();
        assert!(prompt.messages[0].content.as_text().unwrap().contains("Rust code"));
    }

    #[tokio::test]
    async fn a_message_is_logged_for_those_who_want_it() {
        let (sender, receiver) = std::sync::mpsc::sync_channel(16);
        let client = Client::builder()
            .on_notification(move |method, _| sender.send(method.to_owned()).unwrap())
            .in_process(&server())
            .await
            .unwrap();
        for (level, is_heard) in [("info", false), ("error", true)] {
            let call = client.call_tool("log", json!({"level": level, "message": "hear"}));
            call.meta("io.modelcontextprotocol/logLevel", json!("warning")).await.unwrap();
            assert_eq!(receiver.try_recv().is_ok(), is_heard, "{level}");
        }
    }
}
