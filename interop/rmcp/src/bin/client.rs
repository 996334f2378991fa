//! rmcp as a client of the interop checks.
//!
//! Owns: the same checks that every other client runs. Does not own: anything about rmcp itself.

#![expect(deprecated, reason = "what is deprecated is still spoken")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, GetPromptRequestParams, Implementation, ListRootsResult,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ResourceContents,
    ResourceUpdatedNotificationParam, Root, SamplingMessage, ServerCapabilities,
    ServerNotification, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

const USAGE: &str = "usage: client [--revision R] (--url URL | --command WORD…)";
const TOOLS: [&str; 10] = [
    "add",
    "ask",
    "ask_model",
    "ask_roots",
    "count",
    "echo",
    "fail",
    "hold",
    "touch",
    "was_cancelled",
];
const ROOT: &str = "file:///home/ada";
const PHRASE: &str = "Grüße, 世界 ✓";
const ONE_CHECK: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a check did not pass.
enum Failure {
    Absent(String),
    Failed(String),
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Failed(error.to_string())
    }
}

type Outcome = Result<(), Failure>;

/// A user called Ada, who answers every question with that, whose model knows one number, and who
/// works at home.
#[derive(Clone)]
struct Ada {
    progress: Arc<Mutex<Vec<(f64, Option<f64>)>>>,
    /// What a legacy server says by itself.
    news: mpsc::Sender<String>,
}

impl ClientHandler for Ada {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder()
            .enable_elicitation()
            .enable_sampling()
            .enable_roots()
            .build();
        let mut config =
            ClientConfig::new(capabilities, Implementation::new("interop-rmcp", "1.0.0"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" })))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let said = SamplingMessage::assistant_text("forty-two");
        Ok(CreateMessageResult::new(said, "a-model".to_owned()))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(ROOT)]))
    }

    async fn on_resource_updated(
        &self,
        updated: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.news.send(format!("updated {}", updated.uri)).await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.news.send(CHANGED.to_owned()).await;
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let mut seen = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((progress.progress, progress.total));
    }
}

struct Peer {
    service: RunningService<RoleClient, Ada>,
    user: Ada,
    news: tokio::sync::Mutex<mpsc::Receiver<String>>,
}

const UPDATED: &str = "updated note://one";
const CHANGED: &str = "tools changed";

impl Peer {
    async fn connect(options: &Options) -> Result<Peer, Failure> {
        let lifecycle = match options.revision.as_deref() {
            Some("2025-11-25") => ClientLifecycleMode::Initialize,
            _ => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
        };
        let (said, news) = mpsc::channel(100);
        let user = Ada { progress: Arc::default(), news: said };
        let service = match &options.target {
            Target::Url(url) => {
                let transport = StreamableHttpClientTransport::from_uri(url.clone());
                user.clone().serve_with_lifecycle(transport, lifecycle).await?
            }
            Target::Command(words) => {
                let mut command = tokio::process::Command::new(&words[0]);
                command.args(&words[1..]);
                let transport = TokioChildProcess::new(command)?;
                user.clone().serve_with_lifecycle(transport, lifecycle).await?
            }
        };
        Ok(Peer { service, user, news: news.into() })
    }

    fn revision(&self) -> String {
        let info = self.service.peer_info();
        info.map(|info| info.protocol_version.to_string()).unwrap_or_default()
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Result<CallToolResult, Failure> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        Ok(self.service.call_tool(params).await?)
    }

    /// Asks until the server says that `hold` is in this state.
    async fn until(&self, state: &str) -> Outcome {
        let started = Instant::now();
        loop {
            let found = text(&self.call("was_cancelled", json!({})).await?);
            if found == state {
                return Ok(());
            }
            ensure(started.elapsed() < PATIENCE, || format!("`hold` is {found}, not {state}"))?;
        }
    }

    async fn check(&self, name: &str) -> Outcome {
        match name {
            "list" => self.list().await,
            "call" => {
                let result = self.call("echo", json!({ "text": PHRASE })).await?;
                ensure(succeeded(&result) && text(&result) == PHRASE, || got(&result))
            }
            "structured" => {
                let result = self.call("add", json!({ "a": 2, "b": 3 })).await?;
                ensure(result.structured_content == Some(json!({ "sum": 5 })), || got(&result))
            }
            "progress" => self.progress().await,
            "tool-error" => {
                let result = self.call("fail", json!({})).await?;
                let told = !succeeded(&result) && text(&result).contains("failed on purpose");
                ensure(told, || got(&result))
            }
            "abandon" => {
                tokio::select! {
                    result = self.call("hold", json!({})) => {
                        result?;
                        return Err(Failure::Failed("`hold` returned".to_owned()));
                    }
                    held = self.until("holding") => held?,
                }
                self.until("stopped").await
            }
            "elicit" => {
                let result = self.call("ask", json!({})).await?;
                ensure(succeeded(&result) && text(&result) == "hello Ada", || got(&result))
            }
            "sample" => {
                let result = self.call("ask_model", json!({})).await?;
                ensure(succeeded(&result) && text(&result) == "said forty-two", || got(&result))
            }
            "roots" => {
                let result = self.call("ask_roots", json!({})).await?;
                ensure(succeeded(&result) && text(&result) == ROOT, || got(&result))
            }
            "resource" => {
                self.declared("resources", |server| server.resources.is_some())?;
                self.reads("note://one", "the first note").await
            }
            "template" => {
                self.declared("resources", |server| server.resources.is_some())?;
                let listed = self.service.list_all_resource_templates().await?;
                let found = listed.iter().any(|each| each.uri_template == "note://about/{name}");
                ensure(found, || format!("listed {listed:?}"))?;
                self.reads("note://about/ada", "a note about ada").await
            }
            "prompt" => self.prompt().await,
            "complete" => {
                self.declared("completions", |server| server.completions.is_some())?;
                let found = self.service.complete_prompt_simple("greet", "name", "A").await?;
                ensure(found == ["Ada", "Alan"], || format!("got {found:?}"))
            }
            "listen" => {
                self.declared("subscriptions to resources", |server| {
                    server.resources.as_ref().and_then(|has| has.subscribe) == Some(true)
                })?;
                let watch = SubscriptionFilter::builder();
                self.heard(watch.resource_subscriptions(["note://one"]).build(), UPDATED).await
            }
            _ => {
                self.declared("changes of its tools", |server| {
                    server.tools.as_ref().and_then(|has| has.list_changed) == Some(true)
                })?;
                self.heard(SubscriptionFilter::builder().tools_list_changed().build(), CHANGED)
                    .await
            }
        }
    }

    /// Whether the server declares what a check needs.
    fn declared(&self, what: &str, has: fn(&ServerCapabilities) -> bool) -> Outcome {
        match self.service.peer_info() {
            Some(info) if !has(&info.capabilities) => {
                Err(Failure::Absent(format!("the server declares no {what}")))
            }
            _ => Ok(()),
        }
    }

    async fn prompt(&self) -> Outcome {
        self.declared("prompts", |server| server.prompts.is_some())?;
        let listed = self.service.list_all_prompts().await?;
        let found = listed.iter().any(|prompt| prompt.name == "greet");
        ensure(found, || format!("listed {listed:?}"))?;
        let arguments = json!({ "name": "Ada" }).as_object().cloned().unwrap_or_default();
        let params = GetPromptRequestParams::new("greet").with_arguments(arguments);
        let result = self.service.get_prompt(params).await?;
        let said = result.messages.first().and_then(|message| message.content.as_text());
        ensure(said.is_some_and(|said| said.text == "Greet Ada"), || format!("got {result:?}"))
    }

    /// Listens, has the server touched, and waits for what it says of that.
    async fn heard(&self, watch: SubscriptionFilter, wanted: &str) -> Outcome {
        if self.revision() != ProtocolVersion::V_2025_11_25.to_string() {
            let mut listening = self.service.listen(watch).await?;
            self.call("touch", json!({})).await?;
            let news = timeout(PATIENCE, listening.next()).await.map_err(|_| unheard())??;
            listening.cancel().await?;
            let said = match &news {
                Some(ServerNotification::ResourceUpdatedNotification(updated)) => {
                    format!("updated {}", updated.params.uri)
                }
                Some(ServerNotification::ToolListChangedNotification(_)) => CHANGED.to_owned(),
                other => format!("{other:?}"),
            };
            return ensure(said == wanted, || format!("heard {said}"));
        }
        let uris = watch.resource_subscriptions.unwrap_or_default();
        for uri in &uris {
            self.service.subscribe(SubscribeRequestParams::new(uri)).await?;
        }
        self.call("touch", json!({})).await?;
        let mut news = self.news.lock().await;
        let heard = async { while news.recv().await.is_some_and(|said| said != wanted) {} };
        timeout(PATIENCE, heard).await.map_err(|_| unheard())?;
        for uri in uris {
            self.service.unsubscribe(UnsubscribeRequestParams::new(uri)).await?;
        }
        Ok(())
    }

    async fn list(&self) -> Outcome {
        let tools = self.service.list_all_tools().await?;
        let names: BTreeSet<&str> = tools.iter().map(|tool| &*tool.name).collect();
        ensure(names == BTreeSet::from(TOOLS), || format!("listed {names:?}"))?;
        let described = tools.iter().any(|tool| tool.name == "add" && tool.output_schema.is_some());
        ensure(described, || "`add` has no output schema".to_owned())
    }

    async fn progress(&self) -> Outcome {
        let result = self.call("count", json!({})).await?;
        ensure(succeeded(&result), || got(&result))?;
        let seen = self.user.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let wanted = [1.0, 2.0, 3.0].map(|step| (step, Some(3.0)));
        ensure(seen == wanted, || format!("saw {seen:?} before the result"))
    }

    async fn reads(&self, uri: &str, wanted: &str) -> Outcome {
        let result = self.service.read_resource(ReadResourceRequestParams::new(uri)).await?;
        let note = match result.contents.first() {
            Some(ResourceContents::TextResourceContents { text, .. }) => text.as_str(),
            _ => "",
        };
        ensure(note == wanted, || format!("got {result:?}"))
    }
}

fn unheard() -> Failure {
    Failure::Failed("nothing was heard".to_owned())
}

fn text(result: &CallToolResult) -> String {
    let text = |block: &rmcp::model::ContentBlock| block.as_text().map(|text| text.text.clone());
    result.content.iter().filter_map(text).collect()
}

fn succeeded(result: &CallToolResult) -> bool {
    result.is_error != Some(true)
}

fn got(result: &CallToolResult) -> String {
    format!("got {result:?}")
}

fn ensure(holds: bool, sentence: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::Failed(sentence())) }
}

fn say(check: &str, outcome: Result<String, Failure>) {
    let (outcome, detail) = match outcome {
        Ok(detail) => ("pass", detail),
        Err(Failure::Absent(detail)) => ("absent", detail),
        Err(Failure::Failed(detail)) => ("fail", detail),
    };
    println!("{}", json!({ "check": check, "outcome": outcome, "detail": detail }));
}

struct Options {
    revision: Option<String>,
    target: Target,
}

enum Target {
    Url(String),
    Command(Vec<String>),
}

impl Options {
    fn parse() -> Option<Options> {
        let mut words = std::env::args().skip(1);
        let mut word = words.next()?;
        let mut revision = None;
        if word == "--revision" {
            revision = Some(words.next()?);
            word = words.next()?;
        }
        let rest: Vec<String> = words.collect();
        let target = match (word.as_str(), rest.as_slice()) {
            ("--url", [url]) => Target::Url(url.clone()),
            ("--command", [_, ..]) => Target::Command(rest),
            _ => return None,
        };
        Some(Options { revision, target })
    }
}

#[tokio::main]
async fn main() {
    let Some(options) = Options::parse() else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let late = || Failure::Failed("it took too long".to_owned());
    let peer = match timeout(ONE_CHECK, Peer::connect(&options)).await {
        Ok(Ok(peer)) => peer,
        Ok(Err(failure)) => return say("connect", Err(failure)),
        Err(_) => return say("connect", Err(late())),
    };
    say("connect", Ok(peer.revision()));
    let checks = [
        "list",
        "call",
        "structured",
        "progress",
        "tool-error",
        "abandon",
        "elicit",
        "sample",
        "roots",
        "resource",
        "template",
        "prompt",
        "complete",
        "listen",
        "changed",
    ];
    for check in checks {
        let outcome = timeout(ONE_CHECK, peer.check(check)).await.unwrap_or_else(|_| Err(late()));
        say(check, outcome.map(|()| String::new()));
    }
    let closed = timeout(PATIENCE, peer.service.cancel()).await;
    let closed = closed.map_err(|_| late()).and_then(|ended| Ok(ended?));
    say("shutdown", closed.map(|_| String::new()));
}
